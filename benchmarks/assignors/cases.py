"""Matrix of the benchmark: one line per cell, and the targets of some cells."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from fnmatch import fnmatch


class Subscriptions(StrEnum):
    """Patterns of subscriptions."""

    EQUAL = "equal"
    """Everybody to everything."""

    DISJOINT = "disjoint"
    """Half of the members to half of the topics, the others to the rest."""

    NESTED = "nested"
    """Ten tiers of members: the first to a tenth of the topics, each next one to a tenth more."""

    HALF = "half"
    """Everybody to half of the topics, each to a random one."""

    NARROW = "narrow"
    """Everybody to everything, but one member to a single topic."""


class Event(StrEnum):
    """Events since the last assignment."""

    FULL = "FULL"
    """There was none: no member owns anything."""

    STABLE = "STABLE"
    """Nothing."""

    JOIN_ONE = "JOIN_ONE"
    """A member has joined."""

    LEAVE_ONE = "LEAVE_ONE"
    """A member has left."""

    LEAVE_MANY = "LEAVE_MANY"
    """A quarter of the members have left."""

    PARTITIONS_ADDED = "PARTITIONS_ADDED"
    """Every topic has grown by a tenth."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One cell: what happens to which group.

    Attributes:
        assignor: Kafka's name of the assignor.
        subscriptions: Who subscribes to what.
        event: What has happened since the last assignment.
        partitions: How many there are of all topics, before any are added.
        members: How many there are before any join or leave.
        topics: How many there are.
        skewed: Whether topics are of very different sizes, rather than all of one.
        racks: Whether members and partitions have racks (three of them, two replicas a partition).
    """

    assignor: str
    subscriptions: Subscriptions
    event: Event
    partitions: int
    members: int
    topics: int
    skewed: bool = False
    racks: bool = False

    @property
    def name(self) -> str:
        """Name in the tables and for `--only`."""
        extras = ("/skewed" if self.skewed else "") + ("/racks" if self.racks else "")
        size = f"{self.partitions}p-{self.members}m-{self.topics}t"
        return f"{self.assignor}/{self.subscriptions}/{size}{extras}/{self.event}"

    @property
    def is_sticky(self) -> bool:
        """True if the assignor considers owned partitions and optimizes balance by counts."""
        return self.assignor.endswith("sticky")

    @property
    def is_weighted(self) -> bool:
        """True if partitions have weights, which the assignor balances."""
        return self.assignor == LOAD_AWARE

    @property
    def is_cooperative(self) -> bool:
        """True if members still own their partitions, so that moved ones are withheld for one round."""
        return self.assignor in {"cooperative-sticky", LOAD_AWARE}


@dataclass(frozen=True)
class Target:
    """Required speed of Groupwright.

    Attributes:
        times: How many times faster than the contestant, at least.
        than: The contestant's name.
    """

    times: float
    than: str


GROUPWRIGHT, JAVA, FRANZ_GO, KAFKA_PYTHON, AIOKAFKA = CONTESTANTS = (
    "Groupwright",
    "Java",
    "franz-go",
    "kafka-python",
    "aiokafka",
)

LOAD_AWARE = "load-aware"
"""Assignor that Groupwright alone has."""

MEMORY_LIMIT_MB = 500
"""Limit of the process's peak memory for the step of a million partitions."""

MEMORY_PARTITIONS = 1_000_000

SERIES = ((1_000, 10, 10), (10_000, 100, 100), (100_000, 1_000, 1_000), (1_000_000, 2_000, 1_000))
"""Partitions, members and topics of the cells that the plot shows."""

# kafka-python and aiokafka take minutes beyond; they take part in larger cells where a target names them.
_MOST_FOR_SLOW_STICKY = 2_000
_MOST_FOR_SLOW = 10_000

_MILLION = "equal/1000000p-2000m-1000t"
_HUNDRED_THOUSAND = "equal/100000p-1000m-1000t"
_TARGETS = (
    (f"*sticky/{_MILLION}/FULL", Target(2, JAVA)),
    (f"*sticky/{_MILLION}/JOIN_ONE", Target(10, JAVA)),
    (f"*sticky/{_MILLION}/LEAVE_ONE", Target(10, JAVA)),
    (f"range/{_MILLION}/FULL", Target(10, JAVA)),
    (f"roundrobin/{_MILLION}/FULL", Target(10, JAVA)),
    ("sticky/disjoint/20000p-500m-100t/FULL", Target(10, JAVA)),
    ("sticky/half/50000p-1000m-500t/FULL", Target(100, JAVA)),
    *(
        (f"{assignor}/{_HUNDRED_THOUSAND}/FULL", Target(100, client))
        for assignor in ("sticky", "range", "roundrobin")
        for client in (KAFKA_PYTHON, AIOKAFKA)
    ),
    (f"cooperative-sticky/{_HUNDRED_THOUSAND}/FULL", Target(100, KAFKA_PYTHON)),
    (f"sticky/{_HUNDRED_THOUSAND}/LEAVE_ONE", Target(100, KAFKA_PYTHON)),
    (f"sticky/{_HUNDRED_THOUSAND}/LEAVE_ONE", Target(100, AIOKAFKA)),
)

_LIMITS = (
    (f"{LOAD_AWARE}/equal/10000p-200m-*", 0.2),
    (f"{LOAD_AWARE}/equal/100000p-1000m-*", 2.0),
)

_ALL = tuple(Event)
_MAIN = (Event.FULL, Event.JOIN_ONE, Event.LEAVE_ONE)


def targets(case: Case) -> list[Target]:
    """Return what Groupwright must reach in this cell, besides being no slower than Java and franz-go."""
    return [target for pattern, target in _TARGETS if fnmatch(case.name, pattern)]


def time_limit(case: Case) -> float | None:
    """Return the seconds within which Groupwright must be done in this cell, if there is such a target."""
    return min((seconds for pattern, seconds in _LIMITS if fnmatch(case.name, pattern)), default=None)


def takes_part(contestant: str, case: Case) -> bool:
    """Tell whether the contestant has a chance to finish in this cell, or a target names it there."""
    if contestant not in {KAFKA_PYTHON, AIOKAFKA}:
        return True
    if any(target.than == contestant for target in targets(case)):
        return True
    most = _MOST_FOR_SLOW_STICKY if case.is_sticky else _MOST_FOR_SLOW
    return case.partitions <= most and not case.racks


def full_matrix() -> list[Case]:
    """Return every cell, in the order of the tables."""
    return [*_sticky(), *_cooperative(), *_stateless(), *_with_racks(), *_by_load()]


def quick_matrix() -> list[Case]:
    """Return a few small cells, for a run of less than a minute."""
    small = _group("sticky", Subscriptions.EQUAL, *SERIES[0])
    equal = _group("sticky", Subscriptions.EQUAL, *SERIES[1])
    half = _group("sticky", Subscriptions.HALF, 2_000, 100, 50)
    return [
        *_events(small, Event.LEAVE_ONE),
        *_events(equal, Event.FULL, Event.LEAVE_ONE),
        *_events(half, Event.JOIN_ONE),
        *_events(replace(equal, assignor="cooperative-sticky"), Event.JOIN_ONE),
        *_events(replace(equal, assignor="range"), Event.FULL),
        *_events(replace(equal, assignor="roundrobin"), Event.FULL),
        *_events(replace(equal, assignor="range", racks=True), Event.FULL),
        *_events(_group(LOAD_AWARE, Subscriptions.EQUAL, 10_000, 200, 100), Event.FULL, Event.JOIN_ONE),
    ]


def _sticky() -> Iterator[Case]:
    sticky = "sticky"
    for size in SERIES:
        events = _ALL if size == SERIES[-1] else _MAIN
        yield from _events(_group(sticky, Subscriptions.EQUAL, *size), *events)
    # Few members, many members; and 50 of 200 leave, as in a test of Java's sticky assignors.
    few = _group(sticky, Subscriptions.EQUAL, 10_000, 10, 100)
    yield from _events(few, Event.FULL, Event.LEAVE_ONE)
    yield from _events(_group(sticky, Subscriptions.EQUAL, 8_000, 200, 40), Event.LEAVE_MANY)
    yield from _events(_group(sticky, Subscriptions.EQUAL, 50_000, 10_000, 100), *_MAIN)
    yield from _events(_group(sticky, Subscriptions.EQUAL, 500_000, 10_000, 100), Event.FULL, Event.JOIN_ONE)
    # Different subscriptions.
    yield from _events(_group(sticky, Subscriptions.HALF, 2_000, 100, 50), *_MAIN)
    yield from _events(_group(sticky, Subscriptions.HALF, 10_000, 1_000, 100), *_MAIN)
    yield from _events(_group(sticky, Subscriptions.HALF, 50_000, 1_000, 500), *_ALL)
    yield from _events(_group(sticky, Subscriptions.DISJOINT, 20_000, 500, 100), *_ALL)
    halves = _group(sticky, Subscriptions.DISJOINT, 100_000, 1_000, 500)
    yield from _events(halves, Event.FULL, Event.LEAVE_ONE)
    yield from _events(_group(sticky, Subscriptions.NESTED, 10_000, 200, 100), *_MAIN)
    nested = _group(sticky, Subscriptions.NESTED, 100_000, 1_000, 500)
    yield from _events(nested, Event.FULL, Event.LEAVE_ONE)
    yield from _events(_group(sticky, Subscriptions.NARROW, 100_000, 1_000, 100), *_MAIN)
    narrow = _group(sticky, Subscriptions.NARROW, 1_000_000, 2_000, 500)
    yield from _events(narrow, Event.FULL, Event.LEAVE_ONE)
    # Topics of very different sizes.
    skewed = replace(_group(sticky, Subscriptions.EQUAL, 100_000, 1_000, 1_000), skewed=True)
    yield from _events(skewed, Event.FULL, Event.LEAVE_ONE, Event.PARTITIONS_ADDED)
    skewed = replace(_group(sticky, Subscriptions.HALF, 50_000, 1_000, 500), skewed=True)
    yield from _events(skewed, Event.FULL, Event.LEAVE_ONE)


def _cooperative() -> Iterator[Case]:
    cooperative = "cooperative-sticky"
    yield from _events(_group(cooperative, Subscriptions.EQUAL, 100_000, 1_000, 1_000), Event.STABLE, *_MAIN)
    yield from _events(_group(cooperative, Subscriptions.EQUAL, 1_000_000, 2_000, 1_000), *_MAIN)
    half = _group(cooperative, Subscriptions.HALF, 50_000, 1_000, 500)
    yield from _events(half, Event.JOIN_ONE, Event.LEAVE_MANY)


def _stateless() -> Iterator[Case]:
    """Range and round robin, to which nothing matters but who is there."""
    for assignor in ("range", "roundrobin"):
        for size in (*SERIES, (50_000, 10_000, 100)):
            yield from _events(_group(assignor, Subscriptions.EQUAL, *size), Event.FULL)
        skewed = replace(_group(assignor, Subscriptions.EQUAL, 100_000, 1_000, 1_000), skewed=True)
        yield from _events(skewed, Event.FULL)
        yield from _events(_group(assignor, Subscriptions.HALF, 50_000, 1_000, 500), Event.FULL)


def _with_racks() -> Iterator[Case]:
    for assignor, subscriptions, partitions, members, topics, events in (
        ("range", Subscriptions.EQUAL, 5_000, 100, 10, (Event.FULL,)),
        ("range", Subscriptions.EQUAL, 50_000, 1_000, 100, (Event.FULL,)),
        ("range", Subscriptions.HALF, 10_000, 1_000, 100, (Event.FULL,)),
        ("sticky", Subscriptions.EQUAL, 5_000, 100, 10, (Event.FULL, Event.LEAVE_ONE)),
        ("sticky", Subscriptions.EQUAL, 100_000, 1_000, 1_000, (Event.FULL, Event.LEAVE_ONE)),
        ("sticky", Subscriptions.HALF, 50_000, 1_000, 500, (Event.FULL, Event.LEAVE_ONE)),
        ("cooperative-sticky", Subscriptions.EQUAL, 100_000, 1_000, 1_000, (Event.JOIN_ONE,)),
    ):
        group = replace(_group(assignor, subscriptions, partitions, members, topics), racks=True)
        yield from _events(group, *events)


def _by_load() -> Iterator[Case]:
    """Cells of the load-aware assignor, with skewed weights; events begin with balance by counts."""
    for size in ((10_000, 200, 100), (100_000, 1_000, 1_000)):
        group = _group(LOAD_AWARE, Subscriptions.EQUAL, *size)
        yield from _events(group, Event.FULL, Event.STABLE, Event.JOIN_ONE, Event.LEAVE_ONE)
    half = _group(LOAD_AWARE, Subscriptions.HALF, 10_000, 200, 100)
    yield from _events(half, Event.FULL, Event.LEAVE_ONE)


def _group(assignor: str, subscriptions: Subscriptions, partitions: int, members: int, topics: int) -> Case:
    return Case(
        assignor=assignor,
        subscriptions=subscriptions,
        event=Event.FULL,
        partitions=partitions,
        members=members,
        topics=topics,
    )


def _events(case: Case, *events: Event) -> Iterator[Case]:
    return (replace(case, event=event) for event in events)
