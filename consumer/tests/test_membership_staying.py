"""A stable member: heartbeats, the session, the application's polls, and what a commit's answer says."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal

import pytest

from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.events import Assign, MaxPollExceeded, Revoke
from groupwright.consumer._protocol.model import MemberIdentity, MetadataResponse
from groupwright.consumer._protocol.transitions import State
from groupwright.core import ErrorCode

if TYPE_CHECKING:
    from consumer.tests.conftest import Player

After = Literal["nothing", "revoked", "lost", "lost with its id", "fenced", "refused", "elsewhere", "again"]

FORMER = MemberIdentity(0, "m-0", "range")
MOVED = {7, 15, 16}
"""Codes of a commit after which the coordinator is looked up."""


def expect(stable: "Player", after: After) -> None:
    """Check everything that may follow from an answer to the stable member m-1, which owns t-0 and t-1."""
    lost = after in {"lost", "lost with its id", "fenced"}
    if after in {"revoked", "refused"} or lost:
        event = stable.serve()
        assert isinstance(event, Revoke)
        assert (event.partitions, event.lost) == ({"t": (0, 1)}, lost)
        assert stable.member.owned == {}
    else:
        assert stable.member.state is State.STABLE
        assert stable.member.identity == MemberIdentity(1, "m-1", "range")
        assert stable.member.owned == {"t": (0, 1)}
    assert not stable.inbox
    assert len(stable.refused) == (after in {"fenced", "refused"})
    assert stable.asks(act.FindCoordinator) is (after == "elsewhere")
    assert stable.asks(act.SendJoinGroup) is (after in {"revoked", "lost", "lost with its id"})
    if stable.asks(act.SendJoinGroup):
        request = stable.take(act.SendJoinGroup).request
        ((_, subscription),) = request.protocols
        assert (request.member_id, subscription) == {
            "revoked": ("m-1", b"t owns [] of generation 1"),
            "lost with its id": ("m-1", b"t owns [] of generation -1"),
            "lost": ("", b"t owns [] of generation -1"),
        }[after]


# --- Heartbeats -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "after"),
    [
        pytest.param(0, "nothing", id="fine"),
        pytest.param(27, "revoked", id="rebalance in progress"),
        pytest.param(22, "lost with its id", id="illegal generation"),
        pytest.param(25, "lost", id="unknown member id"),
        pytest.param(69, "lost", id="group id not found"),
        pytest.param(82, "fenced", id="fenced instance id"),
        pytest.param(15, "elsewhere", id="the coordinator is not available"),
        pytest.param(16, "elsewhere", id="it is not the coordinator"),
        pytest.param(14, "again", id="the coordinator is loading"),
        pytest.param(-1, "again", id="unknown server error"),
        pytest.param(999, "again", id="an unknown code"),
        pytest.param(30, "again", id="group authorization failed"),
    ],
)
def test_what_a_heartbeats_answer_does(stable: "Player", error: int, after: After) -> None:
    stable.beat()

    stable.answer_heartbeat(error)

    expect(stable, after)
    if after == "elsewhere":
        stable.find()
        assert not stable.asks(act.SendHeartbeat)
    if after in {"again", "elsewhere"}:
        stable.wait(stable.timing.retry_backoff)
        assert stable.asks(act.SendHeartbeat)
    if after == "fenced":
        stable.feed(stable.member.resume)
        stable.wait(60)
        assert stable.asked == []


@pytest.mark.parametrize("error", [*ErrorCode, 999])
def test_an_answer_to_a_former_identity_changes_nothing(stable: "Player", error: int) -> None:
    """KAFKA-9823: the late answer to an old generation's heartbeat reset the new generation."""
    stable.beat()

    stable.answer_heartbeat(error, identity=FORMER)

    expect(stable, "nothing")


def test_all_is_calm_until_the_next_heartbeat_but_not_while_it_or_a_rebalance_is_under_way(
    stable: "Player",
) -> None:
    next_heartbeat = stable.now + stable.timing.heartbeat_interval
    assert stable.member.calm_until == pytest.approx(next_heartbeat)

    stable.beat()
    assert stable.member.calm_until == 0.0
    stable.answer_heartbeat()
    assert stable.member.calm_until == pytest.approx(stable.now + stable.timing.heartbeat_interval)

    stable.beat()
    stable.answer_heartbeat(ErrorCode.REBALANCE_IN_PROGRESS)
    assert stable.member.calm_until == 0.0


def test_without_a_group_all_is_calm(player: "Player") -> None:
    assert player.member.calm_until == math.inf

    player.subscribe("t")
    assert player.member.calm_until == 0.0


def test_a_heartbeat_that_breaks_off_loses_the_coordinator_and_nothing_else(stable: "Player") -> None:
    """KAFKA-13214: the member id was dropped with the connection, and the group waited a session for it."""
    stable.beat()
    stable.disconnect()

    expect(stable, "elsewhere")
    stable.find()
    stable.wait(stable.timing.retry_backoff)
    assert stable.take(act.SendHeartbeat).identity == MemberIdentity(1, "m-1", "range")


def test_a_heartbeat_that_fails_again_and_again_slows_down(stable: "Player") -> None:
    """KIP-580; the first one that succeeds ends it."""
    stable.beat()
    for doublings in range(3):
        stable.answer_heartbeat(999)
        pause = stable.timing.retry_backoff * 2**doublings
        stable.wait(pause * 0.9)
        assert not stable.asks(act.SendHeartbeat)
        stable.wait(pause * 0.2)
        assert stable.asks(act.SendHeartbeat)
    stable.answer_heartbeat(0)
    stable.beat()
    stable.answer_heartbeat(999)
    stable.wait(stable.timing.retry_backoff)
    assert stable.asks(act.SendHeartbeat)


def test_heartbeats_go_on_while_the_application_revokes_its_partitions(stable: "Player") -> None:
    """REBALANCE_IN_PROGRESS keeps the session alive; librdkafka #3450 expired the session instead."""
    stable.beat()
    stable.answer_heartbeat(27)
    stable.event()

    for _ in range(8):
        stable.beat()
        assert stable.member.state is State.STABLE
        stable.answer_heartbeat(27)

    assert not stable.inbox
    assert stable.member.owned == {"t": (0, 1)}


def test_no_heartbeat_is_sent_behind_a_parked_join_or_sync(stable: "Player") -> None:
    """The coordinator answers in order: it would only come after the rebalance, or time out with it."""
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()
    assert stable.member.state is State.PREPARING_REBALANCE
    stable.wait(stable.timing.session_timeout * 2)
    assert not stable.asks(act.SendHeartbeat)

    stable.answer_join()
    stable.wait(stable.timing.session_timeout * 2)
    assert not stable.asks(act.SendHeartbeat)
    assert stable.asks(act.SendSyncGroup)


def test_heartbeats_go_on_while_a_join_waits_for_commits(stable: "Player") -> None:
    """A commit may be retried for longer than a session; without heartbeats the member was expelled."""
    stable.joins_wait = True
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()
    assert stable.member.state is State.PREPARING_REBALANCE
    for _ in range(8):
        stable.beat()
        stable.answer_heartbeat(27)

    stable.end_commits()
    stable.wait(stable.timing.session_timeout * 2)
    assert not stable.asks(act.SendHeartbeat)
    stable.settle({"t": (0,)})
    assert stable.member.identity == MemberIdentity(2, "m-1", "range")


@pytest.mark.parametrize("error", [22, 25])
def test_a_member_that_was_removed_while_its_join_waited_joins_anew(stable: "Player", error: int) -> None:
    stable.joins_wait = True
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()
    first = stable.waiting_join
    stable.beat()
    stable.answer_heartbeat(error)

    assert first is not None
    assert not stable.member.awaits(first)
    stable.end_commits()
    expected = "m-1" if error == ErrorCode.ILLEGAL_GENERATION else ""
    assert stable.take(act.SendJoinGroup).request.member_id == expected


def test_heartbeats_go_on_while_the_assignor_runs(player: "Player") -> None:
    """KAFKA-10134: leaders that assigned for longer than a session were expelled."""
    player.plan()

    for _ in range(5):
        player.beat()
        player.answer_heartbeat()

    assert player.member.state is State.COMPLETING_REBALANCE
    assert player.asks(act.PerformAssignment)


@pytest.mark.parametrize(
    ("error", "member_id"), [(22, "m-1"), (25, "")], ids=["illegal generation", "unknown member id"]
)
def test_a_leader_that_is_expelled_while_it_plans_joins_again(
    player: "Player", error: int, member_id: str
) -> None:
    player.plan()
    player.beat()
    player.answer_heartbeat(error)
    assert player.take(act.SendJoinGroup).request.member_id == member_id

    computed = act.GroupAssignment({"m-1": b"t:0"}, frozenset({"t"}), MetadataResponse())
    player.reply(player.take(act.PerformAssignment), act.Answered(computed))
    assert not player.asks(act.SendSyncGroup)


def test_a_leader_hears_of_the_rebalance_that_it_is_in(player: "Player") -> None:
    player.plan()
    player.beat()
    player.answer_heartbeat(27)

    assert player.member.state is State.COMPLETING_REBALANCE
    assert not player.asks(act.SendJoinGroup)
    assert player.asks(act.PerformAssignment)


def test_a_heartbeat_does_not_wait_for_the_response_to_the_last_one(stable: "Player") -> None:
    stable.beat()
    stable.wait(stable.timing.heartbeat_interval * 2)

    assert [type(action) for action in stable.asked] == [act.SendHeartbeat] * 3


def test_a_coordinator_that_says_it_is_none_is_not_asked_in_a_loop(stable: "Player") -> None:
    """KAFKA-12639: a tight loop of retries, here of look-ups that each find the coordinator that was."""
    stable.beat()
    started = stable.now
    for _ in range(8):
        stable.answer_heartbeat(16)
        stable.find()
        while not stable.asks(act.SendHeartbeat):
            due = stable.member.next_tick(stable.now)
            assert due is not None
            stable.wait(due - stable.now)

    assert stable.now - started == pytest.approx(0.1 + 0.2 + 0.4 + 0.8 + 4 * 1.0)
    assert stable.member.owned == {"t": (0, 1)}


def test_a_coordinator_that_answered_well_since_is_asked_soon_again(stable: "Player") -> None:
    for _ in range(3):
        stable.beat()
        stable.answer_heartbeat(16)
        stable.find()
        lost_at = stable.now
        while not stable.asks(act.SendHeartbeat):
            due = stable.member.next_tick(stable.now)
            assert due is not None
            stable.wait_until(due)
        assert stable.now - lost_at == pytest.approx(stable.timing.retry_backoff)
        stable.answer_heartbeat()


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_a_refused_look_up_takes_nothing_away_before_the_session_ends(
    new_player: Callable[..., "Player"], *, static: bool
) -> None:
    """The right to find the coordinator was withdrawn: the member owns its partitions for the session."""
    player = new_player(static=static)
    player.join({"t": (0,)})
    player.disconnect()
    player.reply(act.FindCoordinator(), act.Disconnected())
    player.beat()
    player.disconnect()
    player.asked.clear()
    player.reply(act.FindCoordinator(), act.Refused(30, "not allowed"))
    assert [(refusal.error, refusal.detail) for refusal in player.refused] == [(30, "not allowed")]
    assert not player.inbox
    player.feed(player.member.resume)
    assert player.asks(act.FindCoordinator) or player.member.next_tick(player.now) is not None
    assert player.member.owned == {"t": (0,)}

    player.wait(player.timing.session_timeout)
    event = player.serve()
    assert isinstance(event, Revoke)
    assert event.lost


# --- The session ----------------------------------------------------------------------------------------


def test_a_session_without_an_answer_ends_and_everything_is_lost(stable: "Player") -> None:
    stable.wait(stable.timing.session_timeout)

    event = stable.serve()
    assert isinstance(event, Revoke)
    assert event.lost
    stable.find()
    stable.wait(stable.timing.retry_backoff)
    assert stable.take(act.SendJoinGroup).request.member_id == "m-1"


def test_the_session_is_counted_from_the_last_heartbeat_that_was_answered(stable: "Player") -> None:
    """The coordinator cannot have received a heartbeat before it was sent, however late its response came."""
    stable.beat()
    stable.wait(2)
    stable.answer_heartbeat()
    stable.wait(stable.timing.session_timeout - 2 - 0.001)
    assert not stable.inbox

    stable.wait(0.001)
    event = stable.serve()
    assert isinstance(event, Revoke)
    assert event.lost


def test_being_parked_keeps_the_session_up(stable: "Player") -> None:
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()
    stable.wait(stable.timing.session_timeout * 2)
    stable.answer_join()
    stable.wait(stable.timing.session_timeout * 2)
    stable.answer_sync({"t": (0,)})
    stable.answer_offsets()
    stable.wait(stable.timing.session_timeout - 0.001)

    assert isinstance(stable.serve(), Assign)
    assert not stable.inbox


@pytest.fixture
def waiting(new_player: Callable[..., "Player"]) -> "Player":
    """A cooperative member whose JoinGroup waits for commits."""
    player = new_player(cooperative=True)
    player.join({"t": (0, 1)})
    player.joins_wait = True
    player.beat()
    player.answer_heartbeat(27)
    return player


def test_the_session_is_that_of_the_heartbeats_while_a_join_waits_for_commits(waiting: "Player") -> None:
    """A cooperative member learned only from JoinGroup that others had its partitions."""
    ends = waiting.member.session_until
    waiting.wait_until(ends - 0.001)
    assert not waiting.inbox

    waiting.wait_until(ends)
    event = waiting.serve()
    assert isinstance(event, Revoke)
    assert event.lost


def test_a_join_that_could_not_be_sent_does_not_keep_the_session_up(waiting: "Player") -> None:
    until = waiting.member.session_until
    waiting.wait(1)
    waiting.disconnect()
    waiting.feed(waiting.member.commit_unanswered)
    waiting.end_commits()

    assert waiting.member.state is State.PREPARING_REBALANCE
    assert waiting.member.session_until == until


def test_a_session_that_ended_beside_another_event_still_ends(stable: "Player") -> None:
    """The time passed between two looks at the clock: what is past due must not fall between them."""
    stable.beat()
    stable.now += stable.timing.session_timeout
    stable.polled = stable.now
    stable.subscribe("t")

    assert stable.member.next_tick(stable.now) == stable.now
    stable.wait(0)
    event = stable.serve()
    assert isinstance(event, Revoke)
    assert event.lost


# --- The application's polls ----------------------------------------------------------------------------


def silent(player: "Player", seconds: float) -> None:
    """Let the application not poll for so long; heartbeats are answered."""
    end = player.now + seconds
    while player.now < end:
        player.wait_until(min(player.now + 1.0, end), polling=False)
        if player.asks(act.SendHeartbeat):
            player.answer_heartbeat()


def test_a_member_that_does_not_poll_leaves_and_joins_again_when_it_does(stable: "Player") -> None:
    silent(stable, stable.timing.max_poll_interval - 0.001)
    assert not stable.inbox

    silent(stable, 0.001)
    leave = stable.take(act.SendLeaveGroup)
    assert (leave.identity.member_id, leave.reason) == ("m-1", "the application stopped polling")
    exceeded = stable.serve()
    assert isinstance(exceeded, MaxPollExceeded)
    assert "did not poll for 30.0 s" in exceeded.message
    assert "max.poll.interval.ms (30000)" in exceeded.message
    event = stable.serve()
    assert isinstance(event, Revoke)
    assert (event.partitions, event.lost) == ({"t": (0, 1)}, True)
    stable.wait(60, polling=False)
    assert stable.asked == []

    stable.feed(stable.member.resume)
    assert stable.take(act.SendJoinGroup).request.member_id == ""


def test_a_static_member_that_does_not_poll_keeps_its_place(new_player: Callable[..., "Player"]) -> None:
    """KIP-345: no LeaveGroup; the coordinator ends the session by itself."""
    player = new_player(static=True)
    player.join({"t": (0,)})
    silent(player, player.timing.max_poll_interval)

    assert not player.asks(act.SendLeaveGroup)
    assert isinstance(player.serve(), MaxPollExceeded)
    assert isinstance(player.serve(), Revoke)


def test_a_member_that_polls_stays(stable: "Player") -> None:
    for _ in range(40):
        stable.wait(1)
        if stable.asks(act.SendHeartbeat):
            stable.answer_heartbeat()

    assert stable.member.state is State.STABLE
    assert not stable.inbox


def test_waiting_for_the_other_members_is_not_the_applications_silence(stable: "Player") -> None:
    """The coordinator's rebalance timeout is the limit there."""
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()
    stable.wait(stable.timing.max_poll_interval * 2, polling=False)
    stable.answer_join()

    stable.wait(stable.timing.max_poll_interval - 0.001, polling=False)
    assert stable.member.state is State.COMPLETING_REBALANCE


def test_a_leader_whose_application_is_silent_gives_up_its_plan(stable: "Player") -> None:
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()
    stable.answer_join(leads=True)
    silent(stable, stable.timing.max_poll_interval)
    assert isinstance(stable.serve(), MaxPollExceeded)
    assert stable.asks(act.SendLeaveGroup)

    computed = act.GroupAssignment({}, frozenset({"t"}), MetadataResponse())
    stable.reply(stable.take(act.PerformAssignment), act.Answered(computed))
    assert not stable.asks(act.SendSyncGroup)


def test_an_application_may_take_its_time_before_it_applies_its_first_assignment(player: "Player") -> None:
    """As with librdkafka, whose timer starts with the first assignment: a service may load its state."""
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": [0]})
    player.answer_offsets()
    silent(player, 2 * player.timing.max_poll_interval)
    assert not player.asks(act.SendLeaveGroup)

    assert isinstance(player.serve(), Assign)
    silent(player, player.timing.max_poll_interval)
    assert player.asks(act.SendLeaveGroup)


def test_an_application_must_poll_again_if_an_exception_has_interrupted_its_first_assignment(
    player: "Player",
) -> None:
    """A handler raised in on_assign; the application then kept its partitions without polling."""
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": [0]})
    player.answer_offsets()
    assert isinstance(player.event(), Assign)  # and is not applied
    silent(player, player.timing.max_poll_interval)
    assert player.asks(act.SendLeaveGroup)


def test_a_parked_sync_does_not_hold_back_the_leaving_of_a_silent_member(stable: "Player") -> None:
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()
    stable.answer_join()

    stable.wait(stable.timing.max_poll_interval, polling=False)

    assert stable.drops == 1
    assert stable.asks(act.SendLeaveGroup)
    assert not stable.asks(act.SendSyncGroup)


def test_one_that_unsubscribed_and_does_not_poll_keeps_no_partitions(stable: "Player") -> None:
    """It would have kept them, with heartbeats, for as long as the process lived."""
    stable.feed(stable.member.unsubscribe)
    silent(stable, stable.timing.max_poll_interval)

    assert stable.asks(act.SendLeaveGroup)
    events = [stable.serve(), stable.serve()]
    assert isinstance(events[0], MaxPollExceeded)
    assert isinstance(events[1], Revoke)
    assert events[1].lost
    stable.wait(60)
    assert not stable.asks(act.SendJoinGroup)


# --- Commits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "after"),
    [
        pytest.param(0, "nothing", id="fine"),
        pytest.param(14, "nothing", id="the coordinator is loading"),
        pytest.param(3, "nothing", id="unknown topic or partition"),
        pytest.param(12, "nothing", id="offset metadata too large"),
        pytest.param(28, "nothing", id="invalid commit offset size"),
        pytest.param(29, "nothing", id="topic authorization failed"),
        pytest.param(30, "nothing", id="group authorization failed"),
        pytest.param(999, "nothing", id="an unknown code"),
        pytest.param(15, "elsewhere", id="the coordinator is not available"),
        pytest.param(16, "elsewhere", id="it is not the coordinator"),
        pytest.param(7, "elsewhere", id="the request timed out"),
        pytest.param(27, "revoked", id="rebalance in progress"),
        pytest.param(22, "lost with its id", id="illegal generation"),
        pytest.param(25, "lost", id="unknown member id"),
        pytest.param(69, "lost", id="group id not found"),
        pytest.param(82, "fenced", id="fenced instance id"),
    ],
)
def test_what_a_commits_answer_does(stable: "Player", error: int, after: After) -> None:
    """franz-go 1.21.3 only logged 22 and 25: a zombie until the next heartbeat."""
    stable.feed(stable.member.commit_answered, stable.member.identity, error)

    expect(stable, after)


@pytest.mark.parametrize(
    ("error", "after"),
    [
        pytest.param(82, "fenced", id="its group.instance.id was taken"),
        pytest.param(25, "lost", id="it was removed"),
        pytest.param(0, "nothing", id="it is a member"),
    ],
)
def test_a_heartbeat_says_why_a_static_members_commit_found_no_member(
    new_player: Callable[..., "Player"], error: int, after: After
) -> None:
    """Beside members of KIP-848, a fenced member's commit is answered UNKNOWN_MEMBER_ID; its beat is not.

    Joining again at once took the group.instance.id back, and the newcomer died.
    """
    player = new_player(static=True)
    player.join({"t": (0, 1)})

    player.feed(player.member.commit_answered, player.member.identity, 25)
    expect(player, "nothing")
    player.answer_heartbeat(error)

    expect(player, after)


@pytest.mark.parametrize("error", sorted({*ErrorCode, 999} - MOVED))
def test_a_commit_of_a_former_identity_does_not_touch_this_one(stable: "Player", error: int) -> None:
    """The Java client resets the new generation too, unless it is just joining."""
    stable.feed(stable.member.commit_answered, FORMER, error)

    expect(stable, "nothing")


@pytest.mark.parametrize("error", sorted(MOVED))
def test_any_commit_tells_that_the_coordinator_moved(stable: "Player", error: int) -> None:
    stable.feed(stable.member.commit_answered, FORMER, error)

    expect(stable, "elsewhere")


def test_a_commit_that_breaks_off_loses_the_coordinator_and_nothing_else(stable: "Player") -> None:
    stable.feed(stable.member.commit_unanswered)

    expect(stable, "elsewhere")


@pytest.mark.parametrize("error", [22, 25, 27, 82])
def test_a_commits_answer_during_a_join_waits_for_the_joins_own(stable: "Player", error: int) -> None:
    """aiokafka #727: a commit's UNKNOWN_MEMBER_ID reset the ids of an open join, which synced without."""
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()

    stable.feed(stable.member.commit_answered, MemberIdentity(1, "m-1", "range"), error)
    assert stable.member.identity == MemberIdentity(1, "m-1", "range")
    assert not stable.refused
    stable.settle({"t": (0,)})
    assert stable.member.identity == MemberIdentity(2, "m-1", "range")


@pytest.mark.parametrize("error", sorted(MOVED))
def test_a_commit_for_which_a_join_waits_tells_that_the_coordinator_moved(
    stable: "Player", error: int
) -> None:
    """Else JoinGroup would wait for the deadline of the commit, which asks the former one until then."""
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()

    stable.feed(stable.member.commit_answered, stable.member.identity, error)
    assert not stable.member.coordinator.known
    stable.find()
    stable.wait(stable.timing.retry_backoff_max)
    stable.settle({"t": (0,)})
    assert stable.member.identity == MemberIdentity(2, "m-1", "range")


def test_who_commits_in_which_state(player: "Player") -> None:
    member = player.member
    assert member.commit_identity() == MemberIdentity()  # partitions assigned by hand
    player.subscribe("t")
    assert member.commit_identity() == MemberIdentity()  # in no generation yet
    player.find()
    assert member.commit_identity() == ErrorCode.REBALANCE_IN_PROGRESS
    assert not member.commits_wait
    player.answer_join()
    assert member.commit_identity() == ErrorCode.REBALANCE_IN_PROGRESS
    assert member.commits_wait  # the group may be stable already, before SyncGroup's response is read
    player.answer_sync({"t": (0,)})
    player.answer_offsets()
    assert member.commit_identity() == MemberIdentity(1, "m-1", "range")
    player.serve()
    player.beat()
    player.answer_heartbeat(27)
    player.event()
    assert member.commit_identity() == MemberIdentity(1, "m-1", "range")  # inside on_revoke


def test_a_commit_by_hand_looks_the_coordinator_up_without_a_subscription(player: "Player") -> None:
    player.feed(player.member.want_coordinator)
    player.find()
    for error in (22, 25, 27, 69, 82):
        player.feed(player.member.commit_answered, MemberIdentity(), error)

    assert player.asked == []
    assert not player.inbox
    assert not player.refused
    player.subscribe("t")
    player.see()
    player.settle({"t": (0,)})


def test_a_commit_looks_the_coordinator_up_again_after_a_refusal(player: "Player") -> None:
    """Without it none is looked up before the application polls."""
    player.feed(player.member.want_coordinator)
    player.reply(act.FindCoordinator(), act.Refused(30, "not allowed"))
    player.asked.clear()
    player.wait(60)
    assert player.asked == []

    player.feed(player.member.want_coordinator)
    assert player.asks(act.FindCoordinator)


# --- Interplay with the application ---------------------------------------------------------------------


def test_an_assignment_that_is_lost_before_it_is_seen_is_taken_back(stable: "Player") -> None:
    """KAFKA-8104: the ids were cleared between SyncGroup's response and on_assign, which was still called."""
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()
    stable.answer_join()
    stable.answer_sync({"t": (0,)})
    stable.answer_offsets()
    assert len(stable.inbox) == 1

    stable.beat()
    stable.answer_heartbeat(25)

    assert not stable.inbox
    assert stable.member.owned == {}
    assert stable.take(act.SendJoinGroup).request.member_id == ""


def test_an_assignment_that_is_lost_while_it_is_applied_is_lost_after_that(stable: "Player") -> None:
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()
    stable.answer_join()
    stable.answer_sync({"t": (0,)})
    stable.answer_offsets()
    assigned = stable.event()

    stable.beat()
    stable.answer_heartbeat(25)
    assert not stable.inbox
    assert not stable.asks(act.SendJoinGroup)

    stable.apply(assigned)
    event = stable.serve()
    assert isinstance(event, Revoke)
    assert (event.partitions, event.lost) == ({"t": (0,)}, True)
    assert stable.asks(act.SendJoinGroup)


def test_a_revocation_that_waits_becomes_a_loss(stable: "Player") -> None:
    """librdkafka #5604: the poll interval ended during a rebalance, and the partitions' loss went unsaid."""
    stable.beat()
    stable.answer_heartbeat(27)
    silent(stable, stable.timing.max_poll_interval)

    events = [stable.serve() for _ in range(2)]
    assert isinstance(events[0], MaxPollExceeded)
    assert isinstance(events[1], Revoke)
    assert events[1].lost
    assert not stable.inbox


def test_a_revocation_that_the_application_never_saw_comes_again(stable: "Player") -> None:
    stable.beat()
    stable.answer_heartbeat(27)
    event = stable.inbox.popleft()
    assert isinstance(event, Revoke)
    stable.feed(stable.member.withdrawn, event.ticket)

    again = stable.serve()
    assert isinstance(again, Revoke)
    assert again.partitions == event.partitions
    stable.feed(stable.member.withdrawn, event.ticket)
    assert stable.asks(act.SendJoinGroup)


def test_a_loss_during_a_revocation_is_not_told_twice(stable: "Player") -> None:
    stable.beat()
    stable.answer_heartbeat(27)
    revoked = stable.event()
    stable.beat()
    stable.answer_heartbeat(25)
    stable.apply(revoked)

    assert not stable.inbox
    assert stable.take(act.SendJoinGroup).request.member_id == ""


def test_what_was_lost_is_given_up_even_when_the_rebalance_had_begun(stable: "Player") -> None:
    """KAFKA-12983: after a reset in the middle of a rebalance, on_lost was skipped, and owned stayed."""
    stable.beat()
    stable.answer_heartbeat(27)
    stable.serve()
    stable.answer_join(25)
    stable.settle({"t": (0,)})
    stable.beat()
    stable.answer_heartbeat(22)

    event = stable.serve()
    assert isinstance(event, Revoke)
    assert (event.partitions, event.lost) == ({"t": (0,)}, True)
    assert [type(event) for event in stable.served] == [Assign, Revoke, Assign, Revoke]


def test_an_assignment_after_a_loss_says_so(stable: "Player") -> None:
    stable.beat()
    stable.answer_heartbeat(25)
    stable.serve()
    stable.settle({"t": (0,)})

    assert isinstance(stable.served[-1], Assign)
    timeline = stable.served[-1].timeline
    assert timeline is not None
    assert timeline.lost
    assert timeline.before == {"t": (0, 1)}
    assert timeline.reason == "Heartbeat was answered with UNKNOWN_MEMBER_ID"
