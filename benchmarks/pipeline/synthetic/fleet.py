"""A fleet of synthetic consumer groups and their timelines, from a few parameters and a seed."""

from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.int64]
Flags = npt.NDArray[np.bool_]

_SECONDS = 86_400
_LEAST_MEMBERS = 1
_CONSUMER_PROTOCOL_EVERY = 4
_PARTIAL_EVERY = 5


class Event(StrEnum):
    """Why a group's next generation began."""

    FIRST = "first"
    JOIN = "join"
    LEAVE = "leave"
    CRASH = "expiry"
    SUBSCRIPTION = "subscription"


_EVENTS = (Event.JOIN, Event.LEAVE, Event.CRASH, Event.SUBSCRIPTION)
_WEIGHTS = (0.4, 0.3, 0.2, 0.1)


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Consumer groups over some days. The same numbers and seed make the same history, on any machine.

    Attributes:
        groups: How many there are.
        members: How many each begins with; it then varies around that.
        topics: How many each reads; every fifth group's members do not all read all of them.
        partitions: Of each topic.
        days: How long the history is.
        generations: How many each group goes through, in equal steps.
        commits: How many offsets are committed in all, by all groups in turn.
        tombstones: Which share of them are tombstones instead.
        back: Which share of them are less than the commit before: messages are consumed again.
        log_partitions: Of `__consumer_offsets`.
        start: When it begins.
        seed: What else it depends on.
    """

    groups: int = 100
    members: int = 5
    topics: int = 2
    partitions: int = 12
    days: float = 1.0
    generations: int = 10
    commits: int = 100_000
    tombstones: float = 0.01
    back: float = 0.01
    log_partitions: int = 50
    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            ValueError: One is too small for there to be a history.
        """
        for name in ("groups", "members", "topics", "partitions", "generations", "log_partitions"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more, not {getattr(self, name)}")
        if self.commits < 0 or self.days <= 0:
            raise ValueError(f"days ({self.days}) must be more than 0, and commits ({self.commits}) not less")
        if self.start.tzinfo is None:
            raise ValueError(f"start must have a time zone; {self.start} has none")

    @property
    def start_micros(self) -> int:
        """When it begins, in microseconds since 1970."""
        return int(self.start.timestamp()) * 1_000_000

    @property
    def length_micros(self) -> int:
        """How long it is, in microseconds."""
        return int(self.days * _SECONDS * 1_000_000)

    def group_id(self, group: int) -> str:
        """Return a group's name."""
        return f"group-{group:07d}"

    def topic(self, group: int, topic: int) -> str:
        """Return the name of a topic that a group reads; neighbours have some in common."""
        return f"topic-{(group + topic) % self.groups:07d}"

    def is_consumer_protocol(self, group: int) -> bool:
        """Tell whether the group is one of the protocol of KIP-848: every fourth is."""
        return group % _CONSUMER_PROTOCOL_EVERY == _CONSUMER_PROTOCOL_EVERY - 1

    def generation_micros(self, group: int) -> Numbers:
        """Return when each generation of a group is complete, in microseconds since 1970; no two groups' are alike."""
        step = self.length_micros / self.generations
        turns = np.arange(self.generations) + (group + 0.5) / self.groups
        return self.start_micros + (turns * step).astype(np.int64)


@dataclass(frozen=True)
class GroupTimeline:
    """The generations of one group.

    Attributes:
        events: For each generation, why it began.
        alive: Which members are in each generation: a row a generation, a column a member that ever was.
        subscribed: Which topics members want in each generation: [generation, member, topic].
        starts: The partitions of a member run from here, in each generation and topic: [generation, member,
            topic].
        ends: To here.
    """

    events: tuple[Event, ...]
    alive: Flags
    subscribed: Flags
    starts: Numbers
    ends: Numbers

    @classmethod
    def of(cls, fleet: Fleet, group: int) -> "GroupTimeline":
        """Return the timeline of a group."""
        random = np.random.default_rng([fleet.seed, group])
        chosen = random.choice(len(_EVENTS), size=fleet.generations, p=_WEIGHTS).tolist()
        chances = random.random(fleet.generations).tolist()
        present = list(range(fleet.members))
        ever = fleet.members
        partial = {member for member in present if group % _PARTIAL_EVERY == 0 and member % 2}
        events = [Event.FIRST]
        rows = [list(present)]
        wants = [set(partial)]
        for number, chance in zip(chosen[1:], chances[1:], strict=True):
            event = _EVENTS[number]
            if event is Event.SUBSCRIPTION:
                partial ^= {present[int(chance * len(present))]}
            elif event is Event.JOIN or len(present) <= _LEAST_MEMBERS:
                event = Event.JOIN
                present.append(ever)
                ever += 1
            else:
                del present[int(chance * len(present))]
            events.append(event)
            rows.append(list(present))
            wants.append(set(partial))
        alive = np.zeros((fleet.generations, ever), np.bool_)
        subscribed = np.zeros((fleet.generations, ever, fleet.topics), np.bool_)
        for generation, (row, without) in enumerate(zip(rows, wants, strict=True)):
            alive[generation, row] = True
            subscribed[generation, row] = True
            subscribed[generation, list(without), 1:] = False
        return cls(tuple(events), alive, subscribed, *_ranges(subscribed, fleet.partitions))


def _ranges(subscribed: Flags, partitions: int) -> tuple[Numbers, Numbers]:
    """Divide each topic among those who want it, as the range assignor does but for the remainder's place."""
    counts = np.maximum(subscribed.sum(axis=1, keepdims=True), 1)
    ranks = np.cumsum(subscribed, axis=1) - 1
    starts = np.where(subscribed, ranks * partitions // counts, 0)
    ends = np.where(subscribed, (ranks + 1) * partitions // counts, 0)
    return starts.astype(np.int64), ends.astype(np.int64)
