"""A cooperative member (KIP-429): which partitions it keeps and revokes, and when it rejoins."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from groupwright.consumer import Phase
from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.events import Assign, Closed, Revoke
from groupwright.consumer._protocol.membership import ROUND_TIMEOUT
from groupwright.consumer._protocol.model import MemberIdentity
from groupwright.consumer._protocol.transitions import State
from groupwright.core import ErrorCode, Partitions

if TYPE_CHECKING:
    from consumer.tests.conftest import Player


@pytest.fixture
def newcomer(new_player: Callable[..., "Player"]) -> "Player":
    """A cooperative member that has not subscribed yet."""
    return new_player(cooperative=True)


@pytest.fixture
def owner(newcomer: "Player") -> "Player":
    """The cooperative, stable member ``m-1`` of generation 1, which owns t-0 and t-1."""
    newcomer.join({"t": (0, 1)})
    return newcomer


def rebalance(player: "Player") -> None:
    """Let a heartbeat call for a rebalance; JoinGroup is sent."""
    player.beat()
    player.answer_heartbeat(27)


def next_join(player: "Player") -> str:
    """Return what JoinGroup, which is being sent, says."""
    (action,) = (action for action in player.asked if isinstance(action, act.SendJoinGroup))
    ((_, subscription),) = action.request.protocols
    return f"as {action.request.member_id!r}: {subscription.decode()}"


def revoked(player: "Player") -> Partitions:
    """Serve a clean revocation."""
    event = player.serve()
    assert isinstance(event, Revoke)
    assert not event.lost
    return event.partitions


def lost(player: "Player") -> Partitions:
    event = player.serve()
    assert isinstance(event, Revoke)
    assert event.lost
    return event.partitions


def gained(player: "Player") -> tuple[Partitions, Partitions]:
    """Serve what is gained; return it with all that is owned then."""
    event = player.serve()
    assert isinstance(event, Assign)
    return event.gained, event.owned


# --- A rebalance ----------------------------------------------------------------------------------------


def test_partitions_are_kept_through_join_and_sync_and_claimed(owner: "Player") -> None:
    """No callback is called, and the application continues to consume."""
    rebalance(owner)

    assert not owner.inbox
    assert owner.member.owned == {"t": (0, 1)}
    assert next_join(owner) == "as 'm-1': t owns [('t', 0), ('t', 1)] of generation 1"
    owner.answer_join()
    assert not owner.inbox
    owner.answer_sync({"t": (0, 1)})
    assert not owner.asks(act.FetchOffsets)
    assert gained(owner) == ({}, {"t": (0, 1)})
    assert not owner.asks(act.SendJoinGroup)


def test_only_what_is_new_is_gained_and_only_its_offsets_are_fetched(owner: "Player") -> None:
    rebalance(owner)
    owner.answer_join()
    owner.answer_sync({"t": (0, 1, 2)})

    fetch = owner.take(act.FetchOffsets)
    assert fetch.partitions == {"t": (2,)}
    owner.asked.append(fetch)
    owner.answer_offsets()
    assert gained(owner) == ({"t": (2,)}, {"t": (0, 1, 2)})
    assert owner.member.owned == {"t": (0, 1, 2)}


def test_what_goes_is_given_up_first_and_then_it_joins_again_at_once(owner: "Player") -> None:
    rebalance(owner)
    owner.answer_join()
    owner.notified.clear()
    owner.answer_sync({"t": (1, 2)})

    assert owner.notified == [], "the assignor is notified once the assignment is applied"
    event = owner.inbox[0]
    assert isinstance(event, Revoke)
    assert event.identity == MemberIdentity(2, "m-1", "range"), "who may commit the revoked partitions"
    assert revoked(owner) == {"t": (0,)}
    assert owner.member.owned == {"t": (1,)}
    assert owner.notified == [act.NotifyAssignor("range", {"t": (1, 2)}, 2)]
    owner.answer_offsets()
    assert gained(owner) == ({"t": (2,)}, {"t": (1, 2)})
    assert next_join(owner) == "as 'm-1': t owns [('t', 1), ('t', 2)] of generation 2"
    assert owner.take(act.SendJoinGroup).request.reason == "partitions were revoked for other members"


def test_a_rebalance_of_two_rounds_is_told_once_with_the_time_of_both(owner: "Player") -> None:
    owner.beat()
    began = owner.now
    owner.answer_heartbeat(27)
    owner.wait(1)
    owner.answer_join()
    owner.wait(2)
    owner.answer_sync({"t": (1,)})
    owner.wait(0.5)
    revoked(owner)
    owner.wait(0.25)
    first = owner.serve()
    assert isinstance(first, Assign)
    assert first.timeline is None
    owner.wait(1)
    owner.answer_join()
    owner.wait(2)
    owner.answer_sync({"t": (1,)})
    second = owner.serve()
    assert isinstance(second, Assign)
    timeline = second.timeline
    assert timeline is not None

    assert (timeline.reason, timeline.started) == ("members or partitions changed", began)
    assert timeline.phases == pytest.approx(
        {Phase.JOIN: 2, Phase.SYNC: 4, Phase.REVOKE: 0.5, Phase.ASSIGN: 0.25}
    )
    assert [type(event).__name__ for event in owner.served] == ["Assign", "Revoke", "Assign", "Assign"]


def test_a_member_that_waits_for_its_share_asks_soon_whether_the_next_round_has_begun(
    owner: "Player",
) -> None:
    """Other clients learn of it at the next heartbeat, and are idle for up to ``heartbeat.interval.ms``."""
    owner.wait(0.05)
    assert owner.asks(act.SendHeartbeat)
    owner.answer_heartbeat(27)

    assert next_join(owner) == "as 'm-1': t owns [('t', 0), ('t', 1)] of generation 1"


def test_a_member_that_gives_something_up_calls_the_next_round_itself(owner: "Player") -> None:
    rebalance(owner)
    owner.answer_join()
    owner.answer_sync({"t": (0,)})
    owner.wait(owner.timing.heartbeat_interval - 0.001)

    assert not owner.asks(act.SendHeartbeat)


def test_an_assignment_of_nothing_gives_everything_up(owner: "Player") -> None:
    rebalance(owner)
    owner.answer_join()
    owner.answer_sync(b"")

    assert revoked(owner) == {"t": (0, 1)}
    assert gained(owner) == ({}, {})
    assert next_join(owner) == "as 'm-1': t owns [] of generation 2"


def test_the_first_assignment_is_told_even_if_it_is_empty(newcomer: "Player") -> None:
    """As librdkafka has it for cooperative-sticky, and Java; but nothing is revoked that is empty."""
    newcomer.join({})
    rebalance(newcomer)
    assert not newcomer.inbox

    newcomer.settle({})
    assert [type(event).__name__ for event in newcomer.served] == ["Assign", "Assign"]


@pytest.mark.parametrize("error", [14, 15, 16, 27, None])
def test_a_sync_that_failed_keeps_everything_and_claims_it_by_the_generation_it_is_from(
    owner: "Player", error: int | None
) -> None:
    """KAFKA-14639: Java claims by the new generation, whose assignment it does not know. The member that was
    assigned the partitions in it claims them by the same generation, so neither keeps them."""
    rebalance(owner)
    owner.answer_join()
    owner.disconnect() if error is None else owner.answer_sync(error=error)
    if owner.asks(act.FindCoordinator):
        owner.find()
    owner.wait(owner.timing.retry_backoff_max)

    assert not owner.inbox
    assert next_join(owner) == "as 'm-1': t owns [('t', 0), ('t', 1)] of generation 1"


def test_a_rebalance_that_comes_while_partitions_are_given_up_takes_the_next_round_over(
    owner: "Player",
) -> None:
    rebalance(owner)
    owner.answer_join()
    owner.answer_sync({"t": (1, 2)})
    event = owner.event()
    rebalance(owner)
    assert not owner.asks(act.SendJoinGroup)

    owner.apply(event)
    assert next_join(owner) == "as 'm-1': t owns [('t', 1)] of generation 2"
    owner.settle({"t": (1, 2)})
    assert [type(event).__name__ for event in owner.served] == ["Assign", "Revoke", "Assign"]


def test_offsets_that_an_open_transaction_holds_up_do_not_hold_the_group_up(owner: "Player") -> None:
    """Revoked partitions are free for other members, however long the gained ones have to wait."""
    rebalance(owner)
    owner.answer_join()
    owner.answer_sync({"t": (1, 2)})
    revoked(owner)
    owner.answer_offsets(errors={("t", 2): 88})
    owner.wait(owner.timing.retry_backoff)

    assert next_join(owner) == "as 'm-1': t owns [('t', 1)] of generation 2"
    assert not owner.inbox


# --- Losing ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("error", "member_id"), [(22, "m-1"), (25, ""), (69, "")], ids=["generation", "member id", "group"]
)
@pytest.mark.parametrize("asked", ["Heartbeat", "JoinGroup", "SyncGroup", "OffsetCommit"])
def test_ids_that_the_coordinator_does_not_know_lose_everything(
    owner: "Player", asked: str, error: int, member_id: str
) -> None:
    """librdkafka keeps the partitions of a member that JoinGroup answers UNKNOWN_MEMBER_ID."""
    answer(owner, asked, error)

    assert lost(owner) == {"t": (0, 1)}
    assert owner.member.owned == {}
    assert next_join(owner) == f"as {member_id!r}: t owns [] of generation -1"


@pytest.mark.parametrize("asked", ["Heartbeat", "JoinGroup", "SyncGroup", "OffsetCommit"])
def test_a_member_whose_place_was_taken_loses_everything_and_says_so(owner: "Player", asked: str) -> None:
    answer(owner, asked, 82)

    assert [refusal.error for refusal in owner.refused] == [82]
    assert lost(owner) == {"t": (0, 1)}
    owner.feed(owner.member.resume)
    owner.wait(60)
    assert owner.asked == []


def answer(player: "Player", asked: str, error: int) -> None:
    if asked == "OffsetCommit":
        player.feed(player.member.commit_answered, player.member.identity, error)
        return
    player.beat()
    player.answer_heartbeat(error if asked == "Heartbeat" else 27)
    if asked == "JoinGroup":
        player.answer_join(error)
    elif asked == "SyncGroup":
        player.answer_join()
        player.answer_sync(error=error)


@pytest.mark.parametrize("taken", [False, True], ids=["waiting", "taken"])
def test_what_is_left_when_partitions_are_being_given_up_is_lost(owner: "Player", *, taken: bool) -> None:
    rebalance(owner)
    owner.answer_join()
    owner.answer_sync({"t": (1,)})
    event = owner.event() if taken else None
    owner.beat()
    owner.answer_heartbeat(25)
    if event is not None:
        owner.apply(event)

    assert lost(owner) == ({"t": (1,)} if taken else {"t": (0, 1)})
    assert next_join(owner) == "as '': t owns [] of generation -1"


def test_a_gain_that_was_not_yet_seen_is_not_lost(owner: "Player") -> None:
    rebalance(owner)
    owner.answer_join()
    owner.answer_sync({"t": (0, 1, 2)})
    owner.answer_offsets()
    owner.beat()
    owner.answer_heartbeat(25)

    assert lost(owner) == {"t": (0, 1)}


def test_what_is_kept_is_kept_no_longer_than_the_session(owner: "Player") -> None:
    """JoinGroup was refused, and the application does not poll again: the coordinator expels the member."""
    rebalance(owner)
    owner.answer_join(81)
    assert [refusal.error for refusal in owner.refused] == [81]
    owner.wait(owner.timing.session_timeout - 0.001)
    assert not owner.inbox

    owner.wait(0.001)
    assert lost(owner) == {"t": (0, 1)}


def test_a_parked_join_keeps_what_is_owned(owner: "Player") -> None:
    """The coordinator counts a member as alive whose JoinGroup it holds."""
    rebalance(owner)
    owner.wait(owner.timing.session_timeout * 2)
    assert not owner.inbox

    owner.disconnect()
    owner.wait(owner.timing.session_timeout - 0.001)
    assert not owner.inbox
    owner.wait(0.001)
    assert lost(owner) == {"t": (0, 1)}


@pytest.mark.parametrize("error", [30, 81, 999])
def test_a_refusal_to_join_is_told_and_takes_nothing_away_at_once(owner: "Player", error: int) -> None:
    rebalance(owner)
    owner.answer_join(error)
    assert [refusal.error for refusal in owner.refused] == [error]
    assert not owner.inbox
    assert not owner.asks(act.SendJoinGroup)

    owner.feed(owner.member.resume)
    owner.wait(owner.timing.retry_backoff)
    assert next_join(owner) == "as 'm-1': t owns [('t', 0), ('t', 1)] of generation 1"


# --- Subscriptions --------------------------------------------------------------------------------------


def test_topics_that_are_no_longer_subscribed_to_are_given_up_before_joining(newcomer: "Player") -> None:
    newcomer.join({"t": (0,), "u": (1, 2)}, topics=("t", "u"))
    newcomer.subscribe("t", "v")
    newcomer.see()

    assert revoked(newcomer) == {"u": (1, 2)}
    assert next_join(newcomer) == "as 'm-1': t,v owns [('t', 0)] of generation 1"
    newcomer.settle({"t": (0,), "v": (0,)})


def test_a_topic_more_takes_nothing_away(owner: "Player") -> None:
    owner.subscribe("t", "u")
    owner.see()

    assert not owner.inbox
    assert next_join(owner) == "as 'm-1': t,u owns [('t', 0), ('t', 1)] of generation 1"


def test_unsubscribing_gives_everything_up_then_leaves(owner: "Player") -> None:
    owner.feed(owner.member.unsubscribe)

    assert owner.member.commit_identity() == MemberIdentity(1, "m-1", "range")
    assert revoked(owner) == {"t": (0, 1)}
    assert owner.take(act.SendLeaveGroup).identity.member_id == "m-1"


def to_join(owner: "Player") -> None:
    rebalance(owner)


def to_plan(owner: "Player") -> None:
    rebalance(owner)
    owner.answer_join(leads=True)


def to_sync(owner: "Player") -> None:
    rebalance(owner)
    owner.answer_join()


LEAVING = pytest.mark.parametrize("how", ["close", "unsubscribe"])
IN_A_ROUND = pytest.mark.parametrize("go", [to_join, to_plan, to_sync])


def finish_round(owner: "Player") -> None:
    if owner.asks(act.SendJoinGroup):
        owner.answer_join()
    if owner.asks(act.PerformAssignment):
        owner.answer_plan({"t": 2})
    owner.answer_sync({"t": (1,), "u": (0,)})


@LEAVING
@IN_A_ROUND
def test_a_member_that_leaves_in_a_round_finishes_it_and_commits_then(
    owner: "Player", how: str, go: Callable[["Player"], None]
) -> None:
    """JoinGroup's response ends the old generation; commits of the new one wait for SyncGroup's response."""
    go(owner)
    owner.feed(getattr(owner.member, how))
    assert owner.member.commit_identity() == ErrorCode.REBALANCE_IN_PROGRESS
    assert owner.member.keeps_partitions
    assert not owner.inbox

    finish_round(owner)
    assert owner.drops == 0
    assert owner.member.commit_identity() == MemberIdentity(2, "m-1", "range")
    assert revoked(owner) == {"t": (0, 1)}
    assert owner.take(act.SendLeaveGroup).identity == MemberIdentity(2, "m-1", "range")
    assert not owner.inbox


@LEAVING
@IN_A_ROUND
def test_a_member_that_leaves_waits_for_others_no_longer_than_it_may(
    owner: "Player", how: str, go: Callable[["Player"], None]
) -> None:
    """The coordinator takes commits of the old generation as long as others have not joined."""
    go(owner)
    before = owner.member.identity
    owner.feed(getattr(owner.member, how))
    owner.wait(ROUND_TIMEOUT - 0.01)
    assert not owner.inbox
    owner.wait(0.01)

    assert owner.drops == (0 if go is to_plan else 1)
    assert owner.member.commit_identity() == before
    assert revoked(owner) == {"t": (0, 1)}
    assert owner.take(act.SendLeaveGroup).identity == before


def test_a_close_has_patience_of_its_own(owner: "Player") -> None:
    rebalance(owner)
    owner.feed(functools.partial(owner.member.close, round_timeout=0.5))
    owner.wait(0.5)

    assert revoked(owner) == {"t": (0, 1)}


@LEAVING
def test_a_member_that_leaves_while_its_join_is_refused_commits_as_before(owner: "Player", how: str) -> None:
    rebalance(owner)
    owner.feed(getattr(owner.member, how))
    owner.answer_join(24)

    assert owner.member.commit_identity() == MemberIdentity(1, "m-1", "range")
    assert revoked(owner) == {"t": (0, 1)}


@LEAVING
def test_a_member_that_leaves_and_is_expelled_meanwhile_has_lost_everything(
    owner: "Player", how: str
) -> None:
    rebalance(owner)
    owner.feed(getattr(owner.member, how))
    owner.answer_join(25)

    assert owner.member.commit_identity() == ErrorCode.UNKNOWN_MEMBER_ID
    assert lost(owner) == {"t": (0, 1)}
    assert not owner.asks(act.SendJoinGroup)


def test_closing_after_unsubscribing_finishes_the_same_round(owner: "Player") -> None:
    rebalance(owner)
    owner.feed(owner.member.unsubscribe)
    owner.wait(ROUND_TIMEOUT / 2)
    owner.feed(owner.member.close)
    assert not owner.inbox
    owner.wait(ROUND_TIMEOUT / 2)

    assert revoked(owner) == {"t": (0, 1)}
    owner.answer_leave()
    assert isinstance(owner.serve(), Closed)


def test_an_unsubscription_in_a_round_leaves_nothing_behind_for_the_next_subscription(
    owner: "Player",
) -> None:
    rebalance(owner)
    owner.feed(owner.member.unsubscribe)
    finish_round(owner)
    revoked(owner)
    owner.answer_leave()
    owner.wait(60)
    assert owner.asked == []
    began = owner.now
    owner.subscribe("t")
    owner.settle({"t": (0,)})

    last = owner.served[-1]
    assert isinstance(last, Assign)
    assert last.timeline is not None
    assert (last.timeline.reason, last.timeline.started) == ("the consumer subscribed", began)


def test_a_member_whose_application_is_gone_leaves_in_the_middle_of_a_join(owner: "Player") -> None:
    """No member is left to commit."""
    rebalance(owner)
    owner.feed(owner.member.abandon)

    assert owner.drops == 1
    assert owner.asks(act.SendLeaveGroup)


def test_closing_gives_everything_up_then_leaves(owner: "Player") -> None:
    rebalance(owner)
    owner.answer_join()
    owner.answer_sync({"t": (1, 2)})
    owner.feed(owner.member.close)

    assert revoked(owner) == {"t": (0, 1)}
    owner.answer_leave()
    assert isinstance(owner.serve(), Closed)


# --- Commits --------------------------------------------------------------------------------------------


def test_who_commits_in_which_state(owner: "Player") -> None:
    """The coordinator accepts commits of the old generation until all members have sent JoinGroup. It serves
    no request behind this member's own JoinGroup, so its commits wait until SyncGroup is answered."""
    member = owner.member
    owner.beat()
    owner.answer_heartbeat(27)
    assert member.state is State.PREPARING_REBALANCE
    assert member.commit_identity() == ErrorCode.REBALANCE_IN_PROGRESS
    assert member.keeps_partitions
    assert member.commits_wait
    owner.answer_join()
    assert member.commit_identity() == ErrorCode.REBALANCE_IN_PROGRESS
    owner.answer_sync({"t": (1,)})
    assert member.commit_identity() == MemberIdentity(2, "m-1", "range")  # inside on_revoke
    revoked(owner)
    gained(owner)
    assert member.commit_identity() == ErrorCode.REBALANCE_IN_PROGRESS
    owner.answer_join(25)
    assert member.commit_identity() == ErrorCode.UNKNOWN_MEMBER_ID
    assert not member.keeps_partitions
    assert not member.commits_wait


def test_what_is_revoked_between_two_attempts_to_join_is_committed_at_once(newcomer: "Player") -> None:
    """Commits waited for the end of the next round, when other members had begun before them."""
    newcomer.join({"t": (0,), "u": (1, 2)}, topics=("t", "u"))
    rebalance(newcomer)
    newcomer.answer_join()
    newcomer.subscribe("t")
    newcomer.see()
    assert newcomer.member.commit_identity() == ErrorCode.REBALANCE_IN_PROGRESS
    newcomer.answer_sync(error=27)

    assert newcomer.member.commit_identity() == MemberIdentity(2, "m-1", "range")  # inside on_revoke
    assert revoked(newcomer) == {"u": (1, 2)}
    assert next_join(newcomer) == "as 'm-1': t owns [('t', 0)] of generation 1"
    assert newcomer.member.commit_identity() == ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("error", [22, 25, 27, 82])
def test_a_commits_answer_of_the_former_generation_does_not_touch_the_new_one(
    owner: "Player", error: int
) -> None:
    """librdkafka #4059: a commit that a cooperative rebalance had overtaken made everything lost."""
    rebalance(owner)
    former = owner.member.identity
    owner.answer_join()
    owner.answer_sync({"t": (0, 1)})
    owner.feed(owner.member.commit_answered, former, error)

    assert gained(owner) == ({}, {"t": (0, 1)})
    assert owner.member.identity == MemberIdentity(2, "m-1", "range")
    assert not owner.refused
