"""Decoding of `__consumer_offsets` records written by brokers 4.3.1 and, for the older form, 3.9."""

from integration_tests.harness import offsets_topic
from integration_tests.soak.stored import (
    StoredCommit,
    StoredGeneration,
    StoredRecord,
    StoredRemoval,
    understand,
)

COMMIT_KEY = b"\x00\x01\x00\x01g\x00\x01t\x00\x00\x00\x00"
GROUP_KEY = b"\x00\x02\x00\x01g"


def decode(key: bytes, value: bytes | None) -> StoredRecord | None:
    record = offsets_topic.decode(key, value, 0)
    return None if record is None else understand(record)


def test_a_commit_with_the_topics_id() -> None:
    value = (
        b"\x00\x04\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff\x04who\x00\x00\x01\xa1\xfcy\x12\xf1\x01\x00\x10"
        b">=\x92\x07\xa6\xb6Ex\x93|\x7f!\xe3\xa2@\xc3"
    )

    assert decode(COMMIT_KEY, value) == StoredCommit("g", ("t", 0), 1, "who")


def test_a_commit_without_it() -> None:
    value = (
        b"\x00\x03\x00\x00\x00\x00\x00\x00\x00\x07\xff\xff\xff\xff\x00\x03who\x00\x00\x01\xa1\xfcy\x12\xf1"
    )

    assert decode(COMMIT_KEY, value) == StoredCommit("g", ("t", 0), 7, "who")


def test_a_generation_tells_who_owns_what() -> None:
    value = (
        b"\x00\x03\x00\x08consumer\x00\x00\x00\x01\x00\x06sticky\x00\x04m1-d\x00\x00\x01\xa1\xfcy\x0c\x92"
        b"\x00\x00\x00\x01\x00\x04m1-d\xff\xff\x00\x02m1\x00\n/127.0.0.1\x00\x00\x17p\x00\x00\x0f\xa0"
        b"\x00\x00\x00\x00"
        b"\x00\x00\x00\x19\x00\x03\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00\x01\xff\xff\xff\xff"
    )

    assert decode(GROUP_KEY, value) == StoredGeneration("g", 1, "sticky", {("t", 0): "m1", ("t", 1): "m1"})


def test_an_empty_group_owns_nothing() -> None:
    header = b"\x00\x03\x00\x08consumer\x00\x00\x00\x02\xff\xff\xff\xff"
    value = header + b"\x00\x00\x01\xa1\xfcy\x13\x0c\x00\x00\x00\x00"

    assert decode(GROUP_KEY, value) == StoredGeneration("g", 2, None, {})


def test_only_the_tombstone_of_an_offset_is_understood() -> None:
    assert decode(COMMIT_KEY, None) == StoredRemoval("g", ("t", 0))
    assert decode(GROUP_KEY, None) is None
    assert decode(b"\x00\x03\x00\x01g", b"") is None
