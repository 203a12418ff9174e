"""Spans of offsets, and maps of who held each offset last."""

import random

import pytest

from groupwright.testing._groups.offsets import OffsetMap, Piece, Span, spans, spans_with_values


def test_offsets_in_a_row_are_one_span_for_each_partition() -> None:
    offsets = [("t", 0, 5), ("t", 1, 9), ("u", 0, 6), ("t", 0, 6), ("t", 1, 10), ("t", 0, 7)]
    assert spans(offsets) == (Span("t", 0, 5, 8), Span("t", 1, 9, 11), Span("u", 0, 6, 7))


@pytest.mark.parametrize(
    ("offsets", "expected"),
    [
        ([], []),
        ([1, 3], [(1, 2), (3, 4)]),
        ([1, 1], [(1, 2), (1, 2)]),
        ([2, 1], [(2, 3), (1, 2)]),
    ],
    ids=["nothing", "a gap", "the same again", "a step back"],
)
def test_a_gap_or_a_repetition_starts_a_new_span(offsets: list[int], expected: list[tuple[int, int]]) -> None:
    assert spans(("t", 0, offset) for offset in offsets) == tuple(Span("t", 0, *each) for each in expected)


def test_values_are_in_the_order_of_their_spans() -> None:
    messages = [(("t", 0, 5), "a"), (("t", 1, 9), "b"), (("t", 0, 6), "c"), (("t", 0, 8), "d")]
    assert spans_with_values(messages) == (
        (Span("t", 0, 5, 7), Span("t", 1, 9, 10), Span("t", 0, 8, 9)),
        ("a", "c", "b", "d"),
    )


def test_a_span_names_its_first_and_its_last_offset() -> None:
    assert str(Span("t", 3, 10, 20)) == "t [3], offsets 10-19"
    assert str(Span("t", 3, 10, 11)) == "t [3], offset 10"


def test_a_holder_that_goes_on_has_one_piece() -> None:
    offsets: OffsetMap[str] = OffsetMap()
    offsets.put(0, 10, "a")
    assert offsets.put(10, 20, "a") == []
    assert list(offsets) == [Piece(0, 20, "a")]


def test_the_last_holder_wins_and_the_former_is_told() -> None:
    offsets: OffsetMap[str] = OffsetMap()
    offsets.put(0, 10, "a")
    offsets.put(10, 20, "b")
    assert offsets.put(5, 15, "c") == [Piece(5, 10, "a"), Piece(10, 15, "b")]
    assert list(offsets) == [Piece(0, 5, "a"), Piece(5, 15, "c"), Piece(15, 20, "b")]


def test_offsets_inside_a_piece_split_it() -> None:
    offsets: OffsetMap[str] = OffsetMap()
    offsets.put(0, 10, "a")
    assert offsets.put(4, 6, "b") == [Piece(4, 6, "a")]
    assert list(offsets) == [Piece(0, 4, "a"), Piece(4, 6, "b"), Piece(6, 10, "a")]


def test_what_another_map_lacks_is_found_at_every_edge() -> None:
    held: OffsetMap[str] = OffsetMap()
    other: OffsetMap[str] = OffsetMap()
    held.put(0, 30, "a")
    other.put(2, 5, "x")
    other.put(10, 12, "x")
    other.put(25, 40, "x")
    assert held.without(other) == [(0, 2), (5, 10), (12, 25)]
    assert other.without(held) == [(30, 40)]
    nothing: OffsetMap[str] = OffsetMap()
    assert nothing.without(held) == []


def test_the_map_agrees_with_one_entry_for_each_offset() -> None:
    """The same puts, once as pieces and once offset by offset."""
    chance = random.Random(7)  # noqa: S311 - test data, seeded
    for _ in range(200):
        offsets: OffsetMap[str] = OffsetMap()
        entries: dict[int, str] = {}
        for _ in range(12):
            start = chance.randrange(30)
            stop, holder = start + chance.randrange(1, 10), chance.choice("abc")
            before = {offset: entries[offset] for offset in range(start, stop) if offset in entries}
            taken = offsets.put(start, stop, holder)
            entries.update(dict.fromkeys(range(start, stop), holder))
            assert {o: piece.holder for piece in taken for o in range(piece.start, piece.stop)} == before
        pieces = list(offsets)
        assert {o: piece.holder for piece in pieces for o in range(piece.start, piece.stop)} == entries
        assert pieces == sorted(pieces)
