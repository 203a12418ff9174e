"""A cluster's groups at one moment, as a source reports them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from groupwright.cli._cluster.lag import GroupLag
from groupwright.cli._cluster.model import OpenTransaction


@dataclass(frozen=True, slots=True)
class HeldPartition:
    """A partition of `__consumer_offsets` whose last stable offset is before its end.

    Attributes:
        stable: The last stable offset.
        end: The end of the log.
    """

    stable: int
    end: int


@dataclass(frozen=True, slots=True)
class OffsetsTopicState:
    """`__consumer_offsets` at one moment.

    Attributes:
        partitions: Number of its partitions; 0 if it does not exist yet.
        stable: By number, the last stable offsets, as far as they are known.
        held: By number, the partitions that transactions hold back.
    """

    partitions: int = 0
    stable: Mapping[int, int] = field(default_factory=dict)
    held: Mapping[int, HeldPartition] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A cluster's groups at one moment.

    Attributes:
        time: When the ends of logs were asked, in seconds since the epoch.
        groups: The groups to show, with their partitions.
        states: Number of groups by state, those left out included.
        left_out: Number of groups left out, by reason.
        generations: Generations of classic groups, as far as the source knows them.
        commits: Committed offsets since the source's start, by group; None if the source does not know.
        offsets_topic: `__consumer_offsets`; None if it may not be seen.
        transactions: Open transactions.
        silent_brokers: Number of brokers that did not list their groups.
    """

    time: float
    groups: tuple[GroupLag, ...]
    states: Mapping[str, int] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
    generations: Mapping[str, int] = field(default_factory=dict)
    commits: Mapping[str, int] | None = None
    offsets_topic: OffsetsTopicState | None = field(default_factory=OffsetsTopicState)
    transactions: tuple[OpenTransaction, ...] = ()
    silent_brokers: int = 0
