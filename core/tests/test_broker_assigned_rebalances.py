"""Rebalances under KIP-848, derived from librdkafka's callbacks."""

from groupwright.core import Kind, Outcome, Phase, Rebalance
from groupwright.core.rebalance_tracker import CONSUMER_SETTLE as SETTLE
from groupwright.core.rebalance_tracker import CallbackTime, RebalanceTracker


def at(began: float, seconds: float = 0.5, epoch: int = 1) -> CallbackTime:
    return CallbackTime(began, began + seconds, 1000.0 + began, epoch, "m-1")


def new() -> RebalanceTracker:
    return RebalanceTracker("g", "c", Kind.CONSUMER, "uniform", SETTLE)


def joined() -> RebalanceTracker:
    rebalances = new()
    rebalances.subscribed(["t"], 0.0)
    rebalances.assigned([("t", 0), ("t", 1)], at(2.0))
    assert len(rebalances.settle(2.5 + SETTLE)) == 1
    return rebalances


def only(rebalances: list[Rebalance]) -> Rebalance:
    (rebalance,) = rebalances
    return rebalance


def test_the_first_begins_with_subscribe_and_ends_when_it_has_settled() -> None:
    rebalances = new()
    assert rebalances.subscribed(["t"], 0.0) == []
    rebalances.assigned([("t", 1), ("t", 0)], at(2.0))
    assert rebalances.settle(2.0 + SETTLE) == []

    reported = only(rebalances.settle(2.5 + SETTLE))

    assert reported == Rebalance(
        group="g",
        client_id="c",
        member_id="m-1",
        generation=1,
        protocol="uniform",
        outcome=Outcome.COMPLETED,
        reason="the consumer subscribed",
        duration=2.5,
        phases={Phase.JOIN_AND_SYNC: 2.0, Phase.ASSIGN: 0.5},
        partitions={"t": (0, 1)},
        ended_at=1002.0,
        kind=Kind.CONSUMER,
        assigned_by_broker=True,
    )
    assert rebalances.settles_at == float("inf")


def test_a_revocation_begins_one_and_assignments_that_follow_belong_to_it() -> None:
    rebalances = joined()
    rebalances.revoked([("t", 1)], at(20.0), lost=False)
    rebalances.assigned([], at(21.0, epoch=2))
    rebalances.assigned([("t", 2)], at(23.0, epoch=2))

    reported = only(rebalances.settle(23.5 + SETTLE))

    assert (reported.duration, reported.generation) == (3.5, 2)
    assert (reported.partitions_before, reported.partitions) == ({"t": (0, 1)}, {"t": (0, 2)})
    assert reported.phases[Phase.REVOKE] == 0.5


def test_what_is_gained_without_a_revocation_has_no_beginning_that_could_be_seen() -> None:
    rebalances = joined()
    rebalances.assigned([("t", 2)], at(20.0, epoch=2))

    reported = only(rebalances.settle(20.5 + SETTLE))

    assert (reported.duration, reported.outcome) == (None, Outcome.COMPLETED)
    assert reported.partitions_before == {"t": (0, 1)}


def test_a_late_assignment_of_an_epoch_that_was_told_is_no_rebalance_of_its_own() -> None:
    rebalances = joined()
    rebalances.assigned([("t", 2)], at(20.0, epoch=1))

    assert rebalances.settle(30.0) == []
    rebalances.revoked([], at(40.0), lost=False)
    rebalances.assigned([], at(41.0, epoch=2))
    assert only(rebalances.settle(60.0)).partitions == {"t": (0, 1, 2)}


def test_each_epoch_of_a_storm_is_a_rebalance_of_its_own() -> None:
    """Another member joins and leaves ten times, faster than a rebalance settles."""
    rebalances = joined()
    reported: list[Rebalance] = []
    for number in range(10):
        now, epoch = 20.0 + 2 * number, 1 + 2 * number
        reported += rebalances.revoked([("t", 1)], at(now, epoch=epoch), lost=False)
        reported += rebalances.assigned([], at(now + 0.5, epoch=epoch))
        reported += rebalances.assigned([("t", 1)], at(now + 1.0, epoch=epoch + 2))
    reported += rebalances.settle(60.0)

    assert [each.outcome for each in reported] == [Outcome.COMPLETED] * 20
    assert [each.duration for each in reported] == [1.0, None] * 10
    assert [each.partitions for each in reported] == [{"t": (0,)}, {"t": (0, 1)}] * 10


def test_a_member_that_gains_in_the_epoch_for_which_it_revoked_rebalances_once() -> None:
    rebalances = joined()
    rebalances.revoked([("t", 1)], at(20.0, epoch=1), lost=False)
    rebalances.assigned([], at(20.5, epoch=1))
    rebalances.assigned([("t", 2)], at(21.0, epoch=2))
    rebalances.assigned([("t", 3)], at(23.0, epoch=2))

    assert only(rebalances.settle(23.5 + SETTLE)).duration == 3.5
    assert rebalances.assigned([("t", 4)], at(31.0, epoch=2)) == []
    assert rebalances.settles_at == float("inf")


def test_a_group_that_begins_anew_has_low_epochs_again() -> None:
    rebalances = new()
    rebalances.subscribed(["t"], 0.0)
    rebalances.assigned([("t", 0)], at(2.0, epoch=9))
    rebalances.leaving()
    rebalances.subscribed(["t"], 20.0)
    rebalances.assigned([("t", 0)], at(22.0, epoch=1))

    assert only(rebalances.settle(40.0)).generation == 1


def test_a_member_that_waited_for_its_first_partition_has_no_known_duration() -> None:
    rebalances = new()
    rebalances.subscribed(["t"], 0.0)
    rebalances.assigned([("t", 0)], at(3 * SETTLE))

    assert only(rebalances.settle(4 * SETTLE + 1)).duration is None


def test_partitions_that_were_lost_make_it_a_lost_one() -> None:
    rebalances = joined()
    rebalances.revoked([("t", 0), ("t", 1)], at(20.0), lost=True)
    rebalances.assigned([("t", 0)], at(21.0, epoch=3))

    assert only(rebalances.settle(40.0)).outcome is Outcome.LOST


def test_a_refusal_fails_the_rebalance_under_way_and_another_begins() -> None:
    rebalances = new()
    rebalances.subscribed(["t"], 0.0)

    reported = only(rebalances.failed("UNRELEASED_INSTANCE_ID: in use", 3.0, 1003.0))

    assert (reported.outcome, reported.protocol, reported.duration) == (Outcome.FAILED, None, 3.0)
    assert reported.error == "UNRELEASED_INSTANCE_ID: in use"
    rebalances.assigned([("t", 0)], at(5.0))
    assert only(rebalances.settle(20.0)).duration == 2.5


def test_leaving_tells_what_is_held_and_what_is_revoked_then_is_no_rebalance() -> None:
    rebalances = new()
    rebalances.subscribed(["t"], 0.0)
    rebalances.assigned([("t", 0)], at(2.0))

    assert only(rebalances.leaving()).outcome is Outcome.COMPLETED
    assert rebalances.revoked([("t", 0)], at(4.0), lost=False) == []
    assert rebalances.settle(60.0) == []
