"""Work in parallel in virtual time: processes crash, partitions move, functions fail, and no message is lost.

The polling side is the real one; the clock, the workers' progress, the broker and the coordinator are played.
A seed is played the same way each time.
"""

import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from groupwright.consumer._parallel import engine as engine_module
from groupwright.consumer._parallel.engine import Engine, Limits
from groupwright.consumer._parallel.work import Order, Retry, Run, Work

TOPIC = "orders"
WORKERS = 3
Key = tuple[str, int]


@dataclass(frozen=True)
class Record:
    """A message of the played log."""

    place: int
    at: int
    name: bytes | None

    def topic(self) -> str:
        return TOPIC

    def partition(self) -> int:
        return self.place

    def offset(self) -> int:
        return self.at

    def key(self) -> bytes | None:
        return self.name

    def error(self) -> None:
        return None


@dataclass
class World:
    """Logs, committed offsets, and who owns what, as the brokers know them."""

    choose: random.Random
    partitions: int
    now: float = 0.0
    logs: list[list[Record]] = field(default_factory=list)
    committed: dict[int, int] = field(default_factory=dict)
    owner: dict[int, Any] = field(default_factory=dict)
    done: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))
    revoked: set[int] = field(default_factory=set)
    """Partitions that the coordinator wants back."""
    rebalances: int = 0

    def __post_init__(self) -> None:
        self.logs = [[] for _ in range(self.partitions)]

    def produce(self) -> None:
        for number, log in enumerate(self.logs):
            for _ in range(self.choose.randrange(4)):
                at = (log[-1].at if log else -1) + self.choose.choice([1, 1, 1, 2])
                log.append(Record(number, at, self.choose.choice([b"a", b"b", b"c", None])))

    def commit(self, member: "Client", offsets: Sequence[TopicPartition]) -> None:
        """Take a commit of a partition's owner alone. Everything below it must have been done."""
        for each in offsets:
            if self.owner.get(each.partition) is not member:
                raise KafkaException(KafkaError(KafkaError.ILLEGAL_GENERATION))
        for each in offsets:
            undone = {record.at for record in self.logs[each.partition]} - self.done[each.partition]
            assert min(undone, default=each.offset) >= each.offset, "a message that was not done is committed"
            self.committed[each.partition] = each.offset


class Client:
    """A client's calls, as the polling side makes them."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.positions: dict[int, int] = {}
        self.paused: set[int] = set()
        self.lost: set[int] = set()
        self.closed = False

    def subscribe(self, _: list[str], on_assign: Any, on_revoke: Any, on_lost: Any) -> None:
        self.callbacks = on_assign, on_revoke, on_lost

    def poll(self, _: float) -> Record | None:
        on_assign, on_revoke, on_lost = self.callbacks
        world, owned = self.world, set(self.positions)
        lost = self.lost & owned
        self.lost = set()
        if lost:
            on_lost(self, self._named(lost))
        wanted = {number for number, owner in world.owner.items() if owner is self}
        to_others = {number for number in owned - lost if world.owner.get(number) is not self}
        if to_others:  # they were taken away without this process's knowledge
            on_lost(self, self._named(to_others))
        for number in lost | to_others:
            del self.positions[number]
        given_up = wanted & world.revoked
        revoked = given_up & set(self.positions)
        if revoked:
            on_revoke(self, self._named(revoked))
        for number in given_up:
            self.positions.pop(number, None)
            world.owner.pop(number, None)
            world.revoked.discard(number)
        added = {number for number in wanted - given_up if number not in self.positions}
        if added:
            world.rebalances += 1
            on_assign(self, self._named(added))
            for number in added:
                self.positions[number] = world.committed.get(number, 0)
        found = self.consume(1, 0)
        return found[0] if found else None

    def consume(self, number: int, _: float) -> list[Record]:
        found: list[Record] = []
        for partition in self.world.choose.sample(sorted(self.positions), len(self.positions)):
            if partition in self.paused:
                continue
            position = self.positions[partition]
            new = [record for record in self.world.logs[partition] if record.at >= position]
            new = new[: number - len(found)]
            if new:
                self.positions[partition] = new[-1].at + 1
            found += new
        return found

    def commit(self, offsets: list[TopicPartition], *, asynchronous: bool) -> list[TopicPartition] | None:
        self.world.commit(self, offsets)
        return None if asynchronous else offsets

    def committed(self, partitions: list[TopicPartition], **_: float) -> list[TopicPartition]:
        return partitions

    def pause(self, partitions: list[TopicPartition]) -> None:
        self.paused |= {each.partition for each in partitions}

    def resume(self, partitions: list[TopicPartition]) -> None:
        self.paused -= {each.partition for each in partitions}

    def close(self) -> None:
        self.closed = True
        for number in [number for number, owner in self.world.owner.items() if owner is self]:
            del self.world.owner[number]

    @staticmethod
    def _named(numbers: set[int]) -> list[TopicPartition]:
        return [TopicPartition(TOPIC, number) for number in sorted(numbers)]


class Played(Engine):
    """A process: the real polling side, whose waits let its workers go on."""

    def __init__(self, world: World, order: Order) -> None:
        retry = Retry(2, backoff=0.5)
        work = Work(order, WORKERS, 20, retry)
        super().__init__(lambda _: Client(world), {}, work, Limits(1.0, 5.0), looks_back=True)
        self.world = world
        self.client: Client = self.consumer
        self.taken: list[Run] = []
        self.client.subscribe([TOPIC], self._assign, self._revoke, self._lose)

    def _wait_for(self, condition: Callable[[], bool], seconds: float) -> None:
        for _ in range(self.world.choose.randrange(30) if seconds else 0):
            if condition():
                break
            self.world.now += 0.1
            self.let_a_worker_go_on()

    def let_a_worker_go_on(self) -> None:
        choose = self.world.choose
        if len(self.taken) < WORKERS and (run := self.take(waits=False)) is not None:
            self.taken.append(run)
        if not self.taken:
            return
        run = choose.choice(self.taken)
        message = run.current
        if message is None or (run.is_cut and run.done):
            self.taken.remove(run)
            self.finish(run)
        elif choose.random() < 0.1 and self.retries(run, message, ValueError()):
            self.taken.remove(run)
        else:
            self.world.done[message.partition() or 0].add(message.offset() or 0)
            run.done += 1

    def step(self) -> None:
        self._step()
        for _ in range(self.world.choose.randrange(6)):
            self.let_a_worker_go_on()


class History:
    """A random history of one group."""

    def __init__(self, seed: int) -> None:
        self.choose = random.Random(seed)  # noqa: S311 - reproducible, not secret
        self.world = World(self.choose, partitions=self.choose.randrange(1, 6))
        engine_module.time = SimpleNamespace(  # type: ignore[attr-defined,assignment]
            monotonic=lambda: self.world.now
        )
        self.order = self.choose.choice(list(Order))
        self.processes = [Played(self.world, self.order) for _ in range(self.choose.randrange(1, 4))]

    def play(self, steps: int) -> int:
        """Play it, then let everything be done; return the number of rebalances."""
        events = (self.world.produce, self.revoke, self.expire, self.crash, self.deploy, lambda: None)
        for _ in range(steps):
            self.world.now += self.choose.choice([0.05, 0.2, 1.0])
            (event,) = self.choose.choices(events, (15, 15, 4, 3, 2, 60))
            event()
            self.assign(0.5)
            self.choose.choice(self.processes).step()
        self.finish()
        return self.world.rebalances

    def revoke(self) -> None:
        self.world.revoked |= {self.choose.randrange(self.world.partitions)} & self.world.owner.keys()

    def expire(self) -> None:
        """End a session: partitions have other owners before the process knows."""
        victim = self.choose.choice(self.processes).client
        for number in [number for number, owner in self.world.owner.items() if owner is victim]:
            del self.world.owner[number]
            victim.lost.add(number)

    def crash(self) -> None:
        """Kill a process, and start another in its place."""
        index = self.choose.randrange(len(self.processes))
        self.processes[index].client.close()
        self.processes[index] = Played(self.world, self.order)

    def deploy(self) -> None:
        """Stop a process, and start another in its place."""
        index = self.choose.randrange(len(self.processes))
        self.processes[index]._give_up(None, drains=True)
        self.processes[index].client.close()
        self.processes[index] = Played(self.world, self.order)

    def assign(self, chance: float) -> None:
        for number in range(self.world.partitions):
            if number not in self.world.owner and self.choose.random() < chance:
                self.world.owner[number] = self.choose.choice(self.processes).client

    def finish(self) -> None:
        ends = {number: log[-1].at + 1 for number, log in enumerate(self.world.logs) if log}
        for _ in range(3000):
            if {number: self.world.committed.get(number) for number in ends} == ends:
                break
            self.world.now += 0.2
            self.assign(1.0)
            for process in self.processes:
                process.step()
        assert {number: self.world.committed.get(number) for number in ends} == ends
        for number, log in enumerate(self.world.logs):
            assert {record.at for record in log} <= self.world.done[number], "a message was lost"


@pytest.fixture(autouse=True)
def _clock_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "time", engine_module.time)  # type: ignore[attr-defined]


@pytest.mark.medium
def test_no_message_is_lost_in_random_histories() -> None:
    assert sum(History(seed).play(150) for seed in range(60)) > 500


@pytest.mark.slow
@pytest.mark.endurance
def test_no_message_is_lost_in_a_hundred_thousand_rebalances() -> None:
    rebalances = seed = 0
    while rebalances < 100_000:
        seed += 1
        rebalances += History(seed).play(300)
