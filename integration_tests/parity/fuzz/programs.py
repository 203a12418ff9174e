"""Random programs: a grammar of settings, calls, faults and waits. Pure: a seed makes one program, anywhere.

A program is a value that can be written as JSON. It is total: a step that makes no sense in its place is an
error that both consumers have to raise alike, and any step can be left out.
"""

import random
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

Step = tuple[Any, ...]
"""A step's name and its arguments."""

MESSAGES = 20
"""Messages in each partition at the beginning."""

_MISSING = 0.15
"""Share of the commits that are of a partition that does not exist."""


@dataclass(frozen=True, slots=True)
class Program:
    """Settings, and what an application does with them."""

    settings: Mapping[str, Any]
    partitions: tuple[int, ...]
    """How many each topic has."""
    steps: tuple[Step, ...]

    @property
    def breaks_kafka(self) -> bool:
        """True if it needs a broker that it may cut off."""
        return any(step[0] == "outage" for step in self.steps)

    def to_json(self) -> dict[str, Any]:
        """Return what `from_json` reads."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Program":
        """Read what `to_json` has written, also after it went through JSON."""
        steps = tuple(_as_tuple(step) for step in data["steps"])
        return cls(dict(data["settings"]), tuple(data["partitions"]), steps)

    def __str__(self) -> str:
        settings = ", ".join(f"{key}={value!r}" for key, value in self.settings.items())
        topics = ", ".join(f"t{number}: {count}" for number, count in enumerate(self.partitions, 1))
        lines = [f"consumer({settings})  # partitions of {topics}"]
        lines += [f"{step[0]}({', '.join(map(repr, step[1:]))})" for step in self.steps]
        return "\n".join(f"    {line}" for line in lines)


def _as_tuple(value: Any) -> Any:
    return tuple(map(_as_tuple, value)) if isinstance(value, (list, tuple)) else value


def random_program(seed: int) -> Program:
    """Return the program of a seed."""
    chance = random.Random(seed)  # noqa: S311 - chance, not secrecy
    partitions = chance.choice(((1,), (1,), (2,), (1, 1), (3, 1)))
    settings = {key: chance.choice(choices) for key, choices in _SETTINGS.items()}
    if settings["enable_auto_commit"] is False:
        settings.pop("auto_commit_interval_ms")
    if chance.random() < 0.85:
        settings.pop("group_instance_id")
    cooperative = "cooperative" in settings["partition_assignment_strategy"]
    if cooperative and partitions == (2,):
        partitions = (1, 1)  # so that a second member can take one partition alone, see `Player`
    writer = _Writer(chance, partitions, cooperative=cooperative)
    return Program(settings, partitions, tuple(writer.steps(chance.randint(2, 9))))


_SETTINGS: Mapping[str, tuple[Any, ...]] = {
    "partition_assignment_strategy": ("range", "range", "cooperative-sticky", "roundrobin"),
    "enable_auto_commit": (True, False, False),
    "auto_commit_interval_ms": (
        200,
        60_000.0,
    ),  # the second as a file of YAML may have it; no program takes as long
    "enable_auto_offset_store": (True, True, False),
    "auto_offset_reset": ("earliest", "earliest", "latest", "error"),
    "enable_partition_eof": (False, True),
    "group_instance_id": ("a-instance",),  # before c2, by its name and as a static member
}
CALLBACKS = (
    "none",
    "record",
    "record",
    "record",
    "assigns",
    "assigns_at",
    "commits",
    "commits_async",
    "seeks",
    "pauses",
    "raises",
    "slow",
)
"""What the rebalance callbacks of a subscription do."""


class _Writer:
    """Writes the steps of one program, likely ones more often."""

    def __init__(self, chance: random.Random, partitions: tuple[int, ...], *, cooperative: bool) -> None:
        self._chance = chance
        self._partitions = partitions
        self._cooperative = cooperative
        self._kinds: dict[Callable[[], Step], int] = {
            self._read: 14,
            self._consume: 8,
            self._seek: 8,
            self._commit: 10,
            self._commit_offsets: 4,
            self._commit_last: 4,
            self._store: 5,
            lambda: ("position",): 4,
            lambda: ("committed",): 3,
            lambda: ("assignment",): 2,
            self._pause: 4,
            self._resume: 3,
            self._produce: 4,
            lambda: ("idle", self._chance.choice((0.1, 0.4, 1.2))): 5,
            self._subscribe: 5,
            lambda: ("unsubscribe",): 4,
            self._assign: 4,
            lambda: ("unassign",): 3,
            self._incremental: 4,
            lambda: ("second_joins",): 3,
            lambda: ("second_leaves",): 2,
            lambda: ("close",): 2,
            lambda: ("commit_and_close",): 2,
            lambda: ("delete_topic", self._chance.randrange(len(self._partitions))): 1,
            lambda: ("grow_topic", self._chance.randrange(len(self._partitions))): 1,
            lambda: ("stall",): 1,
            lambda: ("outage", self._chance.choice((0.2, 1.0, 2.5))): 1,
            self._from_thread: 4,
        }

    def steps(self, count: int) -> list[Step]:
        """Return so many steps, with a way to partitions before them."""
        first = self._subscribe() if self._chance.random() < 0.8 else self._assign()
        kinds = list(self._kinds)
        weights = list(self._kinds.values())
        return [first, *(kind() for kind in self._chance.choices(kinds, weights, k=count))]

    def _partition(self) -> tuple[int, int]:
        topic = self._chance.randrange(len(self._partitions))
        return topic, self._chance.randrange(self._partitions[topic])

    def _offset(self) -> int:
        return self._chance.choice((0, 2, 5, 10, 19, MESSAGES, MESSAGES + 5, -1, -2))

    def _some(self) -> tuple[tuple[int, int], ...]:
        return tuple(sorted({self._partition() for _ in range(self._chance.randint(1, 2))}))

    def _read(self) -> Step:
        return "read", self._chance.choice((1, 5, 10, 10, 25, 100))

    def _consume(self) -> Step:
        return "consume", self._chance.choice((1, 5, 10, 100))

    def _seek(self) -> Step:
        return "seek", self._partition(), self._offset()

    def _commit(self) -> Step:
        return "commit", self._chance.choice(("sync", "async"))

    def _commit_offsets(self) -> Step:
        topic, partition = self._partition()
        if self._chance.random() < _MISSING:
            partition = self._partitions[topic]
        return "commit_offsets", (topic, partition), self._chance.choice((0, 3, 7, 50)), self._way()

    def _commit_last(self) -> Step:
        return "commit_last", self._way()

    def _way(self) -> str:
        return self._chance.choice(("sync", "async"))

    def _store(self) -> Step:
        return self._chance.choice((("store_last",), ("store", self._partition(), 4)))

    def _pause(self) -> Step:
        return "pause", self._some()

    def _resume(self) -> Step:
        return "resume", self._some()

    def _produce(self) -> Step:
        return "produce", self._partition(), self._chance.choice((1, 5))

    def _subscribe(self) -> Step:
        everything = tuple(range(len(self._partitions)))
        topics = everything if self._chance.random() < 0.8 else self._chance.choice(((0,), everything[-1:]))
        pause = self._chance.choice(("settle", "settle", "assigned", "none"))
        return "subscribe", topics, self._chance.choice(CALLBACKS), pause

    def _assign(self) -> Step:
        return "assign", tuple((*partition, self._start()) for partition in self._some())

    def _start(self) -> int:
        return self._chance.choice((-1001, -1001, 0, 5, -2, -1))

    def _incremental(self) -> Step:
        if self._chance.random() < 0.5:
            return "incremental_assign", tuple((*partition, self._start()) for partition in self._some())
        return "incremental_unassign", self._some()

    def _from_thread(self) -> Step:
        others = (
            self._commit,
            self._commit_last,
            self._commit_offsets,
            self._store,
            self._pause,
            self._resume,
            lambda: ("position",),
            lambda: ("committed",),
        )
        return "from_thread", self._chance.choice(others)()
