"""States of groups: random histories in random slices, against one derivation of the whole history."""

import random
from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import pytest

from groupwright.pipeline._transforms.consumer_groups import ConsumerGroup
from groupwright.pipeline._transforms.generations import change
from groupwright.pipeline._transforms.group_epochs import epoch_rows, translated
from groupwright.pipeline._transforms.group_states import states_by_date

START = datetime(2026, 11, 20, 12, tzinfo=UTC)
NAMES = {"id-0": "orders", "id-1": "payments"}
DATES = [START.date() + timedelta(days=number) for number in range(8)]


def history(seed: int, prefix: str = "") -> list[dict[str, Any]]:  # noqa: C901 - a case for each change
    """Records of a group over eight dates: it grows, shrinks, changes topics, and is deleted now and then.

    Args:
        seed: Seed of the random choices.
        prefix: Empty for a KIP-848 group, else `share_` or `streams_`, with which the kinds begin.
    """
    choose = random.Random(seed)  # noqa: S311 - reproducible, not secret
    kinds = {"group": f"{prefix or 'consumer_'}group", "member": f"{prefix or 'consumer_'}member"}
    kinds["current"] = f"{prefix}current_member"
    records: list[dict[str, Any]] = []
    time, epoch, members, hash_ = START, 0, dict[str, list[str]](), 1

    def add(kind: str, value: dict[str, Any], *, tombstone: bool = False) -> None:
        nonlocal time
        time = min(time + timedelta(minutes=choose.randint(0, 80)), START + timedelta(days=7))
        records.append({"record_kind": kind, kind: value, "tombstone": tombstone, "log_time": time})

    for step in range(80):
        topology = {"topology_epoch": step // 10} if prefix == "streams_" else {}
        match choose.choice(["join", "leave", "topics", "metadata", "nothing", "pattern", "names", "delete"]):
            case "join":
                members[f"m-{step}"] = choose.sample(["orders", "payments"], choose.randint(0, 2))
                wanted = members[f"m-{step}"]
                value = {
                    "member_id": f"m-{step}",
                    "client_id": f"client-{step % 3}",
                    "topics": wanted,
                    **topology,
                }
                add(kinds["member"], {**value, "regex": None if prefix else choose.choice([None, "o.*"])})
            case "leave" if members:
                gone = choose.choice(sorted(members))
                del members[gone]
                add(kinds["current"], {"member_id": gone}, tombstone=True)
                add(kinds["member"], {"member_id": gone}, tombstone=True)
            case "topics" if members:
                id_ = choose.choice(sorted(members))
                members[id_] = ["orders"]
                value = {"member_id": id_, "client_id": "changed", "topics": ["orders"], **topology}
                add(kinds["member"], {**value, "server_assignor": "uniform"})
            case "metadata":
                hash_ += 1
            case "pattern" if not prefix:
                topics = choose.choice([["orders"], []])
                add("regular_expression", {"regex": "o.*", "topics": topics}, tombstone=not topics)
            case "names" if prefix == "share_":
                topic = {"topic_id": "id-0", "topic": "orders", "partitions": [0]}
                add(f"{prefix}state_partitions", {"initializing": [], "initialized": [topic], "deleting": []})
            case "delete" if choose.random() < 0.3:
                for id_ in members:
                    add(kinds["member"], {"member_id": id_}, tombstone=True)
                add(kinds["group"], {}, tombstone=True)
                members, epoch = {}, 0
            case _:
                pass
        epoch += 1
        add(kinds["group"], {"epoch": epoch, "metadata_hash": hash_})
        partitions = list(range(choose.randint(1, 6)))
        for number, id_ in enumerate(members):
            if choose.random() < 0.1:
                continue  # superseded before it is stable
            mine = partitions[number :: len(members)]
            assigned = [(choose.choice(["id-0", "id-1"]), mine)] if mine else []
            add(kinds["current"], current(prefix, id_, epoch, assigned))
    return records


def current(prefix: str, id_: str, epoch: int, assigned: list[tuple[str, list[int]]]) -> dict[str, Any]:
    """The current assignment of a stable member."""
    column, name = ("active", "subtopology") if prefix == "streams_" else ("assigned", "topic_id")
    listed = [{name: topic, "partitions": partitions} for topic, partitions in assigned]
    return {"member_id": id_, "epoch": epoch, "state": "stable", column: listed}


def slices(seed: int, records: list[dict[str, Any]]) -> Iterator[list[dict[str, Any]]]:
    """The records in up to seven parts."""
    cuts = sorted(random.Random(seed).choices(range(len(records)), k=6))  # noqa: S311 - as above
    for first, end in zip([0, *cuts], [*cuts, len(records)], strict=True):
        yield records[first:end]


@pytest.mark.parametrize("seed", range(25))
def test_rebalances_of_a_history_in_slices_are_those_of_the_whole(seed: int) -> None:
    records = history(seed)
    whole = ConsumerGroup(names=dict(NAMES))
    expected = [change(whole.last, each) for each in whole.generations(records)]
    found, text = [], None
    for part in slices(seed, records):
        group = ConsumerGroup.from_json(text)
        group.learn_names(NAMES)
        found += [change(group.last, each) for each in group.generations(part)]
        text = group.to_json()
    assert found == expected
    assert len(expected) > 10
    assert text == whole.to_json()


@pytest.mark.parametrize("prefix", ["share_", "streams_"])
@pytest.mark.parametrize("seed", range(25))
def test_epochs_of_share_and_streams_groups_in_slices_are_those_of_the_whole(seed: int, prefix: str) -> None:
    records = history(seed, prefix)
    found: list[dict[str, Any]] = []
    group = ConsumerGroup(names={"id-0": "orders"})
    expected = list(epoch_rows(records, group))
    text = ConsumerGroup(names={"id-0": "orders"}).to_json()
    for part in slices(seed, records):
        group = ConsumerGroup.from_json(text)
        group.learn_names({"id-0": "orders"})
        found += epoch_rows(part, group)
        text = group.to_json()
    assert found == expected
    assert len(expected) > 10


@pytest.mark.parametrize("seed", range(10))
def test_states_by_date_are_those_after_the_records_of_each_date(seed: int) -> None:
    records = history(seed)
    found = states_by_date(None, records, NAMES, DATES, lambda part: (part, {}))
    for day, text in found:
        assert text == after(records, day)
    middle = DATES[3]
    later = [each for each in records if each["log_time"].date() > middle]
    again = states_by_date(dict(found)[middle], later, NAMES, DATES[4:], lambda part: (part, {}))
    assert again == found[4:]


def after(records: list[dict[str, Any]], day: date) -> str | None:
    group = ConsumerGroup(names=dict(NAMES))
    for _ in group.generations(each for each in records if each["log_time"].date() <= day):
        pass
    return group.to_json()


def test_a_name_that_is_learned_later_is_that_of_the_last_generation_too() -> None:
    topics = [{"topic_id": "id-0", "partitions": [0, 1]}]
    current = {"member_id": "m", "epoch": 1, "state": "stable", "assigned": topics}
    records = [
        {"record_kind": kind, kind: value, "tombstone": False, "log_time": START}
        for kind, value in (
            ("consumer_member", {"member_id": "m", "client_id": "c", "topics": ["orders"]}),
            ("consumer_group", {"epoch": 1}),
            ("current_member", current),
        )
    ]
    group = ConsumerGroup()
    assert [each.members["m"].assigned for each in group.generations(records)] == [{"id-0": (0, 1)}]
    group = ConsumerGroup.from_json(group.to_json())
    group.learn_names(NAMES)
    assert group.last is not None
    assert group.last.members["m"].assigned == {"orders": (0, 1)}
    assert group.last.members["m"].subscribed == ("orders",)


def test_records_without_a_counterpart_in_kip_848_have_names_alone() -> None:
    topic = {"topic_id": "id-0", "topic": "orders", "partitions": [0]}
    value = {"initializing": [], "initialized": [topic], "deleting": []}
    record = {"record_kind": "share_state_partitions", "share_state_partitions": value, "tombstone": False}
    assert translated([record]) == ([], {"id-0": "orders"})
