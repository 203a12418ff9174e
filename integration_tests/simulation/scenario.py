"""Scenarios of simulations: a cluster, members with their applications, and faults, all by a seed."""

import random
from dataclasses import dataclass, field, replace
from enum import Enum

from groupwright.testing._simulation.scheduler import MS, SECOND

GROUP = "group"
"""The group in which all members are."""
STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")


class Commits(Enum):
    """The way in which an application commits."""

    AUTO = "automatically"
    SYNC = "synchronously"
    ASYNC = "asynchronously"
    STORE = "automatically, what it has stored"


class Client(Enum):
    """The client that a member is."""

    GROUPWRIGHT = "Groupwright"
    JAVA = "Java"
    LIBRDKAFKA = "librdkafka"


class Kind(Enum):
    """Kinds of faults."""

    JOIN = "joins"
    CLOSE = "closes"
    CLOSE_BY_OTHER_THREAD = "is closed by another thread"
    KILL = "is killed"
    RESTART = "is killed and starts again"
    STOP = "is stopped (SIGSTOP)"
    BUSY = "processes for long"
    CUT = "loses its connections"
    ISOLATE = "is cut off"
    ENFORCE = "enforces a rebalance"
    UNSUBSCRIBE = "unsubscribes and subscribes again"
    SUBSCRIBE = "changes its subscription"
    WAKE = "is woken up"
    SIGNAL = "is interrupted by a signal"
    LOSE_BROKERS = "has a handle without brokers"
    FORK = "forks, and the child uses its consumer"
    MOVE = "the coordinator moves"
    STOP_BROKER = "a broker shuts down"
    CRASH_BROKER = "a broker crashes"
    READDRESS_BROKER = "a broker moves to another address"
    GROW = "a topic grows"
    CREATE = "a topic is created"
    DELETE = "a topic is deleted"
    EXPEL = "is removed by an administrator"
    TWIN = "has its group.instance.id taken by another process"
    COMMIT_BY_OTHER_THREAD = "commits by another thread"
    CLOSE_ISOLATED = "is cut off, commits by another thread, and closes"


_OF_MEMBERS: dict[Kind, float] = {
    Kind.CLOSE: 12,
    Kind.CLOSE_BY_OTHER_THREAD: 2,
    Kind.COMMIT_BY_OTHER_THREAD: 2,
    Kind.CLOSE_ISOLATED: 1,
    Kind.KILL: 2,
    Kind.RESTART: 6,
    Kind.STOP: 4,
    Kind.BUSY: 3,
    Kind.CUT: 4,
    Kind.ISOLATE: 2,
    Kind.ENFORCE: 8,
    Kind.UNSUBSCRIBE: 2,
    Kind.SUBSCRIBE: 2,
    Kind.WAKE: 1,
    Kind.SIGNAL: 4,
    Kind.LOSE_BROKERS: 1,
    Kind.FORK: 0.5,
    Kind.EXPEL: 1,
    Kind.TWIN: 3,
}
_GENTLE: dict[Kind, float] = {
    Kind.JOIN: 12,
    Kind.CLOSE: 10,
    Kind.ENFORCE: 12,
    Kind.SUBSCRIBE: 4,
    Kind.UNSUBSCRIBE: 2,
    Kind.GROW: 1,
    Kind.WAKE: 1,
    Kind.CLOSE_BY_OTHER_THREAD: 1,
    Kind.SIGNAL: 4,
    Kind.FORK: 0.2,
}
"""Kinds that make the group rebalance at once."""
_SLOW: dict[Kind, float] = {
    Kind.JOIN: 6,
    Kind.CLOSE: 2,
    Kind.CLOSE_BY_OTHER_THREAD: 2,
    Kind.COMMIT_BY_OTHER_THREAD: 2,
    Kind.CLOSE_ISOLATED: 2,
    Kind.BUSY: 10,
    Kind.STOP: 6,
    Kind.ENFORCE: 2,
    Kind.SIGNAL: 3,
    Kind.TWIN: 4,
    Kind.CRASH_BROKER: 1,
}
"""Kinds that have an effect of their own, if the group is otherwise at rest for longer than its intervals."""
_OTHERS: dict[Kind, float] = {
    Kind.JOIN: 20,
    Kind.MOVE: 2,
    Kind.STOP_BROKER: 2,
    Kind.CRASH_BROKER: 2,
    Kind.READDRESS_BROKER: 2,
    Kind.GROW: 2,
    Kind.CREATE: 1,
    Kind.DELETE: 1,
}
_WANDERING: dict[Kind, float] = {
    Kind.READDRESS_BROKER: 10,
    Kind.STOP_BROKER: 3,
    Kind.CRASH_BROKER: 3,
    Kind.MOVE: 1,
    Kind.JOIN: 4,
    Kind.CLOSE: 2,
    Kind.RESTART: 2,
    Kind.ENFORCE: 2,
}
"""Kinds after which what a member has learned of the brokers is out of date: they move, or die for good."""
_LARGEST_GROUP = 8
LONGEST_CALLBACK = 4 * SECOND
_LONG_WORK = 12 * SECOND
_LONG_OUTAGE = 8 * SECOND
"""Time in which the others elect a coordinator, and members that look for it in vain are noticed."""
_FOR_GOOD = 90 * SECOND
_LONG_CLOSE = 15 * SECOND
"""Time after which a close has ended, also if the coordinator does not answer."""

OF_ANY = frozenset(
    {
        Kind.CLOSE,
        Kind.CLOSE_BY_OTHER_THREAD,
        Kind.KILL,
        Kind.RESTART,
        Kind.STOP,
        Kind.BUSY,
        Kind.CUT,
        Kind.ISOLATE,
        Kind.WAKE,
        Kind.SIGNAL,
        Kind.FORK,
    }
)
"""Kinds that may also happen to an application that assigns by hand.

Not that its handle loses all brokers: that is noticed when the coordinator is lost and found, which such an
application does not look up before it commits.
"""


@dataclass(frozen=True, slots=True)
class MemberPlan:
    """A member and its application. Times in microseconds; chances for each poll.

    Attributes:
        name: Its `client.id`.
        static: Whether it has a `group.instance.id`.
        instance: That id; by default its name.
        batch: Messages of a `consume`; 0 for `poll`.
        processing: Longest time between two polls.
        callback: Longest time of a rebalance callback.
        raises: Chance that a callback raises.
        seeks: Chance of a seek, backwards to what was delivered already.
        pauses: Chance that a partition is paused, or a paused one resumed.
        seeks_at_start: Whether it seeks each partition to where it starts, soon after `on_assign`.
        assigns: Whether `on_assign` calls `assign` itself.
        commits_in_revoke: Whether `on_revoke` commits synchronously.
        own_store: Whether it commits nothing, and `on_assign` seeks to the offsets that it stores itself.
        commits_unknown: Whether it also commits an offset of a topic that does not exist, now and then.
        ends: Whether it receives the ends of partitions (`enable.partition.eof`).
        listens: Whether a listener counts lost partitions.
        close_timeout: `timeout` of `close`, in seconds.
        changes_wrongly: Whether it also tries calls of the other rebalance protocol, now and then.
        reassigns: Chance that an application that assigns by hand changes its assignment.
        subscribes: Chance that such a change is a subscription.
    """

    name: str
    client: Client = Client.GROUPWRIGHT
    strategy: tuple[str, ...] = ("range",)
    topics: tuple[str, ...] = ("orders",)
    static: bool = False
    commits: Commits = Commits.AUTO
    batch: int = 0
    processing: int = 20 * MS
    callback: int = 0
    raises: float = 0.0
    seeks: float = 0.0
    pauses: float = 0.0
    seeks_at_start: bool = False
    assigns: bool = False
    commits_in_revoke: bool = False
    own_store: bool = False
    commits_unknown: bool = False
    ends: bool = False
    listens: bool = False
    close_timeout: float | None = None
    changes_wrongly: bool = False
    reassigns: float = 0.0
    subscribes: float = 0.0
    instance: str = ""


@dataclass(frozen=True, slots=True)
class Fault:
    """One thing that happens.

    Attributes:
        at: When it begins, in microseconds.
        member: Which member, by its place among those that run, where it is about one.
        duration: How long it lasts, in microseconds.
        detail: A number whose meaning depends on the kind.
        plan: The member that joins.
    """

    at: int
    kind: Kind
    member: int = 0
    duration: int = 0
    detail: int = 0
    plan: MemberPlan | None = None


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that a simulation plays, besides the delays that the seed decides."""

    seed: int
    session_timeout: int = 6 * SECOND
    heartbeat_interval: int = 1 * SECOND
    max_poll_interval: int = 12 * SECOND
    auto_commit_interval: int = 1 * SECOND
    initial_delay: int = 0
    brokers: int = 3
    bootstrap: int = 3
    """Number of brokers that `bootstrap.servers` names; their names follow them to other addresses."""
    slow_share: float = 0.02
    """Share of messages over the network that take up to 60 ms, instead of 2 ms."""
    topics: tuple[tuple[str, int], ...] = (("orders", 4),)
    produce_interval: int = 100 * MS
    largest_group: int = _LARGEST_GROUP
    """Largest number of members that run at a time."""
    members: tuple[MemberPlan, ...] = ()
    by_hand: tuple[MemberPlan, ...] = ()
    """Applications that assign by hand, each with a group of its own, which has no members."""
    faults: tuple[Fault, ...] = field(default_factory=tuple)

    @property
    def calm_at(self) -> int:
        """Time at which the last fault has ended."""
        return max((fault.at + fault.duration for fault in self.faults), default=0)


def generate(seed: int, *, faults: int = 200, others: bool = True) -> Scenario:
    """Return the scenario of a seed.

    Args:
        seed: The seed.
        faults: Their number.
        others: Whether members of other clients may take part.
    """
    chance = random.Random(f"scenario/{seed}")  # noqa: S311 - no secret
    cooperative = chance.random() < 0.5
    strategies = _strategies(chance, cooperative=cooperative)
    mixed = others and chance.random() < 0.3
    topics = [("orders", chance.randint(1, 6))]
    if chance.random() < 0.5:
        topics.append(("payments", chance.randint(1, 3)))
    gentle = chance.random() < 0.6
    slow = not gentle and chance.random() < 0.4
    wandering = not (gentle or slow) and chance.random() < 0.4
    session = chance.choice((2, 3, 6) if slow or wandering else (2, 3, 6, 6, 10, 45)) * SECOND
    poll_interval = max(session, chance.choice((3, 3, 6, 12) if slow else (3, 6, 12, 60)) * SECOND)
    names = tuple(name for name, _ in topics)
    has_stores = not mixed and chance.random() < 0.1
    count = 0

    def member() -> MemberPlan:
        nonlocal count
        count += 1
        plan = _member(chance, f"m{count}", strategies, names, mixed=mixed, quick=gentle)
        return _with_store(plan) if has_stores else plan

    members = tuple(member() for _ in range(chance.randint(1, 4)))
    made, at = [], 0
    gaps = (100 * MS, 200 * MS, 400 * MS) if gentle else (100 * MS, 300 * MS, SECOND, 2 * SECOND)
    gap = 2 * session if slow else session if wandering else chance.choice(gaps)
    weighted = _SLOW if slow else _GENTLE if gentle else _WANDERING if wandering else _OF_MEMBERS | _OTHERS
    kinds, weights = list(weighted), list(weighted.values())
    for _ in range(faults // 5 if slow or wandering else 3 * faults if gentle else faults):
        at += int(chance.expovariate(1) * gap)
        kind = chance.choices(kinds, weights)[0]
        plan = member() if kind is Kind.JOIN else None
        fault = _fault(chance, kind, at, session, poll_interval, plan)
        if wandering and kind in {Kind.STOP_BROKER, Kind.CRASH_BROKER} and chance.random() < 0.5:
            fault = replace(fault, duration=_FOR_GOOD)
        made.append(fault)
    by_hand = _by_hand(chance, names) if chance.random() < 0.5 else ()
    return Scenario(
        seed,
        session_timeout=session,
        heartbeat_interval=min(session // 4, chance.choice((SECOND, 3 * SECOND))),
        max_poll_interval=poll_interval,
        auto_commit_interval=chance.choice((200 * MS, SECOND, 5 * SECOND)),
        initial_delay=0 if gentle else chance.choice((0, 0, 500 * MS, 3 * SECOND)),
        brokers=3 if wandering else chance.choice((1, 3, 3)),
        bootstrap=1 if wandering else chance.choice((1, 1, 3)),
        topics=tuple(topics),
        produce_interval=chance.choice((200 * MS, SECOND, 5 * SECOND)),
        largest_group=chance.choice((3, 5, 6, 7, _LARGEST_GROUP) if gentle else (2, 3, 3, 4, 6)),
        members=members,
        by_hand=by_hand,
        faults=tuple(made),
    )


def _by_hand(chance: random.Random, topics: tuple[str, ...]) -> tuple[MemberPlan, ...]:
    return (
        MemberPlan(
            "hand",
            topics=topics,
            commits=chance.choice((Commits.AUTO, *Commits)),
            batch=chance.choice((0, 0, 1, 10, 100)),
            processing=chance.choice((0, 5 * MS, 50 * MS)),
            seeks=chance.choice((0.0, 0.0, 0.02)),
            pauses=chance.choice((0.0, 0.02)),
            commits_unknown=chance.random() < 0.1,
            ends=chance.random() < 0.3,
            reassigns=chance.choice((0.02, 0.1, 0.3)),
            subscribes=chance.choice((0.0, 0.2, 0.5)),
        ),
    )


def _with_store(plan: MemberPlan) -> MemberPlan:
    return replace(plan, own_store=True, commits=Commits.SYNC, commits_in_revoke=False, seeks_at_start=False)


def _strategies(chance: random.Random, *, cooperative: bool) -> tuple[str, ...]:
    if cooperative:
        return ("cooperative-sticky",)
    eager = [name for name in STRATEGIES if name != "cooperative-sticky"]
    return tuple(chance.sample(eager, chance.choice((1, 1, 2))))


def _member(
    chance: random.Random,
    name: str,
    strategies: tuple[str, ...],
    topics: tuple[str, ...],
    *,
    mixed: bool,
    quick: bool,
) -> MemberPlan:
    client = chance.choice(list(Client)) if mixed else Client.GROUPWRIGHT
    commits = chance.choice((Commits.AUTO, Commits.AUTO, *Commits))
    some = topics if chance.random() < 0.8 else topics[:1]
    if client is Client.GROUPWRIGHT and chance.random() < 0.1:
        some = (*some, "returns")  # which does not exist at first
    return MemberPlan(
        name,
        client,
        strategies,
        ("^.*",) if client is Client.GROUPWRIGHT and chance.random() < 0.1 else some,
        static=not quick and chance.random() < 0.2,
        commits=commits,
        batch=chance.choice((0, 0, 1, 10, 100)),
        processing=chance.choice((0, 5 * MS) if quick else (0, 5 * MS, 50 * MS, 500 * MS)),
        callback=chance.choice((0, 0, 0, 20 * MS) if quick else (0, 0, 0, 100 * MS, LONGEST_CALLBACK)),
        raises=chance.choice((0.0, 0.0, 0.1)),
        seeks=chance.choice((0.0, 0.0, 0.02)),
        pauses=chance.choice((0.0, 0.0, 0.02)),
        seeks_at_start=chance.random() < 0.2,
        assigns=chance.random() < 0.2,
        commits_in_revoke=chance.random() < 0.2,
        commits_unknown=chance.random() < 0.1,
        ends=chance.random() < 0.3,
        listens=chance.random() < 0.5,
        # Without time, a member ends without LeaveGroup, and the group waits for its session.
        close_timeout=None if quick else chance.choice((None, None, None, None, 1, 0)),
        changes_wrongly=chance.random() < 0.1,
    )


def _fault(
    chance: random.Random, kind: Kind, at: int, session: int, poll_interval: int, plan: MemberPlan | None
) -> Fault:
    short, long = int(chance.random() * 2 * SECOND), session + int(chance.random() * session)
    duration = 0
    detail = chance.randint(0, 60) if kind in {Kind.STOP, Kind.SIGNAL} else chance.randint(0, 2)
    match kind:
        case Kind.STOP if detail % 2:  # after `on_assign`, or before a close: for longer than the session
            duration = long
        case Kind.STOP | Kind.ISOLATE:
            duration = chance.choice((short, short, long))
        case Kind.BUSY:
            duration = chance.choice((short, long, min(poll_interval, _LONG_WORK) + SECOND + short))
        case Kind.STOP_BROKER | Kind.CRASH_BROKER | Kind.READDRESS_BROKER:
            duration = chance.choice((short, short, long, 2 * long + _LONG_OUTAGE))
        case Kind.RESTART | Kind.UNSUBSCRIBE:
            duration = short
        case Kind.CLOSE_ISOLATED:
            duration = _LONG_CLOSE
    return Fault(at, kind, chance.randint(0, _LARGEST_GROUP - 1), duration, detail, plan)


def describe(scenario: Scenario) -> str:
    """Return a scenario in words."""
    topics = ", ".join(f"{name} ({count})" for name, count in scenario.topics)
    times = {
        "session": scenario.session_timeout,
        "heartbeat": scenario.heartbeat_interval,
        "poll interval": scenario.max_poll_interval,
        "automatic commits every": scenario.auto_commit_interval,
        "initial delay": scenario.initial_delay,
    }
    settings = ", ".join(f"{name} {microseconds / SECOND:g} s" for name, microseconds in times.items())
    return (
        f"{scenario.brokers} brokers; topics {topics}; {settings}; {len(scenario.members)} members at first, "
        f"{len(scenario.faults)} faults"
    )
