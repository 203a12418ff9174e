"""Out of the group: by unsubscribing, by closing, or because the application is gone."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.events import Assign, Closed, Revoke
from groupwright.consumer._protocol.model import MemberIdentity, MetadataResponse
from groupwright.consumer._protocol.transitions import State
from groupwright.core import ErrorCode

if TYPE_CHECKING:
    from consumer.tests.conftest import Player


def leave(player: "Player") -> act.SendLeaveGroup:
    """Serve the revocation, answer LeaveGroup, and return it as it was sent."""
    while player.inbox:
        player.serve()
    sent = player.take(act.SendLeaveGroup)
    player.asked.append(sent)
    player.answer_leave()
    return sent


def closed(player: "Player") -> bool:
    """True if the member is out for good, and has said so."""
    assert player.member.closed == any(isinstance(event, Closed) for event in player.inbox)
    return player.member.closed


def test_closing_gives_everything_up_then_leaves(stable: "Player") -> None:
    stable.feed(stable.member.close)
    event = stable.event()
    assert isinstance(event, Revoke)
    assert (event.partitions, event.lost) == ({"t": (0, 1)}, False)
    assert not stable.asks(act.SendLeaveGroup)

    stable.apply(event)
    sent = leave(stable)
    assert (sent.identity.member_id, sent.reason) == ("m-1", "the consumer was closed")
    assert closed(stable)


@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_closing_waits_for_the_commits_before_it_ends(
    new_player: "Callable[..., Player]", *, static: bool
) -> None:
    """Where no LeaveGroup is sent, those that were still in the queue were lost."""
    player = new_player(static=static)
    player.commits_end = False
    player.join({"t": (0,)})
    player.feed(player.member.close)
    player.serve()
    commits = player.take(act.SendOffsetCommits)
    assert not player.asks(act.SendLeaveGroup)
    assert not closed(player)

    player.reply(commits, act.Answered())
    if not static:
        player.answer_leave()
    assert closed(player)


def test_closing_outside_of_any_group_waits_for_the_commits_too(player: "Player") -> None:
    player.commits_end = False
    player.feed(player.member.want_coordinator)
    player.feed(player.member.close)
    assert not closed(player)
    player.find()  # and meanwhile the coordinator is looked up for them

    player.reply(player.take(act.SendOffsetCommits), act.Answered())
    assert closed(player)


def test_unsubscribing_gives_everything_up_then_leaves(stable: "Player") -> None:
    """librdkafka before 1.7 unsubscribed without leaving."""
    stable.feed(stable.member.unsubscribe)
    sent = leave(stable)

    assert (sent.identity.member_id, sent.reason) == ("m-1", "the consumer unsubscribed")
    assert isinstance(stable.served[-1], Revoke)
    assert not closed(stable)
    assert stable.member.state is State.UNJOINED
    stable.wait(60)
    assert stable.asked == []


def test_subscribing_again_before_it_has_left_joins_after_that(stable: "Player") -> None:
    stable.feed(stable.member.unsubscribe)
    stable.subscribe("t")
    assert not stable.asks(act.SendJoinGroup)

    leave(stable)
    stable.settle({"t": (0,)})
    assert [type(event) for event in stable.served] == [Assign, Revoke, Assign]


def test_one_that_never_joined_closes_at_once(player: "Player") -> None:
    player.feed(player.member.close)

    assert closed(player)
    assert player.asked == []


@pytest.mark.parametrize("lost", [False, True], ids=["clean", "after a loss"])
def test_a_new_subscription_starts_a_rebalance_of_its_own(stable: "Player", *, lost: bool) -> None:
    stable.beat()
    stable.answer_heartbeat(27)
    stable.feed(stable.member.unsubscribe)
    if lost:
        stable.beat()
        stable.answer_heartbeat(25)
        stable.serve()
    else:
        leave(stable)
    stable.wait(100)
    began = stable.now
    stable.subscribe("t")
    stable.settle({"t": (0,)})

    last = stable.served[-1]
    assert isinstance(last, Assign)
    assert last.timeline is not None
    assert (last.timeline.reason, last.timeline.started) == ("the consumer subscribed", began)
    assert not last.timeline.lost


@pytest.mark.parametrize("answered", [True, False], ids=["after MEMBER_ID_REQUIRED", "while it was stable"])
def test_a_parked_join_does_not_hold_back_leaving(player: "Player", *, answered: bool) -> None:
    """KAFKA-7909: also an id that was only just given must leave, since the group waits for it."""
    if answered:
        player.subscribe("t")
        player.find()
        player.answer_join(79, member_id="m-1")
    else:
        player.join({"t": (0,)})
        player.beat()
        player.answer_heartbeat(27)
        player.serve()
    assert player.member.state is State.PREPARING_REBALANCE

    player.feed(player.member.close)
    assert player.drops == 1
    assert leave(player).identity.member_id == "m-1"
    assert closed(player)


def test_a_parked_sync_does_not_hold_back_leaving(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join()

    player.feed(player.member.close)
    assert player.drops == 1
    leave(player)
    assert closed(player)


def test_a_leader_that_closes_drops_its_plan(player: "Player") -> None:
    player.plan()
    plan = player.take(act.PerformAssignment)
    player.feed(player.member.close)
    computed = act.GroupAssignment({"m-1": b""}, frozenset({"t"}), MetadataResponse())
    player.reply(plan, act.Answered(computed))

    assert [type(action) for action in player.asked] == [act.SendLeaveGroup]


def test_an_assignment_that_waits_when_it_closes_is_never_seen(player: "Player") -> None:
    """librdkafka #4527: an assignment that arrived during close() made it hang."""
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": (0,)})
    player.answer_offsets()

    player.feed(player.member.close)
    leave(player)
    assert player.served == []
    assert closed(player)


def test_an_assignment_that_is_being_applied_when_it_closes_is_revoked_after_that(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": (0,)})
    player.answer_offsets()
    assigned = player.event()

    player.feed(player.member.close)
    assert not player.inbox
    player.apply(assigned)
    leave(player)
    assert [type(event) for event in player.served] == [Assign, Revoke]
    assert closed(player)


def test_partitions_that_are_lost_while_it_leaves_are_told_as_lost(stable: "Player") -> None:
    stable.feed(stable.member.unsubscribe)
    stable.beat()
    stable.answer_heartbeat(25)

    event = stable.serve()
    assert isinstance(event, Revoke)
    assert event.lost
    assert not stable.asks(act.SendLeaveGroup)  # the coordinator knows of no such member
    assert not stable.inbox


def test_without_a_coordinator_there_is_nobody_to_tell(stable: "Player") -> None:
    """librdkafka 2.14.2 crashed here. Owned partitions are revoked all the same."""
    stable.beat()
    stable.disconnect()
    stable.feed(stable.member.close)
    stable.serve()
    assert not closed(stable)
    stable.reply(act.FindCoordinator(), act.Disconnected())

    assert not stable.asks(act.SendLeaveGroup)
    assert stable.asks(act.StayInGroup)
    assert closed(stable)


@pytest.mark.parametrize("leaving", ["close", "unsubscribe"])
def test_a_coordinator_that_moves_is_looked_up_to_be_told(stable: "Player", leaving: str) -> None:
    """Its member stayed in the group for a session, without a line in the log."""
    stable.beat()
    stable.disconnect()
    stable.feed(getattr(stable.member, leaving))
    stable.serve()
    stable.reply(stable.take(act.FindCoordinator), act.Unavailable())
    assert not stable.asks(act.SendLeaveGroup)
    stable.wait(1)
    stable.find()

    assert leave(stable).identity.member_id == "m-1"
    assert stable.member.closed is (leaving == "close")
    assert stable.member.state is State.UNJOINED
    assert not stable.asks(act.StayInGroup)


def test_a_look_up_that_is_refused_ends_the_leaving(stable: "Player") -> None:
    stable.beat()
    stable.disconnect()
    stable.feed(stable.member.close)
    stable.serve()
    stable.reply(act.FindCoordinator(), act.Refused(30, "not allowed"))

    assert stable.asks(act.StayInGroup)
    assert closed(stable)


def test_a_coordinator_is_looked_for_while_partitions_are_given_up(stable: "Player") -> None:
    """The last commit needs it, and so does LeaveGroup."""
    stable.beat()
    stable.feed(stable.member.close)
    stable.disconnect()
    stable.find()

    leave(stable)
    assert closed(stable)


def test_leaving_without_a_response_is_tried_once(stable: "Player") -> None:
    stable.feed(stable.member.close)
    stable.serve()
    stable.disconnect()

    assert closed(stable)
    assert not stable.asks(act.SendLeaveGroup)


@pytest.mark.parametrize("error", [ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE])
@pytest.mark.parametrize("closes", [True, False], ids=["close", "unsubscribe"])
def test_one_whose_coordinator_has_moved_leaves_at_the_next_one(
    stable: "Player", error: ErrorCode, *, closes: bool
) -> None:
    """Otherwise its partitions have no owner until its session expires."""
    stable.feed(stable.member.close if closes else stable.member.unsubscribe)
    stable.serve()
    stable.answer_leave(error)
    assert not closed(stable)
    assert not stable.asks(act.SendLeaveGroup)

    stable.find()
    stable.wait(1)
    assert leave(stable).identity.member_id == "m-1"
    assert closed(stable) is closes


def test_one_whose_coordinator_loads_the_group_leaves_after_a_pause(stable: "Player") -> None:
    stable.feed(stable.member.close)
    stable.serve()
    stable.answer_leave(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
    assert not stable.asks(act.SendLeaveGroup)
    assert not stable.asks(act.FindCoordinator)

    stable.wait(1)
    leave(stable)
    assert closed(stable)


@pytest.mark.parametrize("error", [ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.GROUP_AUTHORIZATION_FAILED])
def test_another_answer_ends_the_leaving(stable: "Player", error: ErrorCode) -> None:
    stable.feed(stable.member.close)
    stable.serve()
    stable.answer_leave(error)

    assert closed(stable)


def test_one_whose_coordinator_has_moved_stays_if_no_broker_knows_the_next_one(stable: "Player") -> None:
    stable.feed(stable.member.close)
    stable.serve()
    stable.answer_leave(ErrorCode.NOT_COORDINATOR)
    stable.reply(act.FindCoordinator(), act.Disconnected())

    assert stable.take(act.StayInGroup) == act.StayInGroup(by_design=False)
    assert closed(stable)


def test_one_that_subscribes_while_its_coordinator_is_looked_up_leaves_first(stable: "Player") -> None:
    stable.feed(stable.member.unsubscribe)
    stable.serve()
    stable.answer_leave(ErrorCode.NOT_COORDINATOR)
    stable.subscribe("t")
    stable.find()
    stable.wait(1)
    assert not stable.asks(act.SendJoinGroup)

    leave(stable)
    stable.settle({"t": (0,)})


def test_closing_while_it_unsubscribes_leaves_once(stable: "Player") -> None:
    stable.feed(stable.member.unsubscribe)
    stable.serve()
    stable.feed(stable.member.close)
    assert not closed(stable)
    stable.answer_leave()

    assert closed(stable)
    assert not stable.asks(act.SendLeaveGroup)


def test_a_close_comes_before_the_end_of_the_poll_interval(stable: "Player") -> None:
    """The application's poll interval is almost over; partitions revoked in close() are not lost."""
    for _ in range(9):
        stable.wait(3, polling=False)
        stable.answer_heartbeat()
    stable.feed(stable.member.close)
    stable.wait(3.001, polling=False)

    event = stable.serve()
    assert isinstance(event, Revoke)
    assert not event.lost
    leave(stable)
    assert closed(stable)


def test_a_commit_between_the_loss_and_the_leaving_is_not_sent_unfenced(stable: "Player") -> None:
    """Outside any generation the coordinator of an empty group would take it, from whomever."""
    generation = stable.member.identity.generation
    stable.feed(stable.member.unsubscribe)
    stable.beat()
    stable.answer_heartbeat(25)

    assert stable.member.commit_identity() == ErrorCode.UNKNOWN_MEMBER_ID
    stable.serve()
    assert stable.member.commit_identity() == MemberIdentity(generation)


def test_a_commit_after_unsubscribing_has_the_former_generation_until_partitions_are_assigned_by_hand(
    stable: "Player",
) -> None:
    """Another member may own the partitions: without its member id, the generation is rejected."""
    stable.feed(stable.member.unsubscribe)
    generation = stable.member.identity.generation
    leave(stable)
    assert stable.member.commit_identity() == MemberIdentity(generation)

    stable.feed(stable.member.assigned_by_hand)
    assert stable.member.commit_identity() == MemberIdentity()


def test_what_is_assigned_by_hand_stays_so_if_the_member_leaves_before_the_group_has_assigned(
    player: "Player",
) -> None:
    """The application has no partitions of the generation: what it commits is what it assigned itself."""
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": (0,)})
    player.answer_offsets()
    player.feed(player.member.unsubscribe)
    leave(player)

    assert player.member.commit_identity() == MemberIdentity()


def test_what_was_given_up_on_is_no_longer_awaited(player: "Player") -> None:
    """A request that waits for the commits before it looks, and is not sent."""
    player.plan()
    plan = player.take(act.PerformAssignment)
    assert player.member.awaits(plan)
    player.reply(act.FindCoordinator(), act.Disconnected())
    player.beat()
    player.answer_heartbeat(25)
    assert not player.member.awaits(plan)

    joining = player.take(act.SendJoinGroup)
    assert player.member.awaits(joining)
    player.feed(player.member.unsubscribe)
    assert not player.member.awaits(joining)


def test_subscribing_while_it_closes_changes_nothing(stable: "Player") -> None:
    stable.feed(stable.member.close)
    stable.subscribe("u")

    assert stable.member.subscription is None
    leave(stable)
    assert closed(stable)


def test_a_static_member_stays_in_its_group(new_player: Callable[..., "Player"]) -> None:
    """KIP-345: its place is kept for a session, so that a restart moves nothing."""
    player = new_player(static=True)
    player.join({"t": (0,)})
    player.feed(player.member.close)
    player.serve()

    assert not player.asks(act.SendLeaveGroup)
    assert closed(player)


def test_a_static_member_that_unsubscribes_leaves(new_player: Callable[..., "Player"]) -> None:
    player = new_player(static=True)
    player.join({"t": (0,)})
    player.feed(player.member.unsubscribe)
    player.serve()

    assert player.asks(act.SendLeaveGroup)


def test_one_whose_application_is_gone_leaves_without_it(stable: "Player") -> None:
    stable.feed(stable.member.abandon)
    stable.answer_leave()

    assert [type(event) for event in stable.inbox] == [Closed]
    assert closed(stable)


def test_one_whose_application_is_gone_in_the_middle_of_an_event_leaves_too(stable: "Player") -> None:
    stable.beat()
    stable.answer_heartbeat(27)
    stable.event()
    stable.feed(stable.member.abandon)
    stable.answer_leave()

    assert closed(stable)


def test_nothing_is_asked_for_after_the_close(stable: "Player") -> None:
    stable.beat()
    heartbeat = stable.take(act.SendHeartbeat)
    identity = stable.member.identity
    stable.feed(stable.member.close)
    leave(stable)
    assert closed(stable)
    stable.member.coordinator.lost(stable.now)
    assert stable.member.next_tick(stable.now) is None
    asked, drops, inbox = list(stable.asked), stable.drops, list(stable.inbox)

    stable.reply(heartbeat, act.Answered(25))
    stable.reply(heartbeat, act.Disconnected())
    stable.feed(stable.member.commit_answered, identity, 16)
    stable.feed(stable.member.commit_unanswered)
    stable.reply(act.FindCoordinator(), act.Refused(30, "not allowed"))
    stable.subscribe("u")
    stable.feed(stable.member.resume)
    stable.feed(stable.member.want_coordinator)
    stable.wait(600, polling=False)
    assert (stable.asked, stable.drops, list(stable.inbox)) == (asked, drops, inbox)
    assert not stable.refused


def test_a_member_that_was_refused_can_unsubscribe_and_be_used_by_hand(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join(30)
    player.feed(player.member.unsubscribe)
    player.reply(act.FindCoordinator(), act.Disconnected())
    player.asked.clear()

    player.member.coordinator.lost(player.now)
    player.wait(1)
    player.feed(player.member.want_coordinator)
    assert player.asks(act.FindCoordinator)


def test_a_leaving_that_a_defect_cut_short_ends(stable: "Player") -> None:
    stable.feed(stable.member.close)
    stable.serve()
    stable.reply(stable.take(act.SendLeaveGroup), act.Broken())

    assert closed(stable)
