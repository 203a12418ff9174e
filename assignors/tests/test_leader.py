"""The leader's step, with assignors that do what they should and some that do not."""

import logging
import random
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import zip_longest

import numpy as np
import pytest

from groupwright.assignors import (
    Assignment,
    Assignor,
    AssignorError,
    CooperativeStickyAssignor,
    Group,
    InvalidInputError,
    JoinedMember,
    LoadAwareAssignor,
    Member,
    PartitionsByTopic,
    Plan,
    RangeAssignor,
    Subscription,
    Topic,
    assign,
    builtin_assignors,
    check_assignment,
    decode_assignment,
    decode_members,
    encode_subscription,
    perform_assignment,
    subscribed_topics,
    unassigned,
)
from groupwright.assignors._wire.user_data import Owned, encode_owned
from groupwright.testing.assignors import random_groups


def joining(id_: str, *topics: str, owned: dict[str, list[int]] | None = None) -> JoinedMember:
    return JoinedMember(
        id_, None, encode_subscription(Subscription(topics, owned=PartitionsByTopic(owned or {})))
    )


class Planned(Assignor):
    """Returns what it was given."""

    name = "planned"

    def __init__(self, plan: Assignment | Plan) -> None:
        self.plan = plan

    def assign(self, group: Group) -> Assignment | Plan:  # noqa: ARG002 - that is the point
        return self.plan


def test_a_leader_answers_every_member_in_bytes() -> None:
    joined = [joining("c-1", "orders"), joining("c-2", "orders"), joining("c-3", "orders"), joining("c-4")]
    answers = perform_assignment(RangeAssignor(), joined, {"orders": 2})
    assert {id_: decode_assignment(data).partitions for id_, data in answers.items()} == {
        "c-1": {"orders": [0]},
        "c-2": {"orders": [1]},
        "c-3": {},
        "c-4": {},
    }
    assert answers["c-4"] == bytes.fromhex("000300000000ffffffff")


def test_an_assignor_sees_all_that_members_said() -> None:
    seen = []

    class Curious(Assignor):
        name = "curious"

        def assign(self, group: Group) -> Plan:
            seen.append(group)
            return {}

    said = Subscription(("t", "u"), b"data", PartitionsByTopic({"t": [1]}), 4, "rack-1")
    perform_assignment(Curious(), [JoinedMember("c-1", "instance-1", encode_subscription(said))], {"t": 2})
    expected = Member(
        "c-1",
        ("t", "u"),
        owned={"t": [1]},
        generation=4,
        instance_id="instance-1",
        rack="rack-1",
        user_data=b"data",
    )
    assert seen == [Group([expected], {"t": 2})]


def test_a_plain_dictionary_is_answer_enough_and_may_leave_members_out() -> None:
    answers = perform_assignment(
        Planned({"c-1": {"t": [1, 0]}}), [joining("c-1", "t"), joining("c-2", "t")], {"t": 2}
    )
    assert decode_assignment(answers["c-1"]).partitions == {"t": [0, 1]}
    assert decode_assignment(answers["c-2"]).partitions == {}


def test_an_assignment_that_leaves_members_out_is_completed() -> None:
    answers = perform_assignment(
        Planned(Assignment({"c-1": {"t": [0]}})), [joining("c-1", "t"), joining("c-2", "t")], {"t": 1}
    )
    assert list(answers) == ["c-1", "c-2"]


def test_the_topics_to_know_are_those_that_anybody_subscribes_to() -> None:
    joined = [joining("c-1", "a", "b"), joining("c-2", "b", "c"), joining("c-3")]
    assert subscribed_topics(decode_members(joined).members) == {"a", "b", "c"}
    assert subscribed_topics([]) == frozenset()


UNDECODABLE = {
    "no bytes": (b"", "at byte 0, expected 2 bytes of version, found 0 bytes left"),
    "a negative version": (b"\xff\xff" + bytes(8), "at byte 0, expected a version of 0 or more, found -1"),
    "no count of topics": (b"\0\1\0", "at byte 2, expected 4 bytes of topics, found 1 bytes left"),
    "a topic that is not UTF-8": (
        b"\0\0\0\0\0\1\0\2\xff\xfe" + b"\xff" * 4,
        "at byte 8, expected UTF-8 in topics",
    ),
    "no generation": (
        bytes.fromhex("0002 00000000 ffffffff 00000000"),
        "at byte 14, expected 4 bytes of generation",
    ),
    "2**31 - 1 owned topics": (
        bytes.fromhex("0001 00000000 ffffffff 7fffffff"),
        "at byte 10, expected a count in owned partitions, found 2147483647 with 0 bytes left",
    ),
}


@pytest.mark.parametrize("assignor", builtin_assignors(), ids=lambda each: each.name)
def test_members_that_cannot_be_decoded_are_assigned_nothing_and_stop_nobody(assignor: Assignor) -> None:
    good = [joining("c-1", "t", owned={"t": [0]}), joining("c-2", "t", owned={"t": [1, 2, 3]})]
    bad = [JoinedMember(name, None, data) for name, (data, _) in UNDECODABLE.items()]
    joined = [member for pair in zip_longest(bad, good) for member in pair if member is not None]
    answers = perform_assignment(assignor, joined, {"t": 4})

    assert answers.keys() == {member.id for member in joined}
    assert {answers[member.id] for member in bad} == {bytes.fromhex("000300000000ffffffff")}, "not left out"
    assert {id_: answers[id_] for id_ in ("c-1", "c-2")} == perform_assignment(assignor, good, {"t": 4})


def test_a_member_that_cannot_be_decoded_has_a_reason() -> None:
    bad = [JoinedMember(name, "instance", data) for name, (data, _) in UNDECODABLE.items()]
    members, undecodable = decode_members([bad[0], joining("c-1", "t"), *bad[1:]])

    assert members == [Member("c-1", ["t"])]
    assert undecodable.keys() == UNDECODABLE.keys()
    for name, reason in undecodable.items():
        assert reason.startswith(f"malformed subscription: {UNDECODABLE[name][1]}"), name


def test_a_long_name_that_is_not_utf_8_is_abbreviated_in_the_reason() -> None:
    data = b"\0\0\0\0\0\1\x7f\xff" + b"\xff" * (2**15 - 1) + b"\xff" * 4
    assert len(decode_members([JoinedMember("c-1", None, data)]).undecodable["c-1"]) < 200


def test_a_newer_version_is_decoded_as_far_as_it_is_known() -> None:
    said = Subscription(("t",), b"data", PartitionsByTopic({"t": [1]}), 4, "rack-1")
    newer = [
        JoinedMember(
            f"c-{version}", None, version.to_bytes(2, "big") + encode_subscription(said)[2:] + b"new"
        )
        for version in (3, 4, 99, 2**15 - 1)
    ]
    expected = [
        Member(each.id, ("t",), owned={"t": [1]}, generation=4, rack="rack-1", user_data=b"data")
        for each in newer
    ]
    assert decode_members(newer) == (expected, {})


@pytest.mark.parametrize("groups", [20, pytest.param(250, marks=pytest.mark.slow)])
def test_hostile_members_stop_no_group(
    seeded: Callable[[int], random.Random], damage: Callable[[random.Random, bytes], bytes], groups: int
) -> None:
    """Forty at a time beside three good ones. Those that can be decoded may claim and send anything.

    Every member has an answer, those that cannot be decoded an empty one, and no partition has two owners.
    """
    rng = seeded(23)
    data = (b"\0\3\0\0\0\7", encode_owned(Owned(PartitionsByTopic({"t": range(6)}), 5)), None)
    whole = [_hostile_subscription(rng, rng.choice(data)) for _ in range(100)]
    assignors = builtin_assignors()
    undecodable = 0
    for number in range(groups):
        good = [joining(f"good-{index}", "t", owned={"t": [index]}) for index in range(3)]
        hostile = [JoinedMember(f"m-{index}", None, damage(rng, rng.choice(whole))) for index in range(40)]
        assignor = assignors[number % len(assignors)]
        decoded = decode_members([*good, *hostile], assignor)
        undecodable += len(decoded.undecodable)
        answers = perform_assignment(assignor, [*hostile, *good], {"t": 6})
        assert answers.keys() == {member.id for member in [*good, *hostile]}
        for id_ in decoded.undecodable:
            assert decode_assignment(answers[id_]).partitions == {}
        owners = Counter(
            partition
            for answer in answers.values()
            for partition in decode_assignment(answer).partitions.get("t", np.empty(0)).tolist()
        )
        assert set(owners) <= set(range(6))
        assert max(owners.values(), default=1) == 1
    assert undecodable > 20 * groups


def _hostile_subscription(rng: random.Random, user_data: bytes | None) -> bytes:
    """Return a subscription with odd claims, of any version from -1 to 99."""
    topics = rng.choices(("t", "u", "", ".", "\N{SNOWMAN}" * 90, "t"), k=rng.randint(0, 4))
    claims = {topic: [rng.choice((-1, 0, 1, 5, 6, 2**31 - 1)) for _ in range(3)] for topic in topics}
    said = Subscription(
        tuple(topics), user_data, PartitionsByTopic(claims), rng.choice((-2, -1, 5, 2**31 - 1)), "r"
    )
    version = rng.choice((-1, 0, 1, 2, 3, 4, 99))
    return version.to_bytes(2, "big", signed=True) + encode_subscription(said, min(max(version, 0), 3))[2:]


class Weighted(Assignor):
    """Reads a number from user data."""

    name = "weighted"

    def assign(self, group: Group) -> Plan:
        self.weights_seen = {member.id: int(member.user_data or b"1") for member in group.members}
        return {max(self.weights_seen, key=lambda id_: self.weights_seen[id_]): {"t": [0]}}

    def check_user_data(self, user_data: bytes) -> None:
        int(user_data)


def test_a_member_whose_user_data_an_assignor_rejects_takes_part_without_it() -> None:
    assignor = Weighted()
    joined = [
        JoinedMember(f"c-{number}", None, encode_subscription(Subscription(("t",), data)))
        for number, data in enumerate([b"5", b"many", None])
    ]
    answers = perform_assignment(assignor, joined, {"t": 1})

    assert assignor.weights_seen == {"c-0": 5, "c-1": 1, "c-2": 1}
    assert decode_assignment(answers["c-0"]).partitions == {"t": [0]}
    assert decode_members(joined, assignor).undecodable == {
        "c-1": "malformed user data of the assignor 'weighted': ValueError: "
        "invalid literal for int() with base 10: b'many'"
    }


@pytest.mark.parametrize(
    "use",
    [
        lambda assignor: perform_assignment(assignor, [joining("c-1", "t")], {"t": 1}),
        lambda assignor: assign(assignor, Group([Member("c-1", ["t"])], {"t": 1})),
    ],
)
def test_an_assignor_without_a_name_is_refused(use: Callable[[Assignor], object]) -> None:
    nameless = Planned({})
    nameless.name = ""
    with pytest.raises(AssignorError, match=r"Planned.name must be a string that is not empty, not ''"):
        use(nameless)


def test_a_member_that_joins_twice_is_refused() -> None:
    with pytest.raises(InvalidInputError, match="member 'c-1' is in the group more than once"):
        perform_assignment(RangeAssignor(), [joining("c-1"), joining("c-1")], {})


WRONG: dict[str, Plan] = {
    "member 'c-9' is in the assignment, but not in the group": {"c-9": {"t": [0]}},
    "topic 'v' is in the assignment, but not in the group": {"c-1": {"v": [0]}},
    "member 'c-1' is assigned partition 3 of 't', which has 3 partitions, numbered from 0": {
        "c-1": {"t": [0, 3]}
    },
    "member 'c-2' is assigned partitions of 'u', which it does not subscribe to": {
        "c-2": {"t": [0], "u": [1]}
    },
    "partition 1 of 't' is assigned both to 'c-1' and to 'c-2'": {"c-1": {"t": [1]}, "c-2": {"t": [1]}},
    "partition 1 of 't' is assigned to 'c-1' twice": {"c-1": {"t": [1, 1]}},
    "member 'c-1' is assigned partition -1 of 't'; they start at 0": {"c-1": {"t": [-1]}},
}


@pytest.mark.parametrize(("message", "plan"), WRONG.items(), ids=WRONG)
def test_a_result_that_is_no_assignment_of_the_group_does_not_leave_the_leader(
    message: str, plan: Plan
) -> None:
    joined = [joining("c-1", "t", "u"), joining("c-2", "t")]
    with pytest.raises(AssignorError) as caught:
        perform_assignment(Planned(plan), joined, {"t": 3, "u": 3})
    assert str(caught.value) == f"assignor 'planned': {message}"


@pytest.mark.parametrize(
    "plan", [None, 7, ["c-1"], {"c-1": ["t"]}, {"c-1": {"t": "0"}}, {"c-1": {"t": [0.5]}}]
)
def test_a_result_of_another_kind_is_blamed_on_its_assignor(plan: Plan) -> None:
    with pytest.raises(AssignorError, match="assignor 'planned': "):
        perform_assignment(Planned(plan), [joining("c-1", "t")], {"t": 1})


def test_partitions_that_nobody_consumes_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        perform_assignment(
            Planned({"c-1": {"t": [1]}}), [joining("c-1", "t", "u")], {"t": 3, "u": 1, "unwanted": 1}
        )
    (message,) = caplog.messages
    assert message.startswith("Assignor 'planned' leaves 3 partitions of subscribed topics unassigned")
    assert message.endswith("{'t': [0, 2], 'u': [0]}")


def test_partitions_withheld_until_their_owner_gives_them_up_are_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    joined = [joining("c-1", "t", owned={"t": [0, 1]}), joining("c-2", "t", owned={"t": [2]})]
    with caplog.at_level(logging.DEBUG):
        perform_assignment(Planned({"c-1": {"t": [0]}, "c-2": {"t": [2]}}), joined, {"t": 3})
    assert caplog.messages == []


@pytest.mark.medium
def test_partitions_that_nobody_consumes_are_those_that_nobody_is_given_or_claims(
    seeded: Callable[[int], random.Random],
) -> None:
    rng = seeded(21)
    found = 0
    for group in random_groups(seed=21, count=300):
        wanted = {
            (topic, partition)
            for topic in group.subscribers()
            for partition in range(group.topics[topic].partitions)
        }
        given = {place for place in wanted if rng.random() < 0.5}
        plan: dict[str, dict[str, list[int]]] = {}
        for topic, partition in given:
            owner = rng.choice(group.subscribers()[topic])
            plan.setdefault(owner.id, {}).setdefault(topic, []).append(partition)
        claimed = {
            (topic, partition)
            for member in group.members
            for topic, partitions in member.owned.items()
            for partition in partitions.tolist()
        }
        unconsumed = unassigned(group, Assignment(plan), unclaimed=True)
        assert {
            (topic, partition)
            for topic, partitions in unconsumed.items()
            for partition in partitions.tolist()
        } == wanted - given - claimed
        found += unconsumed.count
    assert found > 500


def test_a_cooperative_group_gets_no_partition_that_another_member_still_owns() -> None:
    members = [Member("c-1", ["t"], owned={"t": [0, 1]}, generation=3), Member("c-2", ["t"])]
    group = Group(members, {"t": 3})
    assert assign(Planned({"c-1": {"t": [0]}, "c-2": {"t": [2]}}), group, cooperative=True)["c-2"] == {
        "t": [2]
    }
    hasty = Planned({"c-1": {"t": [0]}, "c-2": {"t": [1, 2]}})
    assert assign(hasty, group)["c-2"] == {"t": [1, 2]}
    with pytest.raises(AssignorError) as caught:
        assign(hasty, group, cooperative=True)
    assert str(caught.value) == (
        "assignor 'planned': it rebalances cooperatively, but assigns 't' [1] to 'c-2' while 'c-1' owns it: "
        "return withhold_claimed(group, plan) instead of the plan"
    )
    assert assign(Planned({}), Group([Member("c-1", ["t"])], {}), cooperative=True) == {"c-1": {}}


@pytest.mark.parametrize("versions", [(1, 1), (1, 3), (3, 1), (3, 3)])
@pytest.mark.parametrize("kind", [CooperativeStickyAssignor, LoadAwareAssignor])
def test_a_claim_whose_generation_is_in_the_user_data_is_ranked_by_it(
    kind: type[CooperativeStickyAssignor | LoadAwareAssignor], versions: tuple[int, int]
) -> None:
    """Before version 2 of the subscription. The check took a claim that was out of date for a present one."""

    def joined(id_: str, version: int, partitions: list[int], generation: int) -> JoinedMember:
        assignor, owned = kind(), PartitionsByTopic({"t": partitions} if partitions else {})
        if owned:
            assignor.on_assignment(owned, generation)
        subscription = Subscription(("t",), assignor.user_data(frozenset({"t"})), owned, generation)
        return JoinedMember(id_, None, encode_subscription(subscription, version=version))

    newer, older = versions
    members = [joined("a", newer, [0, 1], 5), joined("b", older, [1, 2], 4), joined("c", older, [], -1)]
    group = Group(decode_members(members).members, {"t": Topic(6, weights=[1.0] * 6)})
    given = assign(kind(), group, cooperative=True)
    assert {owner for owner in "abc" if 1 in given[owner].get("t", [])} == {"a"}


def test_checks_tell_what_is_wrong_without_a_leader() -> None:
    group = Group([Member("a", ["t"]), Member("b", ["t", "u"])], {"t": 2, "u": 3, "unwanted": 9})
    sound = Assignment({"a": {"t": [1]}, "b": {"u": [0, 2]}})
    check_assignment(group, sound)
    assert unassigned(group, sound) == {"t": [0], "u": [1]}
    assert unassigned(group, Assignment({"a": {"t": [0, 1]}, "b": {"u": [0, 1, 2]}})) == {}
    with pytest.raises(
        AssignorError, match="member 'a' is assigned partitions of 'u', which it does not subscribe"
    ):
        check_assignment(group, Assignment({"a": {"u": [1]}}))
    with pytest.raises(AssignorError, match="member 'b' is assigned partitions of 't', which it does not"):
        check_assignment(
            Group([Member("a", ["t"]), Member("b", [])], {"t": 2}), Assignment({"b": {"t": [1]}})
        )


@pytest.mark.medium
def test_a_leader_gives_what_the_assignor_gives(
    random_groups: Callable[[int, int], Iterator[Group]], joined: Callable[[Group], list[JoinedMember]]
) -> None:
    for group in random_groups(20, 300):
        assignment = RangeAssignor().assign(group)
        answers = perform_assignment(RangeAssignor(), joined(group), group.topics)
        assert {id_: decode_assignment(data).partitions for id_, data in answers.items()} == assignment
