"""User data of `load-aware`: a format that later versions extend, and that breaks no rebalance."""

import math
import random
import struct
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupwright.assignors import (
    Group,
    LoadAwareAssignor,
    Member,
    PartitionsByTopic,
    ProcessingTime,
    Topic,
    assign,
    decode_previous_assignment,
    sends_processing_times,
    sent_processing_times,
)
from groupwright.assignors._wire.load_data import MemberLoadData, decode_load_data, encode_load_data

UNKNOWN = None
USER_DATA = encode_load_data(MemberLoadData(7, 1.0, {"t": {3: 0.25}}))
OWNED = encode_load_data(MemberLoadData(7, 1.0, {"t": {3: 0.25}}, PartitionsByTopic({"t": [0, 3], "u": [1]})))


def processing_times(data: list[bytes | None]) -> list[float | None]:
    """Return the processing times that the leader reads for a topic of four partitions."""
    members = [Member(f"m-{number}", ["t"], user_data=each) for number, each in enumerate(data)]
    times = sent_processing_times(members, {"t": Topic(4)})["t"].tolist()
    return [None if math.isnan(each) else each for each in times]


def test_the_bytes_are_version_generation_and_capacity() -> None:
    assert encode_load_data(MemberLoadData(7, 2.5)) == bytes.fromhex("0001 00000007 4004000000000000")
    assert decode_load_data(bytes.fromhex("0001 00000007 4004000000000000")) == MemberLoadData(7, 2.5)


def test_a_member_sends_its_capacity_and_its_last_generation() -> None:
    assignor = LoadAwareAssignor(capacity=4)
    assert decode_load_data(assignor.user_data(frozenset())) == MemberLoadData(-1, 4.0)
    assignor.on_assignment(PartitionsByTopic(), 12)
    assert decode_load_data(assignor.user_data(frozenset())) == MemberLoadData(12, 4.0)


def test_processing_times_follow_in_version_2() -> None:
    data = encode_load_data(MemberLoadData(7, 2.5, {"t": {3: 0.25}}))
    expected = "0002 00000007 4004000000000000  00000001  0001 74  00000006  00000003 5bd0"
    assert data == bytes.fromhex(expected)
    assert decode_load_data(data) == MemberLoadData(7, 2.5)


def test_the_previous_assignment_follows_in_version_3() -> None:
    previous = PartitionsByTopic({"t": [0, 3]})
    kafkas = "00000001 0001 74 00000002 00000000 00000003 00000007"
    without_times = encode_load_data(MemberLoadData(7, 2.5, previous_assignment=previous))
    assert without_times == bytes.fromhex(f"0003 00000007 4004000000000000  00000000  {kafkas}")
    data = encode_load_data(MemberLoadData(7, 2.5, {"t": {3: 0.25}}, previous))
    times = "00000001 0001 74 00000006 00000003 5bd0"
    assert data == bytes.fromhex(f"0003 00000007 4004000000000000  {times}  {kafkas}")
    for each in (data, without_times, data + b"a later field"):
        assert decode_load_data(each) == MemberLoadData(7, 2.5)
        assert decode_previous_assignment(each, "load-aware") == previous
    assert processing_times([data]) == [None, None, None, 0.625]
    assert decode_previous_assignment(USER_DATA, "load-aware") == {}


def test_a_member_tells_the_processing_times_of_what_it_was_assigned_last() -> None:
    assignor = LoadAwareAssignor(weights=ProcessingTime(), capacity=2)
    assignor.processing_times = {"t": {0: 0.25, 1: 0.5, 2: 1.0}, "u": {0: 4.0}}
    assignor.on_assignment(PartitionsByTopic({"t": [1, 2, 3]}), 12)
    assert processing_times([assignor.user_data(frozenset())]) == [UNKNOWN, 1.0, 2.0, UNKNOWN]


@pytest.mark.parametrize("seconds", [0.0, 1e-7, 0.000_123, 0.02, 65.0])
def test_processing_times_are_exact_to_a_thousandth(seconds: float) -> None:
    data = encode_load_data(MemberLoadData(processing_times={"t": {0: seconds}}))
    assert processing_times([data])[0] == pytest.approx(seconds, rel=1e-3, abs=1e-10)


def test_processing_times_of_more_than_a_minute_count_as_65_s() -> None:
    data = encode_load_data(MemberLoadData(processing_times={"t": {0: 1e9}}))
    assert processing_times([data])[0] == 65.504


def test_of_two_members_that_tell_of_one_partition_the_average_counts() -> None:
    one, other = (encode_load_data(MemberLoadData(processing_times={"t": {0: s}})) for s in (0.25, 0.75))
    assert processing_times([one, None, other])[0] == 0.5


LIES = {
    "cut off": USER_DATA[:-1],
    "without the array": USER_DATA[:14],
    "a length beyond the end": USER_DATA[:21] + (2**31 - 1).to_bytes(4, "big") + USER_DATA[25:],
    "not a number": USER_DATA[:-2] + struct.pack(">e", math.nan),
    "infinite": USER_DATA[:-2] + struct.pack(">e", math.inf),
    "negative": USER_DATA[:-2] + struct.pack(">e", -1.0),
    "a partition that is not there": USER_DATA[:-6] + struct.pack(">i", 4) + USER_DATA[-2:],
    "a negative partition": USER_DATA[:-6] + struct.pack(">i", -1) + USER_DATA[-2:],
    "another topic": USER_DATA.replace(b"t", b"v"),
    "version 1": b"\0\1" + USER_DATA[2:],
}


@pytest.mark.parametrize("data", LIES.values(), ids=LIES)
def test_what_is_wrong_in_processing_times_is_unknown(data: bytes) -> None:
    assert processing_times([data]) == [UNKNOWN] * 4
    assert processing_times([USER_DATA, data])[3] == 0.25


def test_a_member_that_measures_nothing_tells_nothing() -> None:
    assert sends_processing_times(Member("m", ["t"], user_data=USER_DATA))
    assert not sends_processing_times(Member("m", ["t"], user_data=USER_DATA[:-1]))
    assert not sends_processing_times(Member("m", ["t"], user_data=encode_load_data(MemberLoadData())))
    assert not sends_processing_times(Member("m", ["t"]))


def test_what_is_before_the_end_of_processing_times_counts() -> None:
    assert processing_times([USER_DATA[:14] + (2**31 - 1).to_bytes(4, "big") + USER_DATA[18:]])[3] == 0.25


def test_fields_of_a_later_version_are_ignored() -> None:
    later = (3).to_bytes(2, "big") + encode_load_data(MemberLoadData(7, 2.5))[2:] + b"measured weights"
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


@settings(deadline=None, max_examples=50)
@given(st.sampled_from([b"", b"\0\3" + USER_DATA[2:], OWNED[:-20]]), st.binary(max_size=40))
def test_no_bytes_break_a_rebalance(start: bytes, data: bytes) -> None:
    assert all(
        each is None or each >= 0 for each in processing_times([data, b"\0\2" + data, USER_DATA[:14] + data])
    )
    sent = decode_load_data(data)
    assert 0.001 <= sent.capacity <= 1000
    assert sent.generation >= -1
    check_groups_with_a_liar(start + data)


def test_damaged_data_never_breaks_a_rebalance(
    seeded: Callable[[int], random.Random], damage: Callable[[random.Random, bytes], bytes]
) -> None:
    rng = seeded(3)
    for _ in range(60):
        data = damage(rng, OWNED)
        assert 0.001 <= decode_load_data(data).capacity <= 1000
        check_groups_with_a_liar(data)


def check_groups_with_a_liar(data: bytes) -> None:
    """Check that an eager group is assigned completely, and that a cooperative one shares no partition."""
    liar = Member("liar", ["t"], user_data=data)
    previous = encode_load_data(MemberLoadData(9, previous_assignment=PartitionsByTopic({"t": [0, 3]})))
    topics = {"t": Topic(4, weights=[1, 2, 3, 4])}
    eager = Member("a", ["t"], user_data=previous)
    assert assign(LoadAwareAssignor(), Group([liar, eager], topics)).count == 4
    owner = Member("a", ["t"], owned={"t": [0, 3]}, generation=9)
    assert assign(LoadAwareAssignor(), Group([liar, owner], topics), cooperative=True).count >= 2


def test_the_generation_of_old_subscriptions_comes_from_the_user_data() -> None:
    """Subscriptions before version 2 have owned partitions without a generation."""

    def member(id_: str, generation: int) -> Member:
        sent = encode_load_data(MemberLoadData(generation))
        return Member(id_, ["t"], owned={"t": [0]}, user_data=sent)

    group = Group([member("old", 4), member("new", 5)], {"t": Topic(1, weights=[1])})
    assert assign(LoadAwareAssignor(), group) == {"old": {}, "new": {"t": [0]}}
