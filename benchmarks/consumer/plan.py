"""What is measured: who takes part in which cell, how long, and what is to be reached."""

from dataclasses import dataclass
from enum import StrEnum

GROUPWRIGHT, CONFLUENT, KAFKA_PYTHON, AIOKAFKA, JAVA = CLIENTS = (
    "Groupwright",
    "confluent-kafka",
    "kafka-python",
    "aiokafka",
    "Java",
)


class Cell(StrEnum):
    """The kinds of cells; a join has one for each size of the group."""

    THROUGHPUT = "throughput"
    """A filled topic is consumed by a lone member."""

    DEFAULTS = "defaults"
    """The same, with librdkafka's own settings, whose fetching pauses for a second when its queue is full."""

    JOIN = "join"
    """A further member joins a group that consumes under a steady load."""

    EVENT = "event"
    """A rebalance's event reaches a member that waits in poll(10), and no message comes."""

    IDLE = "idle"
    """A member with partitions waits in poll(1), and no message comes."""


@dataclass(frozen=True)
class Contestant:
    """One that takes part in a cell.

    Attributes:
        client: Whose consumer it is; one of `CLIENTS`.
        way: How it is used: the method that fetches, or the assignor.
    """

    client: str
    way: str = ""

    @property
    def name(self) -> str:
        """What the tables call it."""
        return f"{self.client} {self.way}".strip()


POLL, CONSUME = "poll()", "consume(1000)"
STICKY, COOPERATIVE = "sticky", "cooperative-sticky"

FETCHERS = (
    Contestant(GROUPWRIGHT, POLL),
    Contestant(CONFLUENT, POLL),
    Contestant(GROUPWRIGHT, CONSUME),
    Contestant(CONFLUENT, CONSUME),
    Contestant(KAFKA_PYTHON, "iteration"),
    Contestant(KAFKA_PYTHON, "poll()"),
    Contestant(AIOKAFKA, "iteration"),
    Contestant(AIOKAFKA, "getmany()"),
)
"""Who consumes the filled topic, in the order of the rounds: rivals run next to each other."""

DEFAULT_FETCHERS = FETCHERS[:4]
"""Who consumes it once more, with librdkafka's own settings."""

JOINERS = (
    Contestant(GROUPWRIGHT, COOPERATIVE),
    Contestant(GROUPWRIGHT, STICKY),
    Contestant(CONFLUENT, COOPERATIVE),
    Contestant(JAVA, COOPERATIVE),
)
"""Whose groups a further member joins."""

IDLERS = (Contestant(GROUPWRIGHT), Contestant(CONFLUENT))


@dataclass(frozen=True, kw_only=True)
class Effort:
    """How much is done.

    Attributes:
        messages: How many the filled topic holds.
        rounds: How often each consumes it.
        slow_rounds: How often those do that are several times slower.
        default_rounds: How often each consumes it with librdkafka's own settings.
        longest: The seconds after which a consumer may stop before it has them all; its rate counts.
        group_sizes: How many members there are before one joins.
        joins: How often one joins a group of each size.
        disturbances: How often another member joins and leaves beside the one that waits for events.
        idle_seconds: How long a member idles.
        idles: How often.
    """

    messages: int
    rounds: int
    slow_rounds: int
    default_rounds: int
    longest: float
    group_sizes: tuple[int, ...]
    joins: int
    disturbances: int
    idle_seconds: float
    idles: int

    @property
    def cells(self) -> list[str]:
        """The names of the cells, as `--only` takes them."""
        joins = [join_cell(size) for size in self.group_sizes]
        return [Cell.THROUGHPUT, Cell.DEFAULTS, *joins, Cell.EVENT, Cell.IDLE]


FULL = Effort(
    messages=1_000_000,
    rounds=5,
    slow_rounds=2,
    default_rounds=3,
    longest=10.0,
    group_sizes=(3, 10, 50),
    joins=3,
    disturbances=10,
    idle_seconds=20.0,
    idles=2,
)
QUICK = Effort(
    messages=200_000,
    rounds=2,
    slow_rounds=1,
    default_rounds=1,
    longest=3.0,
    group_sizes=(3,),
    joins=1,
    disturbances=3,
    idle_seconds=5.0,
    idles=1,
)

UNSTALLED = {"fetch.queue.backoff.ms": 10}
"""What keeps librdkafka's fetching from pausing for a second, the default, whenever its queue is full.

With that pause all are much slower, and how often it comes in a run is chance: ratios then say nothing of the clients.
"""

LOAD_INTERVALS = {3: 0.1, 10: 0.1, 50: 0.5}
"""Seconds between two messages of a partition under the steady load, by the group's size.

Fifty members have a process each, and do little else than fetch: at ten messages a second they leave the machine no room
for the rebalance that is to be measured.
"""

MESSAGE_BYTES = 100
FILLED_PARTITIONS = 6
JOIN_PARTITIONS = 300

INITIAL_REBALANCE_DELAY_MS = 500
"""The broker's; a group's first members then come in one rebalance, in every contestant's group."""

JOIN_TIMINGS = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 500}
"""Of all members in a join; heartbeats are how they hear of it, and 3 s, the default, would hide all else."""

# --- What is to be reached

LEAST_RATIO = {POLL: 0.95, CONSUME: 0.98}
"""Groupwright's messages a second over confluent-kafka's."""

LEAST_TIMES = 5.0
"""Groupwright's messages a second over those of kafka-python and aiokafka."""

MOST_EVENT_SECONDS = 0.050
MOST_IDLE_SHARE = 0.01


def join_cell(size: int) -> str:
    """Return the name of the cell in which a member joins a group of this size."""
    return f"{Cell.JOIN}/{size}"


def rounds_of(contestant: Contestant, effort: Effort) -> int:
    """Return how often the contestant consumes the filled topic."""
    return effort.slow_rounds if contestant.client in {KAFKA_PYTHON, AIOKAFKA} else effort.rounds
