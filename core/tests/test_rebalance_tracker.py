"""Logical rebalances from callbacks: the sequences that librdkafka was seen to make, by protocol.

Times are seconds; each story is one member's.
"""

import math
from collections.abc import Sequence

import pytest

from groupwright.core import Kind, Rebalance, Trigger
from groupwright.core.rebalance_tracker import CallbackTime, RebalanceTracker

EAGER, COOPERATIVE, CONSUMER = Kind.EAGER, Kind.COOPERATIVE, Kind.CONSUMER
SETTLE = 6.0
Story = list[Rebalance]


class Member:
    """A member whose callbacks a test plays; it collects the rebalances that come of them."""

    def __init__(self, kind: Kind, topic: str = "orders") -> None:
        self.tracker = RebalanceTracker("g", "c", kind, "the-strategy", SETTLE)
        self.topic = topic
        self.reported: Story = []

    def subscribe(self, at: float, *topics: str) -> None:
        self.reported += self.tracker.subscribed(topics or [self.topic], at)

    def assign(self, partitions: Sequence[int], at: float, took: float = 0.0, generation: int = 1) -> None:
        self.reported += self.tracker.assigned(self._keys(partitions), self._moment(at, took, generation))

    def revoke(
        self,
        partitions: Sequence[int],
        at: float,
        took: float = 0.0,
        generation: int = 1,
        *,
        lost: bool = False,
    ) -> None:
        moment = self._moment(at, took, generation)
        self.reported += self.tracker.revoked(self._keys(partitions), moment, lost=lost)

    def wait(self, until: float) -> None:
        self.reported += self.tracker.settle(until)

    @property
    def durations(self) -> list[float | None]:
        return [each.duration for each in self.reported]

    def _keys(self, partitions: Sequence[int]) -> list[tuple[str, int]]:
        return [(self.topic, partition) for partition in partitions]

    @staticmethod
    def _moment(at: float, took: float, generation: int) -> CallbackTime:
        return CallbackTime(at, at + took, 1_700_000_000 + at + took, generation, "c-1-5d0c")


def test_an_eager_rebalance_is_told_at_once_with_its_phases() -> None:
    member = Member(EAGER)
    member.subscribe(10.0)
    member.assign([0, 1, 2, 3], 10.5, took=0.25, generation=1)
    member.revoke([0, 1, 2, 3], 20.0, took=1.0, generation=1)
    member.assign([0, 1], 23.0, took=0.5, generation=2)

    first, second = member.reported
    assert (first.duration, first.reason) == (0.75, "the consumer subscribed")
    assert first.phases == {"join_and_sync": 0.5, "assign": 0.25}
    assert (first.partitions_before, first.partitions) == ({}, {"orders": (0, 1, 2, 3)})
    assert (second.duration, second.reason) == (3.5, "members or partitions changed")
    assert (first.trigger, second.trigger) == (Trigger.MEMBER, Trigger.GROUP)
    assert second.phases == {"revoke": 1.0, "join_and_sync": 2.0, "assign": 0.5}
    assert (second.partitions_before, second.partitions) == ({"orders": (0, 1, 2, 3)}, {"orders": (0, 1)})
    assert (second.generation, second.member_id, second.ended_at) == (2, "c-1-5d0c", 1_700_000_023.5)
    assert {each.outcome for each in member.reported} == {"completed"}


def test_cooperatives_second_round_belongs_to_the_cycle_of_the_member_that_gives_up() -> None:
    """As seen: revoke(some) and assign([]), then assign([]) half a second later, two generations on."""
    member = Member(COOPERATIVE)
    member.subscribe(0.0)
    member.assign([0, 1, 2, 3], 1.0)
    member.revoke([0, 1], 20.0, took=0.25, generation=2)
    member.assign([], 20.25, generation=2)
    assert member.durations == [1.0]  # the first, which the revocation ended; the second is not settled

    member.assign([], 20.75, generation=3)
    _, second = member.reported
    assert second.duration == 0.75
    assert second.phases == {"revoke": 0.25, "join_and_sync": 0.5, "assign": 0.0}
    assert (second.partitions_before, second.partitions) == ({"orders": (0, 1, 2, 3)}, {"orders": (2, 3)})
    assert second.generation == 3


def test_cooperatives_second_round_belongs_to_the_cycle_of_the_member_that_joins() -> None:
    """It is given nothing in the first round, and cannot know that a second follows."""
    member = Member(COOPERATIVE)
    member.subscribe(10.0)
    member.assign([], 10.5, generation=2)
    assert member.reported == []
    member.assign([0, 1], 11.0, took=0.125, generation=3)

    (only,) = member.reported
    assert only.duration == 1.125
    assert only.phases == {"join_and_sync": 1.0, "assign": 0.125}
    assert only.partitions == {"orders": (0, 1)}


def test_a_round_that_no_other_follows_is_told_when_it_has_settled_and_lasted_until_its_assignment() -> None:
    member = Member(COOPERATIVE)
    member.subscribe(10.0)
    member.assign([0, 1], 10.5)
    assert member.tracker.settles_at == 10.5 + SETTLE
    member.wait(16.4)
    assert member.reported == []

    member.wait(16.5)
    assert member.durations == [0.5]
    assert member.tracker.settles_at == math.inf
    assert member.reported[0].ended_at == 1_700_000_010.5


def test_a_gain_without_a_revocation_has_no_known_beginning() -> None:
    """Another member left. This one went on consuming, and nothing showed when it began to join."""
    member = Member(COOPERATIVE)
    member.subscribe(0.0)
    member.assign([0, 1], 1.0)
    member.wait(30.0)
    member.assign([2, 3], 40.0, took=0.5, generation=2)
    member.wait(60.0)

    gained = member.reported[1]
    assert gained.duration is None
    assert gained.phases == {"assign": 0.5}
    assert (gained.partitions_before, gained.partitions) == ({"orders": (0, 1)}, {"orders": (0, 1, 2, 3)})


def test_under_kip_848_a_revocation_and_its_empty_assignment_are_one_cycle() -> None:
    member = Member(CONSUMER)
    member.subscribe(0.0)
    member.assign([0, 1, 2, 3], 1.0, generation=2)
    member.revoke([2, 3], 20.0, took=0.25, generation=2)
    member.assign([], 20.25, generation=2)
    member.wait(30.0)

    assert member.durations == [1.0, 0.25]
    assert member.reported[1].partitions == {"orders": (0, 1)}


def test_under_kip_848_what_comes_later_in_the_same_epoch_is_the_rest_of_a_cycle() -> None:
    """The broker hands over what the owners before have let go of, whenever that is."""
    member = Member(CONSUMER)
    member.subscribe(0.0)
    member.assign([0], 1.0, generation=5)
    member.wait(10.0)
    member.assign([1], 60.0, generation=5)
    member.wait(100.0)
    assert len(member.reported) == 1

    member.assign([2], 200.0, generation=6)
    member.wait(300.0)
    assert len(member.reported) == 2
    assert member.reported[1].partitions_before == {"orders": (0, 1)}


def test_under_kip_848_a_member_that_waited_without_partitions_took_no_hour_to_rebalance() -> None:
    """As seen: the member without partitions joins without a callback."""
    member = Member(CONSUMER)
    member.subscribe(0.0)
    member.assign([0], 3600.0, generation=7)
    member.wait(3700.0)

    assert member.durations == [None]
    assert member.reported[0].phases == {"assign": 0.0}


@pytest.mark.parametrize("kind", [EAGER, COOPERATIVE, CONSUMER])
def test_a_loss_makes_the_rebalance_that_follows_one_that_lost(kind: Kind) -> None:
    member = Member(kind)
    member.subscribe(0.0)
    member.assign([0, 1], 1.0)
    member.wait(10.0)
    member.revoke([0, 1], 400.0, generation=-1, lost=True)
    member.assign([0, 1], 402.0, generation=3)
    member.wait(500.0)

    assert [each.outcome for each in member.reported] == ["completed", "lost"]
    assert member.durations == [1.0, 2.0]
    assert member.reported[1].partitions_before == {"orders": (0, 1)}


def test_what_is_revoked_in_leaving_is_no_rebalance() -> None:
    member = Member(EAGER)
    member.subscribe(0.0)
    member.assign([0, 1], 1.0)
    member.reported += member.tracker.leaving()
    member.revoke([0, 1], 2.0)
    assert member.durations == [1.0]

    member.subscribe(10.0)
    member.assign([0], 10.5, generation=3)
    assert member.durations == [1.0, 0.5]
    assert member.reported[1].partitions_before == {}


@pytest.mark.parametrize("kind", [EAGER, COOPERATIVE, CONSUMER])
def test_a_revocation_after_the_next_subscription_is_no_round_of_it(kind: Kind) -> None:
    """Without a poll between unsubscribe and subscribe, the next poll reports the revocation."""
    member = Member(kind)
    member.subscribe(0.0)
    member.assign([0, 1], 1.0)
    member.reported += member.tracker.leaving()
    member.subscribe(10.0, "refunds")
    member.revoke([0, 1], 10.25, took=0.25)
    member.topic = "refunds"
    member.assign([2], 11.0, generation=3)
    member.wait(30.0)

    assert member.durations == [1.0, 1.0]
    second = member.reported[1]
    assert (second.partitions_before, second.partitions) == ({}, {"refunds": (2,)})


def test_what_is_held_at_the_end_is_told() -> None:
    member = Member(COOPERATIVE)
    member.subscribe(0.0)
    member.assign([0, 1], 1.0)

    assert [each.duration for each in member.tracker.leaving()] == [1.0]


def test_a_refusal_ends_the_attempt_and_begins_the_next() -> None:
    """librdkafka retries: each rejection is a failed rebalance, and the one that succeeds is completed."""
    member = Member(EAGER)
    member.subscribe(0.0)
    member.reported += member.tracker.failed("GROUP_AUTHORIZATION_FAILED: no", 1.0, 1_700_000_001.0)
    member.reported += member.tracker.failed("GROUP_AUTHORIZATION_FAILED: no", 3.0, 1_700_000_003.0)
    member.assign([0], 3.5)

    assert [each.outcome for each in member.reported] == ["failed", "failed", "completed"]
    assert member.durations == [1.0, 2.0, 0.5]
    assert (member.reported[0].protocol, member.reported[0].error) == (None, "GROUP_AUTHORIZATION_FAILED: no")


def test_an_error_of_a_member_at_rest_is_no_rebalance() -> None:
    member = Member(EAGER)
    member.subscribe(0.0)
    member.assign([0], 1.0)

    assert member.tracker.failed("FENCED_INSTANCE_ID: taken", 2.0, 0.0) == []


def test_the_same_topics_again_begin_nothing_and_others_do() -> None:
    member = Member(COOPERATIVE)
    member.subscribe(0.0, "orders")
    member.assign([0], 1.0)
    member.wait(10.0)
    member.subscribe(20.0, "orders")
    assert member.tracker.settles_at == math.inf
    member.subscribe(30.0, "orders", "refunds")
    member.assign([1], 31.0)
    member.wait(40.0)

    assert member.durations == [1.0, 1.0]
    assert member.reported[1].reason == "the subscription changed"
