"""A group's history, played by several assignors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from groupwright.assignors import NOBODY
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
"""What the rows of what really happened have for an assignor's name."""

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
        """Return who gets what in the end, and after how many rebalances."""


@dataclass(frozen=True, slots=True)
class _Actual:
    def play(self, past: RecordedGeneration, structure: GroupShape, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - the facts do not depend on it
        return past.actual, 1


@dataclass(frozen=True, slots=True)
class _Ours:
    name: str
    plans: PlanCache

    def play(self, past: RecordedGeneration, structure: GroupShape, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - the structure says it all
        match self.name:
            case "sticky":
                return self.plans.sticky(structure, owned), 1
            case "cooperative-sticky":
                return self.plans.settled(structure, owned)
            case _:
                return self.plans.fixed(self.name, structure), 1


@dataclass(frozen=True, slots=True)
class _Own:
    assignor: CustomAssignor

    def play(self, past: RecordedGeneration, structure: GroupShape, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - it sees the real names
        return self.assignor.play(past, owned)


def replay_group(
    group_id: str,
    rows: pa.Table,
    assignors: Sequence[LoadedAssignor],
    known: Mapping[str, KnownTopic],
    plans: PlanCache,
) -> pa.Table:
    """Play a group's history; return a row a generation with members, and assignor, the facts first.

    What an assignor gave in one generation is what members own in the next, if they are still there. One that fails is
    told by its row, and members go on with what they had. A group whose rows cannot be has one row an assignor.

    Args:
        group_id: The group.
        rows: As `read_history` wants them.
        assignors: The assignors.
        known: Topics by name, as far as they are known from elsewhere.
        plans: What the worker remembers.
    """
    names = [ACTUAL, *(assignor.name for assignor in assignors)]
    try:
        history = read_history(rows, known)
    except UnreplayableError as error:
        return _table([[(group_id, name, *(None,) * 11, str(error)) for name in names]])
    players: list[_Replayer] = [_Actual()]
    for assignor in assignors:
        own = CustomAssignor(assignor.make, history)
        players.append(_Ours(assignor.name, plans) if assignor.is_ours else _Own(own))
    return _table(list(_play(group_id, history, names, players, plans)))


def _play(
    group_id: str, history: History, names: Sequence[str], players: Sequence[_Replayer], plans: PlanCache
) -> Iterator[list[tuple[Any, ...]]]:
    held = np.full((len(players), int(history.starts[-1])), NOBODY, np.int64)
    for past in history.generations:
        if past.key is None:
            held[:] = NOBODY
            continue
        structure = plans.structure(past.key)
        owned = _owned(history, past, structure, held)
        given = owned.copy()
        outcomes = [
            _outcome(player, past, structure, owned[row], given[row]) for row, player in enumerate(players)
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
    """Return, by player and partition, the place of who has it and may keep it, or `NOBODY`."""
    place_of = np.full(history.identities + 1, NOBODY, np.int32)  # the last one is NOBODY's
    place_of[past.identities] = np.arange(structure.members)
    owned: Owners = place_of[held[:, past.places]]
    if not structure.is_uniform:
        owned[~structure.subscribes[structure.layout.topic, owned]] = NOBODY
    return owned


def _outcome(
    player: _Replayer, past: RecordedGeneration, structure: GroupShape, owned: Owners, given: Owners
) -> tuple[int | None, float, str | None]:
    """Play, fill in who gets what, and return rounds, seconds and the error. Nothing is asked where nothing is given."""
    if not structure.partitions:
        return 1, 0.0, None
    started = perf_counter()
    try:
        plan, rounds = player.play(past, structure, owned)
    except Exception as error:  # noqa: BLE001 - a user's assignor may raise anything, and the others go on
        message = f"{type(error).__name__}: {error}"
        return None, perf_counter() - started, message[:_ERROR_LENGTH]
    given[:] = plan
    return rounds, perf_counter() - started, None


def _hand_over(
    past: RecordedGeneration, held: np.ndarray[Any, Any], given: Owners, played: Sequence[bool]
) -> None:
    identity = np.append(past.identities, NOBODY)
    for row, is_played in enumerate(played):
        if is_played:
            held[row] = NOBODY
            held[row, past.places] = identity[given[row]]


def _table(generations: Sequence[Sequence[tuple[Any, ...]]]) -> pa.Table:
    rows = [row for generation in generations for row in generation]
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(RESULT)
    arrays = [pa.array(column, kind) for column, kind in zip(columns, RESULT.types, strict=True)]
    return pa.Table.from_arrays(arrays, schema=RESULT)
