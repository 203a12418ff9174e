"""A group's history, as rows of the tables, written down in a few words."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from groupwright.assignors import Assignor, Group, Member
from groupwright.pipeline._what_if.assignment_cache import AssignmentCache
from groupwright.pipeline._what_if.history import TopicMetadata
from groupwright.pipeline._what_if.loading import LoadedAssignor, load_assignor
from groupwright.pipeline._what_if.replay import replay_group

_TOPIC_PARTITIONS = pa.list_(pa.struct([("topic", pa.string()), ("partitions", pa.list_(pa.int32()))]))
_ROWS = pa.schema(
    [
        ("generation", pa.int32()),
        ("log_partition", pa.int32()),
        ("log_offset", pa.int64()),
        ("time", pa.int64()),
        ("member_id", pa.string()),
        ("instance_id", pa.string()),
        ("rack", pa.string()),
        ("subscribed", pa.list_(pa.string())),
        ("assigned", _TOPIC_PARTITIONS),
        ("is_empty", pa.bool_()),
        ("protocol", pa.string()),
        ("started", pa.int64()),
        ("ended", pa.int64()),
    ]
)
Shares = Mapping[str, Mapping[str, Sequence[int]]]


@dataclass
class Past:
    """Rows of one group, generation after generation, and what playing them gives."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    offset: int = 0

    def generation(
        self,
        number: int | None,
        shares: Shares,
        *,
        subscribed: Mapping[str, Sequence[str]] | None = None,
        racks: Mapping[str, str] | None = None,
        instances: Mapping[str, str] | None = None,
        protocol: str = "range",
        measured: tuple[float, float] | None = None,
    ) -> "Past":
        """Add a generation with these assignments, a second after the previous one.

        Members subscribe to all topics unless specified. `measured` are the seconds at which the rebalance
        started and ended; generation n is written n seconds after the start, if all are added in order.
        """
        self.offset += 1
        topics = sorted({topic for share in shares.values() for topic in share})
        where = {
            "generation": number,
            "log_partition": 7,
            "log_offset": self.offset,
            "time": self.offset * 1_000_000,
        }
        started, ended = (None, None) if measured is None else (round(1e6 * each) for each in measured)
        self.rows.append(
            {
                **where,
                "is_empty": not shares,
                "protocol": protocol,
                "started": started,
                "ended": ended,
            }
        )
        for id_, share in shares.items():
            self.rows.append(
                {
                    **where,
                    "member_id": id_,
                    "instance_id": (instances or {}).get(id_),
                    "rack": (racks or {}).get(id_),
                    "subscribed": list((subscribed or {}).get(id_, topics)),
                    "assigned": [{"topic": t, "partitions": list(p)} for t, p in share.items()],
                    "is_empty": False,
                }
            )
        return self

    def table(self) -> pa.Table:
        """Return the rows as a worker gets them."""
        return pa.Table.from_pylist(self.rows, _ROWS)

    def play(
        self, *assignors: str | type[Assignor], topics: Mapping[str, TopicMetadata] | None = None
    ) -> dict[str, list[dict[str, Any]]]:
        """Return by assignor the rows of its generations."""
        loaded = [
            load_assignor(each) if isinstance(each, str) else LoadedAssignor(each.name, each, is_cached=False)
            for each in assignors
        ]
        table = replay_group("billing", self.table(), loaded, topics or {}, AssignmentCache())
        played: dict[str, list[dict[str, Any]]] = {}
        for row in table.to_pylist():
            played.setdefault(row["assignor"], []).append(row)
        return played


@pytest.fixture
def past() -> Past:
    return Past()


@pytest.fixture
def column() -> Callable[[Sequence[Mapping[str, Any]], str], list[Any]]:
    """Return one column of rows."""
    return lambda rows, name: [row[name] for row in rows]


@pytest.fixture
def joins_and_leaves() -> Callable[..., list[Callable[[Group], Group]]]:
    """Makes random events for `simulate`, in which members that subscribe to a topic join and leave."""

    def events(seed: int, topic: str, count: int) -> list[Callable[[Group], Group]]:
        random = np.random.default_rng(seed)

        def change(group: Group) -> Group:
            members = list(group.members)
            if len(members) > 2 and random.random() < 0.5:
                members.pop(int(random.integers(len(members))))
            else:
                members.append(Member(f"m-{int(random.integers(1_000_000))}", [topic]))
            return Group(members, group.topics)

        return [change] * count

    return events
