"""Ranges of offsets, and who held each offset last."""

from collections.abc import Iterable, Iterator
from typing import NamedTuple


class Span(NamedTuple):
    """The offsets of a partition from `start` until before `stop`."""

    partition: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """How many offsets there are in it."""
        return self.stop - self.start

    def __str__(self) -> str:
        """Name the partition, the first offset and the last."""
        offsets = f"offset {self.start}" if self.size == 1 else f"offsets {self.start}-{self.stop - 1}"
        return f"partition {self.partition}, {offsets}"


def spans(offsets: Iterable[tuple[int, int]]) -> list[Span]:
    """Join (partition, offset) pairs into spans; a gap or a step back within a partition starts a new one."""
    joined: list[Span] = []
    latest: dict[int, int] = {}
    for partition, offset in offsets:
        index = latest.get(partition)
        if index is not None and joined[index].stop == offset:
            joined[index] = joined[index]._replace(stop=offset + 1)
        else:
            latest[partition] = len(joined)
            joined.append(Span(partition, offset, offset + 1))
    return joined


class Piece(NamedTuple):
    """A range of offsets, and its holder."""

    start: int
    stop: int
    holder: str


class OffsetMap:
    """The last holder of each offset of one partition.

    Offsets next to each other with the same holder are one piece, so that a partition read in order takes
    as many pieces as it had owners, however many messages it has.
    """

    def __init__(self) -> None:
        """Start with no offset held."""
        self._pieces: list[Piece] = []

    def __iter__(self) -> Iterator[Piece]:
        """Go through the pieces, by ascending offset."""
        return iter(self._pieces)

    def put(self, start: int, stop: int, holder: str) -> list[Piece]:
        """Give offsets to a holder; return what of them was held before, and by whom."""
        taken: list[Piece] = []
        pieces = [Piece(start, stop, holder)]
        for piece in self._pieces:
            overlap = Piece(max(piece.start, start), min(piece.stop, stop), piece.holder)
            if overlap.start >= overlap.stop:
                pieces.append(piece)
                continue
            taken.append(overlap)
            left, right = piece._replace(stop=overlap.start), piece._replace(start=overlap.stop)
            pieces += [rest for rest in (left, right) if rest.start < rest.stop]
        self._pieces = _joined(sorted(pieces))
        return taken

    def without(self, other: "OffsetMap") -> list[tuple[int, int]]:
        """Return the offsets that are held here and not there, as (start, stop)."""
        missing: list[tuple[int, int]] = []
        for piece in self._pieces:
            start = piece.start
            for held in other:
                if held.stop <= start or held.start >= piece.stop:
                    continue
                if held.start > start:
                    missing.append((start, held.start))
                start = held.stop
            if start < piece.stop:
                missing.append((start, piece.stop))
        return missing


def _joined(pieces: list[Piece]) -> list[Piece]:
    joined = pieces[:1]
    for piece in pieces[1:]:
        last = joined[-1]
        if piece.holder == last.holder and piece.start == last.stop:
            joined[-1] = last._replace(stop=piece.stop)
        else:
            joined.append(piece)
    return joined
