"""Groups that are converted from classic to KIP-848 and back, by the records that brokers write."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from groupwright.pipeline._transforms.rebalances import _rebalances

START = datetime(2026, 11, 20, 12, tzinfo=UTC)


class Log:
    """The records of one group; `write` adds those that the coordinator writes at once."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []

    def write(self, *records: dict[str, Any]) -> None:
        time = START + timedelta(seconds=len(self.rows))
        for record in records:
            kind = "generation" if "generation" in record else "record"
            row = {"group_id": "billing", "time": time, "log_offset": len(self.rows)}
            row |= dict.fromkeys(("generation", "record", "event", "rewind", "state"))
            self.rows.append({**row, kind: {"log_time": time, **record} if kind == "record" else record})

    def rebalances(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = _rebalances(
            pa.Table.from_pylist(self.rows), {"id": "orders"}, begins=True
        ).to_pylist()
        return found


def classic(
    number: int | None, state_time: datetime | None = None, **assigned: Sequence[int]
) -> dict[str, Any]:
    """A generation of a classic group, or its tombstone."""
    members = [
        {
            "member_id": id_,
            "client_id": id_,
            "subscribed": ["orders"],
            "assigned": [{"topic": "orders", "partitions": list(partitions)}],
        }
        for id_, partitions in assigned.items()
    ]
    is_tombstone = number is None
    return {
        "generation": number,
        "protocol": None if is_tombstone else "range",
        "protocol_type": None if is_tombstone else "consumer",
        "state_time": state_time,
        "tombstone": is_tombstone,
        "members": members,
    }


def epoch(number: int | None) -> dict[str, Any]:
    """The epoch of a KIP-848 group, or its tombstone."""
    value = {"epoch": number, "metadata_hash": 7}
    return {"record_kind": "consumer_group", "consumer_group": value, "tombstone": number is None}


def member(id_: str) -> dict[str, Any]:
    value = {"member_id": id_, "client_id": id_, "topics": ["orders"]}
    return {"record_kind": "consumer_member", "consumer_member": value, "tombstone": False}


def current(id_: str, number: int, *partitions: int) -> dict[str, Any]:
    assigned = [{"topic_id": "id", "partitions": list(partitions)}]
    value = {"member_id": id_, "epoch": number, "state": "stable", "assigned": assigned}
    return {"record_kind": "current_member", "current_member": value, "tombstone": False}


def gone(id_: str) -> dict[str, Any]:
    return {"record_kind": "consumer_member", "consumer_member": {"member_id": id_}, "tombstone": True}


def upgraded() -> Log:
    """A classic group of two members, which becomes a KIP-848 group as a third one joins."""
    log = Log()
    log.write(classic(1, a=(0, 1, 2, 3)))
    log.write(classic(2, a=(0, 1), b=(2, 3)))
    log.write(
        classic(None),
        *(member("a"), member("b")),
        epoch(2),
        *(current("a", 2, 0, 1), current("b", 2, 2, 3)),
        *(member("c"), epoch(3)),
    )
    for record in (current("b", 3, 2), current("c", 3, 3), current("a", 3, 0, 1)):
        log.write(record)
    return log


def told(row: dict[str, Any]) -> tuple[Any, ...]:
    names = ("group_type", "generation", "previous_generation", "cause", "joined", "left", "moved")
    return tuple(row[name] for name in names)


FIRST_TWO: list[tuple[Any, ...]] = [
    ("classic", 1, None, "first", ["a"], [], 0),
    ("classic", 2, 1, "join", ["b"], [], 2),
]


def test_a_group_that_is_upgraded_keeps_its_history() -> None:
    """The epoch with which it begins is the classic group's generation: no rebalance."""
    *before, third = upgraded().rebalances()
    assert [told(row) for row in before] == FIRST_TWO
    assert told(third) == ("consumer", 3, 2, "join", ["c"], [], 1)
    assert third["members_before"] == 2


def test_a_record_that_repeats_an_older_generation_is_no_rebalance() -> None:
    """A static member restarts with another id; the record of the generation itself is not read again."""
    log = Log()
    log.write(classic(5, START - timedelta(days=8), a_2=(0, 1), b=(2, 3)))
    log.write(classic(6, START, b=(0, 1, 2, 3)))
    assert [told(row) for row in log.rebalances()] == [("classic", 6, 5, "leave", [], ["a_2"], 0)]


def test_the_first_epoch_after_an_upgrade_can_be_a_rebalance() -> None:
    """As c joins before b has reached the epoch of the conversion."""
    log = Log()
    for number in (1, 2, 3):
        log.write(classic(number, a=(0, 1), b=(2, 3)))
    log.write(classic(None), member("a"), member("b"), epoch(3), current("a", 3, 0, 1), member("c"), epoch(4))
    log.write(current("a", 4, 0), current("b", 4, 2, 3), current("c", 4, 1))
    assert told(log.rebalances()[-1]) == ("consumer", 4, 3, "join", ["c"], [], 1)


def test_a_group_that_is_downgraded_keeps_its_history() -> None:
    """The last member that needs KIP-848 has left. The generation of the conversion is no rebalance."""
    log = upgraded()
    log.write(gone("a"), gone("b"), gone("c"), epoch(None), classic(3, a=(0, 1), b=(2,)))
    log.write(classic(4, a=(0, 1), b=(2, 3)))
    *_, third, fourth = log.rebalances()
    assert (third["generation"], third["group_type"]) == (3, "consumer")
    assert told(fourth) == ("classic", 4, 3, "leave", [], ["c"], 0)


def test_a_group_that_was_deleted_and_is_created_with_another_protocol_is_new() -> None:
    log = Log()
    log.write(classic(1, a=(0, 1)))
    log.write(classic(2))
    log.write(classic(None))
    log.write(member("b"), epoch(1), current("b", 1, 0, 1))
    log.write(gone("b"), epoch(2))
    log.write(epoch(None))
    log.write(classic(1, c=(0, 1)))
    assert [told(row)[:4] for row in log.rebalances()] == [
        ("classic", 1, None, "first"),
        ("classic", 2, 1, "leave"),
        ("consumer", 1, None, "first"),
        ("consumer", 2, 1, "leave"),
        ("classic", 1, None, "first"),
    ]


def test_an_empty_classic_group_that_becomes_a_kip_848_group_keeps_its_history() -> None:
    log = Log()
    log.write(classic(1, a=(0, 1)))
    log.write(classic(2))
    log.write(classic(None), member("b"), epoch(1), current("b", 1, 0, 1))
    assert told(log.rebalances()[-1]) == ("consumer", 1, 2, "first", ["b"], [], 0)
