"""Spans of offsets, and maps from offsets to their last holder, such as an ownership window."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Generic, NamedTuple, TypeVar

H = TypeVar("H")
V = TypeVar("V")


class Span(NamedTuple):
    """The offsets of a partition from `start` until before `stop`."""

    topic: str
    partition: int
    start: int
    stop: int

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.stop - self.start

    def __str__(self) -> str:
        """Name the partition, the first offset and the last."""
        offsets = f"offset {self.start}" if self.size == 1 else f"offsets {self.start}-{self.stop - 1}"
        return f"{self.topic} [{self.partition}], {offsets}"


def spans(offsets: Iterable[tuple[str, int, int]]) -> tuple[Span, ...]:
    """Join (topic, partition, offset) into spans; a gap or a step back in a partition starts a new one."""
    return spans_with_values((position, None) for position in offsets)[0]


def spans_with_values(
    messages: Iterable[tuple[tuple[str, int, int], V]],
) -> tuple[tuple[Span, ...], tuple[V, ...]]:
    """Join messages as `spans` does, and return also their values, in the order of the spans."""
    joined: list[Span] = []
    values: list[list[V]] = []
    latest: dict[tuple[str, int], int] = {}
    for (topic, partition, offset), value in messages:
        index = latest.get((topic, partition))
        if index is not None and joined[index].stop == offset:
            joined[index] = joined[index]._replace(stop=offset + 1)
            values[index].append(value)
        else:
            latest[topic, partition] = len(joined)
            joined.append(Span(topic, partition, offset, offset + 1))
            values.append([value])
    return tuple(joined), tuple(chain.from_iterable(values))


class Piece(NamedTuple, Generic[H]):
    """A range of offsets, and its holder."""

    start: int
    stop: int
    holder: H


class OffsetMap(Generic[H]):
    """The last holder of each offset of one partition.

    Adjacent offsets with the same holder are one piece. A partition that is read in order has one piece for
    each owner it had, however many messages it has.
    """

    def __init__(self) -> None:
        """Start with no offset held."""
        self._pieces: list[Piece[H]] = []

    def __iter__(self) -> Iterator[Piece[H]]:
        """Iterate over the pieces, by ascending offset."""
        return iter(self._pieces)

    @property
    def size(self) -> int:
        """The number of offsets held."""
        return sum(piece.stop - piece.start for piece in self._pieces)

    @property
    def end(self) -> int:
        """The offset after the last one held; 0 for none."""
        return self._pieces[-1].stop if self._pieces else 0

    @property
    def complete(self) -> int:
        """The offset below which every offset is held."""
        stop = 0
        for piece in self._pieces:
            if piece.start > stop:
                break
            stop = piece.stop
        return stop

    def put(self, start: int, stop: int, holder: H) -> list[Piece[H]]:
        """Set the holder of offsets; return those that were held before, with their previous holders."""
        if self._pieces and start == self._pieces[-1].stop and holder == self._pieces[-1].holder:
            self._pieces[-1] = self._pieces[-1]._replace(stop=stop)  # the usual case, in O(1)
            return []
        taken: list[Piece[H]] = []
        pieces = [Piece(start, stop, holder)]
        for piece in self._pieces:
            overlap = Piece(max(piece.start, start), min(piece.stop, stop), piece.holder)
            if overlap.start >= overlap.stop:
                pieces.append(piece)
                continue
            taken.append(overlap)
            left, right = piece._replace(stop=overlap.start), piece._replace(start=overlap.stop)
            pieces += [rest for rest in (left, right) if rest.start < rest.stop]
        self._pieces = _joined(sorted(pieces, key=lambda piece: piece.start))
        return taken

    def without(self, other: "OffsetMap[H]") -> list[tuple[int, int]]:
        """Return the offsets that are held in this map and not in the other, as (start, stop)."""
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


def _joined(pieces: list[Piece[H]]) -> list[Piece[H]]:
    joined = pieces[:1]
    for piece in pieces[1:]:
        last = joined[-1]
        if piece.holder == last.holder and piece.start == last.stop:
            joined[-1] = last._replace(stop=piece.stop)
        else:
            joined.append(piece)
    return joined
