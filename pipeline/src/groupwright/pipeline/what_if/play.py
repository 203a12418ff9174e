"""A group's history, played by several assignors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from groupwright.assignors import UNASSIGNED
from groupwright.pipeline.what_if.history import (
    History,
    KnownTopic,
    PastGeneration,
    UnplayableError,
    read_history,
)
from groupwright.pipeline.what_if.loading import LoadedAssignor
from groupwright.pipeline.what_if.measuring import measure_rows
from groupwright.pipeline.what_if.own import OwnAssignor
from groupwright.pipeline.what_if.planning import Planner
from groupwright.pipeline.what_if.structure import Owners, Structure

IN_FACT = "in fact"
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


class _Player(Protocol):
    def play(self, past: PastGeneration, structure: Structure, owned: Owners) -> tuple[Owners, int]:
        """Return who gets what in the end, and after how many rebalances."""


@dataclass(frozen=True, slots=True)
class _InFact:
    def play(self, past: PastGeneration, structure: Structure, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - the facts do not depend on it
        return past.in_fact, 1


@dataclass(frozen=True, slots=True)
class _Ours:
    name: str
    planner: Planner

    def play(self, past: PastGeneration, structure: Structure, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - the structure says it all
        match self.name:
            case "sticky":
                return self.planner.sticky(structure, owned), 1
            case "cooperative-sticky":
                return self.planner.settled(structure, owned)
            case _:
                return self.planner.fixed(self.name, structure), 1


@dataclass(frozen=True, slots=True)
class _Own:
    assignor: OwnAssignor

    def play(self, past: PastGeneration, structure: Structure, owned: Owners) -> tuple[Owners, int]:  # noqa: ARG002 - it sees the real names
        return self.assignor.play(past, owned)


def play_group(
    group_id: str,
    rows: pa.Table,
    assignors: Sequence[LoadedAssignor],
    known: Mapping[str, KnownTopic],
    planner: Planner,
) -> pa.Table:
    """Play a group's history; return a row a generation with members, and assignor, the facts first.

    What an assignor gave in one generation is what members own in the next, if they are still there. One that fails is
    told by its row, and members go on with what they had. A group whose rows cannot be has one row an assignor.

    Args:
        group_id: The group.
        rows: As `read_history` wants them.
        assignors: The assignors.
        known: Topics by name, as far as they are known from elsewhere.
        planner: What the worker remembers.
    """
    names = [IN_FACT, *(assignor.name for assignor in assignors)]
    try:
        history = read_history(rows, known)
    except UnplayableError as error:
        return _table([[(group_id, name, *(None,) * 11, str(error)) for name in names]])
    players: list[_Player] = [_InFact()]
    for assignor in assignors:
        own = OwnAssignor(assignor.make, history)
        players.append(_Ours(assignor.name, planner) if assignor.is_ours else _Own(own))
    return _table(list(_play(group_id, history, names, players, planner)))


def _play(
    group_id: str, history: History, names: Sequence[str], players: Sequence[_Player], planner: Planner
) -> Iterator[list[tuple[Any, ...]]]:
    held = np.full((len(players), int(history.starts[-1])), UNASSIGNED, np.int64)
    for past in history.generations:
        if past.key is None:
            held[:] = UNASSIGNED
            continue
        structure = planner.structure(past.key)
        owned = _owned(history, past, structure, held)
        given = owned.copy()
        outcomes = [
            _outcome(player, past, structure, owned[row], given[row]) for row, player in enumerate(players)
        ]
        measured = measure_rows(planner, structure, owned, given)
        _hand_over(past, held, given, [error is None for _, _, error in outcomes])
        facts = (past.number, past.time, structure.members, structure.partitions)
        yield [
            (group_id, name, *facts, *((None,) * 5 if error else numbers), rounds, seconds, error)
            for name, numbers, (rounds, seconds, error) in zip(
                names, zip(*measured, strict=True), outcomes, strict=True
            )
        ]


def _owned(
    history: History, past: PastGeneration, structure: Structure, held: np.ndarray[Any, Any]
) -> Owners:
    """Return, by player and partition, the place of who has it and may keep it, or `UNASSIGNED`."""
    place_of = np.full(history.identities + 1, UNASSIGNED, np.int32)  # the last one is UNASSIGNED's
    place_of[past.identities] = np.arange(structure.members)
    owned: Owners = place_of[held[:, past.places]]
    if not structure.is_uniform:
        owned[~structure.subscribes[structure.layout.topic, owned]] = UNASSIGNED
    return owned


def _outcome(
    player: _Player, past: PastGeneration, structure: Structure, owned: Owners, given: Owners
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
    past: PastGeneration, held: np.ndarray[Any, Any], given: Owners, played: Sequence[bool]
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
