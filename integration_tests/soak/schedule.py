"""Schedule of faults, drawn from a seed. Pure: the same seed gives the same schedule."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from integration_tests.soak.timing import Timing


class Kind(StrEnum):
    """Kinds of faults."""

    JOIN = "join"
    """A new member."""
    LEAVE = "leave"
    """A member closes its consumer."""
    KILL = "kill"
    """SIGKILL; later a new member replaces it, with the same instance id if it was static."""
    STALL = "stall"
    """SIGSTOP, and later SIGCONT; shorter or longer than the session timeout."""
    BUSY = "busy"
    """The application does not poll for longer than max.poll.interval.ms."""
    RESTART = "restart"
    """A static member closes and returns with the same instance id, within its session or after it."""
    CLOSE = "close"
    """Another thread closes the consumer while the member polls, consumes or commits."""
    INTERRUPT = "interrupt"
    """Signals whose handler raises during poll and consume."""
    ENFORCE = "enforce rebalance"
    """`Consumer.enforce_rebalance`."""
    WAKE = "wakeup"
    """`Consumer.wakeup`."""
    GUEST = "guest"
    """A member without access to one of the topics joins, and leaves some seconds later."""
    DELETE = "delete topic"
    """A topic is deleted, and re-created once all members have revoked it."""
    GROW = "grow"
    """A topic gets more partitions."""
    RESTART_BROKER = "restart broker"
    """The broker restarts with a clean shutdown."""
    CRASH_BROKER = "crash broker"
    """The broker is killed and restarted."""
    PAUSE_BROKER = "pause broker"
    """The broker is suspended for less or more than a session; its connections stay open."""


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

_SECONDS_BETWEEN_FAULTS = 2.5
"""Average, for each group."""
_SECONDS_BETWEEN_CLUSTER_FAULTS = 12.0


@dataclass(frozen=True, slots=True)
class Fault:
    """One scheduled fault."""

    at: float
    """Seconds since the start of the run."""
    kind: Kind
    group: str
    """The group of the member concerned; empty for a fault of the cluster."""
    choice: int
    """Index, modulo their number, of the member or topic concerned."""
    seconds: float = 0.0
    """Duration of a stall, a broker's pause, an absence before a replacement, or a guest's stay."""


@dataclass(frozen=True, slots=True)
class Behavior:
    """Characteristics of a new member."""

    static: bool
    commits: str
    """auto, sync, async, store or message."""
    eof: bool
    """True if `enable.partition.eof` is set."""
    seeks: str
    """Seeks after an assignment: none, on (to the current position) or back (by a few messages)."""
    calls: str
    """poll or consume."""


def faults(seed: int, seconds: float, groups: Sequence[str], timing: Timing) -> list[Fault]:
    """Return all faults of a run, in order of time."""
    drawn = [*_cluster_faults(_dice(seed, "cluster"), seconds, timing)]
    for group in groups:
        drawn += _member_faults(_dice(seed, group), seconds, group, timing)
    return sorted(drawn, key=lambda fault: (fault.at, fault.group))


def behaviors(seed: int, group: str) -> Iterator[Behavior]:
    """Yield the characteristics of a group's members, in the order of their start, without end."""
    dice = _dice(seed, f"{group} characters")
    while True:
        commits = dice.choice(("auto", "sync", "async", "store", "message"))
        # After a seek back, only automatic commits go back; manual ones stay at the highest offset.
        seeks = dice.choice(("none", "none", "on", "on" if commits == "auto" else "back"))
        yield Behavior(
            static=dice.random() < 0.4,
            commits=commits,
            eof=dice.random() < 0.5,
            seeks=seeks,
            calls=dice.choice(("poll", "poll", "consume")),
        )


def forbidden(seed: int) -> str:
    """Return the operations on the forbidden topic denied to guests: "read", or "all" (describe included)."""
    return _dice(seed, "rights").choice(("read", "all"))


def _dice(seed: int, what_for: str) -> random.Random:
    return random.Random(f"{seed} {what_for}")  # noqa: S311 - repeatable faults, no secret


def _member_faults(dice: random.Random, seconds: float, group: str, timing: Timing) -> Iterator[Fault]:
    for at in _times(dice, seconds, _SECONDS_BETWEEN_FAULTS):
        (kind,) = dice.choices(list(_MEMBERS), list(_MEMBERS.values()))
        yield Fault(at, kind, group, dice.randrange(1_000_000), _duration(dice, kind, timing))


def _cluster_faults(dice: random.Random, seconds: float, timing: Timing) -> Iterator[Fault]:
    for at in _times(dice, seconds, _SECONDS_BETWEEN_CLUSTER_FAULTS):
        (kind,) = dice.choices(list(_CLUSTER), list(_CLUSTER.values()))
        yield Fault(at, kind, "", dice.randrange(1_000_000), _duration(dice, kind, timing))


def _times(dice: random.Random, seconds: float, between: float) -> Iterator[float]:
    at = dice.expovariate(1 / between)
    while at < seconds:
        yield at
        at += dice.expovariate(1 / between)


def _duration(dice: random.Random, kind: Kind, timing: Timing) -> float:
    match kind:
        case Kind.STALL:
            # Most stalls outlast the session; the others must cause no rebalance.
            longer = dice.random() < 0.7
            return timing.session * (dice.uniform(1.1, 1.8) if longer else dice.uniform(0.1, 0.5))
        case Kind.KILL | Kind.RESTART:
            # A static member that returns within its session keeps its partitions.
            return dice.choice((0.0, timing.session * 0.4, timing.session * 1.3))
        case Kind.GUEST:
            return dice.uniform(5.0, 15.0)
        case Kind.PAUSE_BROKER:
            return timing.session * dice.uniform(0.2, 1.5)
        case _:
            return 0.0
