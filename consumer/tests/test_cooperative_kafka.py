"""Cooperative rebalances (KIP-429) of real groups: consumption goes on; moved partitions have one owner."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest
from confluent_kafka import Message, TopicPartition

from groupwright.assignors import Assignor, Group, Plan, RebalanceProtocol, withhold_claimed
from groupwright.consumer import AssignorFailedError, Consumer, Rebalance
from groupwright.consumer._protocol.transitions import State
from groupwright.core import RebalanceListener
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = [pytest.mark.kafka, pytest.mark.usefixtures("no_thread_stays")]

COOPERATIVE = "cooperative-sticky"


@dataclass
class Notes(RebalanceListener):
    """The calls of a consumer's callbacks and its listener."""

    calls: list[tuple[str, list[int]]] = field(default_factory=list)
    owned: set[int] = field(default_factory=set)
    rebalances: list[Rebalance] = field(default_factory=list)

    def subscribe(self, consumer: Any, *topics: str) -> "Notes":
        """Subscribe with callbacks that record their calls."""
        consumer.subscribe(
            list(topics),
            on_assign=lambda _, partitions: self._record("assign", partitions),
            on_revoke=lambda _, partitions: self._record("revoke", partitions),
            on_lost=lambda _, partitions: self._record("lost", partitions),
        )
        if isinstance(consumer, Consumer):
            consumer.add_listener(self)
        return self

    def _record(self, kind: str, partitions: list[TopicPartition]) -> None:
        numbers = sorted(p.partition for p in partitions)
        self.calls.append((kind, numbers))
        if kind == "assign":
            assert not self.owned & set(numbers), "gained twice"
            self.owned |= set(numbers)
        else:
            assert set(numbers) <= self.owned, "revoked without being owned"
            self.owned -= set(numbers)

    @property
    def lost(self) -> bool:
        return any(kind != "assign" for kind, _ in self.calls)

    def rebalanced(self, rebalance: Rebalance) -> None:
        self.rebalances.append(rebalance)

    def partitions_assigned(self, partitions: object, seconds: float) -> None: ...

    def partitions_revoked(self, partitions: object, seconds: float) -> None: ...

    def partitions_lost(self, partitions: object, seconds: float) -> None: ...


def positions(messages: list[Message]) -> list[tuple[int | None, int | None]]:
    assert [message.error() for message in messages] == [None] * len(messages)
    return [(message.partition(), message.offset()) for message in messages]


def take(scene: "Scene", count: int, *consumers: Consumer) -> list[Message]:
    """Poll until so many messages have come to any of the consumers."""
    messages: list[Message] = []
    deadline = time.monotonic() + PATIENCE
    while len(messages) < count:
        assert time.monotonic() < deadline, f"only {len(messages)} of {count} messages"
        turns = iter([False, True])
        messages += scene.poll_until(lambda turns=turns: next(turns), *consumers)  # type: ignore[misc] # one turn
    return messages


def test_a_second_member_takes_its_half_and_the_first_consumes_the_other_on(scene: "Scene") -> None:
    """No gap and no duplicate in kept and moved partitions; each record is of one rebalance."""
    topic = scene.topic(partitions=4, messages=20)
    first, second = (scene.consumer(partition_assignment_strategy=COOPERATIVE) for _ in range(2))
    mine, theirs = Notes().subscribe(first, topic), Notes()
    messages = scene.poll(first, 80)
    theirs.subscribe(second, topic)
    written = 20

    def settled() -> bool:
        nonlocal written
        if written < 200:
            scene.produce(topic, 1, partitions=4, first=written)
            written += 1
        return len(mine.owned) == len(theirs.owned) == 2

    messages += scene.poll_until(settled, first, second)
    scene.produce(topic, 5, partitions=4, first=written)
    messages += scene.poll_until(lambda: len(mine.rebalances) >= 2, first, second)
    messages += take(scene, 4 * (written + 5) - len(messages), first, second)

    assert sorted(positions(messages)) == [
        (partition, offset) for partition in range(4) for offset in range(written + 5)
    ]
    assert [kind for kind, _ in mine.calls] == ["assign", "revoke", "assign", "assign"]
    assert [len(numbers) for _, numbers in mine.calls] == [4, 2, 0, 0]
    assert [len(rebalance.partitions[topic]) for rebalance in mine.rebalances] == [4, 2]
    assert {str(phase) for phase in mine.rebalances[1].phases} == {"revoke", "join", "sync", "assign"}
    assert mine.rebalances[1].generation == 3
    assert not theirs.lost


def test_consuming_and_committing_go_on_while_the_group_waits_for_a_slow_member(scene: "Scene") -> None:
    """With an eager assignor the whole group would stop until the slowest member had joined.

    A commit waits until the connection is free again, and then carries the generation of the kept partitions.
    """
    topic = scene.topic(partitions=4, messages=10)
    committed: list[object] = []
    strategy = {"partition_assignment_strategy": COOPERATIVE}
    fast = scene.consumer(
        **strategy, enable_auto_commit=False, on_commit=lambda error, _: committed.append(error)
    )
    slow, late = scene.consumer(**strategy), scene.consumer(**strategy)
    mine, theirs = Notes().subscribe(fast, topic), Notes()
    scene.poll(fast, 40)
    theirs.subscribe(slow, topic)
    scene.poll_until(lambda: len(mine.owned) == len(theirs.owned) == 2 == len(mine.rebalances), fast, slow)
    membership = scene.member_of(fast).membership
    slow.subscribe([topic, "another"])  # it joins by itself; what it is then assigned waits for its poll
    scene.poll_until(lambda: len(mine.rebalances) == 3 and bool(scene.member_of(slow).events._inbox), fast)
    late.subscribe([topic])
    scene.poll_until(
        lambda: membership.state is State.PREPARING_REBALANCE, fast, late, what="the parked JoinGroup"
    )
    kept = fast.assignment()
    scene.produce(topic, 10, partitions=4, first=10)
    fast.commit(offsets=[TopicPartition(topic, kept[0].partition, 5)])
    seen = {partition for partition, _ in positions(take(scene, 5 * len(kept), fast))}

    assert seen <= {p.partition for p in kept}
    assert membership.state is State.PREPARING_REBALANCE
    assert committed == []
    scene.poll_until(lambda: bool(committed), fast, slow, late, what="the commit")
    assert committed == [None]
    assert scene.committed(topic, partitions=4)[kept[0].partition] == 5


def test_a_commit_in_on_revoke_is_of_the_new_generation(scene: "Scene") -> None:
    topic = scene.topic(partitions=2, messages=10)
    errors: list[object] = []
    first = scene.consumer(
        partition_assignment_strategy=COOPERATIVE,
        enable_auto_commit=False,  # else what was consumed is committed after it
        on_commit=lambda error, _: errors.append(error) if error else None,
    )
    second = scene.consumer(partition_assignment_strategy=COOPERATIVE)
    given_up: list[int] = []

    def on_revoke(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        wanted = [TopicPartition(topic, p.partition, 7) for p in partitions]
        assert consumer.commit(offsets=wanted, asynchronous=False)
        given_up.extend(p.partition for p in partitions)

    first.subscribe([topic], on_revoke=on_revoke)
    scene.poll(first, 20)
    second.subscribe([topic])
    (message, *_) = take(scene, 1, first, second)

    assert message.offset() == 7
    assert given_up == [message.partition()]
    assert errors == []


def test_the_others_take_what_a_member_leaves(scene: "Scene") -> None:
    topic = scene.topic(partitions=4)
    first, second = (scene.consumer(partition_assignment_strategy=COOPERATIVE) for _ in range(2))
    mine, theirs = Notes().subscribe(first, topic), Notes().subscribe(second, topic)
    scene.poll_until(lambda: len(mine.owned) == len(theirs.owned) == 2, first, second)
    second.close()
    scene.own(first, 4)

    assert theirs.calls[-1][0] == "revoke"
    assert theirs.owned == set()
    assert mine.owned == {0, 1, 2, 3}


def test_an_expelled_member_loses_everything_and_comes_back(scene: "Scene") -> None:
    topic = scene.topic(partitions=2)
    consumer = scene.consumer(partition_assignment_strategy=COOPERATIVE)
    notes = Notes().subscribe(consumer, topic)
    scene.own(consumer, 2)
    scene.expel(consumer)
    scene.poll_until(lambda: len(notes.calls) == 3, consumer)

    assert notes.calls == [("assign", [0, 1]), ("lost", [0, 1]), ("assign", [0, 1])]


def test_a_group_of_both_clients_settles(scene: "Scene") -> None:
    """librdkafka's members use the same bytes for their claims and assignments."""
    topic = scene.topic(partitions=6)
    native = confluent_kafka.Consumer(
        {
            "bootstrap.servers": scene.kafka.bootstrap_servers,
            "group.id": scene.group,
            "partition.assignment.strategy": COOPERATIVE,
            "heartbeat.interval.ms": 100,
        }
    )
    ours = scene.consumer(partition_assignment_strategy=COOPERATIVE)
    try:
        theirs, mine = Notes().subscribe(native, topic), Notes().subscribe(ours, topic)
        scene.poll_until(lambda: len(mine.owned) == len(theirs.owned) == 3, ours, native)  # type: ignore[arg-type]
        assert not mine.owned & theirs.owned
    finally:
        native.close()
    scene.own(ours, 6)


# --- The way from eager to cooperative ------------------------------------------------------------------


def test_a_group_changes_to_cooperative_in_two_bounces(scene: "Scene") -> None:
    """KIP-429: first every member gets both assignors and still rebalances eagerly; then only the new one."""
    topic = scene.topic(partitions=4)

    def bounce(old: Consumer | None, strategy: str, others: list[Consumer]) -> Consumer:
        if old is not None:
            old.close()
        new = scene.consumer(partition_assignment_strategy=strategy)
        notes[new] = Notes().subscribe(new, topic)
        scene.poll_until(
            lambda: sum(len(notes[c].owned) for c in (new, *others)) == 4 and len(notes[new].owned) == 2,
            new,
            *others,
        )
        assert set().union(*(notes[c].owned for c in (new, *others))) == {0, 1, 2, 3}
        return new

    notes: dict[Consumer, Notes] = {}
    a = scene.consumer(partition_assignment_strategy="range")
    notes[a] = Notes().subscribe(a, topic)
    scene.own(a, 4)
    b = bounce(None, "range", [a])
    a = bounce(a, f"{COOPERATIVE},range", [b])
    b = bounce(b, f"{COOPERATIVE},range", [a])
    a = bounce(a, COOPERATIVE, [b])
    scene.poll_until(lambda: [each.protocol for each in notes[a].rebalances[-1:]] == [COOPERATIVE], a, b)
    b = bounce(b, COOPERATIVE, [a])
    kept = set(notes[a].owned)
    b.close()
    scene.own(a, 4)

    assert ("revoke", sorted(kept)) not in notes[a].calls
    assert notes[a].calls[-1][0] == "assign"
    assert len(notes[a].calls[-1][1]) == 2


# --- Assignors of one's own -----------------------------------------------------------------------------


class Backwards(Assignor):
    """The last member first, and nothing held back."""

    name = "backwards"
    protocols = frozenset({RebalanceProtocol.COOPERATIVE})

    def assign(self, group: Group) -> Plan:
        ids = sorted((member.id for member in group.members), reverse=True)
        plan: dict[str, dict[str, list[int]]] = {id_: {} for id_ in ids}
        for topic, facts in group.topics.items():
            for partition in range(facts.partitions):
                plan[ids[partition % len(ids)]].setdefault(topic, []).append(partition)
        return plan


class Careful(Backwards):
    name = "careful"

    def assign(self, group: Group) -> Plan:
        return withhold_claimed(group, super().assign(group))


@pytest.mark.parametrize("assignor", [Backwards, Careful])
def test_an_assignor_that_gives_away_what_is_owned_is_an_error(
    scene: "Scene", assignor: Callable[[], Assignor]
) -> None:
    topic = scene.topic(partitions=4)
    first, second = (scene.consumer(partition_assignment_strategy=[assignor()]) for _ in range(2))
    mine, theirs = Notes().subscribe(first, topic), Notes()
    scene.own(first, 4)
    theirs.subscribe(second, topic)
    if assignor is Backwards:
        with pytest.raises(
            AssignorFailedError, match=r"return withhold_claimed\(group, plan\) instead of the plan"
        ):
            scene.poll_until(lambda: False, first, second)
        assert mine.owned == {0, 1, 2, 3}
    else:
        scene.poll_until(lambda: len(mine.owned) == len(theirs.owned) == 2, first, second)
        assert not mine.owned & theirs.owned


@pytest.mark.parametrize("theirs", ["range,roundrobin", "range", "roundrobin", "cooperative-sticky"])
def test_the_default_is_compatible_with_every_strategy_of_librdkafka(scene: "Scene", theirs: str) -> None:
    """Groups with librdkafka's default, and the bounce from there to cooperative rebalances (KIP-726)."""
    topic = scene.topic(partitions=4)
    ours = scene.consumer(partition_assignment_strategy=None)
    ours.subscribe([topic])
    scene.own(ours, 4)
    config = {
        "bootstrap.servers": scene.kafka.bootstrap_servers,
        "group.id": scene.group,
        "partition.assignment.strategy": theirs,
    }
    with confluent_kafka.Consumer(config) as other:
        other.subscribe([topic])
        scene.poll_until(
            lambda: other.poll(0) is None and [len(ours.assignment()), len(other.assignment())] == [2, 2],
            ours,
        )
        mine, others = ({p.partition for p in consumer.assignment()} for consumer in (ours, other))
        assert mine | others == {0, 1, 2, 3}
