"""The state of the demo, as a view shows it: a row for each member, made from the ledger. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from itertools import groupby

from groupwright.testing.groups import (
    Consumed,
    Event,
    Ledger,
    Rebalanced,
    Revoked,
    Started,
)


class Status(StrEnum):
    """What a member is doing, or what became of it."""

    STARTING = "starting"
    JOINING = "joining"
    CONSUMING = "consuming"
    REBALANCING = "rebalancing"
    LEAVING = "leaving"
    LEFT = "left"
    KILLED = "killed"


GONE = frozenset({Status.LEFT, Status.KILLED})
_LIVE = frozenset({Status.STARTING, Status.JOINING, Status.CONSUMING, Status.REBALANCING})


@dataclass(slots=True)
class MemberRow:
    """A member, as its events describe it.

    Attributes:
        name: Its name.
        status: What it is doing.
        metrics: The address of its metrics; empty until it is up.
        owned: The partitions that it owns.
        generations: The generation of each of its rebalances.
        consumed: How many messages it has consumed.
        seconds: The duration of each of its rebalances.
        revoked: How many partitions it revoked or lost in all.
        last_revoked: How many of these for its last rebalance.
    """

    name: str
    status: Status = Status.STARTING
    metrics: str = ""
    owned: tuple[int, ...] = ()
    generations: list[int] = field(default_factory=list)
    consumed: int = 0
    seconds: list[float] = field(default_factory=list)
    revoked: int = 0
    last_revoked: int = 0
    _revoked_before: int = 0

    def apply(self, event: Event) -> str | None:
        """Take an event in; return it in words if it is worth a line."""
        match event:
            case Started(details=details):
                self.metrics = details.get("metrics", "")
                self._become(Status.JOINING)
                return f"{self.name} is up; its metrics: {self.metrics}"
            case Consumed(spans=spans):
                self.consumed += sum(span.size for span in spans)
            case Revoked(partitions=partitions):
                gone = {number for _, number in partitions}
                self.owned = tuple(number for number in self.owned if number not in gone)
                self.revoked += len(gone)
                self._become(Status.REBALANCING)
            case Rebalanced(outcome=outcome) if outcome != "failed":
                return self._rebalanced(event)
            case _:
                pass
        return None

    def _rebalanced(self, event: Rebalanced) -> str:
        self.owned = tuple(sorted(number for _, number in event.partitions))
        self.generations.append(event.generation)
        self.seconds.append(event.seconds or 0.0)
        self.last_revoked, self._revoked_before = self.revoked - self._revoked_before, self.revoked
        self._become(Status.CONSUMING)
        return (
            f"{self.name} rebalanced in {self.seconds[-1]:.3f} s: generation {event.generation}, "
            f"revoked {self.last_revoked}, owns {compact(self.owned)}"
        )

    def _become(self, status: Status) -> None:
        if self.status in _LIVE:
            self.status = status


class Progress(Enum):
    """How far an act is."""

    TO_COME = "to come"
    NOW = "now"
    DONE = "done"


@dataclass(slots=True)
class ActState:
    """An act of the scenario, as it is shown."""

    title: str
    note: str = ""
    progress: Progress = Progress.TO_COME


@dataclass(slots=True)
class ViewModel:
    """All that a view shows.

    Attributes:
        title: The headline.
        kafka: Kafka's address.
        acts: The scenario.
        members: The members by name, in the order in which they came.
        produced: How many messages were produced.
        consumed: How many deliveries there were.
        redelivered: How many of them were of messages that had been consumed before.
        waiting: How many messages are not consumed yet.
    """

    title: str
    kafka: str
    acts: list[ActState]
    members: dict[str, MemberRow] = field(default_factory=dict)
    produced: int = 0
    consumed: int = 0
    redelivered: int = 0
    waiting: int = 0
    _taken: dict[str, int] = field(default_factory=dict)

    def update(self, ledger: Ledger) -> Iterator[str]:
        """Take in what is new in the ledger; yield what is worth a line."""
        for name, row in self.members.items():
            history = ledger.histories[name]
            events, self._taken[name] = history[self._taken.get(name, 0) :], len(history)
            yield from filter(None, map(row.apply, events))
        self.produced, self.consumed = ledger.produced_count, ledger.consumed_count
        self.redelivered, self.waiting = ledger.redelivered_count, ledger.unconsumed_count

    def end(self, name: str, status: Status) -> None:
        """Show that a member has left or was killed: it owns nothing any more."""
        self.members[name].status, self.members[name].owned = status, ()

    @property
    def rows(self) -> Sequence[MemberRow]:
        """The members, in the order in which they came."""
        return list(self.members.values())


def compact(partitions: Iterable[int]) -> str:
    """Write partition numbers in short: `0-3 8`; a dash for none."""
    runs = []
    for _, group in groupby(enumerate(sorted(partitions)), key=lambda pair: pair[1] - pair[0]):
        run = [partition for _, partition in group]
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return " ".join(runs) or "-"
