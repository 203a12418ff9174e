"""What was produced and what was consumed, offset by offset: what is lost, what came twice, and why.

Pure. A message may come twice for one reason only: a member had consumed it, was killed before it committed
that, and the partition's next owner began at the last committed offset. Every second delivery is held
against that when it is entered; any other is unexplained.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from groupwright.cli.demo.offsets import OffsetMap, Piece, Span

_PRODUCER = "producer"


@dataclass(frozen=True, slots=True)
class Redelivery:
    """Offsets that a member consumed after another one, or itself, had consumed them."""

    span: Span
    before: str
    """Who had consumed them last."""
    again: str
    """Who consumed them now."""

    def __str__(self) -> str:
        """Say what, and by whom."""
        return f"{self.span}: by {self.before} and again by {self.again}"


@dataclass(frozen=True, slots=True)
class Account:
    """The ledger's result."""

    produced: int
    consumed: int
    """Deliveries: a message that was consumed twice counts twice."""
    lost: tuple[Span, ...]
    """Produced, and consumed by nobody."""
    foreign: tuple[Span, ...]
    """Consumed, and not produced by the demo."""
    explained: tuple[Redelivery, ...]
    """The first consumer was killed before it had committed these."""
    unexplained: tuple[Redelivery, ...]

    @property
    def balanced(self) -> bool:
        """Whether nothing is lost, and everything that came twice did so for the one good reason."""
        return not (self.lost or self.foreign or self.unexplained)


class Ledger:
    """The account of one topic while it is produced to and consumed.

    A killed member's deliveries are entered before its death, and its death before the deliveries of the
    members that inherit from it.
    """

    def __init__(self) -> None:
        """Start with nothing produced."""
        self.produced_count = 0
        self.consumed_count = 0
        self.redelivered_count = 0
        self._produced: defaultdict[int, OffsetMap] = defaultdict(OffsetMap)
        self._consumed: defaultdict[int, OffsetMap] = defaultdict(OffsetMap)
        self._committed: dict[tuple[str, int], int] = {}
        self._commits: Counter[str] = Counter()
        self._last_commits: dict[str, Mapping[int, int]] = {}
        self._explained: list[Redelivery] = []
        self._unexplained: list[Redelivery] = []

    @property
    def waiting(self) -> int:
        """How many of the produced messages nobody has consumed yet."""
        return max(0, self.produced_count - (self.consumed_count - self.redelivered_count))

    def produced(self, spans: Iterable[Span]) -> None:
        """Enter what Kafka has acknowledged to the producer."""
        for span in spans:
            self._produced[span.partition].put(span.start, span.stop, _PRODUCER)
            self.produced_count += span.size

    def consumed(self, member: str, spans: Iterable[Span]) -> None:
        """Enter what a member was delivered."""
        for span in spans:
            self.consumed_count += span.size
            for piece in self._consumed[span.partition].put(span.start, span.stop, member):
                self._redelivered(span.partition, piece, member)

    def committed(self, member: str, offsets: Mapping[int, int]) -> None:
        """Enter what a member's commit has stored: the next offset to read, by partition."""
        self._commits[member] += 1
        for partition, offset in offsets.items():
            self._committed[member, partition] = offset

    def commits(self, member: str) -> int:
        """Return how many commits the member has reported."""
        return self._commits[member]

    def killed(self, member: str, offsets: Mapping[int, int]) -> None:
        """Enter a member's death.

        Args:
            member: Its deliveries are all entered; it can make no more.
            offsets: The group's committed offsets as the coordinator has them, before anyone has inherited
                the member's partitions. The member may have died before it could report its last commit;
                what it did report must not be less.
        """
        mine = {partition: offset for (who, partition), offset in self._committed.items() if who == member}
        self._last_commits[member] = {
            partition: max(mine.get(partition, 0), offsets.get(partition, 0))
            for partition in mine.keys() | offsets.keys()
        }

    def account(self) -> Account:
        """Return what it comes to so far."""
        return Account(
            produced=self.produced_count,
            consumed=self.consumed_count,
            lost=_difference(self._produced, self._consumed),
            foreign=_difference(self._consumed, self._produced),
            explained=tuple(self._explained),
            unexplained=tuple(self._unexplained),
        )

    def _redelivered(self, partition: int, piece: Piece, member: str) -> None:
        self.redelivered_count += piece.stop - piece.start
        # Below its last commit, even a killed member leaves nothing to be read again.
        last_commits = self._last_commits.get(piece.holder)
        boundary = piece.stop if last_commits is None else last_commits.get(partition, 0)
        middle = min(max(piece.start, boundary), piece.stop)
        self._enter(self._unexplained, Span(partition, piece.start, middle), piece.holder, member)
        self._enter(self._explained, Span(partition, middle, piece.stop), piece.holder, member)

    @staticmethod
    def _enter(redeliveries: list[Redelivery], span: Span, before: str, again: str) -> None:
        if span.size:
            redeliveries.append(Redelivery(span, before, again))


def _difference(of: Mapping[int, OffsetMap], without: Mapping[int, OffsetMap]) -> tuple[Span, ...]:
    nothing = OffsetMap()
    return tuple(
        Span(partition, start, stop)
        for partition in sorted(of)
        for start, stop in of[partition].without(without.get(partition, nothing))
    )
