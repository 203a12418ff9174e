"""Share and streams groups: epochs that all members have reached, from their records. Pure."""

from datetime import UTC, datetime, timedelta
from typing import Any

from groupwright.pipeline._transforms.group_epochs import epoch_rows

START = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Log:
    """Records of a group, a second apart."""

    def __init__(self, group_type: str) -> None:
        self._type = group_type
        self.records: list[dict[str, Any]] = []

    def add(self, kind: str, *, tombstone: bool = False, **value: Any) -> None:
        name = f"{self._type}_{kind}"
        time = START + timedelta(seconds=len(self.records))
        record = {"record_kind": name, name: value, "tombstone": tombstone, "log_time": time}
        self.records.append(record)

    def gone(self, id_: str) -> None:
        for kind in ("current_member", "target_member", "member"):
            self.add(kind, tombstone=True, member_id=id_)

    def rows(self) -> list[dict[str, Any]]:
        return list(epoch_rows(self.records))


def test_members_of_a_share_group_share_its_partitions() -> None:
    log = Log("share")
    both = [{"topic_id": "id-of-jobs", "partitions": [0, 1]}]
    log.add("member", member_id="a", client_id="one", topics=["jobs"])
    log.add("group", epoch=1, metadata_hash=7)
    log.add("target_assignment", epoch=1, time=START)
    log.add("state_partitions", initializing=[], initialized=[], deleting=[])
    log.add("current_member", member_id="a", epoch=1, state="stable", assigned=both)
    log.add("member", member_id="b", client_id="two", topics=["jobs"])
    log.add("group", epoch=2, metadata_hash=7)
    log.add("current_member", member_id="b", epoch=2, state="stable", assigned=both)
    log.add("current_member", member_id="a", epoch=2, state="stable", assigned=both)
    topic = {"topic_id": "id-of-jobs", "topic": "jobs", "partitions": [0, 1]}
    log.add("state_partitions", initializing=[], initialized=[topic], deleting=[])
    first, second = log.rows()
    assert (first["cause"], first["generation"], first["previous_generation"]) == ("first", 1, None)
    assert (first["duration_seconds"], first["joined"], first["members_before"]) == (3.0, ("a",), 0)
    assert (second["cause"], second["generation"], second["previous_generation"]) == ("join", 2, 1)
    assert (second["joined"], second["left"]) == (("b",), ())
    assert (second["members_before"], second["members_after"], second["partitions"]) == (1, 2, 2)
    assert second["members"] == [
        {
            "member_id": id_,
            "client_id": client,
            "subscribed": ("jobs",),
            "assigned": [{"topic": "jobs", "partitions": [0, 1]}],
        }
        for id_, client in (("a", "one"), ("b", "two"))
    ]


def test_a_deleted_share_group_begins_again() -> None:
    log = Log("share")
    for client in ("one", "two"):
        log.add("member", member_id="a", client_id=client, topics=["jobs"])
        log.add("group", epoch=1, metadata_hash=7)
        log.add("current_member", member_id="a", epoch=1, state="stable", assigned=[])
        log.gone("a")
        log.add("group", epoch=2, metadata_hash=7)
        log.add("group", tombstone=True)
    assert [
        (row["generation"], row["previous_generation"], row["cause"], row["members_after"])
        for row in log.rows()
    ] == [(1, None, "first", 1), (2, 1, "leave", 0)] * 2


def test_a_history_that_begins_in_the_middle_does_not_say_who_joined() -> None:
    log = Log("share")
    log.add("member", member_id="a", client_id="one", topics=["jobs"])
    log.add("group", epoch=57, metadata_hash=7)
    log.add("current_member", member_id="a", epoch=57, state="stable", assigned=[])
    log.gone("a")
    log.add("group", epoch=58, metadata_hash=7)
    first, second = log.rows()
    assert (first["cause"], first["joined"], first["left"]) == ("unknown", None, None)
    assert (first["members_before"], first["members_after"]) == (None, 1)
    assert (second["cause"], second["left"], second["members_before"]) == ("leave", ("a",), 1)


def test_a_streams_group_has_active_tasks_and_a_topology() -> None:
    log = Log("streams")
    tasks = [{"subtopology": "0", "partitions": [0, 1, 2]}]
    log.add("topology", epoch=0, subtopologies=[])
    log.add("member", member_id="a", client_id="app", topology_epoch=0)
    log.add("group", epoch=1, metadata_hash=7, validated_topology_epoch=0)
    log.add("current_member", member_id="a", epoch=1, state="unreleased", active=[], standby=tasks)
    log.add("current_member", member_id="a", epoch=1, state="stable", active=tasks, standby=[])
    log.add("member", member_id="a", client_id="app", topology_epoch=1)
    log.add("group", epoch=2, metadata_hash=7, validated_topology_epoch=1)
    log.add("current_member", member_id="a", epoch=2, state="stable", active=tasks, standby=[])
    first, second = log.rows()
    assert (first["duration_seconds"], first["partitions"], first["cause"]) == (2.0, 3, "first")
    assert first["members"][0]["assigned"] == [{"topic": "0", "partitions": [0, 1, 2]}]
    assert (second["cause"], second["joined"], second["left"]) == ("subscription", (), ())


def test_an_end_that_another_brokers_clock_puts_before_the_start_has_no_duration() -> None:
    log = Log("share")
    log.add("member", member_id="a", topics=[])
    log.add("group", epoch=1)
    log.add("current_member", member_id="a", epoch=1, state="stable", assigned=[])
    log.records[2]["log_time"] = START
    (row,) = log.rows()
    assert (row["started"], row["duration_seconds"], row["completed"]) == (None, None, START)
