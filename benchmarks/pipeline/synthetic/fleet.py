"""Synthetic consumer groups and their timelines, from a few parameters and a seed."""

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
    """Cause of a group's next generation."""

    FIRST = "first"
    JOIN = "join"
    LEAVE = "leave"
    CRASH = "expiry"
    SUBSCRIPTION = "subscription"


_EVENTS = (Event.JOIN, Event.LEAVE, Event.CRASH, Event.SUBSCRIPTION)
_WEIGHTS = (0.4, 0.3, 0.2, 0.1)


@dataclass(frozen=True, kw_only=True)
class Fleet:
    """Consumer groups over some days. Equal parameters give equal histories on any machine.

    Attributes:
        groups: Number of groups.
        members: Number of members at the start of each group; it varies later.
        topics: Number of topics per group; in every fifth group, subscriptions differ.
        partitions: Number of partitions per topic.
        cluster_topics: Number of topics of the cluster; 0 for one per group.
        days: Length of the history.
        generations: Number of generations per group, at equal intervals.
        commits: Total number of commits, by all groups in turn.
        tombstones: Share of tombstones among the commits.
        back: Share of commits below the previous one, as after a seek back.
        log_partitions: Number of partitions of `__consumer_offsets`.
        start: Begin of the history.
        seed: Seed of all random choices.
    """

    groups: int = 100
    members: int = 5
    topics: int = 2
    partitions: int = 12
    cluster_topics: int = 0
    days: float = 1.0
    generations: int = 10
    commits: int = 100_000
    tombstones: float = 0.01
    back: float = 0.01
    log_partitions: int = 50
    start: datetime = datetime(2026, 1, 1, tzinfo=UTC)
    seed: int = 0

    def __post_init__(self) -> None:
        """Check the parameters.

        Raises:
            ValueError: A parameter is too small.
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
        """Begin of the history, in microseconds since 1970."""
        return int(self.start.timestamp()) * 1_000_000

    @property
    def length_micros(self) -> int:
        """Length of the history, in microseconds."""
        return int(self.days * _SECONDS * 1_000_000)

    def group_id(self, group: int) -> str:
        """Return a group's name."""
        return f"group-{group:07d}"

    def topic(self, group: int, topic: int) -> str:
        """Return the name of a topic of a group; neighbouring groups share some topics."""
        return f"topic-{(group + topic) % (self.cluster_topics or self.groups):07d}"

    def is_consumer_protocol(self, group: int) -> bool:
        """Return whether the group uses the protocol of KIP-848: every fourth one does."""
        return group % _CONSUMER_PROTOCOL_EVERY == _CONSUMER_PROTOCOL_EVERY - 1

    def generation_micros(self, group: int) -> Numbers:
        """Return the unique completion times of a group's generations, in microseconds since 1970."""
        step = self.length_micros / self.generations
        turns = np.arange(self.generations) + (group + 0.5) / self.groups
        return self.start_micros + (turns * step).astype(np.int64)


@dataclass(frozen=True)
class GroupTimeline:
    """The generations of one group.

    Attributes:
        events: Cause of each generation.
        alive: Whether each member is in each generation, (generations, members).
        subscribed: Subscriptions, (generations, members, topics).
        starts: First partition of each member, (generations, members, topics).
        ends: End (exclusive) of each member's partitions, (generations, members, topics).
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
    """Divide each topic among its subscribers, as the range assignor does, except for the remainder."""
    counts = np.maximum(subscribed.sum(axis=1, keepdims=True), 1)
    ranks = np.cumsum(subscribed, axis=1) - 1
    starts = np.where(subscribed, ranks * partitions // counts, 0)
    ends = np.where(subscribed, (ranks + 1) * partitions // counts, 0)
    return starts.astype(np.int64), ends.astype(np.int64)
