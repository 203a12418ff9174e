"""Invariants in every order of events from the coordinator, the network, the clock and the application."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from groupwright.assignors import Topic
from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.events import Assign, Closed, Event, MaxPollExceeded, Revoke
from groupwright.consumer._protocol.model import JoinGroupPayload, MemberIdentity, MetadataResponse, keys
from groupwright.consumer._protocol.subscription import parse_subscription
from groupwright.consumer._protocol.transitions import State, Step
from groupwright.core import ErrorCode

if TYPE_CHECKING:
    from consumer.tests.conftest import Player

CODES = st.sampled_from([0, 0, *ErrorCode, 28, 999])
TOPICS = st.sampled_from([("t",), ("u",), ("t", "u"), ("^t",), ("^.", "u")])
EXISTING = st.sampled_from([{"t": 2}, {"t": 2, "u": 4}, {"t": 5, "u": 4}, {"u": 4, "tt": 1}, {}])
ASSIGNMENTS = st.sampled_from([b"", b"t:0", b"t:0,1;u:0", b"u:3", b"other:0", b"!"])
STEPS_TO_PEACE = 60


class World(RuleBasedStateMachine):
    """One member, and everything that may happen to it."""

    new_player: Callable[..., "Player"]
    cooperative: bool

    @initialize(static=st.booleans())
    def begin(self, *, static: bool) -> None:
        self.player = self.new_player(static=static, cooperative=self.cooperative)
        self.holds: set[tuple[str, int]] = set()
        """The partitions that the application owns by its callbacks."""
        self.member = self.player.member
        self.under_way: Event | None = None
        self.abandoned = False
        self.lost_requests: list[act.Action] = []
        self.commits: list[MemberIdentity] = []
        self.delivered: list[Assign | Revoke] = []

    # --- The application

    @rule(topics=TOPICS)
    def subscribe(self, topics: tuple[str, ...]) -> None:
        if not self.abandoned:
            self.feed(self.member.subscribe, parse_subscription(topics))

    @rule()
    def unsubscribe(self) -> None:
        if not self.abandoned:
            self.feed(self.member.unsubscribe)

    @precondition(lambda self: not self.member.facts.closing)
    @rule(abandon=st.booleans(), sure=st.integers(0, 5))
    def close(self, *, abandon: bool, sure: int) -> None:
        if sure == 0 and abandon:
            self.abandoned = True
            self.player.inbox.clear()
            self.under_way = None
            self.feed(self.member.abandon)
        elif sure == 0:
            self.feed(self.member.close)

    @precondition(lambda self: self.player.inbox and self.under_way is None and not self.abandoned)
    @rule()
    def take_event(self) -> None:
        event = self.player.event()
        if isinstance(event, Assign | Revoke):
            self.check_event(event)
            self.under_way = event
        elif isinstance(event, MaxPollExceeded):
            self.feed(self.member.resume)

    @precondition(lambda self: self.under_way is not None)
    @rule()
    def end_callbacks(self) -> None:
        event, self.under_way = self.under_way, None
        assert event is not None
        self.player.apply(event)
        self.check()

    @rule()
    def poll_after_a_refusal(self) -> None:
        if self.player.refused:
            self.player.refused.clear()
            self.feed(self.member.resume)

    @rule(seconds=st.sampled_from([0.001, 0.1, 1.0, 3.0, 9.999, 10.0, 30.0, 100.0]), polling=st.booleans())
    def time_passes(self, seconds: float, *, polling: bool) -> None:
        self.player.wait(seconds, polling=polling and self.under_way is None)
        self.check()

    @rule()
    def commit(self) -> None:
        identity = self.member.commit_identity()
        if isinstance(identity, MemberIdentity):
            if identity.valid:
                assert identity == self.member.identity
            else:
                assert identity == MemberIdentity(self.member.facts.last_generation)
                assert self.member.subscription is None or identity == MemberIdentity()
            self.commits.append(identity)
            self.feed(self.member.want_coordinator)

    @precondition(lambda self: self.commits)
    @rule(code=CODES, answered=st.booleans())
    def end_commit(self, code: int, *, answered: bool) -> None:
        identity = self.commits.pop(0)
        if answered:
            self.feed(self.member.commit_answered, identity, code)
        else:
            self.feed(self.member.commit_unanswered)

    @rule(under_way=st.booleans())
    def commits_are_under_way(self, *, under_way: bool) -> None:
        """JoinGroup waits for them, and is sent when they have ended."""
        if under_way:
            self.player.joins_wait = True
        else:
            self.player.end_commits()
        self.check()

    # --- The network

    @precondition(lambda self: self.player.asked)
    @rule(data=st.data())
    def answer(self, data: st.DataObject) -> None:
        action = data.draw(st.sampled_from(self.player.asked))
        match action:
            case act.FindCoordinator():
                self.end_look_up(data.draw(st.sampled_from(["found", "found", "missing", "refused"])))
            case act.SendJoinGroup():
                self.player.answer_join(
                    data.draw(CODES), leads=data.draw(st.booleans()), **self.odd_join(data)
                )
            case act.PerformAssignment():
                self.end_plan(action, works=data.draw(st.booleans()))
            case act.SendSyncGroup():
                self.player.answer_sync(data.draw(ASSIGNMENTS), data.draw(CODES))
            case act.FetchOffsets():
                self.player.answer_offsets(error=data.draw(CODES))
            case act.SendHeartbeat():
                self.player.answer_heartbeat(data.draw(CODES))
            case act.SendLeaveGroup():
                self.player.asked.remove(action)
                self.reply(action, act.Answered(data.draw(CODES)))
        self.check()

    @precondition(lambda self: self.player.looks)
    @rule(found=st.booleans(), topics=EXISTING, refusal=st.sampled_from([None, None, 29]))
    def end_look(self, *, found: bool, topics: dict[str, int], refusal: int | None) -> None:
        if found:
            self.player.answer_look(topics)
        else:
            look = self.player.looks.pop()
            if refusal is None:
                self.reply(look, act.Disconnected())
            else:
                self.reply(look, act.Refused(refusal, "no answer"))
        self.check()

    def odd_join(self, data: st.DataObject) -> dict[str, Any]:
        return data.draw(st.sampled_from([{}, {}, {"protocol_type": "connect"}, {"skip_assignment": True}]))

    def end_look_up(self, how: str) -> None:
        action = self.player.take(act.FindCoordinator)
        if how == "found":
            self.reply(action, act.Answered())
        elif how == "refused":
            self.reply(action, act.Refused(30, how))
        else:
            self.reply(action, act.Disconnected())

    def end_plan(self, plan: act.PerformAssignment, *, works: bool) -> None:
        self.player.asked.remove(plan)
        if works:
            answer = MetadataResponse({"t": Topic(2)})
            computed = act.GroupAssignment({"m-1": b"t:0"}, frozenset({"t", "u"}), answer)
            self.reply(plan, act.Answered(computed))
        else:
            self.reply(plan, act.Refused(0, "it failed"))

    @precondition(lambda self: self.player.asked)
    @rule(data=st.data(), defect=st.booleans())
    def a_request_cannot_be_sent(self, data: st.DataObject, *, defect: bool) -> None:
        """The broker is too old, or the request is defective; both are reported, and polling goes on."""
        action = data.draw(st.sampled_from(self.player.asked))
        if not isinstance(action, act.SendJoinGroup | act.SendSyncGroup | act.FetchOffsets):
            return
        self.player.asked.remove(action)
        if defect:
            self.reply(action, act.Broken())
            self.feed(self.member.resume)
        else:
            self.reply(action, act.Refused(35, "too old"))

    @rule()
    def the_connection_breaks(self) -> None:
        self.player.disconnect()
        self.check()

    @precondition(lambda self: self.player.asked)
    @rule(data=st.data())
    def an_old_answer_comes_late(self, data: st.DataObject) -> None:
        """Such as the response to an abandoned attempt: it must change nothing."""
        facts = self.member.facts
        last = facts.attempt if facts.step is Step.IDLE else facts.attempt - 1
        old = data.draw(st.integers(0, max(0, last)))
        before = (self.member.identity, self.member.state, self.member.owned)
        identity = self.member.identity
        requests: list[act.Request] = [
            act.SendJoinGroup(old, JoinGroupPayload("m-1", ())),
            act.PerformAssignment(old, "range", ()),
            act.SendSyncGroup(old, identity),
            act.FetchOffsets(old, {"t": (0,)}),
            act.SendOffsetCommits(old),
            act.SendLeaveGroup(old, identity, "why"),
        ]
        request = data.draw(st.sampled_from(requests))
        for reply in (act.Answered(), act.Disconnected(), act.Refused(35, "late"), act.Broken()):
            self.reply(request, reply)
        self.feed(self.member.taken, old)
        self.feed(self.member.applied, old)
        assert before == (self.member.identity, self.member.state, self.member.owned)

    # --- What must hold

    def feed(self, method: Callable[..., list[act.Action]], *args: Any) -> None:
        self.player.feed(method, *args)
        self.check()

    def reply(self, request: act.Request, reply: act.Reply) -> None:
        self.feed(self.member.reply, request, reply)

    def check_event(self, event: Assign | Revoke) -> None:
        """No partition is gained twice or revoked unheld; an eager application holds all or none."""
        if isinstance(event, Assign):
            gained = set(keys(event.gained))
            assert not gained & self.holds
            self.holds |= gained
            assert self.holds == set(keys(event.owned))
            assert self.cooperative or gained == self.holds
            assert (
                self.cooperative
                or not self.delivered
                or isinstance(self.delivered[-1], Revoke)
                or not self.delivered[-1].owned
            )
        else:
            given_up = set(keys(event.partitions))
            assert given_up <= self.holds
            assert given_up or not self.cooperative
            assert given_up == self.holds or (self.cooperative and not event.lost)
            assert self.cooperative or isinstance(self.delivered[-1], Assign)
            self.holds -= given_up
        self.delivered.append(event)

    @invariant()
    def check(self) -> None:
        player, member = self.player, self.member
        waiting = [event for event in player.inbox if isinstance(event, Assign | Revoke)]
        held = [*waiting, *([self.under_way] if self.under_way is not None else [])]
        assert len(held) <= 1 or self.abandoned
        if not held and not self.abandoned:
            assert set(keys(member.owned)) == self.holds

        rounds = [
            action for action in player.asked if isinstance(action, act.SendJoinGroup | act.SendSyncGroup)
        ]
        assert len(rounds) <= 1
        joining = player.asks(act.SendJoinGroup)
        if joining or player.asks(act.SendSyncGroup):
            assert not held
            assert self.cooperative or not self.holds
            # What is kept is a claim; without a generation there is nothing to claim by.
            assert member.identity.valid or not self.holds
        assert joining <= (member.state is State.PREPARING_REBALANCE)

        for action in player.asked:
            if isinstance(action, act.SendSyncGroup):
                assert action.identity == member.identity
        assert len(player.looks) <= 1

        due = member.next_tick(player.now)
        assert due is None or due >= player.now
        if member.closed:
            assert due is None

    @invariant()
    def nothing_comes_after_the_end(self) -> None:
        if self.member.closed:
            assert not any(isinstance(event, Assign | Revoke) for event in self.player.inbox)
            assert self.member.owned == {} or self.abandoned
            assert not any(
                isinstance(action, act.SendJoinGroup | act.SendSyncGroup) for action in self.player.asked
            )

    # --- What must come about

    def teardown(self) -> None:
        """From now on every request succeeds, and the application polls: the member must settle."""
        if not hasattr(self, "player"):
            return
        for _ in range(STEPS_TO_PEACE):
            if self.at_peace():
                return
            self.let_go_well()
        pytest.fail(
            f"not settled: {self.member.state}, {self.member.facts.step}, "
            f"{self.player.asked}, {self.player.inbox}"
        )

    def at_peace(self) -> bool:
        member, player = self.member, self.player
        if player.inbox and not self.abandoned:
            return isinstance(player.inbox[0], Closed)
        if self.under_way is not None or player.refused:
            return False
        if member.facts.closing:
            return member.closed
        if member.subscription is None or member.facts.fenced:
            return member.state is State.UNJOINED and not member.facts.leaving and member.owned == {}
        return (
            member.state is State.STABLE
            and member.facts.step is Step.IDLE
            and member.facts.rejoin_reason is None
            and isinstance(self.delivered[-1], Assign)
            and self.delivered[-1].timeline is not None
        )

    def let_go_well(self) -> None:
        player = self.player
        player.polled = player.now
        if self.under_way is not None:
            self.end_callbacks()
        elif player.inbox and not self.abandoned:
            self.take_event()
        elif player.refused:
            self.poll_after_a_refusal()
        elif player.joins_wait:
            player.end_commits()
        elif player.asked:
            self.answer_well(player.asked[0])
        elif player.looks:
            player.answer_look({"t": 1, "u": 1})
        else:
            due = self.member.next_tick(player.now)
            assert due is not None, f"stuck: {self.member.state}, {self.member.facts.step}"
            player.wait_until(due)
        self.check()

    def answer_well(self, action: act.Action) -> None:
        match action:
            case act.FindCoordinator():
                self.end_look_up("found")
            case act.SendJoinGroup():
                self.player.answer_join()
            case act.PerformAssignment():
                self.end_plan(action, works=True)
            case act.SendSyncGroup():
                topics = self.member.facts.joined_subscription
                self.player.answer_sync(dict.fromkeys(topics, (0,)) if topics else b"")
            case act.FetchOffsets():
                self.player.answer_offsets()
            case act.SendHeartbeat():
                self.player.answer_heartbeat()
            case act.SendLeaveGroup():
                self.player.asked.remove(action)
                self.reply(action, act.Answered(0))
            case act.StayInGroup():
                self.player.asked.remove(action)  # it tells, and asks for nothing


@pytest.mark.medium
@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_a_member_keeps_its_promises_whatever_happens(
    new_player: Callable[..., "Player"], *, cooperative: bool
) -> None:
    """Random histories of responses (every code), disconnects, time, callbacks, subscriptions and commits.

    At every step: at most one JoinGroup or SyncGroup is open, and meanwhile an eager application holds no
    partition, and a cooperative one none without a generation; the membership's owned partitions equal
    those of the callbacks; no partition is gained twice or revoked unheld; commits carry the identity of a
    stable member; the clock never runs backwards; no request follows the close. From every step on: once
    every request succeeds, the member settles, stable or closed, within a bounded number of steps.
    """

    class WorldOfOne(World):
        pass

    WorldOfOne.new_player = staticmethod(new_player)
    WorldOfOne.cooperative = cooperative
    run_state_machine_as_test(
        WorldOfOne,
        settings=settings(
            max_examples=120,
            stateful_step_count=60,
            deadline=None,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
