"""ConsumerProtocol to the byte, and what becomes of bytes that do not follow it."""

import pickle
import random
import tracemalloc
from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from groupwright.assignors import (
    Assignment,
    InvalidInputError,
    MalformedBytesError,
    MemberAssignment,
    PartitionsByTopic,
    Subscription,
    decode_assignment,
    decode_subscription,
    decode_subscriptions,
    encode_assignment,
    encode_assignments,
    encode_subscription,
)

FULL = Subscription(
    topics=("orders", "audit"),
    user_data=b"\x01\x02",
    owned=PartitionsByTopic({"orders": [5, 1], "audit": [0]}),
    generation=7,
    rack="r1",
)
# fmt: off
TOPICS = bytes.fromhex("00000002" "0005") + b"audit" + bytes.fromhex("0006") + b"orders"
USER_DATA = bytes.fromhex("00000002" "0102")
OWNED = (
    bytes.fromhex("00000002")
    + bytes.fromhex("0005") + b"audit" + bytes.fromhex("00000001" "00000000")
    + bytes.fromhex("0006") + b"orders" + bytes.fromhex("00000002" "00000001" "00000005")
)
GENERATION = bytes.fromhex("00000007")
RACK = bytes.fromhex("0002") + b"r1"
# fmt: on
WRITTEN = {
    0: b"\x00\x00" + TOPICS + USER_DATA,
    1: b"\x00\x01" + TOPICS + USER_DATA + OWNED,
    2: b"\x00\x02" + TOPICS + USER_DATA + OWNED + GENERATION,
    3: b"\x00\x03" + TOPICS + USER_DATA + OWNED + GENERATION + RACK,
}
READ = {
    0: Subscription(("audit", "orders"), b"\x01\x02"),
    1: Subscription(("audit", "orders"), b"\x01\x02", FULL.owned),
    2: Subscription(("audit", "orders"), b"\x01\x02", FULL.owned, 7),
    3: Subscription(("audit", "orders"), b"\x01\x02", FULL.owned, 7, "r1"),
}


@pytest.mark.parametrize("version", range(4))
def test_a_subscription_is_written_and_read_to_the_byte(version: int) -> None:
    assert encode_subscription(FULL, version) == WRITTEN[version]
    assert decode_subscription(WRITTEN[version]) == READ[version]


@pytest.mark.parametrize("version", range(4))
def test_an_assignment_is_written_and_read_to_the_byte(version: int) -> None:
    written = version.to_bytes(2, "big") + OWNED + USER_DATA
    assert encode_assignment({"orders": [5, 1], "audit": [0]}, b"\x01\x02", version) == written
    assert decode_assignment(written) == MemberAssignment(FULL.owned, b"\x01\x02")


def test_a_version_that_does_not_exist_is_not_written() -> None:
    for version in (-1, 4):
        with pytest.raises(InvalidInputError, match=f"ConsumerProtocol has versions 0 to 3, not {version}"):
            encode_subscription(FULL, version)
        with pytest.raises(InvalidInputError, match="ConsumerProtocol has versions 0 to 3"):
            encode_assignments(Assignment({}), version)


def test_a_newer_version_is_read_as_the_newest_known_one() -> None:
    newer = b"\x00\x09" + WRITTEN[3][2:] + b"fields to come"
    assert decode_subscription(newer) == READ[3]
    assert decode_assignment(b"\x00\x09" + OWNED + USER_DATA + b"\x00\x01") == MemberAssignment(
        FULL.owned, b"\x01\x02"
    )


@pytest.mark.parametrize("version", range(4))
def test_bytes_behind_the_last_field_are_not_looked_at_as_in_java(version: int) -> None:
    assert decode_subscription(WRITTEN[version] + b"\xff" * 9) == READ[version]


def test_no_user_data_and_empty_user_data_are_told_apart() -> None:
    """Java members send null, librdkafka's send no bytes."""
    for user_data in (None, b""):
        assert decode_subscription(encode_subscription(Subscription((), user_data))).user_data == user_data
        assert decode_assignment(encode_assignment({}, user_data)).user_data == user_data


def test_a_rack_of_no_characters_is_no_rack() -> None:
    assert decode_subscription(WRITTEN[2][:1] + b"\x03" + WRITTEN[2][2:] + b"\x00\x00").rack is None


def test_every_negative_generation_is_none() -> None:
    assert decode_subscription(WRITTEN[2][:-4] + b"\x80\x00\x00\x00").generation == -1


def test_claims_may_come_in_any_order_and_more_than_once() -> None:
    data = (
        bytes.fromhex("0001" "00000000" "ffffffff" "00000003")
        + bytes.fromhex("0001") + b"b" + bytes.fromhex("00000003" "00000002" "ffffffff" "00000002")
        + bytes.fromhex("0001") + b"a" + bytes.fromhex("00000000")
        + bytes.fromhex("0001") + b"b" + bytes.fromhex("00000001" "00000000")
    )  # fmt: skip
    assert decode_subscription(data).owned == {"b": [-1, 0, 2]}


def test_partitions_are_in_order_even_at_the_ends_of_32_bits() -> None:
    """The difference of the two does not fit in 32 bits."""
    data = bytes.fromhex("0000000000010001") + b"t" + bytes.fromhex("000000027fffffff80000000ffffffff")
    assert decode_assignment(data).partitions["t"].tolist() == [-(2**31), 2**31 - 1]


@pytest.mark.parametrize(
    ("subscription", "message"),
    [
        (Subscription(("t" * 32_768,)), "is 32768 bytes long; 32767 can be written"),
        (Subscription((), owned=PartitionsByTopic({"t" * 32_768: [0]})), "is 32768 bytes long"),
        (Subscription((), rack="é" * 16_384), "is 32768 bytes long"),
        (Subscription(("\ud800",)), "cannot be written in UTF-8"),
        (Subscription((), generation=2**31), "generation must have 32 bits, not be 2147483648"),
    ],
)
def test_what_does_not_fit_is_not_written(subscription: Subscription, message: str) -> None:
    with pytest.raises(InvalidInputError) as caught:
        encode_subscription(subscription)
    assert message in str(caught.value)


def test_the_longest_name_that_fits_is_written_and_read() -> None:
    name = "t" * 32_767
    assert decode_assignment(encode_assignment({name: [3], "u": [1]})).partitions == {name: [3], "u": [1]}


MALFORMED = {
    "no bytes": (b"", 0, "2 bytes of version", "0 bytes left"),
    "negative version": (b"\xff\xff", 0, "a version of 0 or more", "-1"),
    "null topics": (
        b"\x00\x00\xff\xff\xff\xff",
        2,
        "a count in topics",
        "-1 with 0 bytes left",
    ),
    "more topics than bytes": (
        b"\x00\x00\x7f\xff\xff\xff\x00\x01t",
        2,
        "a count in topics",
        "2147483647 with 3 bytes left",
    ),
    "null topic": (
        b"\x00\x00\x00\x00\x00\x01\xff\xff",
        6,
        "a length in topics",
        "-1 with 0 bytes left",
    ),
    "topic beyond the end": (
        b"\x00\x00\x00\x00\x00\x01\x00\x05t",
        6,
        "a length in topics",
        "5 with 1 bytes left",
    ),
    "topic not in UTF-8": (b"\x00\x00\x00\x00\x00\x01\x00\x02t\xff", 8, "UTF-8 in topics", r"b't\xff'"),
    "negative user data": (
        b"\x00\x00\x00\x00\x00\x00\xff\xff\xff\xfe",
        6,
        "a length in user data",
        "-2 with 0 bytes left",
    ),
    "partitions beyond the end": (
        b"\x00\x01\x00\x00\x00\x00\xff\xff\xff\xff\x00\x00\x00\x01\x00\x01t\x00\x00\x00\x02\x00\x00\x00\x00",
        17,
        "a length in owned partitions",
        "2 with 4 bytes left",
    ),
    "negative rack": (
        WRITTEN[2][:1] + b"\x03" + WRITTEN[2][2:] + b"\xff\xfe",
        len(WRITTEN[2]),
        "a length in rack",
        "-2 with",
    ),
}


@pytest.mark.parametrize(("data", "offset", "expected", "found"), MALFORMED.values(), ids=MALFORMED)
def test_what_is_wrong_with_bytes_is_said_with_its_place(
    data: bytes, offset: int, expected: str, found: str
) -> None:
    with pytest.raises(MalformedBytesError) as caught:
        decode_subscription(data)
    error = caught.value
    assert (error.what, error.offset, error.expected) == ("subscription", offset, expected)
    assert error.found.startswith(found)
    assert str(error) == f"malformed subscription: at byte {offset}, expected {expected}, found {error.found}"
    assert str(pickle.loads(pickle.dumps(error))) == str(error)  # noqa: S301 - its own bytes


@pytest.mark.parametrize("version", range(4))
def test_bytes_cut_off_anywhere_are_malformed(version: int) -> None:
    for end in range(len(WRITTEN[version])):
        with pytest.raises(MalformedBytesError):
            decode_subscription(WRITTEN[version][:end])
    assignment = encode_assignment(FULL.owned, b"\x01", version)
    for end in range(len(assignment)):
        with pytest.raises(MalformedBytesError, match="malformed assignment"):
            decode_assignment(assignment[:end])


Read = TypeVar("Read")


def outcome(decode: Callable[[bytes], Read], data: bytes) -> Read | MalformedBytesError:
    try:
        return decode(data)
    except MalformedBytesError as caught:
        error = caught.with_traceback(None)  # which would keep all that was read so far
    assert 0 <= error.offset <= len(data)
    return error


def comparable(decoded: Iterable[Subscription | MalformedBytesError]) -> list[object]:
    """Return errors as their arguments, since errors are equal only to themselves."""
    return [each.args if isinstance(each, MalformedBytesError) else each for each in decoded]


LARGER = Subscription(
    topics=tuple(f"topic-{number}" for number in range(9)),
    owned=PartitionsByTopic({f"topic-{number}": range(number) for number in range(9)} | {"é" * 140: [3]}),
    generation=3,
)


INPUTS = [*WRITTEN.values(), encode_subscription(LARGER)]


@pytest.mark.slow
def test_100_000_damaged_inputs_are_malformed_or_read_and_never_anything_else(
    seeded: Callable[[int], random.Random], damage: Callable[[random.Random, bytes], bytes]
) -> None:
    """Those of a group are read together, which must come to the same as reading each by itself."""
    rng = seeded(18)
    read = refused = 0
    for _ in range(200):
        group = [damage(rng, rng.choice(INPUTS)) for _ in range(480)]
        outcomes = [outcome(decode_subscription, data) for data in group]
        assert comparable(decode_subscriptions(group)) == comparable(outcomes)
        bad = sum(isinstance(one, MalformedBytesError) for one in outcomes)
        read += len(group) - bad
        refused += bad
        for _ in range(20):
            outcome(decode_assignment, damage(rng, b"\x00\x03" + OWNED + USER_DATA))
    assert read > 5_000
    assert refused > 50_000


@pytest.mark.slow
def test_a_length_that_lies_is_not_allocated(
    seeded: Callable[[int], random.Random], damage: Callable[[random.Random, bytes], bytes]
) -> None:
    rng = seeded(19)
    tracemalloc.start()
    try:
        for _ in range(600):
            data = damage(rng, rng.choice(INPUTS))
            outcome(decode_subscription, data)
            outcome(decode_assignment, data)
            decode_subscriptions([data])
        _, most_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most_bytes < 2**21


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_are_malformed_or_read(data: bytes) -> None:
    outcome(decode_assignment, data)
    alone = outcome(decode_subscription, data)
    assert comparable(decode_subscriptions([data])) == comparable([alone])


TOPIC_PARTITIONS = st.dictionaries(
    st.text(max_size=9), st.sets(st.integers(-(2**31), 2**31 - 1), max_size=5), max_size=5
)


@settings(deadline=None)
@given(
    st.lists(st.text(max_size=9), unique=True),
    st.none() | st.binary(max_size=9),
    TOPIC_PARTITIONS,
    st.integers(-1, 2**31 - 1),
    st.none() | st.text(min_size=1, max_size=9),
)
def test_what_is_written_is_read_again(
    topics: list[str],
    user_data: bytes | None,
    owned: Mapping[str, set[int]],
    generation: int,
    rack: str | None,
) -> None:
    written = Subscription(tuple(topics), user_data, PartitionsByTopic(owned), generation, rack)
    read = decode_subscription(encode_subscription(written))
    assert set(read.topics) == set(topics)
    assert read == Subscription(read.topics, user_data, PartitionsByTopic(owned), generation, rack)
    assert decode_assignment(encode_assignment(owned, user_data)) == MemberAssignment(
        written.owned, user_data
    )


def test_writing_all_assignments_at_once_makes_no_difference(seeded: Callable[[int], random.Random]) -> None:
    """Names of all lengths around the words in which they are copied."""
    rng = seeded(19)
    topics = [chr(ord("a") + length) * length for length in range(1, 26)]
    members = [f"member-{number}" for number in range(7)]
    for _ in range(200):
        owners = {
            topic: [rng.randint(-1, len(members) - 1) for _ in range(rng.randint(0, 9))]
            for topic in rng.sample(topics, rng.randint(0, 9))
        }
        assignment = Assignment.from_owners(members, owners)
        version = rng.randrange(4)
        assert encode_assignments(assignment, version) == {
            member: encode_assignment(share, None, version) for member, share in assignment.items()
        }
        for member, data in encode_assignments(assignment, version).items():
            assert decode_assignment(data) == MemberAssignment(assignment[member])


def test_decoding_a_group_shares_what_its_members_have_in_common() -> None:
    first, second = decode_subscriptions(
        encode_subscription(Subscription(("a", "b"), user_data)) for user_data in (b"1", b"2")
    )
    assert isinstance(first, Subscription)
    assert isinstance(second, Subscription)
    assert first.topics is second.topics
    assert (first.user_data, second.user_data) == (b"1", b"2")


def test_decoding_a_group_does_not_confuse_what_its_members_have_in_part_in_common() -> None:
    """Each differs from all the others somewhere, and there are more than are kept in mind."""
    lists = [
        tuple(f"topic-{number:02}" for number in range(start, end))
        for start in range(40)
        for end in range(start, min(start + 4, 40))
    ]
    metadata = [encode_subscription(Subscription(topics)) for topics in lists]
    assert decode_subscriptions(metadata) == [Subscription(topics) for topics in lists]
