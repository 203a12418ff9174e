"""Corrupted records are rejected one by one, and never raise, hang or affect other rows.

Whatever bytes say, the batch is decoded: a record whose bytes are damaged is either decoded or kept aside
with the reason and its bytes, and the records beside it are what they are without it.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from groupwright.pipeline._decoding import COLUMNS, MALFORMED, UNKNOWN, decode_batch
from groupwright.pipeline._decoding.messages import OTHER_KINDS, RECORD_KINDS

_DAMAGED = 10_000
_LONGEST = 1500
_HOSTILE = [
    bytes.fromhex(text) for text in ("7fffffff", "ffffffff", "80000000", "7fff", "ffffffff0f", "ff" * 9)
]

MakeBatch = Callable[..., pa.RecordBatch]


def _damaged(record: tuple[bytes, bytes], random: np.random.Generator) -> tuple[bytes, bytes]:
    """Return a record with some bytes of its key or value changed, removed, or replaced by a wrong length."""
    parts = list(record)
    part = 0 if random.random() < 0.2 else 1
    data = bytearray(parts[part])
    place = int(random.integers(len(data) + 1))
    match random.integers(5):
        case 0:
            del data[place:]
        case 1:
            for at in random.integers(len(data) or 1, size=random.integers(1, 4)).tolist():
                data[at : at + 1] = random.bytes(1)
        case 2:
            data[place : place + 4] = _HOSTILE[random.integers(len(_HOSTILE))]
        case 3:
            data[place : place + int(random.integers(1, 9))] = b""
        case _:
            data[place:place] = random.bytes(int(random.integers(1, 9)))
    parts[part] = bytes(data)
    return parts[0], parts[1]


@pytest.mark.slow
@pytest.mark.parametrize("batches", [4, pytest.param(10, marks=pytest.mark.endurance)])
def test_no_damage_raises_and_none_reaches_another_row(
    golden_records: list[Any], batch: MakeBatch, batches: int
) -> None:
    whole = [
        (record.key, record.value)
        for record in golden_records
        if record.value is not None and len(record.value) < _LONGEST
    ]
    random = np.random.default_rng(20261121)
    counts = {"decoded": 0, MALFORMED: 0, UNKNOWN: 0}
    for _ in range(batches):
        chosen = random.integers(len(whole), size=_DAMAGED).tolist()
        neighbours = [whole[number] for number in chosen[::8]]
        records = [_damaged(whole[number], random) for number in chosen]
        places = np.arange(0, len(neighbours) * 9, 9)
        for place, neighbour in zip(places.tolist(), neighbours, strict=True):
            records.insert(place, neighbour)
        made = batch(records)
        decoded = decode_batch(made)
        decoded.validate(full=True)
        unharmed = pa.Table.from_batches([decoded]).take(places).drop_columns(["log_offset", "log_time"])
        alone = pa.Table.from_batches([decode_batch(batch(neighbours))]).drop_columns(
            ["log_offset", "log_time"]
        )
        assert unharmed.equals(alone)
        for kind, number in _count(made, decoded).items():
            counts[kind] += number
    assert sum(counts.values()) == batches * (_DAMAGED + len(neighbours))
    # Many bytes are contents, and any are as good as those that were there.
    assert min(counts["decoded"], counts[MALFORMED]) > 5 * counts[UNKNOWN] > 0


def _count(made: pa.RecordBatch, decoded: pa.RecordBatch) -> dict[str, int]:
    """Count rows by outcome. Assert that rows with an error keep their bytes, decoded ones their struct."""
    kinds = decoded.column("record_kind")
    unknown, malformed = pc.equal(kinds, UNKNOWN), pc.equal(kinds, MALFORMED)
    aside = pc.or_(unknown, malformed)
    has_error = pc.or_(aside, pa.array([_has_member_error(row) for row in decoded.column("group_metadata")]))
    assert decoded.column("error").is_valid().equals(has_error)
    for name in ("key", "value"):
        assert decoded.column(f"raw_{name}").filter(has_error).equals(made.column(name).filter(has_error))
        assert (
            decoded.column(f"raw_{name}").filter(pc.invert(has_error)).null_count
            == len(decoded) - has_error.true_count
        )
    for name in COLUMNS:
        of_column = pa.array([kind.name for kind in RECORD_KINDS.values() if kind.column == name])
        assert decoded.column(name).is_valid().equals(pc.is_in(kinds, of_column))
    return {
        UNKNOWN: unknown.true_count,
        MALFORMED: malformed.true_count,
        "decoded": len(decoded) - aside.true_count,
    }


@pytest.mark.parametrize(
    ("key", "value", "error"),
    [
        (None, b"\0\0", "key: it is null, at byte 0"),
        (b"", None, "key.version: it goes beyond the end, at byte 0"),
        (b"\0", None, "key.version: it goes beyond the end, at byte 0"),
        (b"\x7f\xff\0\1g", b"", "key.version: unknown kind of record, at byte 2"),
        (
            b"\0\x09\0\1g",
            None,
            "key.version: records of the kind ShareGroupPartitionMetadata are not decoded, at byte 2",
        ),
        (
            b"\0\x18\0\1g",
            b"\0\0",
            f"key.version: records of the kind {OTHER_KINDS[24]} are not decoded, at byte 2",
        ),
        (b"\0\x19\0\1g", b"\0\0", "key.version: unknown kind of record, at byte 2"),
        (b"\xff\xff\0\1g", None, "key.version: unknown kind of record, at byte 2"),
        (b"\0\2\xff\xff", None, "key.group_id: a negative length, at byte 4"),
        (b"\0\2\0\1\xff", None, "key.group_id: it is not UTF-8, at byte 5"),
        (b"\0\1\0\1g\0\1t\0\0", None, "key.partition: it goes beyond the end, at byte 8"),
        (b"\0\3\0\1g", b"", "value.version: it goes beyond the end, at byte 0"),
        (
            b"\0\3\0\1g",
            b"\0\1",
            "value.version: unknown; the known versions of consumer_group are 0 to 0, at byte 2",
        ),
        (b"\0\3\0\1g", b"\0\0\0\0\0\7", "value.tags: it goes beyond the end, at byte 6"),
        (
            b"\0\3\0\1g",
            b"\0\0\0\0\0\7\1\0\x09" + bytes(9),
            "value.metadata_hash: its size is not that of the tagged field, at byte 17",
        ),
        (
            b"\0\5\0\1g\0\1m",
            b"\0\0" + b"\xff\xff\xff\xff\xff\x01",
            "value.instance_id: a varint of more than 5 bytes, at byte 2",
        ),
        (
            b"\0\7\0\1g\0\1m",
            b"\0\0\xff\xff\xff\xff\x0f",
            "value.partitions: a count beyond the end, at byte 7",
        ),
        (
            b"\0\x08\0\1g\0\1m",
            b"\0\0\0\0\0\1\0\0\0\0\5\1\1\0",
            "value.state: not one of stable, unrevoked, unreleased, at byte 11",
        ),
    ],
)
def test_the_reason_names_the_field_and_the_place(
    batch: MakeBatch, key: bytes | None, value: bytes | None, error: str
) -> None:
    row = decode_batch(batch([(key, value)])).to_pylist()[0]
    assert row["error"] == error
    assert row["record_kind"] in {MALFORMED, UNKNOWN}
    assert (row["raw_key"], row["raw_value"]) == (key, value)


@pytest.mark.parametrize(
    ("milliseconds", "time"),
    [
        (253_370_764_799_999, datetime(9998, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC)),
        (253_370_764_800_000, None),
        (2**63 // 1000, None),
        (2**63 - 1, None),
        (-1, None),
    ],
)
def test_a_time_that_python_cannot_represent_is_null(
    batch: MakeBatch, milliseconds: int, time: datetime | None
) -> None:
    value = b"\0\0\1" + bytes(8) + milliseconds.to_bytes(8, "big", signed=True) + b"\0"
    row = decode_batch(batch([(b"\0\x10\0\1g\0\1r", value)])).to_pylist()[0]
    assert (row["record_kind"], row["error"]) == ("regular_expression", None)
    assert row["regular_expression"]["time"] == time


def _has_member_error(generation: pa.Scalar) -> bool:
    members = (generation["members"].as_py() if generation.is_valid else None) or ()
    parts = [member[part] for member in members for part in ("subscription", "assignment")]
    return any(part and part["error"] for part in parts)


def test_a_damaged_subscription_leaves_the_rest_of_the_generation(batch: MakeBatch) -> None:
    def string(text: bytes) -> bytes:
        return len(text).to_bytes(2, "big") + text

    def data(content: bytes) -> bytes:
        return len(content).to_bytes(4, "big") + content

    subscription = b"\0\0" + (1).to_bytes(4, "big") + string(b"orders") + b"\xff\xff\xff\xff"
    members = [
        string(member)
        + string(b"c")
        + string(b"/h")
        + bytes(4)
        + data(said)
        + data(b"\0\0" + bytes(4) + b"\xff" * 4)
        for member, said in ((b"whole", subscription), (b"cut", subscription[:9]))
    ]
    head = string(b"consumer") + (5).to_bytes(4, "big") + string(b"range") + string(b"whole")
    value = b"\0\0" + head + (2).to_bytes(4, "big") + b"".join(members)
    row = decode_batch(batch([(b"\0\2\0\1g", value)])).to_pylist()[0]
    assert row["record_kind"] == "group_metadata"
    whole, cut = row["group_metadata"]["members"]
    assert whole["subscription"]["topics"] == ["orders"]
    assert whole["subscription"]["error"] is None
    assert cut["member_id"] == "cut"
    assert cut["subscription"]["error"] == "subscription.topics: it goes beyond the end, at byte 6"
    assert cut["subscription"]["topics"] is None
    assert cut["assignment"]["partitions"] == []
    assert row["error"] == f"subscription of member 'cut': {cut['subscription']['error']}"
    assert (row["raw_key"], row["raw_value"]) == (b"\0\2\0\1g", value)


@pytest.mark.slow
@pytest.mark.timeout(60)
def test_tags_and_lists_of_a_million_do_not_hold_up_the_others(batch: MakeBatch) -> None:
    # A few array operations an element would be minutes; walked one by one, each takes a second.
    million = b"\xc0\x84\x3d"  # as a varint
    tagged = b"\0\0\0\0\0\7" + million + b"\x05\0" * 10**6
    topics = b"\0\0" + b"\xc1\x84\x3d" + b"\1" * 10**6 + bytes(17)
    decoded = decode_batch(batch([(b"\0\3\0\1g", tagged), (b"\0\x10\0\1g\0\1r", topics)]))
    assert decoded.column("error").null_count == 2
    assert len(decoded.column("regular_expression")[1]["topics"]) == 10**6
