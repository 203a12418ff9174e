"""Plan of the benchmark: cells, contestants, repetitions and targets."""

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
    """The kinds of cells; a change of a group's members has one for each size of the group."""

    THROUGHPUT = "throughput"
    """A filled topic is consumed by a member of a group that another client leads."""

    FROZEN = "frozen"
    """The same, without the passes of Python's garbage collector over what was there at the start."""

    DEFAULTS = "defaults"
    """As `THROUGHPUT`, with librdkafka's own settings: fetching pauses for a second at a full queue."""

    JOIN = "join"
    """A further member joins a group that consumes under a steady load."""

    LEAVE = "leave"
    """A member of such a group closes its consumer."""

    KILL = "kill"
    """A member of such a group is killed by SIGKILL."""

    DEPLOY = "deploy"
    """The members of such a group are replaced one after the other.

    A member closes its consumer, then its successor joins; the next one follows once the successor consumes.
    """

    LOAD_CHECK = "load-check"
    """A load check moves partitions of a group that consumes under a steady load."""

    EVENT = "event"
    """A rebalance's event reaches a member that waits in poll(10), and no message comes."""

    IDLE = "idle"
    """A member of such a group, with partitions, waits in poll(1), and no message comes."""


@dataclass(frozen=True)
class Contestant:
    """A contestant of a cell.

    Attributes:
        client: The client library; one of `CLIENTS`.
        way: The method that fetches, the assignor, or `KIP_848`.
    """

    client: str
    way: str = ""

    @property
    def name(self) -> str:
        """Name in the tables."""
        return f"{self.client} {self.way}".strip()


POLL, CONSUME = "poll()", "consume(1000)"
STICKY, COOPERATIVE, LOAD_AWARE = "sticky", "cooperative-sticky", "load-aware"
KIP_848 = "KIP-848"
"""`group.protocol=consumer`: the broker assigns, by its assignor `uniform`."""

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
"""Contestants with the filled topic, in order; compared ones run next to each other."""

DEFAULT_FETCHERS = FETCHERS[:4]
"""Contestants that repeat it with a frozen heap, and with librdkafka's default settings."""

JOINERS = (
    Contestant(GROUPWRIGHT, COOPERATIVE),
    Contestant(GROUPWRIGHT, STICKY),
    Contestant(CONFLUENT, COOPERATIVE),
    Contestant(CONFLUENT, KIP_848),
    Contestant(JAVA, COOPERATIVE),
)
"""Whose groups a further member joins."""

MEMBERSHIPS = (
    Contestant(GROUPWRIGHT, COOPERATIVE),
    Contestant(CONFLUENT, COOPERATIVE),
    Contestant(CONFLUENT, KIP_848),
)
"""Contestants of leaves, kills and deploys. Members of Java share a process, so none can be killed alone."""

CHECKED = Contestant(GROUPWRIGHT, LOAD_AWARE)
"""Whose leader checks the load."""

IDLERS = (Contestant(GROUPWRIGHT), Contestant(CONFLUENT))


@dataclass(frozen=True)
class MemberChange:
    """A change of the members of a group that consumes under a steady load.

    Attributes:
        kind: `Cell.JOIN`, `Cell.LEAVE`, `Cell.KILL` or `Cell.DEPLOY`.
        size: Number of members before.
    """

    kind: Cell
    size: int

    @classmethod
    def of(cls, cell: str) -> "MemberChange":
        """Return the change that a cell measures, by the cell's name."""
        kind, _, size = cell.partition("/")
        return cls(Cell(kind), int(size))

    @property
    def cell(self) -> str:
        """Name of the cell."""
        return f"{self.kind}/{self.size}"

    @property
    def size_after(self) -> int:
        """Number of members after."""
        return self.size + {Cell.JOIN: 1, Cell.DEPLOY: 0}.get(self.kind, -1)

    @property
    def members(self) -> int:
        """Number of members before and after together."""
        return self.size + {Cell.JOIN: 1, Cell.DEPLOY: self.size}.get(self.kind, 0)

    @property
    def contestants(self) -> tuple[Contestant, ...]:
        """The contestants, each with groups of its own."""
        return JOINERS if self.kind is Cell.JOIN else MEMBERSHIPS


@dataclass(frozen=True, kw_only=True)
class Effort:
    """Size of a run.

    Attributes:
        messages: Number of messages in the filled topic.
        rounds: Repetitions for each contestant with the filled topic.
        slow_rounds: Repetitions for contestants that are several times slower.
        frozen_rounds: Repetitions with a frozen heap.
        default_rounds: Repetitions with librdkafka's default settings.
        longest: Seconds after which a consumer stops early; its rate counts.
        member_changes: Changes of groups' members.
        group_rounds: Repetitions of each of them, and of the load check.
        disturbances: Number of times a second member joins and leaves during the measurement of events.
        idle_seconds: Duration of idling.
        idles: Repetitions of idling.
    """

    messages: int
    rounds: int
    slow_rounds: int
    frozen_rounds: int
    default_rounds: int
    longest: float
    member_changes: tuple[MemberChange, ...]
    group_rounds: int
    disturbances: int
    idle_seconds: float
    idles: int

    @property
    def cells(self) -> list[str]:
        """The names of the cells, as `--only` takes them."""
        changes = [change.cell for change in self.member_changes]
        return [Cell.THROUGHPUT, Cell.FROZEN, Cell.DEFAULTS, *changes, Cell.LOAD_CHECK, Cell.EVENT, Cell.IDLE]


FULL = Effort(
    messages=1_000_000,
    rounds=15,
    slow_rounds=2,
    frozen_rounds=5,
    default_rounds=3,
    longest=10.0,
    member_changes=(
        MemberChange(Cell.JOIN, 3),
        MemberChange(Cell.JOIN, 10),
        MemberChange(Cell.JOIN, 50),
        MemberChange(Cell.LEAVE, 10),
        MemberChange(Cell.KILL, 10),
        MemberChange(Cell.DEPLOY, 10),
    ),
    group_rounds=3,
    disturbances=10,
    idle_seconds=20.0,
    idles=5,
)
QUICK = Effort(
    messages=200_000,
    rounds=2,
    slow_rounds=1,
    frozen_rounds=2,
    default_rounds=1,
    longest=3.0,
    member_changes=(MemberChange(Cell.JOIN, 3), MemberChange(Cell.DEPLOY, 3)),
    group_rounds=1,
    disturbances=3,
    idle_seconds=5.0,
    idles=1,
)

UNSTALLED: dict[str, object] = {"fetch.queue.backoff.ms": 10}
"""Setting that shortens librdkafka's default pause of 1 s in fetching when its queue is full.

The number of pauses in a run is random, and they dominate its duration: ratios would not compare the clients.
"""

FREEZE: dict[str, object] = {"freeze": True}
"""Argument of the programs that has them call `gc.freeze` when their clients exist.

Messages are objects that Python's garbage collector follows. At tens of thousands of them, it passes over all
objects of the process: 15,000 in a program with confluent-kafka alone, 24,000 with Groupwright, and more than
both in most services.
"""

LOAD_INTERVALS = {3: 0.1, 10: 0.1, 50: 0.5}
"""Seconds between two messages of a partition under the steady load, by the group's size.

Fifty members are fifty processes: at ten messages a second for each partition, fetching alone would saturate
the machine, and the measurement would not be of the rebalance.
"""

MESSAGE_BYTES = 100
FILLED_PARTITIONS = 6
JOIN_PARTITIONS = 300

INITIAL_REBALANCE_DELAY_MS = 500
"""The broker's; a group's first members then come in one rebalance, in every contestant's group."""

JOIN_TIMINGS = {"session.timeout.ms": 45_000, "heartbeat.interval.ms": 500}
"""Of all members in a join; heartbeats are how they hear of it, and 3 s, the default, would hide all else.

With KIP-848 they are the group's `consumer.session.timeout.ms` and `consumer.heartbeat.interval.ms`.
"""

KILL_TIMINGS = {**JOIN_TIMINGS, "session.timeout.ms": 6000}
"""Of all members of a group of which one is killed: the least that brokers allow classic members."""

KIP_848_SETTINGS = {"group.protocol": "consumer", "group.remote.assignor": "uniform"}
KIP_848_MINIMA = {
    f"group.consumer.min.{name}": min(JOIN_TIMINGS[name], KILL_TIMINGS[name]) for name in JOIN_TIMINGS
}
"""The broker's, so that groups by KIP-848 may have the timings of the others: 45 s and 5 s by default."""

LOAD_CHECK_MEMBERS = 3
LOAD_CHECK_TIMINGS = {**JOIN_TIMINGS, "load.check.interval.ms": 1000}
"""Of all members of the group whose leader checks the load."""

# --- What is to be reached

LEAST_RATIO = {POLL: 1.15, CONSUME: 0.97}
"""Groupwright's messages a second over confluent-kafka's."""

LEAST_TIMES = 5.0
"""Groupwright's messages a second over those of kafka-python and aiokafka."""

MOST_EVENT_SECONDS = 0.050
MOST_KEPT_WAIT_SECONDS = 0.050
"""Time that a message of a partition that stays with its owner waits for a load check."""

MOST_IDLE_TIMES = 2.5
"""Processor time of an idle member over that of confluent-kafka's."""

MOST_OBJECTS_MORE = 13_000
"""Number of objects of an idle member over that of confluent-kafka's."""

MOST_RESIDENT_MORE = 9_000_000
"""Bytes of its resident memory over those of confluent-kafka's."""


def rounds_of(contestant: Contestant, effort: Effort) -> int:
    """Return the contestant's number of repetitions with the filled topic."""
    return effort.slow_rounds if contestant.client in {KAFKA_PYTHON, AIOKAFKA} else effort.rounds
