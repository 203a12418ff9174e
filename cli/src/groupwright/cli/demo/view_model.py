"""State of the demo as a view shows it: a row per member, derived from the ledger. Pure: no I/O."""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum, StrEnum

from groupwright.cli._command_line.output import compact
from groupwright.cli.demo.errors import DemoError
from groupwright.testing.groups import (
    Consumed,
    Event,
    Failed,
    Ledger,
    Rebalanced,
    Revoked,
    Started,
)


class Status(StrEnum):
    """State of a member."""

    STARTING = "starting"
    JOINING = "joining"
    CONSUMING = "consuming"
    REBALANCING = "rebalancing"
    LEAVING = "leaving"
    LEFT = "left"
    KILLED = "killed"


GONE = frozenset({Status.LEFT, Status.KILLED})
_RECENT = 1_000  # calls of consume that are remembered: more than in any rebalance
_ACTIVE = frozenset({Status.STARTING, Status.JOINING, Status.CONSUMING, Status.REBALANCING})


@dataclass(slots=True)
class MemberRow:
    """A member, as its events describe it.

    Attributes:
        name: The member's name, which is its `client.id`.
        status: Its state.
        metrics: URL of its metrics; empty until the process is up.
        owned: The numbers of the partitions it owns.
        generations: The generation of each of its rebalances.
        consumed: Number of messages it has consumed.
        seconds: Duration of each of its rebalances, in seconds.
        revoked: Number of partitions it has revoked or lost.
        last_revoked: The same, in its last rebalance.
        kept: Number of partitions that it kept without a revocation, over all its rebalances.
        last_kept: The same, in its last rebalance.
        meanwhile: Number of messages that it consumed during its rebalances: between the revocation, if there
            was one, and the end.
        last_meanwhile: The same, in its last rebalance.
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
    kept: int = 0
    last_kept: int = 0
    meanwhile: int = 0
    last_meanwhile: int = 0
    _revoked_before: int = 0
    _revoked_at: float = 0.0
    _recent: deque[tuple[float, int]] = field(default_factory=lambda: deque(maxlen=_RECENT))

    def apply(self, event: Event) -> str | None:
        """Apply an event, and return a line of text for events that are shown.

        Raises:
            DemoError: The member failed: its assignor did, or the coordinator rejects it.
        """
        match event:
            case Failed(error=error):
                raise DemoError(f"{self.name} failed: {error}")
            case Started(details=details):
                self.metrics = details.get("metrics", "")
                self._become(Status.JOINING)
                return f"{self.name} is up; its metrics: {self.metrics}"
            case Consumed(spans=spans):
                size = sum(span.size for span in spans)
                self.consumed += size
                self._recent.append((event.time, size))
            case Revoked(partitions=partitions):
                self._revoked_at = event.time
                revoked = {number for _, number in partitions}
                self.owned = tuple(number for number in self.owned if number not in revoked)
                self.revoked += len(revoked)
                self._become(Status.REBALANCING)
            case Rebalanced(outcome=outcome) if outcome != "failed":
                return self._rebalanced(event)
            case _:
                pass
        return None

    def _rebalanced(self, event: Rebalanced) -> str:
        owned = tuple(sorted(number for _, number in event.partitions))
        self.last_kept = len(set(self.owned) & set(owned))
        self.kept += self.last_kept
        self.owned = owned
        began = max(event.time - (event.seconds or 0.0), self._revoked_at)
        self.last_meanwhile = sum(size for at, size in self._recent if began < at <= event.time)
        self.meanwhile += self.last_meanwhile
        self.generations.append(event.generation)
        self.seconds.append(event.seconds or 0.0)
        self.last_revoked, self._revoked_before = self.revoked - self._revoked_before, self.revoked
        self._become(Status.CONSUMING)
        return (
            f"{self.name} rebalanced in {self.seconds[-1]:.3f} s: generation {event.generation}, "
            f"revoked {self.last_revoked}, kept {self.last_kept}, consumed {self.last_meanwhile} meanwhile, "
            f"owns {compact(self.owned)}"
        )

    def _become(self, status: Status) -> None:
        """Set the status, unless the member leaves or has ended: late events do not change that."""
        if self.status in _ACTIVE:
            self.status = status


class Progress(Enum):
    """Progress of a step."""

    TO_COME = "to come"
    NOW = "now"
    DONE = "done"


@dataclass(slots=True)
class StepState:
    """A step of the scenario, as shown."""

    title: str
    note: str = ""
    progress: Progress = Progress.TO_COME


@dataclass(slots=True)
class ViewModel:
    """State of the demo.

    Attributes:
        title: The headline.
        kafka: Kafka's address.
        steps: The steps of the scenario.
        members: The members by name, in the order in which they were started.
        produced: Number of messages produced.
        consumed: Number of deliveries.
        redelivered: Number of deliveries of messages that had been consumed before.
        waiting: Number of messages not consumed yet.
    """

    title: str
    kafka: str
    steps: list[StepState]
    members: dict[str, MemberRow] = field(default_factory=dict)
    produced: int = 0
    consumed: int = 0
    redelivered: int = 0
    waiting: int = 0
    _applied: dict[str, int] = field(default_factory=dict)  # number of events, by member

    def update(self, ledger: Ledger) -> Iterator[str]:
        """Apply new events of the ledger; yield lines of text for those that are shown.

        Raises:
            DemoError: A member failed.
        """
        for name, row in self.members.items():
            history = ledger.histories[name]
            events, self._applied[name] = history[self._applied.get(name, 0) :], len(history)
            yield from filter(None, map(row.apply, events))
        self.produced, self.consumed = ledger.produced_count, ledger.consumed_count
        self.redelivered, self.waiting = ledger.redelivered_count, ledger.unconsumed_count

    def end(self, name: str, status: Status) -> None:
        """Set the final status of a member that has left or was killed; it owns no partitions."""
        self.members[name].status, self.members[name].owned = status, ()

    @property
    def rows(self) -> Sequence[MemberRow]:
        """The members, in the order in which they were started."""
        return list(self.members.values())
