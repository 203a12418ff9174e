"""Replay of a group's history with several assignors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from groupwright.assignors import UNASSIGNED
from groupwright.pipeline._what_if.assignment_cache import AssignmentCache
from groupwright.pipeline._what_if.custom_assignor import CustomAssignor
from groupwright.pipeline._what_if.evaluation import evaluate
from groupwright.pipeline._what_if.group_shape import GroupShape, Owners
from groupwright.pipeline._what_if.history import (
    History,
    RecordedGeneration,
    TopicMetadata,
    UnreplayableError,
    read_history,
)
from groupwright.pipeline._what_if.loading import LoadedAssignor

ACTUAL = "actual"
"""The `assignor` of the rows for the recorded assignments."""

RESULT = pa.schema(
    [
        ("group_id", pa.string()),
        ("assignor", pa.string()),
        ("generation", pa.int32()),
        ("time", pa.int64()),
        ("members", pa.int32()),
        ("partitions", pa.int32()),
        ("moved", pa.int32()),
        ("fewest_moves", pa.int32()),
        ("imbalance", pa.int32()),
        ("topic_spread", pa.float64()),
        ("far", pa.int32()),
        ("rounds", pa.int32()),
        ("seconds", pa.float64()),
        ("error", pa.string()),
    ]
)
_ERROR_LENGTH = 500


class _Replayer(Protocol):
    def replay(self, recorded: RecordedGeneration, shape: GroupShape, owned: Owners) -> tuple[Owners, int]:
        """Return the final owners, and the number of rebalances until then."""


@dataclass(frozen=True, slots=True)
class _Actual:
    def replay(self, recorded: RecordedGeneration, shape: GroupShape, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - part of the protocol
        return recorded.actual, 1


@dataclass(frozen=True, slots=True)
class _Cached:
    name: str
    cache: AssignmentCache

    def replay(self, recorded: RecordedGeneration, shape: GroupShape, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - part of the protocol
        return self.cache.settled(self.name, shape, owned)


@dataclass(frozen=True, slots=True)
class _Custom:
    assignor: CustomAssignor

    def replay(self, recorded: RecordedGeneration, shape: GroupShape, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - part of the protocol
        return self.assignor.replay(recorded, owned)


def replay_group(
    group_id: str,
    rows: pa.Table,
    assignors: Sequence[LoadedAssignor],
    topic_metadata: Mapping[str, TopicMetadata],
    cache: AssignmentCache,
) -> pa.Table:
    """Replay a group's history; return one row per non-empty generation and assignor, the recorded one first.

    Members own what the assignor gave them in the previous generation, if they are still in the group. If an
    assignor fails, its row has the error, and members keep their partitions. A group with invalid rows has
    one row per assignor.

    Args:
        group_id: The group.
        rows: The input of `read_history`.
        assignors: The assignors.
        topic_metadata: Topic metadata by topic.
        cache: The worker's cache.
    """
    names = [ACTUAL, *(assignor.name for assignor in assignors)]
    try:
        history = read_history(rows, topic_metadata)
    except UnreplayableError as error:
        return _table([[(group_id, name, *(None,) * 11, str(error)) for name in names]])
    replayers: list[_Replayer] = [_Actual()]
    for assignor in assignors:
        custom = CustomAssignor(assignor.make, history)
        replayers.append(_Cached(assignor.name, cache) if assignor.is_cached else _Custom(custom))
    return _table(list(_replay(group_id, history, names, replayers, cache)))


def _replay(
    group_id: str,
    history: History,
    names: Sequence[str],
    replayers: Sequence[_Replayer],
    cache: AssignmentCache,
) -> Iterator[list[tuple[Any, ...]]]:
    owner_identities = np.full((len(replayers), int(history.starts[-1])), UNASSIGNED, np.int64)
    for recorded in history.generations:
        if recorded.key is None:
            owner_identities[:] = UNASSIGNED
            continue
        shape = cache.shape(recorded.key)
        owned = _owned(history, recorded, shape, owner_identities)
        assigned = owned.copy()
        results = [
            _run(replayer, recorded, shape, owned[row], assigned[row])
            for row, replayer in enumerate(replayers)
        ]
        quality = evaluate(cache, shape, owned, assigned)
        _store_owners(recorded, owner_identities, assigned, [error is None for _, _, error in results])
        common = (recorded.number, recorded.time, shape.members, shape.partitions)
        yield [
            (group_id, name, *common, *((None,) * 5 if error else numbers), rounds, seconds, error)
            for name, numbers, (rounds, seconds, error) in zip(
                names, zip(*quality, strict=True), results, strict=True
            )
        ]


def _owned(
    history: History, recorded: RecordedGeneration, shape: GroupShape, owner_identities: np.ndarray[Any, Any]
) -> Owners:
    """Return the owners at the start of a generation, as `(assignors, partitions) int32`.

    A partition is `UNASSIGNED` if its owner has left the group or no longer subscribes to the topic.

    Args:
        history: The group's history.
        recorded: The generation.
        shape: Its shape.
        owner_identities: `(assignors, all partitions) int64`, owners after the previous generation.
    """
    # Indexing with UNASSIGNED, which is -1, selects the last element.
    position_of = np.full(history.identities + 1, UNASSIGNED, np.int32)
    position_of[recorded.identities] = np.arange(shape.members)
    owned: Owners = position_of[owner_identities[:, recorded.partition_indices]]
    if not shape.is_uniform:
        owned[~shape.subscribes[shape.indexed.topic, owned]] = UNASSIGNED
    return owned


def _run(
    replayer: _Replayer, recorded: RecordedGeneration, shape: GroupShape, owned: Owners, assigned: Owners
) -> tuple[int | None, float, str | None]:
    """Call the assignor, store the owners in `assigned`, and return rounds, seconds and the error."""
    if not shape.partitions:
        return 1, 0.0, None
    started = perf_counter()
    try:
        owners, rounds = replayer.replay(recorded, shape, owned)
    except Exception as error:  # noqa: BLE001 - a user's assignor may raise anything, and the others go on
        message = f"{type(error).__name__}: {error}"
        return None, perf_counter() - started, message[:_ERROR_LENGTH]
    assigned[:] = owners
    return rounds, perf_counter() - started, None


def _store_owners(
    recorded: RecordedGeneration,
    owner_identities: np.ndarray[Any, Any],
    assigned: Owners,
    succeeded: Sequence[bool],
) -> None:
    identity = np.append(recorded.identities, UNASSIGNED)
    for row, has_succeeded in enumerate(succeeded):
        if has_succeeded:
            owner_identities[row] = UNASSIGNED
            owner_identities[row, recorded.partition_indices] = identity[assigned[row]]


def _table(generations: Sequence[Sequence[tuple[Any, ...]]]) -> pa.Table:
    rows = [row for generation in generations for row in generation]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(RESULT)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, RESULT.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=RESULT)
