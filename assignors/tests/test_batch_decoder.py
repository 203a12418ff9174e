"""Decoding the lists of a whole group at once gives the same as decoding one after the other."""

import random
import struct
import tracemalloc
from collections.abc import Callable, Sequence

import numpy as np
import pytest

from groupwright.assignors import MalformedBytesError, PartitionsByTopic
from groupwright.assignors._wire import batch_decoder
from groupwright.assignors._wire.batch_decoder import BatchReader
from groupwright.assignors._wire.primitives import Reader

Runs = Sequence[tuple[bytes, Sequence[int]]]


def string_list(strings: Sequence[bytes]) -> bytes:
    return struct.pack(">i", len(strings)) + b"".join(struct.pack(">h", len(raw)) + raw for raw in strings)


def run_list(runs: Runs) -> bytes:
    written = [
        struct.pack(f">h{len(name)}si{len(partitions)}i", len(name), name, len(partitions), *partitions)
        for name, partitions in runs
    ]
    return struct.pack(">i", len(runs)) + b"".join(written)


BEFORE = b"before"


def cursor_at(lists: Sequence[bytes], before: bytes = b"", behind: bytes = b"") -> BatchReader:
    """Return a cursor that stands before the lists."""
    reader = BatchReader([before + data + behind for data in lists], {})
    reader.skip(np.full(len(lists), len(before)))
    return reader


def read_strings(reader: BatchReader) -> list[tuple[str, ...] | None]:
    read = reader.strings(np.arange(reader.valid.size))
    return [listed if valid else None for listed, valid in zip(read, reader.valid.tolist(), strict=True)]


def read_partitions(reader: BatchReader) -> list[PartitionsByTopic | None]:
    read = reader.topic_partitions().split()
    return [listed if valid else None for listed, valid in zip(read, reader.valid.tolist(), strict=True)]


def offsets(reader: BatchReader) -> list[int]:
    offsets: list[int] = (reader.at - reader.starts).tolist()
    return offsets


def assert_reads_the_same(lists: Sequence[bytes], *, partitions: bool, unread: int = 0) -> None:
    """Of well-formed lists, all but so many are read together."""
    reader = cursor_at(lists, BEFORE, b"behind")
    one_by_one = [Reader(BEFORE + data + b"behind", "list") for data in lists]
    for single in one_by_one:
        single.offset = len(BEFORE)
    if partitions:
        results: Sequence[object] = read_partitions(reader)
        expected: Sequence[object] = [single.topic_partitions("list") for single in one_by_one]
    else:
        results = read_strings(reader)
        expected = [single.strings("list") for single in one_by_one]
    assert sum(result is None for result in results) == unread
    for offset, decoded, result, right in zip(offsets(reader), one_by_one, results, expected, strict=True):
        if result is None:
            assert offset == len(BEFORE)
        else:
            assert result == right
            assert offset == decoded.offset


def random_name(rng: random.Random) -> bytes:
    """Names of all lengths around the words in which they are compared, many of them alike but for a byte."""
    name = bytearray(b"orders.of-a-year" * 3)[: rng.randint(0, 34)]
    if name:
        name[rng.randrange(len(name))] = rng.choice(b"xyz")
    return bytes(name) + rng.choice(("", "", "é", "\U0001f600")).encode()


def random_runs(rng: random.Random, names: Sequence[bytes]) -> Runs:
    """Runs as Kafka's members write them, or in any order, empty or repeated."""
    if rng.random() < 0.7:
        chosen = sorted(
            set(rng.choices(names, k=rng.randint(0, 12))), key=lambda raw: raw.decode().encode("utf-16-be")
        )
        return [(name, sorted(rng.sample(range(50), rng.randint(1, 4)))) for name in chosen]
    return [
        (name, rng.choices((-(2**31), -1, 0, 1, 7, 2**31 - 1), k=rng.randint(0, 4)))
        for name in rng.choices(names, k=rng.randint(0, 12))
    ]


@pytest.mark.medium
@pytest.mark.parametrize("members", [1, 7, 500])
def test_partitions_of_a_group_are_read(seeded: Callable[[int], random.Random], members: int) -> None:
    rng = seeded(members)
    for _ in range(2000 // members):
        names = [random_name(rng) for _ in range(rng.randint(1, 40))]
        assert_reads_the_same([run_list(random_runs(rng, names)) for _ in range(members)], partitions=True)


@pytest.mark.medium
@pytest.mark.parametrize("members", [1, 7, 500])
def test_topics_of_a_group_are_read(seeded: Callable[[int], random.Random], members: int) -> None:
    rng = seeded(members)
    for _ in range(2000 // members):
        names = [random_name(rng) for _ in range(rng.randint(1, 40))]
        lists = [string_list(rng.choices(names, k=rng.randint(0, 12))) for _ in range(members)]
        assert_reads_the_same(lists, partitions=False)


def test_no_lists_are_read() -> None:
    assert read_partitions(cursor_at([])) == []
    assert read_strings(cursor_at([])) == []


def test_lists_of_very_different_lengths_are_read(seeded: Callable[[int], random.Random]) -> None:
    """The few long ones are walked through one by one, the many short ones at once."""
    rng = seeded(5)
    names = [b"topic-%04d" % number for number in range(3000)]
    lengths = [3000, 2999, *rng.choices(range(20), k=400), 700]
    assert_reads_the_same([string_list(names[:length]) for length in lengths], partitions=False)
    assert_reads_the_same(
        [run_list([(name, [length]) for name in names[:length]]) for length in lengths], partitions=True
    )


@pytest.mark.medium
def test_more_names_than_are_compared_at_a_time_are_told_apart(
    seeded: Callable[[int], random.Random],
) -> None:
    names = [b"%d" % number for number in seeded(6).sample(range(10**9), 100_000)]
    lists = [string_list(names[start::700]) for start in range(700)]
    assert_reads_the_same([*lists, *reversed(lists)], partitions=False)


@pytest.mark.parametrize("size", [1, 2, 7, 8, 9, 15, 16, 17, batch_decoder.MAX_NAME_BYTES])
def test_seven_bytes_after_the_last_name_are_enough_and_do_not_count(size: int) -> None:
    """The last name equals an earlier one that has other bytes after it."""
    name = b"n" * size
    buffer = name + b"zzzzzzzz" + name + b"\xff" * 7
    at, sizes = np.array([0, size + 8]), np.array([size, size])
    names, numbers = batch_decoder.read_names(buffer, at, sizes, {})
    assert names == (name.decode(),)
    assert numbers.tolist() == [0, 0]


def test_names_that_are_longer_than_topics_have_them_are_left_to_the_reader() -> None:
    lists = [string_list([b"short", b"x" * length]) for length in (256, 257, 32_767)]
    assert_reads_the_same(lists, partitions=False, unread=2)
    assert_reads_the_same([run_list([(b"x" * 257, [1])]), run_list([(b"y", [1])])], partitions=True, unread=1)


def test_names_of_one_hash_are_not_taken_for_each_other(
    seeded: Callable[[int], random.Random], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A hostile member may choose its names so. With this factor the last byte of a name does not count."""
    monkeypatch.setattr(batch_decoder, "_FACTOR", np.uint64(2**8))
    rng = seeded(7)
    names = [b"topic-%03d%d" % (number, last) for number in range(100) for last in (3, 7)]
    lists = [string_list(rng.sample(names, 2)) for _ in range(300)]
    results = read_strings(cursor_at(lists))
    assert 0 < sum(result is None for result in results) < 300
    for result, data in zip(results, lists, strict=True):
        assert result is None or result == Reader(data, "list").strings("list")


def test_a_list_of_very_many_elements_is_left_to_the_reader() -> None:
    """Two bytes are an element. Its arrays would take forty times what the bytes take."""
    many = struct.pack(">i", 3 * 2**20) + bytes(6 * 2**20)
    tracemalloc.start()
    try:
        assert read_strings(cursor_at([many, string_list([b"t"])])) == [None, ("t",)]
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 5 * len(many)


def test_a_large_group_is_read_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch_decoder, "_MAX_ELEMENTS", 50)
    names = [b"topic-%04d" % number for number in range(20)]
    for count in (1, 2, 3, 10, 11):
        assert_reads_the_same([string_list(names)] * count, partitions=False)
        assert_reads_the_same([run_list([(name, [1]) for name in names])] * count, partitions=True)


MALFORMED = {
    "no count": b"\0\0\0",
    "a count of -1": b"\xff\xff\xff\xff",
    "more elements than bytes": struct.pack(">i", 9) + b"\0\1x" * 2,
    "a name beyond the end": struct.pack(">ih", 1, 30) + bytes(9),
    "a name of negative length": struct.pack(">ih", 1, -2) + bytes(9),
    "a name that is not UTF-8": struct.pack(">ih", 1, 2) + b"\xff\xfe" + bytes(9),
}
MALFORMED_RUNS = {
    **MALFORMED,
    "partitions beyond the end": run_list([(b"t", range(9))])[:-4],
    "a negative count of partitions": struct.pack(">ihci", 1, 1, b"t", -1) + bytes(9),
    "as many partitions as can be": struct.pack(">ihci", 1, 1, b"t", 2**31 - 1) + bytes(9),
    "a count beyond the end": struct.pack(">ihc", 1, 1, b"t") + b"\0\0\0",
}


@pytest.mark.parametrize("data", MALFORMED_RUNS.values(), ids=MALFORMED_RUNS)
def test_malformed_partitions_are_left_to_the_reader_and_affect_no_others(data: bytes) -> None:
    valid = run_list([(b"t", [1, 2]), (b"u", [0])])
    several = cursor_at([valid, data, valid, data])
    expected = PartitionsByTopic({"t": [1, 2], "u": [0]})
    assert read_partitions(several) == [expected, None, expected, None]
    assert offsets(several)[::2] == [len(valid), len(valid)]
    with pytest.raises(MalformedBytesError):
        Reader(data, "list").topic_partitions("list")


@pytest.mark.parametrize("data", MALFORMED.values(), ids=MALFORMED)
def test_malformed_topics_are_left_to_the_reader_and_affect_no_others(data: bytes) -> None:
    valid = string_list([b"t", b"u"])
    assert read_strings(cursor_at([valid, data, valid, data])) == [("t", "u"), None, ("t", "u"), None]
    with pytest.raises(MalformedBytesError):
        Reader(data, "list").strings("list")


def test_what_members_have_in_common_is_held_once() -> None:
    runs = run_list([(b"t", [1]), (b"u", [2])])
    first, second = read_partitions(cursor_at([runs, run_list([(b"u", [0]), (b"v", [2])])]))
    assert first is not None
    assert second is not None
    assert first.names is second.names
    assert first.names == ("t", "u", "v")
    assert second.numbers.tolist() == [1, 2]
    assert second.topics == ("u", "v")
    strings = string_list([b"t", b"u"])
    one, other = read_strings(cursor_at([strings, strings]))
    assert one is other
