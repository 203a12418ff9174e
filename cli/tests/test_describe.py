"""A group described: its findings, the names of its members, its rows and its document."""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from groupwright import cli
from groupwright.assignors import (
    Subscription,
    encode_assignment,
    encode_subscription,
)
from groupwright.cli._cluster.description import described_classic
from groupwright.cli._cluster.findings import findings
from groupwright.cli._cluster.group_history import GroupHistory
from groupwright.cli._cluster.lag import GroupLag, PartitionLag
from groupwright.cli._cluster.lookup import member_names
from groupwright.cli._cluster.model import DescribedGroup, GroupType, OpenTransaction, TopicMetadata
from groupwright.cli.describe.command import document, partition_rows
from groupwright.consumer.cluster import Broker
from integration_tests.harness.described_groups import group, lag_of, member, partition, topic

SCHEMA = Path(cli.__file__).parent / "_schemas" / "describe.schema.json"
ORDERS = {"orders": topic()}


def odd(of: DescribedGroup | GroupLag, topics: Mapping[str, TopicMetadata] = ORDERS) -> list[str]:
    if isinstance(of, DescribedGroup):
        owned = [partition(owner=each) for each in of.members if each.assigned]
        of = lag_of(of, *owned)
    return findings(of, topics)


# --- Findings


@pytest.mark.parametrize("type_", list(GroupType))
def test_a_group_at_work_has_no_oddities(type_: GroupType) -> None:
    target = {"orders": (0,)} if type_ is GroupType.CONSUMER else None

    assert odd(group(member(target=target), type_=type_, protocol_type="consumer")) == []


def test_an_empty_group_has_no_members() -> None:
    assert odd(group()) == ["The group has no members: nothing is consumed."]


def test_clients_that_assign_partitions_themselves_may_commit_to_a_group_that_nobody_joined() -> None:
    assert odd(group(protocol_type="")) == [
        "The group has no members: clients that assign partitions themselves may consume and commit."
    ]


@pytest.mark.parametrize(
    ("type_", "state", "unknown"),
    [
        *((GroupType.CLASSIC, f"{each}Rebalance", True) for each in ("Preparing", "Completing")),
        *((GroupType.CONSUMER, each, False) for each in ("Assigning", "Reconciling")),
        (GroupType.STREAMS, "NotReady", False),
    ],
)
def test_a_group_that_rebalances_is_in_its_state(type_: GroupType, state: str, *, unknown: bool) -> None:
    it = f"The group is {state}: it rebalances now"

    assert odd(group(member(assigned={}, topics=()), type_=type_, state=state)) == [
        f"{it}, so its members' partitions are not known." if unknown else f"{it}."
    ]


def test_a_static_member_that_has_stopped_is_said_to_keep_its_partitions() -> None:
    """Brokers report the group as Reconciling meanwhile."""
    stopped = replace(member(instance_id="i-1"), epoch=-2)
    (finding,) = odd(group(stopped, type_=GroupType.CONSUMER, state="Reconciling"))
    assert finding.startswith("i-1 has stopped: a static member keeps its partitions, which nobody consumes")


@pytest.mark.parametrize(
    ("epoch", "target", "is_rebalancing"), [(3, (0,), False), (2, (0,), True), (3, (0, 1), True)]
)
def test_a_static_member_that_has_stopped_makes_no_rebalance(
    epoch: int, target: tuple[int, ...], *, is_rebalancing: bool
) -> None:
    stopped = replace(member("1", instance_id="i-1"), epoch=-2, target={"orders": (1,)})
    other = replace(member("2", instance_id="i-2"), epoch=epoch, target={"orders": target})
    settled = group(stopped, other, type_=GroupType.CONSUMER, state="Reconciling")
    settled = replace(settled, epoch=3, assignment_epoch=3)
    assert settled.is_rebalancing is is_rebalancing
    history = GroupHistory()
    history.update(GroupLag(settled, ()), None, 1.0)
    assert history.rebalances == int(is_rebalancing)
    assert replace(settled, epoch=4, assignment_epoch=3, state="Assigning").is_rebalancing


@pytest.mark.parametrize("state", ["PreparingRebalance", "CompletingRebalance"])
def test_former_partitions_that_brokers_return_in_a_rebalance_are_not_shown(state: str) -> None:
    found = described_classic(row_of_member(state), Broker(1, "localhost", 9092))

    assert not found.is_assignment_known
    shown = document(lag_of(found), [], None)
    jsonschema.validate(shown, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert [each["assigned"] for each in shown["members"]] == [None]
    stable = described_classic(row_of_member("Stable"), Broker(1, "localhost", 9092))
    assert [each["assigned"] for each in document(lag_of(stable), [], None)["members"]] == [
        {"orders": [0, 1]}
    ]


def test_a_member_of_connect_has_no_partitions_that_are_known() -> None:
    assert not group(member(assigned={}), protocol_type="connect").is_assignment_known
    assert group(state="Empty", protocol_type="connect").is_assignment_known


def row_of_member(state: str) -> Any:
    """A group's row of a response to DescribeGroups, with a member that owned two partitions."""
    return SimpleNamespace(
        group_id="billing",
        protocol_type="consumer",
        group_state=state,
        protocol_data="range",
        members=[
            SimpleNamespace(
                member_id="worker-1",
                client_id="worker",
                client_host="/10.0.0.1",
                group_instance_id=None,
                member_metadata=encode_subscription(Subscription(("orders",))),
                member_assignment=encode_assignment({"orders": (0, 1)}),
            )
        ],
    )


def test_members_that_have_not_reached_their_target() -> None:
    one = member("1", client_id="a", target={"orders": (0, 1)})
    two = member("2", client_id="b", assigned={}, target={"orders": (2,)})
    done = member("3", client_id="c", target={"orders": (0,)})

    of = group(one, done, type_=GroupType.CONSUMER, state="Reconciling")
    assert odd(of)[1] == "a has not reached the target assignment yet."
    of = group(one, two, done, type_=GroupType.CONSUMER, state="Reconciling")
    assert odd(of)[1] == "a, b have not reached the target assignment yet."


def test_messages_behind_an_open_transaction_have_its_id_and_age() -> None:
    one = member()
    of = lag_of(group(one), partition(stable=60, owner=one))
    mine = OpenTransaction("payer", "Ongoing", 1, 100.0, {"orders": (0,)})
    other = OpenTransaction("other", "Ongoing", 2, 50.0, {"orders": (1,)})

    ends = "consumers with read_committed get them when it ends."
    assert findings(of, ORDERS, [other, mine], 124.4) == [
        f"40 messages of orders-0 are behind an open transaction of payer (24 s old): {ends}"
    ]
    assert findings(of, ORDERS, [], 124.4) == [
        f"40 messages of orders-0 are behind an open transaction, which these credentials may not see: {ends}"
    ]


def test_topics_that_do_not_exist() -> None:
    assert odd(group(member(topics=("orders", "ordesr")))) == [
        "Members subscribe to ordesr, which does not exist, or may not be seen by this user."
    ]
    assert odd(group(member(topics=("orders", *(f"t{number}" for number in range(7)))))) == [
        (
            "Members subscribe to t0, t1, t2, t3, t4 and 2 more, which do not exist, or may not be seen by "
            "this user."
        )
    ]


def test_partitions_that_no_member_is_assigned() -> None:
    of = group(member(assigned={"orders": (0, 2)}))
    lag = lag_of(of, *(partition(number=number, owner=of.members[0]) for number in (0, 2)))

    assert odd(lag, {"orders": topic(partitions=3)}) == [
        "No member is assigned orders-1, though the group subscribes to the topic."
    ]


@pytest.mark.parametrize(
    "of",
    [
        group(member(assigned={}, topics=()), protocol_type="connect"),  # bytes of its own
        group(member(assigned={}), type_=GroupType.SHARE),  # members share partitions
    ],
)
def test_unread_partitions_are_those_of_consumers(of: DescribedGroup) -> None:
    assert not any("is assigned" in sentence for sentence in odd(lag_of(of)))


def test_a_group_of_connect_is_not_odd() -> None:
    assert odd(lag_of(group(member(assigned={}, topics=()), protocol_type="connect"))) == []


def test_offsets_of_topics_that_the_group_has_left() -> None:
    of = group(member())
    kept = partition(owner=of.members[0])
    topics = {**ORDERS, "old": topic("old")}

    assert odd(lag_of(of, kept, partition("old")), topics) == [
        "old-0 has committed offsets and lag, but no member subscribes to the topic."
    ]
    assert odd(lag_of(of, kept, partition("old", committed=100)), topics) == []


def test_committed_offsets_outside_of_the_log() -> None:
    of = group(member())
    [beyond] = odd(lag_of(of, partition(owner=of.members[0], committed=101)))
    [before] = odd(lag_of(of, partition(owner=of.members[0], begin=40)))

    assert beyond.startswith("The committed offset of orders-0 is beyond the end of the log: ")
    assert before.startswith("The committed offset of orders-0 is before the beginning of the log: ")


def test_assigned_partitions_with_messages_and_without_a_committed_offset() -> None:
    of = group(member())
    owner = of.members[0]

    [sentence] = odd(lag_of(of, partition(owner=owner, committed=None)))
    assert sentence.startswith("No offset of orders-0 is committed, though there are messages: ")
    assert sentence.endswith("and a restart begins where auto.offset.reset says.")
    for fine in (
        lag_of(of, partition(owner=owner, committed=None, begin=100)),  # nothing to read
        lag_of(of, partition(owner=owner, committed=None, end=None)),
    ):
        assert odd(fine) == []


def test_a_share_group_has_no_lag_that_the_coordinator_does_not_return() -> None:
    of = group(member(), member("worker-2"), type_=GroupType.SHARE)
    read, other = (
        PartitionLag("orders", number, None, 0, 100, of.members, is_shared=True, share_lag=share_lag)
        for number, share_lag in enumerate((60, None))
    )

    [sentence] = odd(lag_of(of, replace(read, committed=5), other))
    assert sentence.startswith("The lag of orders-1 is not known: ")
    found = [
        (row["lag"], row["unreadable"], row["member"]) for row in partition_rows(lag_of(of, read, other))
    ]
    assert found == [(60, 0, None), (None, None, None)]


def test_logs_whose_offsets_are_not_known() -> None:
    of = group(member())

    assert odd(lag_of(of, partition(owner=of.members[0], end=None, error="no leader"))) == [
        "The offsets of orders-0 are not known: no leader."
    ]


UNDECODABLE = "malformed subscription: at byte 0, expected 2 bytes of version, found 0 bytes left"


def test_a_member_that_cannot_be_decoded_is_not_one_of_another_subscription() -> None:
    bad = replace(member("2", client_id="old", assigned={}, topics=()), undecodable=UNDECODABLE)

    assert odd(group(member("1"), bad)) == [
        f"old at {bad.host} (2) consumes nothing: {UNDECODABLE}.",
        "1 of 2 members has no partitions.",
    ]


@pytest.mark.parametrize(
    ("metadata", "assignment", "reason"),
    [
        (encode_subscription(Subscription(("orders",))), b"", None),
        (b"", b"", UNDECODABLE),
        (b"!", b"", "malformed subscription: at byte 0, expected 2 bytes of version, found 1 bytes left"),
        (
            encode_subscription(Subscription(("orders",))),
            b"!",
            "malformed assignment: at byte 0, expected 2 bytes of version, found 1 bytes left",
        ),
    ],
)
def test_bytes_that_cannot_be_decoded_have_a_reason(
    metadata: bytes, assignment: bytes, reason: str | None
) -> None:
    row = SimpleNamespace(
        member_id="c-1",
        client_id="c",
        client_host="/10.0.0.7",
        group_instance_id=None,
        member_metadata=metadata,
        member_assignment=assignment,
    )
    answer = SimpleNamespace(
        group_id="g", group_state="Stable", protocol_type="consumer", protocol_data="range", members=[row]
    )
    (described,) = described_classic(answer, Broker(1, "localhost", 9092)).members

    assert described.undecodable == reason


def test_members_without_partitions() -> None:
    assert odd(group(member("1"), member("2", assigned={}))) == ["1 of 2 members has no partitions."]
    assert odd(group(member("1"), member("2", assigned={}), member("3", assigned={}))) == [
        "2 of 3 members have no partitions."
    ]


@pytest.mark.parametrize(
    "other",
    [
        member("2", topics=("orders", "payments")),
        member("2", topics=("orders",), topic_regex="o.*"),
    ],
)
def test_members_with_different_subscriptions(other: Any) -> None:
    topics = {**ORDERS, "payments": topic("payments", 0)}

    assert odd(group(member("1"), other), topics) == ["Members have 2 different subscriptions."]


def test_the_order_of_subscribed_topics_is_no_difference() -> None:
    topics = {**ORDERS, "payments": topic("payments", 0)}
    members = [
        member("1", topics=("orders", "payments")),
        member("2", topics=("payments", "orders")),
    ]

    assert odd(group(*members), topics) == []


def test_members_with_different_versions_of_the_protocol() -> None:
    assert odd(group(member("1", version=1), member("2", version=3), member("3", version=3))) == [
        "Members use versions 1 and 3 of the consumer protocol: clients of different ages or kinds."
    ]


def test_static_members_beside_dynamic_ones() -> None:
    assert odd(group(member("1", instance_id="a"), member("2"))) == [
        "1 of 2 members is static, the others are not."
    ]
    assert odd(group(member("1", instance_id="a"), member("2", instance_id="b"))) == []


def test_what_matters_most_comes_first() -> None:
    of = group(member("1", topics=("ordesr", "orders"), instance_id="a"), member("2", assigned={}))
    lag = lag_of(of, partition(owner=of.members[0], committed=200))

    starts = ["Members subscribe to ordesr", "The committed offset of orders-0", "1 of 2 members has no"]
    assert [sentence.startswith(start) for sentence, start in zip(odd(lag), starts, strict=False)] == [
        True
    ] * 3


# --- Names and rows


def test_names_of_members_are_short_and_differ() -> None:
    of = group(
        member("worker-1111111111", client_id="worker"),
        member("worker-2222222222", client_id="worker"),
        member("rdkafka-3", client_id="rdkafka", instance_id="static-1"),
        member("XyZ", client_id=""),
        member("kip848Id", client_id="other"),
    )

    assert list(member_names(of.members).values()) == [
        "worker/11111111",
        "worker/22222222",
        "static-1",
        "XyZ",
        "other",
    ]


def test_rows_of_partitions() -> None:
    of = group(member())
    partitions = partition(owner=of.members[0], stable=90), partition("old", committed=None)

    assert [tuple(row.values()) for row in partition_rows(lag_of(of, *partitions))] == [
        ("orders", 0, 30, 100, 60, 10, 0, "worker"),
        ("old", 0, None, 100, None, None, None, None),
    ]


def test_the_document_follows_the_schema() -> None:
    of = group(member(target={"orders": (0, 1)}), type_=GroupType.CONSUMER)
    lag = lag_of(of, partition(owner=of.members[0]), partition("old", end=None, error="gone"))

    found = document(lag, ["odd"], 50)

    jsonschema.validate(found, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert found["coordinator"] == {
        "broker": 1,
        "host": "broker-1",
        "port": 9092,
        "offsets_partition": 9,
    }
    assert found["members"][0]["target"] == {"orders": [0, 1]}
    assert [(each["member"], each["error"]) for each in found["partitions"]] == [
        ("worker-1", None),
        (None, "gone"),
    ]
    assert (found["findings"], found["lag"]) == (["odd"], 70)
    jsonschema.validate(
        nothing := document(lag_of(group()), [], None), json.loads(SCHEMA.read_text(encoding="utf-8"))
    )
    bad = replace(member("2", assigned={}), undecodable=UNDECODABLE)
    (left_out,) = document(lag_of(group(bad)), [], 50)["members"]
    assert (left_out["assigned"], left_out["undecodable"]) == (None, UNDECODABLE)
    assert (nothing["assignor"], nothing["lag"], nothing["coordinator"]["offsets_partition"]) == (None,) * 3
