"""User data of `sticky` and `cooperative-sticky`: owned partitions in Kafka's bytes, written and read."""

import random
from collections.abc import Callable

import pytest

from groupwright.assignors import (
    Assignment,
    Assignor,
    CooperativeStickyAssignor,
    Group,
    Member,
    PartitionsByTopic,
    RebalanceProtocol,
    StickyAssignor,
    assign,
    decode_previous_assignment,
)
from groupwright.assignors._wire.owned import OWNS_NOTHING, decode_owned
from groupwright.assignors._wire.user_data import Owned, decode_generation, encode_owned

V1 = bytes.fromhex(
    "00000002"  # two topics
    "0001"
    "61"
    "00000002"
    "00000000"
    "00000003"  # a: 0, 3
    "0001"
    "62"
    "00000001"
    "00000001"  # b: 1
    "00000007"  # generation 7
)
V0 = V1[:-4]
OWNED = Owned(PartitionsByTopic({"a": [0, 3], "b": [1]}), 7)

TOPICS = frozenset({"a", "b"})


def read(*data: bytes | None) -> list[Owned]:
    owned = decode_owned(data)
    return list(map(Owned, owned.partitions.split(), owned.generations.tolist()))


def test_sticky_writes_kafkas_version_1() -> None:
    assignor = StickyAssignor()
    assert assignor.user_data(TOPICS) is None, "as Java's, before the first assignment"
    assignor.on_assignment(OWNED.partitions, 7)
    assert assignor.user_data(TOPICS) == V1


def test_sticky_forgets_what_it_had_when_it_gets_something_else() -> None:
    assignor = StickyAssignor()
    assignor.on_assignment(OWNED.partitions, 7)
    assignor.on_assignment(PartitionsByTopic(), 8)
    assert assignor.user_data(TOPICS) == bytes.fromhex("00000000 00000008")


def test_cooperative_sticky_writes_the_generation_alone() -> None:
    assignor = CooperativeStickyAssignor()
    assert assignor.user_data(TOPICS) == b"\xff\xff\xff\xff"
    assignor.on_assignment(OWNED.partitions, 10)
    assert assignor.user_data(TOPICS) == b"\x00\x00\x00\x0a"


def test_members_do_not_share_what_they_remember() -> None:
    first, second = StickyAssignor(), StickyAssignor()
    first.on_assignment(OWNED.partitions, 7)
    assert second.user_data(TOPICS) is None


def test_the_protocols_are_kafkas() -> None:
    assert StickyAssignor().protocols == {RebalanceProtocol.EAGER}
    assert CooperativeStickyAssignor().protocols == {RebalanceProtocol.EAGER, RebalanceProtocol.COOPERATIVE}


@pytest.mark.parametrize(
    ("data", "owned"),
    [
        pytest.param(V1, OWNED, id="version 1"),
        pytest.param(V0, Owned(OWNED.partitions), id="version 0 has no generation"),
        pytest.param(V1 + b"more", OWNED, id="what follows is not looked at"),
        pytest.param(V1[:-1], Owned(OWNED.partitions), id="half a generation is none"),
        pytest.param(None, OWNS_NOTHING, id="none"),
        pytest.param(b"", OWNS_NOTHING, id="no bytes"),
        pytest.param(V0[:-1], OWNS_NOTHING, id="cut off"),
        pytest.param(b"\x7f\xff\xff\xff" + V1[4:], OWNS_NOTHING, id="a count that cannot be"),
        pytest.param(b"\xff\xff\xff\xff", OWNS_NOTHING, id="a negative count"),
        pytest.param(V1.replace(b"a", b"\xff"), OWNS_NOTHING, id="not UTF-8"),
        pytest.param(
            b"\x00\x00\x00\x07", OWNS_NOTHING, id="a generation alone, as cooperative-sticky writes"
        ),
    ],
)
def test_sticky_reads_what_it_can(data: bytes | None, owned: Owned) -> None:
    assert read(data) == [owned]
    assert read(V1, data, V1) == [OWNED, owned, OWNED]


@pytest.mark.parametrize(
    ("data", "generation"), [(b"\x00\x00\x00\x0a", 10), (None, -1), (b"", -1), (b"\x00\x00\x0a", -1)]
)
def test_cooperative_sticky_reads_what_it_can(data: bytes | None, generation: int) -> None:
    assert decode_generation(data) == generation


@pytest.mark.slow
def test_damaged_user_data_says_something_else_or_nothing_and_harms_nobody(
    seeded: Callable[[int], random.Random], damage: Callable[[random.Random, bytes], bytes]
) -> None:
    rng = seeded(1)
    nothing = 0
    for _ in range(500):
        data = damage(rng, encode_owned(OWNED))
        nothing += read(data) == [OWNS_NOTHING]
        group = Group([Member("c1", ["a"], user_data=data), Member("c2", ["a", "b"])], {"a": 4, "b": 2})
        for assignor in (StickyAssignor(), CooperativeStickyAssignor()):
            assert sorted(share.count for share in assign(assignor, group).values()) == [3, 3]
    assert 50 < nothing < 450


def owners(assignor: Assignor, *members: Member) -> Assignment:
    return assign(assignor, Group(members, {"a": 4, "b": 2}))


def test_sticky_believes_the_user_data_and_not_the_subscription() -> None:
    """Its members revoke everything before they join, so what they had is known from nothing else."""
    c1 = Member(
        "c1",
        ["a"],
        owned={"a": [1]},
        generation=9,
        user_data=encode_owned(Owned(PartitionsByTopic({"a": [0]}))),
    )
    c2 = Member(
        "c2",
        ["a"],
        owned={"a": [0]},
        generation=9,
        user_data=encode_owned(Owned(PartitionsByTopic({"a": [1]}))),
    )
    assignment = owners(StickyAssignor(), c1, c2)
    assert 0 in assignment["c1"]["a"]
    assert 1 in assignment["c2"]["a"]


@pytest.mark.parametrize("no_user_data", [None, b""])
def test_sticky_reads_the_subscription_of_a_member_without_user_data(no_user_data: bytes | None) -> None:
    """A group that a program has built moves no more than a real one."""
    had = StickyAssignor()
    had.on_assignment(PartitionsByTopic({"a": [1, 3]}), 7)
    c1 = Member("c1", ["a"], owned={"a": [0, 2]}, generation=7, user_data=no_user_data)
    c2 = Member("c2", ["a"], user_data=had.user_data(TOPICS))
    assert owners(StickyAssignor(), c1, c2) == {"c1": {"a": [0, 2]}, "c2": {"a": [1, 3]}}


def test_the_generation_in_the_subscription_counts_with_its_claims() -> None:
    c1 = Member("c1", ["b"], owned={"b": [0, 1]}, generation=8)
    had = StickyAssignor()
    had.on_assignment(PartitionsByTopic({"b": [0, 1]}), 7)
    c2 = Member("c2", ["b"], user_data=had.user_data(TOPICS))
    newer = Member("c2", ["b"], owned={"b": [0, 1]}, generation=9)
    for newest, group in ((c1, [c1, c2]), (newer, [c1, newer])):
        assignment = assign(StickyAssignor(), Group(group, {"b": 1}))
        assert assignment[newest.id] == {"b": [0]}


def test_user_data_that_cannot_be_decoded_does_not_make_the_subscription_count() -> None:
    """It is the word of a member of a real group, in which the subscription has no part."""
    damaged = Member("c1", ["a"], owned={"a": [3]}, user_data=b"\xff\xff\xff\xff")
    new = Member("c2", ["a"])
    fresh = Member("c1", ["a"])
    assert owners(StickyAssignor(), damaged, new) == owners(StickyAssignor(), fresh, new)


def test_cooperative_sticky_believes_the_subscription() -> None:
    c1 = Member("c1", ["a"], owned={"a": [0]}, user_data=encode_owned(Owned(PartitionsByTopic({"a": [1]}))))
    c2 = Member("c2", ["a"], owned={"a": [1]}, user_data=encode_owned(Owned(PartitionsByTopic({"a": [0]}))))
    assignment = owners(CooperativeStickyAssignor(), c1, c2)
    assert 0 in assignment["c1"]["a"]
    assert 1 in assignment["c2"]["a"]


@pytest.mark.parametrize(
    ("generation", "keeper"), [(9, "c1"), (-1, "c2")], ids=["subscription 9", "no generation there"]
)
def test_the_user_datas_generation_counts_where_the_subscription_has_none(
    generation: int, keeper: str
) -> None:
    """Before version 2 of the subscription (KIP-792) it stood there alone."""
    c1 = Member("c1", ["b"], owned={"b": [0, 1]}, generation=generation, user_data=b"\x00\x00\x00\x07")
    c2 = Member("c2", ["b"], owned={"b": [0, 1]}, generation=-1, user_data=b"\x00\x00\x00\x08")
    assert owners(CooperativeStickyAssignor(), c1, c2)[keeper].count == 1
    assert sum(share.count for share in owners(CooperativeStickyAssignor(), c1, c2).values()) == 1


def test_members_of_old_and_new_subscriptions_keep_what_they_own() -> None:
    had = StickyAssignor()
    had.on_assignment(PartitionsByTopic({"a": [0]}), 1)
    old = Member("c1", ["a"], user_data=had.user_data(TOPICS))
    v0 = Member("c2", ["a"], user_data=encode_owned(Owned(PartitionsByTopic({"a": [1]})))[:-4])
    assignment = owners(StickyAssignor(), old, v0, Member("c3", ["a"]))
    assert 0 in assignment["c1"]["a"]
    assert 1 in assignment["c2"]["a"]


@pytest.mark.parametrize("owned", [{}, {"orders": [0, 2], "payments": [1]}])
def test_the_previous_assignment_is_decoded_from_user_data(owned: dict[str, list[int]]) -> None:
    user_data = encode_owned(Owned(PartitionsByTopic(owned), 3))

    assert decode_previous_assignment(user_data) == owned
    assert decode_previous_assignment(user_data[:-4]) == owned  # version 0, without a generation


@pytest.mark.parametrize("data", [None, b"", b"?", b"\0\0\0\1"])
def test_other_user_data_has_no_previous_assignment(data: bytes | None) -> None:
    assert decode_previous_assignment(data) == {}
