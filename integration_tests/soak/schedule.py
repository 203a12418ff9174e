"""What will go wrong and when, drawn from a seed. Pure: the same seed, the same trouble."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from soak.timing import Timing


class Kind(StrEnum):
    """What happens."""

    JOIN = "join"
    """A new member."""
    LEAVE = "leave"
    """A member closes its consumer."""
    KILL = "kill"
    """SIGKILL; some time later a member takes its place, under its name if it is a static one."""
    STALL = "stall"
    """SIGSTOP, and SIGCONT later; shorter or longer than the session."""
    BUSY = "busy"
    """The application does not poll for longer than max.poll.interval.ms."""
    RESTART = "restart"
    """A static member closes, and comes back under its name; within its session or after it."""
    CLOSE = "close"
    """Another thread closes the consumer while the member polls, consumes or commits."""
    INTERRUPT = "interrupt"
    """Signals whose handler raises in poll and consume."""
    ENFORCE = "enforce rebalance"
    """`Consumer.enforce_rebalance`."""
    WAKE = "wakeup"
    """`Consumer.wakeup`."""
    GUEST = "guest"
    """A member without rights to one of the topics joins, and leaves some seconds later."""
    DELETE = "delete topic"
    """A topic is deleted, and made anew once its members have given it up."""
    GROW = "grow"
    """A topic gets more partitions."""
    RESTART_BROKER = "restart broker"
    """The broker shuts down in good order and comes back."""
    CRASH_BROKER = "crash broker"
    """The broker is killed and comes back."""
    PAUSE_BROKER = "pause broker"
    """The broker is alive and silent, for less than a session or for longer: a link that drops everything."""


_MEMBERS = {
    Kind.JOIN: 5,
    Kind.LEAVE: 3,
    Kind.KILL: 5,
    Kind.STALL: 4,
    Kind.BUSY: 2,
    Kind.RESTART: 3,
    Kind.CLOSE: 3,
    Kind.INTERRUPT: 3,
    Kind.ENFORCE: 2,
    Kind.WAKE: 2,
    Kind.GUEST: 2,
}
_CLUSTER = {Kind.GROW: 3, Kind.DELETE: 3, Kind.RESTART_BROKER: 2, Kind.CRASH_BROKER: 1, Kind.PAUSE_BROKER: 2}

_SECONDS_BETWEEN_STRIKES = 2.5
"""In each group, on average."""
_SECONDS_BETWEEN_CLUSTER_STRIKES = 12.0


@dataclass(frozen=True, slots=True)
class Strike:
    """One piece of trouble."""

    at: float
    """Seconds after the start."""
    kind: Kind
    group: str
    """Whose member is struck; empty where the cluster is."""
    choice: int
    """Which of the members, or topics, there are then: this number modulo their count."""
    seconds: float = 0.0
    """How long a stall or the broker's silence lasts, how long the place of a killed or
    closed member stays empty, or how long a guest stays."""


@dataclass(frozen=True, slots=True)
class Character:
    """What kind of member a new one is."""

    static: bool
    commits: str
    """auto, sync, async, store or message."""
    eof: bool
    """Whether it is told of ends of partitions."""
    seeks: str
    """What it does after an assignment: none, on (seek to where it would go on anyway) or back (by a few)."""
    calls: str
    """poll or consume."""


def strikes(seed: int, seconds: float, groups: Sequence[str], timing: Timing) -> list[Strike]:
    """Return all trouble of a run, in the order of time."""
    drawn = [*_cluster_strikes(_dice(seed, "cluster"), seconds, timing)]
    for group in groups:
        drawn += _member_strikes(_dice(seed, group), seconds, group, timing)
    return sorted(drawn, key=lambda strike: (strike.at, strike.group))


def characters(seed: int, group: str) -> Iterator[Character]:
    """Return the members of a group in the order in which they come, without end."""
    dice = _dice(seed, f"{group} characters")
    while True:
        commits = dice.choice(("auto", "sync", "async", "store", "message"))
        # librdkafka commits what lies behind after a seek back; others tell no more than the highest offset.
        seeks = dice.choice(("none", "none", "on", "on" if commits == "auto" else "back"))
        yield Character(
            static=dice.random() < 0.4,
            commits=commits,
            eof=dice.random() < 0.5,
            seeks=seeks,
            calls=dice.choice(("poll", "poll", "consume")),
        )


def forbidden(seed: int) -> str:
    """Return what guests may not do with the forbidden topic: read it, or anything (not even see it)."""
    return _dice(seed, "rights").choice(("read", "all"))


def _dice(seed: int, what_for: str) -> random.Random:
    return random.Random(f"{seed} {what_for}")  # noqa: S311 - repeatable trouble, no secret


def _member_strikes(dice: random.Random, seconds: float, group: str, timing: Timing) -> Iterator[Strike]:
    for at in _times(dice, seconds, _SECONDS_BETWEEN_STRIKES):
        (kind,) = dice.choices(list(_MEMBERS), list(_MEMBERS.values()))
        yield Strike(at, kind, group, dice.randrange(1_000_000), _duration(dice, kind, timing))


def _cluster_strikes(dice: random.Random, seconds: float, timing: Timing) -> Iterator[Strike]:
    for at in _times(dice, seconds, _SECONDS_BETWEEN_CLUSTER_STRIKES):
        (kind,) = dice.choices(list(_CLUSTER), list(_CLUSTER.values()))
        yield Strike(at, kind, "", dice.randrange(1_000_000), _duration(dice, kind, timing))


def _times(dice: random.Random, seconds: float, between: float) -> Iterator[float]:
    at = dice.expovariate(1 / between)
    while at < seconds:
        yield at
        at += dice.expovariate(1 / between)


def _duration(dice: random.Random, kind: Kind, timing: Timing) -> float:
    match kind:
        case Kind.STALL:
            # Most outlast the session; the others must go unnoticed.
            longer = dice.random() < 0.7
            return timing.session * (dice.uniform(1.1, 1.8) if longer else dice.uniform(0.1, 0.5))
        case Kind.KILL | Kind.RESTART:
            # Before the session ends, a static member comes back to what it had.
            return dice.choice((0.0, timing.session * 0.4, timing.session * 1.3))
        case Kind.GUEST:
            return dice.uniform(5.0, 15.0)
        case Kind.PAUSE_BROKER:
            return timing.session * dice.uniform(0.2, 1.5)
        case _:
            return 0.0
