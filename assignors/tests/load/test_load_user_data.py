"""User data of `load-aware`: a format that later versions extend, and that breaks no rebalance."""

import math
import random
import struct
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupwright.assignors import Group, LoadAwareAssignor, Member, PartitionsByTopic, Topic, assign
from groupwright.assignors._wire.load_data import MemberLoadData, decode_load_data, encode_load_data


def test_the_bytes_are_version_generation_and_capacity() -> None:
    assert encode_load_data(MemberLoadData(7, 2.5)) == bytes.fromhex("0001 00000007 4004000000000000")
    assert decode_load_data(bytes.fromhex("0001 00000007 4004000000000000")) == MemberLoadData(7, 2.5)


def test_a_member_sends_its_capacity_and_its_last_generation() -> None:
    assignor = LoadAwareAssignor(capacity=4)
    assert decode_load_data(assignor.user_data(frozenset())) == MemberLoadData(-1, 4.0)
    assignor.on_assignment(PartitionsByTopic(), 12)
    assert decode_load_data(assignor.user_data(frozenset())) == MemberLoadData(12, 4.0)


def test_fields_of_a_later_version_are_ignored() -> None:
    later = (2).to_bytes(2, "big") + encode_load_data(MemberLoadData(7, 2.5))[2:] + b"measured weights"
    assert decode_load_data(later) == MemberLoadData(7, 2.5)


@pytest.mark.parametrize("version", [0, -1, -32768])
def test_a_version_that_never_was_says_nothing(version: int) -> None:
    data = version.to_bytes(2, "big", signed=True) + encode_load_data(MemberLoadData(7, 2.5))[2:]
    assert decode_load_data(data) == MemberLoadData()


@pytest.mark.parametrize("capacity", [math.nan, math.inf, -math.inf, -1.0, 0.0, 1e-300, 1e300, 1000.1])
def test_a_capacity_out_of_range_counts_as_one(capacity: float) -> None:
    data = encode_load_data(MemberLoadData(7, 2.5))[:6] + struct.pack(">d", capacity)
    assert decode_load_data(data) == MemberLoadData(7, 1.0)


@pytest.mark.parametrize("data", [None, b"", b"\0", b"\0\1", b"\0\1\0\0\0"])
def test_data_that_ends_early_has_defaults(data: bytes | None) -> None:
    assert decode_load_data(data) == MemberLoadData()


def test_data_that_ends_after_the_generation_has_it() -> None:
    assert decode_load_data(encode_load_data(MemberLoadData(7, 2.5))[:9]) == MemberLoadData(7, 1.0)


@given(st.binary(max_size=40))
def test_no_bytes_break_a_rebalance(data: bytes) -> None:
    sent = decode_load_data(data)
    assert 0.001 <= sent.capacity <= 1000
    assert sent.generation >= -1
    group = Group(
        [Member("liar", ["t"], user_data=data), Member("b", ["t"])], {"t": Topic(3, weights=[1, 2, 3])}
    )
    assert assign(LoadAwareAssignor(), group).count == 3


def test_damaged_data_never_breaks_a_rebalance(
    seeded: Callable[[int], random.Random], damage: Callable[[random.Random, bytes], bytes]
) -> None:
    rng = seeded(3)
    intact = encode_load_data(MemberLoadData(7, 2.5))
    for _ in range(300):
        sent = decode_load_data(damage(rng, intact))
        assert 0.001 <= sent.capacity <= 1000


def test_the_generation_of_old_subscriptions_comes_from_the_user_data() -> None:
    """Subscriptions before version 2 have owned partitions without a generation."""

    def member(id_: str, generation: int) -> Member:
        sent = encode_load_data(MemberLoadData(generation))
        return Member(id_, ["t"], owned={"t": [0]}, user_data=sent)

    group = Group([member("old", 4), member("new", 5)], {"t": Topic(1, weights=[1])})
    assert assign(LoadAwareAssignor(), group) == {"old": {}, "new": {"t": [0]}}
