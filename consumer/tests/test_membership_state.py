"""The table of a membership's transitions and the invariants of its state."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, get_args

import pytest

from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.events import Revoke
from groupwright.consumer._protocol.membership_state import Incoming, InvariantError, MembershipState
from groupwright.consumer._protocol.model import JoinGroupResponse, MemberIdentity
from groupwright.consumer._protocol.subscription import parse_subscription
from groupwright.consumer._protocol.transitions import (
    TRANSITIONS,
    Cause,
    IllegalTransitionError,
    Lifecycle,
    Node,
    State,
    Step,
)

if TYPE_CHECKING:
    from consumer.tests.conftest import Player

MACHINES: tuple[type[Node], ...] = (State, Step, Lifecycle)
AXES: dict[type[Node], str] = {State: "state", Step: "step", Lifecycle: "lifecycle"}
ME = MemberIdentity(1, "m-1", "range")

# --- The table ------------------------------------------------------------------------------------------


def test_the_table_has_every_value_and_every_cause() -> None:
    assert set(TRANSITIONS) == {node for machine in MACHINES for node in machine}
    assert {cause for row in TRANSITIONS.values() for cause in row} == set(Cause)


def test_a_transition_stays_in_its_machine() -> None:
    assert all(type(target) is type(source) for source, row in TRANSITIONS.items() for target in row.values())


def moved_by(cause: Cause) -> set[type[Node]]:
    return {type(node) for node, row in TRANSITIONS.items() if cause in row}


ILLEGAL = [
    (node, cause)
    for node, row in TRANSITIONS.items()
    for cause in Cause
    if type(node) in moved_by(cause) and cause not in row
]


@pytest.mark.parametrize(("node", "cause"), ILLEGAL, ids=[f"{node}-{cause.name}" for node, cause in ILLEGAL])
def test_an_illegal_transition_raises_and_moves_nothing(node: Node, cause: Cause) -> None:
    others = {
        AXES[machine]: next(each for each in machine if cause in TRANSITIONS[each])
        for machine in moved_by(cause) - {type(node)}
    }
    fields: dict[str, Any] = {**others, AXES[type(node)]: node}
    state = MembershipState(**fields)
    before = replace(state)

    with pytest.raises(IllegalTransitionError, match=f"{node} has no transition for {cause.name}"):
        state.move(cause)

    assert state == before


# --- Every row is taken ---------------------------------------------------------------------------------


def refuse_lookup(player: "Player") -> None:
    """Lose the coordinator to a commit that has no response; its look-up is then refused."""
    player.feed(player.member.commit_unanswered)
    player.reply(player.take(act.FindCoordinator), act.Refused(30, "not allowed"))


def a_round_with_errors(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join(79, member_id="m-1")
    player.answer_join()
    player.answer_sync(error=27)
    player.answer_join()
    player.answer_sync(error=25)
    player.answer_join(25)
    player.answer_join(24)
    player.feed(player.member.resume)
    player.wait(1)
    player.answer_join()
    player.answer_sync(error=30)
    player.feed(player.member.resume)
    player.wait(1)
    player.settle({"t": (0,)})
    player.feed(player.member.enforce_rebalance, "because")
    player.serve()
    player.answer_join()
    player.answer_sync({"t": (0,)})
    player.answer_offsets(error=30)


def a_lost_generation(player: "Player") -> None:
    player.join({"t": (0,)})
    player.beat()
    player.answer_heartbeat(25)


def refused_look_ups(player: "Player") -> None:
    """The look-up is refused while JoinGroup waits for commits, and again while the assignor runs."""
    player.subscribe("t")
    player.reply(player.take(act.FindCoordinator), act.Refused(30, "not allowed"))
    player.feed(player.member.resume)
    player.wait(2)
    player.find()
    sent = player.take(act.SendJoinGroup)
    refuse_lookup(player)
    assert player.member.state is State.UNJOINED
    joined = JoinGroupResponse(0, 1, "consumer", "range", "m-1", "m-1", ())
    player.reply(sent, act.Answered(joined))
    player.feed(player.member.resume)
    player.wait(2)
    player.find()
    refuse_lookup(player)
    assert player.member.state is State.UNJOINED
    player.answer_plan({"t": 1})
    player.answer_sync({"t": (0,)})


def offsets_that_come_late(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": (0,)})
    player.answer_offsets(error=14)
    player.wait(1)
    player.feed(player.member.enforce_rebalance, "because")


def unsubscribe(player: "Player") -> None:
    player.feed(player.member.unsubscribe)


def close(player: "Player") -> None:
    player.feed(player.member.close)


def a_plan_that_fails(player: "Player") -> None:
    player.plan()
    player.reply(player.take(act.PerformAssignment), act.Refused(0, "it failed"))


def leaving_in_a_plan(player: "Player") -> None:
    player.plan()
    unsubscribe(player)
    unsubscribe(player)
    player.answer_leave()
    assert player.member.facts.lifecycle is Lifecycle.ACTIVE


def leaving_in_a_join(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    unsubscribe(player)


def leaving_in_a_sync(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join()
    unsubscribe(player)
    close(player)


def leaving_while_offsets_are_fetched(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": (0,)})
    unsubscribe(player)


def closing_step_by_step(player: "Player") -> None:
    player.commits_end = False
    player.join({"t": (0,)})
    close(player)
    close(player)
    unsubscribe(player)
    player.serve()
    assert player.asks(act.SendOffsetCommits)
    player.beat()
    player.answer_heartbeat(25)
    assert player.member.closed
    close(player)
    unsubscribe(player)


def closing_twice(player: "Player") -> None:
    """Another call does not send the commits again: LeaveGroup follows them."""
    player.commits_end = False
    player.join({})
    close(player)
    close(player)
    unsubscribe(player)
    player.answer_leave()
    assert player.member.closed


def closing_at_once(player: "Player") -> None:
    player.join({})
    unsubscribe(player)
    close(player)
    player.answer_leave(16)
    player.find()
    player.wait(1)
    player.answer_leave()
    assert player.member.closed


SCENARIOS = (
    a_round_with_errors,
    a_lost_generation,
    refused_look_ups,
    offsets_that_come_late,
    a_plan_that_fails,
    leaving_in_a_plan,
    leaving_in_a_join,
    leaving_in_a_sync,
    leaving_while_offsets_are_fetched,
    closing_step_by_step,
    closing_twice,
    closing_at_once,
)


def test_every_row_of_the_table_is_taken(
    new_player: Callable[[], "Player"], monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: set[tuple[Node, Cause]] = set()
    move = MembershipState.move

    def recorded(state: MembershipState, cause: Cause) -> None:
        before = (state.state, state.step, state.lifecycle)
        move(state, cause)
        taken.update((node, cause) for node in before if cause in TRANSITIONS[node])

    monkeypatch.setattr(MembershipState, "move", recorded)
    for scenario in SCENARIOS:
        scenario(new_player())

    assert {(node, cause) for node, row in TRANSITIONS.items() for cause in row} - taken == set()


# --- Replies --------------------------------------------------------------------------------------------


StepRequest = (
    act.SendJoinGroup
    | act.PerformAssignment
    | act.SendSyncGroup
    | act.FetchOffsets
    | act.SendOffsetCommits
    | act.SendLeaveGroup
)


def reach(player: "Player", request: type[StepRequest]) -> None:
    """Go on until this request waits for its reply."""
    if request in {act.SendOffsetCommits, act.SendLeaveGroup}:
        player.commits_end = request is act.SendLeaveGroup
        player.join({"t": (0,)})
        close(player)
        player.serve()
    elif request is act.PerformAssignment:
        player.plan()
    else:
        player.subscribe("t")
        player.find()
        if request is not act.SendJoinGroup:
            player.answer_join()
        if request is act.FetchOffsets:
            player.answer_sync({"t": (0,)})
    assert player.asks(request)


@pytest.mark.parametrize(
    "reply",
    [act.Disconnected(), act.Refused(35, "too old"), act.Broken()],
    ids=lambda reply: type(reply).__name__,
)
@pytest.mark.parametrize("request_type", get_args(StepRequest))
def test_a_request_without_a_response_does_not_hold_its_member_up(
    new_player: Callable[[], "Player"], request_type: type[StepRequest], reply: act.Reply
) -> None:
    """Once the application has polled, another step begins, or the member is closed."""
    player = new_player()
    reach(player, request_type)
    sent = player.take(request_type)
    player.reply(sent, reply)
    player.feed(player.member.resume)
    if player.asks(act.FindCoordinator):
        player.find()
    player.wait(2)

    assert player.member.closed or player.member.facts.attempt > sent.attempt


# --- Invariants -----------------------------------------------------------------------------------------

SUBSCRIBED: dict[str, Any] = {
    "subscription": ("t",),
    "topic_subscription": parse_subscription(["t"]),
}
LEAVING: dict[str, Any] = {"step": Step.LEAVE, "lifecycle": Lifecycle.UNSUBSCRIBING}
STABLE: dict[str, Any] = {"state": State.STABLE, "identity": ME, **SUBSCRIBED}
OWNED = {"t": (0,)}

BROKEN: dict[str, dict[str, Any]] = {
    "a step is legal in its state": {"step": Step.OFFSETS, "incoming": Incoming(OWNED)},
    "a generation needs a valid identity": {"state": State.STABLE},
    "ASSIGN and SYNC need a valid identity": {"step": Step.ASSIGN},
    "an event is under way exactly in APPLICATION": {"step": Step.APPLICATION},
    "an event's ticket is its attempt": {
        "step": Step.APPLICATION,
        "attempt": 2,
        "event": Revoke(1, OWNED, lost=False),
    },
    "COMMITS belongs to FLUSHED": {"step": Step.COMMITS, "lifecycle": Lifecycle.CLOSING},
    "LEAVE belongs to a member that leaves": {"step": Step.LEAVE},
    "a member that sends LeaveGroup owns nothing": {**LEAVING, "owned": OWNED},
    "a member that has sent LeaveGroup has no identity": {**LEAVING, "identity": ME},
    "a fenced member takes part in no round": {
        "state": State.PREPARING_REBALANCE,
        "step": Step.JOIN,
        "fenced": 1,
    },
    "OFFSETS needs an assignment": {**STABLE, "step": Step.OFFSETS},
    "an assignment comes with a stable generation": {"incoming": Incoming(OWNED)},
    "a member that leaves takes no assignment": {
        **STABLE,
        "lifecycle": Lifecycle.UNSUBSCRIBING,
        "incoming": Incoming(OWNED),
    },
    "gained partitions are assigned and not owned yet": {
        **STABLE,
        "owned": OWNED,
        "incoming": Incoming(OWNED, gained=OWNED),
    },
    "an eager member joins without partitions, a cooperative one with those of a generation": {
        "state": State.PREPARING_REBALANCE,
        "step": Step.JOIN,
        "identity": ME,
        "owned": OWNED,
    },
    "a subscription has its topics": {"subscription": ("t",)},
    "a consumer that closes has no subscription": {**SUBSCRIBED, "lifecycle": Lifecycle.CLOSING},
    "a closed member has and does nothing": {"lifecycle": Lifecycle.CLOSED, "owned": OWNED},
}


def test_a_new_state_is_legal_and_each_rule_has_its_counterexample() -> None:
    state = MembershipState()

    state.check_invariants()
    assert [rule for rule, _ in state._invariants()] == list(BROKEN)


@pytest.mark.parametrize("rule", BROKEN)
def test_a_broken_invariant_is_named(rule: str) -> None:
    state = MembershipState(**BROKEN[rule])

    with pytest.raises(InvariantError) as raised:
        state.check_invariants()

    assert rule in str(raised.value).partition(": MembershipState")[0].split("; ")


def test_only_the_rules_that_are_broken_are_named() -> None:
    with pytest.raises(InvariantError, match=r"^a subscription has its topics: MembershipState"):
        MembershipState(subscription=("t",)).check_invariants()


def test_a_kept_partition_is_legal_in_a_cooperative_members_join() -> None:
    eager = BROKEN["an eager member joins without partitions, a cooperative one with those of a generation"]

    MembershipState(cooperative=True, **eager).check_invariants()


def test_the_players_check_every_input(stable: "Player") -> None:
    stable.member.facts.subscription = None

    with pytest.raises(InvariantError, match="a subscription has its topics"):
        stable.feed(stable.member.want_coordinator)
