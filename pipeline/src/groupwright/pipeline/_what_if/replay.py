"""Replay of a group's history with several assignors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from groupwright.assignors import UNASSIGNED
from groupwright.pipeline._what_if.custom_assignor import CustomAssignor
from groupwright.pipeline._what_if.evaluation import evaluate
from groupwright.pipeline._what_if.group_shape import GroupShape, Owners
from groupwright.pipeline._what_if.history import (
    History,
    KnownTopic,
    RecordedGeneration,
    UnreplayableError,
    read_history,
)
from groupwright.pipeline._what_if.loading import LoadedAssignor
from groupwright.pipeline._what_if.plan_cache import PlanCache

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
    def play(self, past: RecordedGeneration, structure: GroupShape, owned: Owners) -> tuple[Owners, int]:
        """Return the final owners, and the number of rebalances until then."""


@dataclass(frozen=True, slots=True)
class _Actual:
    def play(self, past: RecordedGeneration, structure: GroupShape, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - part of the protocol
        return past.actual, 1


@dataclass(frozen=True, slots=True)
class _Builtin:
    name: str
    plans: PlanCache

    def play(self, past: RecordedGeneration, structure: GroupShape, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - part of the protocol
        match self.name:
            case "sticky":
                return self.plans.sticky(structure, owned), 1
            case "cooperative-sticky":
                return self.plans.settled(structure, owned)
            case _:
                return self.plans.fixed(self.name, structure), 1


@dataclass(frozen=True, slots=True)
class _Custom:
    assignor: CustomAssignor

    def play(self, past: RecordedGeneration, structure: GroupShape, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - part of the protocol
        return self.assignor.play(past, owned)


def replay_group(
    group_id: str,
    rows: pa.Table,
    assignors: Sequence[LoadedAssignor],
    known: Mapping[str, KnownTopic],
    plans: PlanCache,
) -> pa.Table:
    """Replay a group's history; return one row per non-empty generation and assignor, the recorded one first.

    Members own what the assignor gave them in the previous generation, if they are still in the group. If an
    assignor fails, its row has the error, and members keep what they had. A group with invalid rows has one
    row per assignor.

    Args:
        group_id: The group.
        rows: The input of `read_history`.
        assignors: The assignors.
        known: Metadata by topic.
        plans: The worker's cache.
    """
    names = [ACTUAL, *(assignor.name for assignor in assignors)]
    try:
        history = read_history(rows, known)
    except UnreplayableError as error:
        return _table([[(group_id, name, *(None,) * 11, str(error)) for name in names]])
    replayers: list[_Replayer] = [_Actual()]
    for assignor in assignors:
        own = CustomAssignor(assignor.make, history)
        replayers.append(_Builtin(assignor.name, plans) if assignor.is_builtin else _Custom(own))
    return _table(list(_play(group_id, history, names, replayers, plans)))


def _play(
    group_id: str, history: History, names: Sequence[str], replayers: Sequence[_Replayer], plans: PlanCache
) -> Iterator[list[tuple[Any, ...]]]:
    held = np.full((len(replayers), int(history.starts[-1])), UNASSIGNED, np.int64)
    for past in history.generations:
        if past.key is None:
            held[:] = UNASSIGNED
            continue
        structure = plans.structure(past.key)
        owned = _owned(history, past, structure, held)
        given = owned.copy()
        outcomes = [
            _outcome(replayer, past, structure, owned[row], given[row])
            for row, replayer in enumerate(replayers)
        ]
        measured = evaluate(plans, structure, owned, given)
        _hand_over(past, held, given, [error is None for _, _, error in outcomes])
        facts = (past.number, past.time, structure.members, structure.partitions)
        yield [
            (group_id, name, *facts, *((None,) * 5 if error else numbers), rounds, seconds, error)
            for name, numbers, (rounds, seconds, error) in zip(
                names, zip(*measured, strict=True), outcomes, strict=True
            )
        ]


def _owned(
    history: History, past: RecordedGeneration, structure: GroupShape, held: np.ndarray[Any, Any]
) -> Owners:
    """Return owners that may keep their partitions, else `UNASSIGNED`, as `(assignors, partitions) int32`."""
    place_of = np.full(history.identities + 1, UNASSIGNED, np.int32)  # the last one is UNASSIGNED's
    place_of[past.identities] = np.arange(structure.members)
    owned: Owners = place_of[held[:, past.places]]
    if not structure.is_uniform:
        owned[~structure.subscribes[structure.layout.topic, owned]] = UNASSIGNED
    return owned


def _outcome(
    replayer: _Replayer, past: RecordedGeneration, structure: GroupShape, owned: Owners, given: Owners
) -> tuple[int | None, float, str | None]:
    """Call the assignor, store the owners in `given`, and return rounds, seconds and the error."""
    if not structure.partitions:
        return 1, 0.0, None
    started = perf_counter()
    try:
        plan, rounds = replayer.play(past, structure, owned)
    except Exception as error:  # noqa: BLE001 - a user's assignor may raise anything, and the others go on
        message = f"{type(error).__name__}: {error}"
        return None, perf_counter() - started, message[:_ERROR_LENGTH]
    given[:] = plan
    return rounds, perf_counter() - started, None


def _hand_over(
    past: RecordedGeneration, held: np.ndarray[Any, Any], given: Owners, played: Sequence[bool]
) -> None:
    identity = np.append(past.identities, UNASSIGNED)
    for row, is_played in enumerate(played):
        if is_played:
            held[row] = UNASSIGNED
            held[row, past.places] = identity[given[row]]


def _table(generations: Sequence[Sequence[tuple[Any, ...]]]) -> pa.Table:
    rows = [row for generation in generations for row in generation]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(RESULT)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, RESULT.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=RESULT)
