"""The members, what each owns, and whether every partition has exactly one owner. Pure."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import groupby

from groupwright.cli.demo.reports import Consumed, Rebalanced, Report, Revoked, Started

NO_GENERATION = -1


class Status(StrEnum):
    """What a member is doing, or what became of it."""

    STARTING = "starting"
    JOINING = "joining"
    CONSUMING = "consuming"
    REBALANCING = "rebalancing"
    LEAVING = "leaving"
    LEFT = "left"
    KILLED = "killed"


_LIVE = frozenset({Status.STARTING, Status.JOINING, Status.CONSUMING, Status.REBALANCING})


@dataclass(frozen=True, slots=True)
class MemberRebalance:
    """One rebalance of one member."""

    generation: int
    seconds: float
    revoked: int
    """How many partitions it gave up, or lost, for it."""


@dataclass(slots=True)
class Member:
    """A member as its reports describe it."""

    name: str
    status: Status = Status.STARTING
    metrics: str | None = None
    owned: tuple[int, ...] = ()
    generation: int = NO_GENERATION
    consumed: int = 0
    rebalances: list[MemberRebalance] = field(default_factory=list)
    revoked: int = 0
    """Partitions given up since the last rebalance ended."""
    ended: bool = False
    """Whether its process has ended, and all its reports are in."""

    @property
    def live(self) -> bool:
        """Whether it is, or is about to be, a member of the group."""
        return self.status in _LIVE


class Roster:
    """All members there have been, by name, in the order in which they came."""

    def __init__(self, partitions: int) -> None:
        """Start with a topic of so many partitions, and no members."""
        self.members: dict[str, Member] = {}
        self._partitions = partitions

    @property
    def live(self) -> list[Member]:
        """The members that are in the group, or are joining it."""
        return [member for member in self.members.values() if member.live]

    @property
    def generation(self) -> int:
        """The latest generation that any member has reported."""
        return max((member.generation for member in self.members.values()), default=NO_GENERATION)

    def enter(self, name: str) -> None:
        """Add a member whose process starts."""
        self.members[name] = Member(name)

    def become(self, name: str, status: Status) -> None:
        """Note what is being done to a member, or what became of it."""
        member = self.members[name]
        member.status = status
        if not member.live and status is not Status.LEAVING:
            member.owned = ()

    def report(self, name: str, report: Report) -> None:
        """Take in a member's report."""
        member = self.members[name]
        match report:
            case Started(metrics):
                member.metrics = metrics
                member.status = Status.JOINING
            case Revoked(partitions):
                member.owned = tuple(p for p in member.owned if p not in set(partitions))
                member.revoked += len(partitions)
                if member.live:
                    member.status = Status.REBALANCING
            case Consumed(spans):
                member.consumed += sum(span.size for span in spans)
            case Rebalanced(generation, seconds, owned):
                member.owned = owned
                member.generation = generation
                member.rebalances.append(MemberRebalance(generation, seconds, member.revoked))
                member.revoked = 0
                if member.live:
                    member.status = Status.CONSUMING

    def settled(self, *, after: int) -> bool:
        """Return whether every partition has exactly one owner, all in one generation later than `after`.

        Generations are compared because reports of different members do not arrive in order: those of an
        old generation may describe a whole assignment too.
        """
        return not self.unsettled(after=after)

    def unsettled(self, *, after: int) -> str:
        """Return what is missing until `settled`, in words; empty if nothing is."""
        generations = {member.name: member.generation for member in self.live}
        if len(set(generations.values())) != 1 or min(generations.values()) <= after:
            reached = ", ".join(f"{name} is in {number}" for name, number in generations.items())
            return f"the members are not in one generation after {after}: {reached}"
        owners = self._owners()
        wrong = [
            f"{partition} is owned by {' and '.join(owners.get(partition, ['nobody']))}"
            for partition in range(self._partitions)
            if len(owners.get(partition, ())) != 1
        ]
        return f"partition {', partition '.join(wrong)}" if wrong else ""

    def ownership(self) -> Mapping[int, str]:
        """Return each partition's owner (one of them, unless `settled`)."""
        return {partition: names[0] for partition, names in self._owners().items()}

    def _owners(self) -> dict[int, list[str]]:
        owners: dict[int, list[str]] = {}
        for member in self.live:
            for partition in member.owned:
                owners.setdefault(partition, []).append(member.name)
        return owners


def moved(before: Mapping[int, str], after: Mapping[int, str]) -> int:
    """Return how many partitions have another owner than before."""
    return sum(1 for partition, owner in after.items() if before.get(partition, owner) != owner)


def compact(partitions: Iterable[int]) -> str:
    """Write partition numbers in short: `0-3 8`; a dash for none."""
    runs = []
    for _, group in groupby(enumerate(sorted(partitions)), key=lambda pair: pair[1] - pair[0]):
        run = [partition for _, partition in group]
        runs.append(str(run[0]) if len(run) == 1 else f"{run[0]}-{run[-1]}")
    return " ".join(runs) or "-"
