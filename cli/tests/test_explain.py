"""Explanations: sentences for each assignor, for moves, for brokers that assign, and for unknown reasons."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from groupwright import cli
from groupwright.assignors import by_name
from groupwright.assignors import simulate as play
from groupwright.cli._command_line.assignors import ASSIGNOR_NAMES
from groupwright.cli._study.files import document_of, study_of
from groupwright.cli._study.model import StudiedGroup
from groupwright.cli.app import app
from groupwright.cli.explain import by_balance, by_order, command
from groupwright.cli.explain.explanation import Explanation, explain
from groupwright.cli.explain.situation import situation_of
from groupwright.cli.explain.words import joined, of_topic, ordinal
from integration_tests.harness.studied_groups import any_study, member, study

if TYPE_CHECKING:
    import subprocess

SCHEMA = json.loads(
    (Path(cli.__file__).parent / "_schemas" / "explain.schema.json").read_text(encoding="utf-8")
)


def sentences(found: Explanation) -> dict[str, list[str]]:
    return {each.name: list(each.sentences) for each in found.members}


def explained(now: StudiedGroup, before: StudiedGroup | None = None) -> Explanation:
    return explain(situation_of(now, before))


def moves(now: StudiedGroup, before: StudiedGroup) -> dict[str, str]:
    return {f"{each.key[0]}-{each.key[1]}": each.sentence for each in explained(now, before).partitions}


# --- range and roundrobin


def test_range_is_explained_by_the_members_order() -> None:
    found = explained(
        study(
            [
                member("c-1", assigned={"orders": [0, 1, 2, 3]}),
                member("c-2", assigned={"orders": [4, 5, 6]}),
                member("c-3", assigned={"orders": [7, 8, 9]}),
            ],
            {"orders": 10},
        )
    )

    assert found.summary == (
        (
            "range sorts the members of each topic (static members first, by group.instance.id, then the "
            "others by member id) and gives each one range of the topic's partitions; the first members get "
            "one more where a topic cannot be divided evenly."
        ),
    )
    share = "10 partitions are 3 for each, and one more for the first"
    assert sentences(found) == {
        "c-1": [f"c-1 is 1st of 3 for orders, so it gets partitions 0-3 of orders: {share}."],
        "c-2": [f"c-2 is 2nd of 3 for orders, so it gets partitions 4-6 of orders: {share}."],
        "c-3": [f"c-3 is 3rd of 3 for orders, so it gets partitions 7-9 of orders: {share}."],
    }


def test_a_member_that_cannot_be_decoded_is_said_to_have_nothing() -> None:
    reason = "malformed subscription: at byte 0, expected 2 bytes of version, found 0 bytes left"
    bad = {**member("b", assigned={}), "topics": [], "undecodable": reason}
    now = study([member("a", assigned={"orders": [0, 1]}), bad], {"orders": 2})

    assert study_of(document_of(now)) == now
    assert sentences(explained(now))["b"] == [
        f"b has nothing, since what was sent cannot be decoded: {reason}."
    ]


def test_range_leaves_the_last_members_idle_and_says_so() -> None:
    topics = {f"t{number}": 1 for number in range(3)}
    first = {topic: [0] for topic in topics}
    found = explained(
        study([member("a", *topics, assigned=first), member("b", *topics, assigned={})], topics)
    )

    assert sentences(found)["b"][0] == "b is 2nd of 2 for t0, which has only 1 partition, so it gets none."
    assert found.summary[1] == (
        "a has 3 and b has 0: each topic is divided by itself, and the first members get the larger ranges "
        "of every topic. A sticky assignor would reach a difference of 1."
    )


def test_range_with_racks() -> None:
    racks = {"orders": {"partitions": 4, "racks": [["x"], ["y"], ["x"], ["y"]]}}
    found = explained(
        study(
            [
                member("a", rack="x", assigned={"orders": [0, 2]}),
                member("b", rack="y", assigned={"orders": [1, 3]}),
            ],
            racks,
        )
    )

    assert found.summary[1].startswith("Racks apply: each member gets as many partitions as its range has")
    assert sentences(found)["a"] == [
        (
            "a is 1st of 2 for orders, so it gets 2 partitions (4 partitions are 2 for each): partitions 0 2 "
            "of orders, of which 2 of 2 have a replica in its rack x."
        )
    ]


def test_roundrobin_is_explained_by_its_turns() -> None:
    members = [member("a", "audit", "orders"), member("b", "audit", "orders"), member("z", "orders")]
    found = explained(study(members, {"audit": 3, "orders": 4, "gone": 0}, "roundrobin"))

    assert found.situation.is_computed
    assert sentences(found) == {
        "a": [
            (
                "a is 1st of 2 for audit, and its turn comes at partition 0 and every 2nd after it, so it "
                "gets partitions 0 2 of audit."
            ),
            "a is 1st of 3 for orders, and its turn comes at partition 2, so it gets partition 2 of orders.",
        ],
        "b": [
            "b is 2nd of 2 for audit, and its turn comes at partition 1, so it gets partition 1 of audit.",
            (
                "b is 2nd of 3 for orders, and its turn comes at partition 0 and every 3rd after it, so it "
                "gets partitions 0 3 of orders."
            ),
        ],
        "z": [
            "z is 3rd of 3 for orders, and its turn comes at partition 1, so it gets partition 1 of orders."
        ],
    }


def test_an_assignment_that_the_assignor_would_not_make_is_not_explained_away() -> None:
    found = explained(
        study([member("a", assigned={"orders": [0]}), member("b", assigned={"orders": [1, 2]})])
    )

    assert sentences(found)["a"] == [
        (
            "a has partition 0 of orders, but for these members and topics range gives it partitions 0-2 of "
            "orders: the group's leader saw other members, topics or racks."
        )
    ]
    assert found.summary[-1].startswith("3 partitions of subscribed topics have no member")


@pytest.mark.medium
@given(
    st.lists(st.tuples(st.booleans(), st.sets(st.sampled_from("abc"), min_size=1)), min_size=1, max_size=6),
    st.tuples(*[st.integers(0, 7)] * 3),
    st.sampled_from(["range", "roundrobin"]),
)
@settings(max_examples=60, deadline=None)
def test_every_partition_of_range_and_roundrobin_is_in_a_sentence(
    members: Sequence[tuple[bool, set[str]]], partitions: tuple[int, ...], assignor: str
) -> None:
    made = [
        member(f"m{number}", *sorted(topics), instance_id=f"i{number}" if is_static else None)
        for number, (is_static, topics) in enumerate(members)
    ]
    found = explained(study(made, dict(zip("abc", partitions, strict=True)), assignor))

    for each in found.members:
        explained_by = " ".join(each.sentences)
        assert "leader saw other" not in explained_by
        for topic, numbers in each.member.assigned.items():
            assert f"so it gets {of_topic(topic, numbers)}" in explained_by


def test_a_move_of_range_names_what_changed() -> None:
    before = study([member("a", assigned={"orders": [0, 1, 2]}), member("c", assigned={"orders": [3, 4, 5]})])
    now = study(
        [
            member("a", assigned={"orders": [0, 1]}),
            member("b", assigned={"orders": [2, 3]}),
            member("c", assigned={"orders": [4, 5]}),
        ]
    )

    start = "range does not look at what members have: it divided orders anew, since b joined."
    new = "b is new and is 2nd of 3"
    assert moves(now, before) == {
        "orders-2": f"orders-2 moved from a to b. {start} a was 1st of 2 and is 1st of 3; {new}.",
        "orders-3": f"orders-3 moved from c to b. {start} c was 2nd of 2 and is 3rd of 3; {new}.",
    }
    grown = study(
        [member("a", assigned={"orders": [0, 1, 2, 3]}), member("c", assigned={"orders": [4, 5, 6, 7]})],
        {"orders": 8},
    )
    found = moves(grown, before)
    assert found["orders-3"].endswith(
        "anew, since it has 8 partitions instead of 6. c is 2nd of 2 as before; a is 1st of 2 as before."
    )
    assert found["orders-6"] == "c received orders-6, which did not exist before."


# --- sticky


def test_sticky_says_what_was_kept_and_received_and_why_so_many() -> None:
    before = study(
        [
            member("a", assigned={"orders": [0, 1, 2]}),
            member("b", assigned={"orders": [3, 4]}),
            member("gone", assigned={"orders": [5, 6]}),
        ],
        {"orders": 7},
        "sticky",
    )
    now = study(
        [
            member("a", assigned={"orders": [0, 1, 2, 7]}),
            member("b", assigned={"orders": [3, 4, 5, 6]}),
            member("c", assigned={"orders": [8]}),
        ],
        {"orders": 9},
        "sticky",
    )
    found = explained(now, before)

    assert found.summary[1:] == (
        "9 partitions over 3 members are 3 each.",
        (
            "The numbers differ by 3, more than the least possible of 0: another program assigned, the group "
            "has changed since, or the balance is counted in bundles."
        ),
        "0 partitions moved between members that could have kept them; the best balance takes 0.",
    )
    assert sentences(found) == {
        "a": [
            "a keeps what it had: orders 0-2.",
            "It received orders 7, which did not exist before.",
            "a has 4; an even share is 3.",
        ],
        "b": [
            "b keeps what it had: orders 3-4.",
            "It received orders 5-6 from gone, which has left.",
            "b has 4; an even share is 3.",
        ],
        "c": [
            "c had no partition before.",
            "It received orders 8, which did not exist before.",
            "c has 1; an even share is 3.",
        ],
    }


def test_the_larger_share_is_explained_as_far_as_it_can_be() -> None:
    before = study(
        [
            member("a", assigned={"orders": [0, 1, 2, 3]}),
            member("b", assigned={"orders": [4]}),
            member("c", assigned={}),
        ],
        {"orders": 5},
        "sticky",
    )
    now = study(
        [
            member("a", assigned={"orders": [0, 1]}),
            member("b", assigned={"orders": [2, 4]}),
            member("c", assigned={"orders": [3]}),
        ],
        {"orders": 5},
        "sticky",
    )
    found = sentences(explained(now, before))

    assert found["a"][-1] == "a has 2, the larger share: it had 4, so it need not revoke the last one."
    assert (
        found["b"][-1]
        == "b has 2, the larger share, and had 1. 2 members have one more, and only 1 had as many before."
    )
    assert found["c"][-1] == "c has 1, the smaller share."
    assert sentences(explained(now))["a"] == [
        "a has 2, the larger share; why it is one of those with one more is not known."
    ]
    assert "What members had before is not known" in explained(now).summary[-1]
    assert (
        moves(now, before)["orders-2"]
        == "orders-2 moved from a to b. Balance: a had 4 and has 2, b had 1 and has 2."
    )


def test_a_file_of_before_without_an_assignment_is_refused(tmp_path: Path) -> None:
    """The command cannot know what members had, and must not take it for nothing."""
    now, before = tmp_path / "now.json", tmp_path / "before.json"
    unassigned = study([member("a")])
    now.write_text(json.dumps(document_of(study([member("a", assigned={"orders": [0]})]))))
    before.write_text(json.dumps(document_of(unassigned)))

    result = CliRunner().invoke(app, ["explain", "--file", str(now), "--before", str(before)])

    assert result.exit_code == 2
    assert "neither assigned nor owned partitions, so what members had is not known" in result.stderr
    assert not study([]).is_assignment_unknown  # a group without members has nothing
    assert not study([member("a", owned={"orders": [0]})]).is_assignment_unknown


def test_a_missing_topic_is_one() -> None:
    one = explained(study([member("a", "orders", "nope", assigned={})]))
    two = explained(study([member("a", "orders", "nope", "no", assigned={})]))

    assert "Members subscribe to nope, which does not exist or may not be seen: " in " ".join(one.summary)
    assert "Members subscribe to no, nope, which do not exist" in " ".join(two.summary)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["explain", "--partition", f"orders-{'9' * 5000}"], "there is no partition orders-999"),
        (["simulate", "--join", "9" * 5000], "write a number from 1 to 10000"),
        (["simulate", "--add-partitions", f"orders={'9' * 5000}"], "is not understood"),
    ],
)
def test_numbers_of_any_size_are_refused_in_words(tmp_path: Path, options: list[str], message: str) -> None:
    path = tmp_path / "group.json"
    path.write_text(json.dumps(document_of(study([member("a", assigned={})]))))

    result = CliRunner().invoke(app, [options[0], "--file", str(path), *options[1:]])

    assert result.exit_code in (2, 4)
    assert message in result.stderr


def test_what_members_claimed_is_before_if_no_file_is() -> None:
    now = study(
        [
            member("a", owned={"orders": [0, 1, 2]}, assigned={"orders": [0, 1, 2]}),
            member("b", owned={}, assigned={"orders": [3, 4, 5]}),
        ],
        assignor="cooperative-sticky",
    )

    found = explained(now)
    assert found.summary[-1] == (
        "No member claimed orders 3-5 in the last round of this cooperative rebalance: 3 partitions moved "
        "in two rounds, or had no member before. Who had what is not known: pass --before FILE, which "
        "--save wrote before the rebalance."
    )
    assert [each.has_moved for each in found.partitions] == [True] * 3
    assert sentences(found)["b"][:2] == [
        "b had no partition before.",
        "It received orders 3-5, which no member claimed when the group last rebalanced.",
    ]


def test_a_file_without_an_assignment_is_assigned_from_what_members_own() -> None:
    found = explained(
        study([member("a", owned={"orders": [0, 1, 2, 3, 4, 5]}), member("b")], assignor="sticky")
    )

    assert (
        found.summary[0] == "The file has no assignment: this is what sticky assigns, from what members own."
    )
    assert (
        found.summary[-1]
        == "3 partitions moved between members that could have kept them; the best balance takes 3."
    )
    assert len(found.partitions) == 3
    assert all("Balance: a had 6 and has 3, b had 0 and has 3." in each.sentence for each in found.partitions)


def test_subscriptions_restrict_the_balance() -> None:
    now = study(
        [
            member("a", "orders", assigned={"orders": [0, 1, 2, 3, 4, 5]}),
            member("b", "audit", assigned={"audit": [0]}),
            member("c", "audit", "more", assigned={"audit": [1], "more": [0]}),
            member("d", "audit", assigned={"audit": [2]}),
        ],
        {"orders": 6, "audit": 3, "more": 2},
        "sticky",
    )
    found = explained(now)

    assert found.summary[1].endswith("a difference of 5 is the least possible.")
    assert sentences(found)["a"] == ["a has all 6 partitions of the topics that it subscribes to."]
    assert sentences(found)["b"] == [
        (
            "b has 1. Members with two more or above, such as a, have no partition of a topic that b "
            "subscribes to."
        )
    ]


def test_members_whose_topics_others_do_not_want() -> None:
    now = study(
        [
            member("a", "orders", assigned={"orders": [0, 1, 2]}),
            member("b", "orders", assigned={"orders": [3, 4, 5]}),
            member("c", "audit", assigned={"audit": [0]}),
        ],
        {"orders": 6, "audit": 1},
        "sticky",
    )

    assert sentences(explained(now))["a"] == [
        (
            "a has 3. Members with two fewer or below, such as c, subscribe to none of the topics of its "
            "partitions."
        )
    ]


def test_racks_move_partitions_of_sticky() -> None:
    racks = {"orders": {"partitions": 2, "racks": [["x"], ["y"]]}}
    before = study(
        [member("a", rack="x", assigned={"orders": [1]}), member("b", rack="y", assigned={"orders": [0]})],
        racks,
        "sticky",
    )
    now = study(
        [member("a", rack="x", assigned={"orders": [0]}), member("b", rack="y", assigned={"orders": [1]})],
        racks,
        "sticky",
    )

    assert moves(now, before)["orders-0"] == (
        "orders-0 moved from b to a. Racks: it has a replica in a's rack x, and none in b's rack y."
    )
    assert "Partitions with a replica in its rack x: 1 of 1." in sentences(explained(now, before))["a"]


def test_a_swap_that_nothing_explains_is_not_explained() -> None:
    before = study(
        [member("a", assigned={"orders": [0]}), member("b", assigned={"orders": [1]})],
        {"orders": 2},
        "sticky",
    )
    now = study(
        [member("a", assigned={"orders": [1]}), member("b", assigned={"orders": [0]})],
        {"orders": 2},
        "sticky",
    )

    assert moves(now, before)["orders-0"] == (
        "orders-0 moved from a to b. The reason cannot be known from these two states: a had 1 and has 1, b "
        "had 1 and has 1, so balance alone did not need it. sticky may have moved it in a rebalance between "
        "them."
    )


@given(
    st.lists(st.booleans(), min_size=2, max_size=5),
    st.integers(1, 12),
    st.sampled_from(["sticky", "cooperative-sticky"]),
)
@settings(max_examples=40, deadline=None)
def test_moves_of_sticky_between_members_that_stay_are_always_explained(
    stays: list[bool], partitions: int, assignor: str
) -> None:
    first = study([member(f"m{number}") for number in range(len(stays))], {"orders": partitions}, assignor)
    [start] = play(first.as_group({}), by_name(assignor))
    before = with_assignment(first, start.assignment)
    kept = [each for each, stay in zip(document_of(before)["members"], stays, strict=True) if stay]
    changed = study([*kept, member("new", assigned={})], {"orders": partitions + 2}, assignor)
    [after] = play(changed.as_group({each.id: each.assigned for each in changed.members}), by_name(assignor))
    now = with_assignment(changed, after.assignment)

    for sentence in moves(now, before).values():
        assert "cannot be known" not in sentence


def with_assignment(group: StudiedGroup, assignment: Any) -> StudiedGroup:
    document = document_of(group)
    for each in document["members"]:
        each["assigned"] = {topic: numbers.tolist() for topic, numbers in assignment[each["id"]].items()}
    return study(document["members"], document["topics"], group.assignor)


# --- Load, bundles, brokers, others


def test_load_is_compared_with_the_average() -> None:
    topics = {"orders": {"partitions": 3, "weights": [40, 20, 20]}}
    before = study(
        [member("a", capacity=2, assigned={"orders": [0, 1, 2]}), member("b", assigned={})],
        topics,
        "load-aware",
    )
    now = study(
        [member("a", capacity=2, assigned={"orders": [0, 1]}), member("b", assigned={"orders": [2]})],
        topics,
        "load-aware",
    )
    found = explained(now, before)

    assert found.summary[1].startswith(
        "The busiest member has 1.12 times the average load; no assignment can be below"
    )
    assert (
        sentences(found)["a"][-1]
        == "a has a load of 60 for a capacity of 2, 1.12 times the average, in 2 partitions."
    )
    assert sentences(found)["b"][-1] == "b has a load of 20, 0.75 times the average, in 1 partition."
    assert moves(now, before) == {
        "orders-2": (
            "orders-2 moved from a to b. By load: a has a load of 60 without it, b of 20 with it. Which "
            "other moves the leader compared is not known."
        )
    }
    unweighted = study([member("a", assigned={"orders": [0, 1, 2]})], {"orders": 3}, "load-aware")
    assert explained(unweighted).summary[1] == (
        "The weights of partitions are not known, so the loads cannot be compared."
    )


def test_bundles_are_named() -> None:
    both = {"orders": [0, 1, 2], "audit": [0, 1, 2]}
    found = explained(
        study(
            [member("a", "orders", "audit", assigned=both)],
            {"orders": 3, "audit": 3},
            "co-partitioned-sticky",
        )
    )

    assert found.summary[0].startswith(
        "co-partitioned-sticky gives the partitions of one number in joined topics"
    )


def test_the_broker_assigns_in_groups_of_kip_848() -> None:
    now = study(
        [
            member("a", assigned={"orders": [0, 1, 2]}, target={"orders": [0, 1]}, is_classic=True),
            member("b", assigned={"orders": [3]}, target={"orders": [2, 3, 4]}),
            member("c", assigned={"orders": [5]}, target={"orders": [5]}),
        ],
        assignor="uniform",
        type="consumer",
        epoch=7,
    )
    found = explained(now)

    assert found.summary[:3] == (
        (
            "The broker assigns (KIP-848), with its assignor 'uniform': no member takes part in it, and the "
            "broker does not return its reasons. The group is in epoch 7."
        ),
        "2 of 3 members have not reached the target assignment yet.",
        "uniform evens out the numbers and keeps what members have: 6 partitions over 3 members are 2 each.",
    )
    assert sentences(found) == {
        "a": [
            "a has yet to revoke orders 2, which its target is without.",
            "a speaks the classic protocol; the broker assigns to it all the same.",
        ],
        "b": [
            "b waits for orders 2, which a has yet to revoke.",
            "b waits for orders 4, which the broker has yet to hand out.",
        ],
        "c": ["c has its target assignment, 1 partition."],
    }


def test_an_unknown_assignor_is_said_to_be_unknown() -> None:
    members = [member("a", assigned={"orders": [0, 1, 2, 3]}), member("b", assigned={"orders": [4, 5]})]
    before = study(
        [member("a", assigned={"orders": [0, 1, 2, 3, 4]}), member("b", assigned={"orders": [5]})],
        assignor="mine",
    )
    found = explained(study(members, assignor="mine"), before)

    assert found.summary[0].startswith("The assignor 'mine' is not one that this program knows")
    assert found.summary[1] == "The members' numbers of partitions differ by 2; the least possible is 0."
    assert sentences(found)["b"][0] == "b has 2 partitions."
    assert moves(study(members, assignor="mine"), before) == {
        "orders-4": "orders-4 moved from a to b. Why is not known, as the assignor 'mine' is not."
    }
    nothing = explained(study([member("a")], assignor=None))
    assert nothing.summary[0] == "The group's assignor is not known, so its reasons are not either."
    assert sentences(nothing) == {"a": ["a's assignment is not known."]}


def test_a_member_that_restarted_without_an_instance_id_is_told_what_helps() -> None:
    before = study(
        [member("app-1", client_id="app", assigned={"orders": [0, 1, 2, 3, 4, 5]})], assignor="sticky"
    )
    now = study(
        [member("app-2", client_id="app", assigned={"orders": [0, 1, 2, 3, 4, 5]})], assignor="sticky"
    )

    assert moves(now, before)["orders-0"] == (
        "app received orders-0 from app, which has left. app is new and has the same client id: if "
        "it is the same process, it would have kept its partitions with a group.instance.id."
    )


def test_a_static_member_keeps_its_partitions_under_a_new_id() -> None:
    before = study(
        [member("id-1", instance_id="pod-1", assigned={"orders": [0, 1, 2, 3, 4, 5]})], assignor="sticky"
    )
    now = study(
        [member("id-2", instance_id="pod-1", assigned={"orders": [0, 1, 2, 3, 4, 5]})], assignor="sticky"
    )

    assert moves(now, before) == {}
    assert sentences(explained(now, before))["pod-1"][0] == "pod-1 keeps what it had: orders 0-5."


def test_partitions_that_change_hands_by_subscription() -> None:
    before = study(
        [member("a", assigned={"orders": [0, 1]}), member("b", assigned={})],
        {"orders": 2, "audit": 1},
        "sticky",
    )
    now = study(
        [member("a", "audit", assigned={"audit": [0]}), member("b", assigned={"orders": [0, 1]})],
        {"orders": 2, "audit": 1},
        "sticky",
    )

    assert moves(now, before)["orders-0"] == (
        "b received orders-0 from a, which no longer subscribes to orders."
    )
    assert moves(now, before)["audit-0"] == "a received audit-0, which no member had."


@pytest.mark.parametrize("assignor", ["range", "roundrobin", "sticky"])
def test_a_move_to_a_member_that_does_not_subscribe_has_no_known_reason(assignor: str) -> None:
    topics = {"orders": 2, "audit": 1}
    before = study([member("a", assigned={"orders": [0, 1]}), member("b", assigned={})], topics, assignor)
    now = study(
        [member("a", assigned={"orders": [0]}), member("b", "audit", assigned={"orders": [1]})],
        topics,
        assignor,
    )

    assert moves(now, before) == {
        "orders-1": "orders-1 moved from a to b. Why is not known, as b does not subscribe to orders."
    }


def test_words() -> None:
    assert [ordinal(number) for number in (1, 2, 3, 4, 11, 12, 21, 102, 111)] == [
        "1st",
        "2nd",
        "3rd",
        "4th",
        "11th",
        "12th",
        "21st",
        "102nd",
        "111th",
    ]
    assert [joined(names) for names in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "",
        "a",
        "a and b",
        "a, b and c",
    ]
    assert of_topic("orders", ()) == "no partition of orders"


def test_every_assignor_says_what_it_does() -> None:
    assert {*by_order.ASSIGNORS, *by_balance.PRIORITIES} == set(ASSIGNOR_NAMES)


@pytest.mark.slow
@given(any_study(), st.none() | any_study())
@settings(max_examples=150, deadline=None)
def test_any_group_of_a_file_is_explained(now: StudiedGroup, before: StudiedGroup | None) -> None:
    keys = [("orders", 0), ("orders", 4), ("audit", 0), ("gone", 1)]
    found = explain(situation_of(now, before), None, keys)

    jsonschema.validate(command.document(found), SCHEMA)
    assert explained(now, before).summary == found.summary
    assert all(each.sentence for each in found.partitions)


def test_an_assignment_of_partitions_that_do_not_exist_is_said() -> None:
    shrunk = study([member("a", assigned={"orders": [0, 1, 2]})], {"orders": 2}, "sticky")
    unseen = study([member("a", assigned={"orders": [0, 1, 2]})], {}, "sticky")

    assert explained(shrunk).summary[-1] == (
        "Members have partitions of topics that they do not subscribe to, or that do not exist or may not be "
        "seen, or several have the same one, so the balance cannot be computed."
    )
    assert sentences(explained(shrunk)) == {"a": ["a has 3; an even share is 2."]}
    assert sentences(explained(unseen)) == {
        "a": ["a subscribes to orders; none exists or may be seen, so nothing can be explained."]
    }


# --- The command


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, str]:
    """The group now and before."""
    made = (
        study([member("a", assigned={"orders": [0, 1, 2]}), member("b", assigned={"orders": [3, 4, 5]})]),
        study([member("a", assigned={"orders": [0, 1, 2, 3, 4, 5]})]),
    )
    for name, group in zip(("now", "before"), made, strict=True):
        (tmp_path / f"{name}.json").write_text(json.dumps(document_of(group)), encoding="utf-8")
    return str(tmp_path / "now.json"), str(tmp_path / "before.json")


def run(file: str, *arguments: str, status: int = 0) -> str:
    result = CliRunner().invoke(app, ["explain", "--file", file, *arguments], env={"COLUMNS": "200"})
    assert result.exit_code == status, (result.output, result.exception)
    return result.stdout if status == 0 else result.stderr


def document(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    jsonschema.validate(found, SCHEMA)
    return found


def test_the_document_follows_the_schema(files: tuple[str, str]) -> None:
    now, before = files
    found = document(run(now, "--before", before, "-o", "json"))

    assert (found["has_before"], found["is_computed"]) == (True, False)
    assert [each["name"] for each in found["members"]] == ["a", "b"]
    assert [(each["partition"], each["before"], each["member"]) for each in found["partitions"]] == [
        (3, "a", "b"),
        (4, "a", "b"),
        (5, "a", "b"),
    ]
    of_one = document(
        run(now, "--partition", "orders-0", "--partition", "orders-3", "--before", before, "-o", "json")
    )
    assert (of_one["members"], [each["moved"] for each in of_one["partitions"]]) == ([], [False, True])
    assert of_one["partitions"][0]["sentence"] == "a has orders-0, and had it before."
    only = document(run(now, "--member", "b", "--before", before, "-o", "json"))
    assert ([each["name"] for each in only["members"]], only["partitions"]) == (["b"], [])


def test_a_partition_of_range_is_explained_without_a_file_before(files: tuple[str, str]) -> None:
    [found] = document(run(files[0], "--partition", "orders-4", "-o", "json"))["partitions"]

    assert found["sentence"].startswith("b has orders-4: b is 2nd of 2 for orders, so it gets partitions 3-5")


def test_csv_has_a_row_for_each_sentence(files: tuple[str, str]) -> None:
    now, before = files
    rows = list(csv.DictReader(io.StringIO(run(now, "--before", before, "-o", "csv"))))

    assert [(row["about"], row["name"]) for row in rows] == [
        ("group", "billing"),
        ("member", "a"),
        ("member", "b"),
        *(("partition", f"orders-{number}") for number in (3, 4, 5)),
    ]


@pytest.mark.medium
@pytest.mark.parametrize("width", [80, 200])
def test_the_text_fits_the_width_and_has_no_colours_in_a_pipe(
    files: tuple[str, str], width: int, groupwright: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    result = groupwright("explain", "--file", files[0], "--before", files[1], COLUMNS=str(width))

    assert (result.returncode, result.stderr) == (0, "")
    lines = [line.rstrip() for line in result.stdout.splitlines()]
    assert max(map(len, lines)) <= width
    assert "\x1b" not in result.stdout
    assert lines[0] == "billing: classic, range, 2 members, 6 partitions of 1 topic"
    assert "a has 3: orders 0-2" in lines


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (
            ["--partition", "orders"],
            2,
            "--partition 'orders' is not understood: write TOPIC-N, as in orders-3",
        ),
        (["--partition", "ordesr-1"], 4, "the group has no topic 'ordesr', did you mean 'orders'?"),
        (["--partition", "orders-6"], 4, "there is no partition orders-6: orders has 6 partitions, from 0"),
        (["--member", "z"], 4, "there is no member 'z'; there are: a, b"),
        (["billing"], 2, "name either a group of the cluster, or a file"),
    ],
)
def test_wrong_options_are_refused(
    files: tuple[str, str], arguments: list[str], status: int, message: str
) -> None:
    assert run(files[0], *arguments, status=status).startswith(f"groupwright explain: {message}")


def test_a_file_of_another_group_is_not_before(files: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"group": "other", "members": [], "topics": {}}', encoding="utf-8")

    assert run(files[0], "--before", str(tmp_path / "other.json"), status=2) == (
        "groupwright explain: the file of --before has the group 'other', not 'billing'\n"
    )


def test_a_file_of_before_that_does_not_exist_is_named_without_advice(files: tuple[str, str]) -> None:
    assert run(files[0], "--before", "none.json", status=2) == (
        "groupwright explain: there is no file 'none.json'\n"
    )


def test_many_moves_are_cut(tmp_path: Path) -> None:
    for name, owner in (("now", "a"), ("before", "b")):
        members = [
            member(each, assigned={"orders": list(range(30))} if each == owner else {}) for each in "ab"
        ]
        document = document_of(study(members, {"orders": 30}, "mine"))
        (tmp_path / f"{name}.json").write_text(json.dumps(document), encoding="utf-8")

    shown = run(str(tmp_path / "now.json"), "--before", str(tmp_path / "before.json"))

    assert shown.count(" moved from b to a.") == 20
    assert "and 10 more: pass --partition TOPIC-N, or --output json" in shown
