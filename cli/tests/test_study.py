"""Groups to study: their files, the events that are written, and the steps that they become."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from groupwright import cli
from groupwright.assignors import (
    Assignor,
    CoPartitionedStickyAssignor,
    Group,
    LoadAwareAssignor,
    PartitionsByTopic,
    StickyAssignor,
    Topic,
)
from groupwright.cli._cluster.lookup import member_names
from groupwright.cli._cluster.model import DescribedGroup, GroupType
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli._study.events import (
    AddPartitions,
    ChangeWeights,
    Event,
    Join,
    Leave,
    NewMember,
    Restart,
    events_of,
)
from groupwright.cli._study.files import document_of, read_study, study_of, write_study
from groupwright.cli._study.live import check_is_of_consumers, subscribed_in_vain, with_matches, with_owned
from groupwright.cli._study.model import find_member
from groupwright.cli._study.options import warn
from groupwright.cli._study.steps import Scenario, make_scenario
from integration_tests.harness.described_groups import group
from integration_tests.harness.described_groups import member as live_member
from integration_tests.harness.studied_groups import member, study

SCHEMA = json.loads(
    (Path(cli.__file__).parent / "_schemas" / "group.schema.json").read_text(encoding="utf-8")
)
WHOLE: dict[str, Any] = {
    "group": "billing",
    "type": "consumer",
    "state": "Stable",
    "assignor": "uniform",
    "epoch": 5,
    "members": [
        {
            "id": "m-1",
            "client_id": "app",
            "instance_id": "pod-1",
            "rack": "a",
            "topics": ["orders"],
            "assigned": {"orders": [0, 1]},
            "owned": {"orders": [0]},
            "target": {"orders": [0]},
            "epoch": 4,
            "capacity": 2.0,
            "is_classic": True,
            "user_data": "AAE=",
            "undecodable": None,
        }
    ],
    "topics": {"orders": {"partitions": 2, "racks": [["a", "b"], ["b"]], "weights": [3.0, 1.5]}},
}
EVENTS: list[dict[str, Any]] = [
    {"join": 2},
    {"join": [{"client_id": "big", "capacity": 4, "rack": "b", "topics": ["orders"]}]},
    {"leave": "pod-1"},
    {"leave": ["new-1", "new-2"]},
    {"add_partitions": {"orders": 4}},
    {"weights": {"orders": [1, 2, 3, 4]}},
    {"restart": "rolling"},
]


# --- Files


def test_a_file_is_read_and_written_as_it_is(tmp_path: Path) -> None:
    jsonschema.validate(WHOLE, SCHEMA)
    found = study_of(WHOLE)

    assert document_of(found) == WHOLE
    write_study(tmp_path / "group.json", found)
    assert read_study(tmp_path / "group.json") == found
    assert study_of({"group": WHOLE, "results": []}) == found  # the output of simulate


def test_the_smallest_file_has_members_and_topics() -> None:
    smallest = {"members": [{"id": "a", "topics": ["orders", "gone"]}], "topics": {"orders": 3}}
    jsonschema.validate(smallest, SCHEMA)

    found = study_of(smallest)

    assert (found.id, found.assignor, found.missing) == ("group", None, ("gone",))
    assert not found.has_assignment
    assert found.topics == {"orders": Topic(3)}
    jsonschema.validate(document_of(found), SCHEMA)


def test_events_of_a_file() -> None:
    document = {**WHOLE, "events": EVENTS}
    jsonschema.validate(document, SCHEMA)

    assert study_of(document).events == (
        Join((NewMember(), NewMember())),
        Join((NewMember("big", capacity=4, rack="b", topics=("orders",)),)),
        Leave(("pod-1",)),
        Leave(("new-1", "new-2")),
        AddPartitions("orders", 4),
        ChangeWeights({"orders": [1, 2, 3, 4]}),
        Restart("rolling"),
    )


def test_unknown_weights_are_the_median_of_their_topic() -> None:
    found = study([member("a")], {"orders": {"partitions": 3, "weights": [1, None, 3]}})

    assert found.topics["orders"] == Topic(3, weights=[1, 2, 3])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": 5}, "members must be a list, not 5"),
        ({"membrs": []}, "the file has an unknown key 'membrs', did you mean 'members'?"),
        ({"members": [{"id": "a"}]}, "members[0] has no topics"),
        ({"members": [{"id": "", "topics": []}]}, 'members[0].id must be a text that is not empty, not ""'),
        (
            {"members": [{"id": "a", "topics": "orders"}]},
            'members[0].topics must be a list of names, not "orders"',
        ),
        (
            {"members": [{"id": "a", "topics": [], "instanceid": "x"}]},
            "members[0] has an unknown key 'instanceid', did you mean 'instance_id'?",
        ),
        ({"members": [member("a"), member("a")]}, "members[1].id 'a' is that of another member too"),
        (
            {"members": [member("a", assigned={}), member("b")]},
            "members[1] has no assigned, but other members have: write it for all or for none",
        ),
        (
            {"members": [member("a", assigned={"orders": [-1]})]},
            "members[0].assigned.orders must be from 0 to 1000000, not -1",
        ),
        (
            {"members": [member("a", assigned={"orders": [1]}), member("b", assigned={"orders": [0, 1]})]},
            "members[1].assigned has orders-1, which members[0] has too",
        ),
        (
            {"members": [member("a", capacity=10**400)]},
            "members[0].capacity must be a finite number that is not negative, not 1000000000",
        ),
        ({"members": [member("a", capacity=0)]}, "members[0].capacity: capacity must be a number from 0.001"),
        ({"members": [member("a", user_data="%")]}, 'members[0].user_data must be bytes in base64, not "%"'),
        ({"members": [member("a", is_classic=1)]}, "members[0].is_classic must be true or false, not 1"),
        ({"topics": {"orders": "3"}}, 'topics.orders must be an integer, not "3"'),
        (
            {"topics": {"orders": {"partitions": 2, "racks": [["a"]]}}},
            "topics.orders: racks must have one element per partition: 1 for 2 partitions",
        ),
        (
            {"topics": {"orders": {"partitions": 1, "weights": [-1]}}},
            "topics.orders.weights[0] must be a finite number that is not negative, not -1",
        ),
        ({"type": "share"}, 'type must be one of classic, consumer, not "share"'),
        ({"events": [{"join": 0}]}, "events[0].join must be from 1 to 10000, not 0"),
        ({"events": [{"joins": 1}]}, "events[0] has an unknown key 'joins', did you mean 'join'?"),
        ({"events": [{}]}, "events[0] must have one of join, leave, add_partitions, weights and restart"),
        ({"events": [{"restart": 1}]}, "events[0].restart must be a text that is not empty, not 1"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "group.json"
    path.write_text(json.dumps({**WHOLE, **change}), encoding="utf-8")

    with pytest.raises(CommandError) as raised:
        read_study(path)

    assert str(raised.value).startswith(f"{path}: {message}")
    assert raised.value.status is ExitStatus.USAGE


def test_the_members_that_there_are_are_sorted() -> None:
    found = study([member("c-2"), member("c-1")])
    with pytest.raises(CommandError, match=r"no member 'zzz'; there are: c-1, c-2$"):
        find_member(found.members, {each.id: each.id for each in found.members}, "zzz")


def test_a_file_that_is_no_json_or_does_not_exist_is_named(tmp_path: Path) -> None:
    (tmp_path / "group.json").write_text("{", encoding="utf-8")

    with pytest.raises(CommandError, match=r"group\.json cannot be read: Expecting property name"):
        read_study(tmp_path / "group.json")
    with pytest.raises(CommandError, match=r"there is no file '.*/billing'$"):
        read_study(tmp_path / "billing")
    with pytest.raises(CommandError, match=r"nowhere/group\.json cannot be written: No such file"):
        write_study(tmp_path / "nowhere" / "group.json", study([]))


# --- Groups of a cluster


@pytest.mark.parametrize(
    ("absent", "forbidden", "status", "message"),
    [
        (["nope"], [], 4, "members subscribe to nope, which does not exist\n"),
        (["nope", "no"], [], 4, "members subscribe to nope, no, which do not exist\n"),
        ([], ["secret"], 5, "members subscribe to secret, which these credentials may not describe\n"),
        (["nope"], ["secret"], 7, "which does not exist\ngroupwright simulate: members subscribe to secret"),
        ([], [], 0, ""),
    ],
)
def test_a_topic_that_does_not_exist_is_told_from_one_that_may_not_be_described(
    absent: list[str], forbidden: list[str], status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert warn("simulate", list(subscribed_in_vain(absent, forbidden))) == status
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("described", "message"),
    [
        (group(live_member(), type_=GroupType.SHARE), "'billing' is a share group, whose members have no"),
        (group(live_member(), type_=GroupType.STREAMS), "'billing' is a streams group, whose partitions"),
        (
            group(live_member(), protocol_type="connect"),
            "the members of 'billing' are not consumers but of the kind 'connect', which assign in a way of",
        ),
    ],
)
def test_groups_that_no_client_assigns_are_refused(described: DescribedGroup, message: str) -> None:
    with pytest.raises(CommandError) as raised:
        check_is_of_consumers(described)

    assert str(raised.value).startswith(message)
    assert raised.value.status is ExitStatus.REFUSED
    check_is_of_consumers(group(protocol_type=""))  # it only holds offsets
    check_is_of_consumers(group(live_member(), type_=GroupType.CONSUMER, protocol_type="consumer"))


def test_a_pattern_is_resolved_to_the_topics_that_match() -> None:
    topics = ["orders", "orders-eu", "audit"]
    of_pattern = live_member(topics=("audit",), topic_regex="orders.*", assigned={"orders": (0,)})

    assert with_matches(of_pattern, topics).topics == ("audit", "orders", "orders-eu")
    # Go's syntax, which the broker has, and Python has not:
    assert with_matches(replace(of_pattern, topic_regex=r"\\pN("), topics).topics == ("audit", "orders")
    assert with_matches(live_member(), topics) == live_member()


@pytest.mark.parametrize(
    "assignor",
    [
        StickyAssignor(),
        LoadAwareAssignor(),
        CoPartitionedStickyAssignor(by_load=LoadAwareAssignor(capacity=2.0)),
    ],
    ids=lambda each: each.name,
)
def test_eager_members_have_what_they_told_their_leader(assignor: Assignor) -> None:
    assignor.on_assignment(PartitionsByTopic({"orders": [2, 3]}), 4)
    member = replace(live_member(), user_data=assignor.user_data(frozenset()))
    eager = replace(group(member), assignor=assignor.name)

    assert with_owned(eager, member).owned == {"orders": (2, 3)}
    assert with_owned(eager, replace(member, user_data=b"?")).owned == {}
    assert with_owned(replace(eager, assignor="range"), member) == member
    claimed = replace(member, owned={"orders": (1,)})
    assert with_owned(eager, claimed) == claimed


# --- Events


def test_events_of_options_are_in_a_fixed_order() -> None:
    found = events_of(["2", "c-4", "c-5:rack-b"], ["m-3"], ["orders=24", "audit=+2"], ["rolling", "m-1"])

    assert found == (
        Join((NewMember(), NewMember())),
        Join((NewMember("c-4"),)),
        Join((NewMember("c-5", rack="rack-b"),)),
        Leave(("m-3",)),
        AddPartitions("orders", 24),
        AddPartitions("audit", 2, is_increment=True),
        Restart("rolling"),
        Restart("m-1"),
    )


@pytest.mark.parametrize(
    ("join", "add_partitions", "message"),
    [
        (["0"], [], "--join 0: write a number from 1 to 10000"),
        (["-2"], [], "--join '-2' is not understood: write the number of new members"),
        ([":rack"], [], "--join ':rack' is not understood"),
        ([], ["orders"], "--add-partitions 'orders' is not understood: write TOPIC=TOTAL, as in orders=24"),
        ([], ["orders=x"], "--add-partitions 'orders=x' is not understood"),
        ([], ["=3"], "--add-partitions '=3' is not understood"),
    ],
)
def test_options_that_are_not_events_are_refused(
    join: list[str], add_partitions: list[str], message: str
) -> None:
    with pytest.raises(CommandError) as raised:
        events_of(join, [], add_partitions, [])

    assert str(raised.value).startswith(message)
    assert raised.value.status is ExitStatus.USAGE


# --- Steps


def after_steps(found: Scenario) -> tuple[list[str], Group]:
    """Return the labels of a scenario, and the group after its steps."""
    now = found.study.as_group({})
    for step in found.steps:
        now = now if step.change is None else step.change(now)
    return [step.label for step in found.steps], now


def scenario(*events: Event, as_dynamic: bool = False, members: Any = None, topics: Any = None) -> Scenario:
    """Return the scenario of a group with the dynamic member a-1 and the static member pod-1."""
    made = members or [
        member("a-1", client_id="a", rack="r1"),
        member("x-1", client_id="x", instance_id="pod-1", rack="r2"),
        member("x-2", "orders", "audit", client_id="x", rack="r2"),
    ]
    return make_scenario(study(made, topics or {"orders": 6, "audit": 2}), events, as_dynamic=as_dynamic)


def test_new_members_are_as_most_others_are() -> None:
    found = scenario(Join((NewMember(), NewMember())), Join((NewMember("c", rack="r3", topics=("audit",)),)))

    labels, after = after_steps(found)

    assert labels == ["new-1 and new-2 join", "c joins"]
    first, second, third = after.members[3:]
    assert {found.names[each.id] for each in (first, second, third)} == {"new-1", "new-2", "c"}
    assert first.id.startswith("x-")  # the client id of most
    assert first.id != second.id
    assert (first.topics, first.rack, second.rack) == (("orders",), "r1", "r1")  # the rack with the fewest
    assert (third.topics, third.rack) == (("audit",), "r3")
    assert found.has_generated_ids
    assert (
        after_steps(scenario(Join((NewMember(),))))[1].members[3].id == first.id
    )  # each run generates the same


def test_a_dynamic_member_restarts_under_a_new_id_and_keeps_its_name() -> None:
    found = scenario(Restart("a"), Leave(("a",)))

    labels, after = after_steps(found)

    assert labels == ["a restarts: it leaves", "a restarts: it joins", "a leaves"]
    assert "a-1" not in [each.id for each in after.members]
    assert list(found.names.values()).count("a") == 2


def test_a_member_named_twice_leaves_once() -> None:
    labels, after = after_steps(scenario(Leave(("a", "a-1"))))

    assert labels == ["a leaves"]
    assert "a-1" not in [each.id for each in after.members]


def test_a_static_member_restarts_without_a_rebalance() -> None:
    static, dynamic = scenario(Restart("rolling")), scenario(Restart("rolling"), as_dynamic=True)

    assert [step.label for step in static.steps if step.change is None] == [
        "pod-1 restarts, as a static member"
    ]
    assert [step.label for step in static.steps].count("pod-1 restarts: it leaves") == 0
    assert len(static.steps) == 5
    assert len(dynamic.steps) == 6
    assert all(step.change is not None for step in dynamic.steps)
    assert all(each.instance_id is None for each in after_steps(dynamic)[1].members)


def test_a_topic_that_grows_keeps_weights_and_racks() -> None:
    topics = {"orders": {"partitions": 2, "racks": [["r1"], ["r2"]], "weights": [1, 3]}}
    found = scenario(
        AddPartitions("orders", 3, is_increment=True), ChangeWeights({"orders": [1] * 5}), topics=topics
    )

    (label, _), before = found.steps, found.study.as_group({})
    assert label.change is not None
    grown = label.change(before).topics["orders"]

    assert label.label == "orders grows from 2 to 5 partitions"
    r1, r2 = frozenset({"r1"}), frozenset({"r2"})
    assert grown == Topic(5, [r1, r2, r1, r2, r1], [1, 3, 2, 2, 2])
    assert after_steps(found)[1].topics["orders"] == Topic(5, grown.racks, [1] * 5)


@pytest.mark.parametrize(
    ("event", "status", "message"),
    [
        (Leave(("zzz",)), ExitStatus.NOT_FOUND, "there is no member 'zzz'; there are: a, pod-1, pod-2"),
        (Leave(("pod-11",)), ExitStatus.NOT_FOUND, "there is no member 'pod-11', did you mean 'pod-1'?"),
        (Leave(("x",)), ExitStatus.USAGE, "2 members are named 'x': write one of pod-1, pod-2"),
        (Join((NewMember("a"),)), ExitStatus.USAGE, "a member 'a' is in the group already"),
        (AddPartitions("ordesr", 9), ExitStatus.NOT_FOUND, "the group has no topic 'ordesr', did you mean"),
        (AddPartitions("orders", 6), ExitStatus.USAGE, "orders has 6 partitions already, and cannot get 6"),
        (AddPartitions("orders", 10**7), ExitStatus.USAGE, "orders cannot get 10000000 partitions: write at"),
        (ChangeWeights({"orders": [1]}), ExitStatus.USAGE, "the event has 1 weights of orders, which has 6"),
    ],
)
def test_events_that_are_not_possible_are_refused(event: Event, status: ExitStatus, message: str) -> None:
    members = [
        member("a-1", client_id="a"),
        member("x-1", client_id="x", instance_id="pod-1"),
        member("x-2", client_id="x", instance_id="pod-2"),
    ]
    with pytest.raises(CommandError) as raised:
        scenario(event, members=members)

    assert str(raised.value).startswith(message)
    assert raised.value.status is status


def test_members_are_found_by_each_of_their_names() -> None:
    found = study([member("a-1", client_id="a"), member("x-1", client_id="x", instance_id="pod-1")])
    names = member_names(found.members)

    for wanted, id_ in (("a", "a-1"), ("a-1", "a-1"), ("pod-1", "x-1"), ("x", "x-1"), ("x-1", "x-1")):
        assert find_member(found.members, names, wanted) == id_
