"""Replay of a group's history with several assignors."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import zip_longest
from time import perf_counter
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from groupwright.assignors import UNASSIGNED
from groupwright.core.assignor_traits import BROKERS
from groupwright.pipeline._what_if.assignment_cache import AssignmentCache
from groupwright.pipeline._what_if.cost import BROKER_SECONDS, Durations, is_cooperative
from groupwright.pipeline._what_if.custom_assignor import CustomAssignor
from groupwright.pipeline._what_if.evaluation import evaluate, peak_loads
from groupwright.pipeline._what_if.group_shape import GroupShape, Owners
from groupwright.pipeline._what_if.handovers import merge_handovers
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
        ("stopped", pa.int32()),
        ("partition_seconds", pa.float64()),
        ("moved", pa.int32()),
        ("min_moves", pa.int32()),
        ("imbalance", pa.int32()),
        ("held_seconds", pa.float64()),
        ("peak_load", pa.float64()),
        ("topic_spread", pa.float64()),
        ("rack_mismatches", pa.int32()),
        ("rounds", pa.int32()),
        ("seconds", pa.float64()),
        ("error", pa.string()),
    ]
)
_ERROR_LENGTH = 500


_UNKNOWN = (None,) * (len(RESULT) - 3)
"""Values of a row with an error alone: all but the group, the assignor and the error."""
_UNKNOWN_COST = (None,) * 10
"""Values from `stopped` to `rounds` of a row whose assignor failed."""


class _Result(NamedTuple):
    """Result of an assignor in a generation.

    Attributes:
        rounds: Rebalances until the group settled; None if the assignor failed.
        revoked: Number of partitions that members of a cooperative assignor had to revoke.
        seconds: Computing time.
        error: The error, if the assignor failed.
    """

    rounds: int | None = 1
    revoked: int = 0
    seconds: float = 0.0
    error: str | None = None


class _Replayer(Protocol):
    """Source of the assignments in a replay: the recorded ones, or an assignor."""

    def is_cooperative(self, recorded: RecordedGeneration) -> bool | None:
        """Return whether members keep their partitions while they rebalance; None if unknown."""

    def replay(
        self, recorded: RecordedGeneration, shape: GroupShape, owned: Owners
    ) -> tuple[Owners, int, int]:
        """Return the final owners, the number of rebalances until then, and that of revoked partitions."""


@dataclass(frozen=True, slots=True)
class _Actual:
    """The recorded assignments."""

    has_handovers: bool

    def is_cooperative(self, recorded: RecordedGeneration) -> bool | None:
        known = is_cooperative(recorded.protocol)
        return True if known is None and self.has_handovers else known

    def replay(
        self,
        recorded: RecordedGeneration,
        shape: GroupShape,  # noqa: ARG002 - part of the protocol
        owned: Owners,
    ) -> tuple[Owners, int, int]:
        return recorded.actual, 1 + len(recorded.handovers), _count_moves(owned, recorded.actual)


@dataclass(frozen=True, slots=True)
class _Cached:
    """An assignor whose result depends on the group's shape and owners alone, so that it can be cached."""

    name: str
    cache: AssignmentCache

    def is_cooperative(self, recorded: RecordedGeneration) -> bool | None:  # noqa: ARG002 - as above
        return is_cooperative(self.name)

    def replay(
        self,
        recorded: RecordedGeneration,  # noqa: ARG002 - as above
        shape: GroupShape,
        owned: Owners,
    ) -> tuple[Owners, int, int]:
        owners, rounds = self.cache.settled(self.name, shape, owned)
        return owners, rounds, _count_moves(owned, owners)


@dataclass(frozen=True, slots=True)
class _Custom:
    """An assignor that is called for every generation: a custom one, the broker's, or one of Java's."""

    assignor: CustomAssignor

    def is_cooperative(self, recorded: RecordedGeneration) -> bool | None:  # noqa: ARG002 - as above
        return self.assignor.is_cooperative

    def replay(
        self,
        recorded: RecordedGeneration,
        shape: GroupShape,  # noqa: ARG002 - as above
        owned: Owners,
    ) -> tuple[Owners, int, int]:
        return self.assignor.replay(recorded, owned)


def replay_group(
    group_id: str,
    rows: pa.Table,
    assignors: Sequence[LoadedAssignor],
    topic_metadata: Mapping[str, TopicMetadata],
    cache: AssignmentCache,
    *,
    with_actual: bool = True,
) -> pa.Table:
    """Replay a group's history; return one row per generation with members and assignor, the recorded first.

    Handover generations are merged with the rebalance that caused them. Members own what the assignor gave
    them in the previous generation, if they are still in the group. If an assignor fails, its row has the
    error, and members keep their partitions. A group with invalid rows has one row per assignor.

    Args:
        group_id: The group.
        rows: The input of `read_history`.
        assignors: The assignors.
        topic_metadata: Topic metadata by topic.
        cache: The worker's cache.
        with_actual: Whether the recorded assignments have rows of their own.
    """
    names = [*([ACTUAL] if with_actual else []), *(assignor.name for assignor in assignors)]
    try:
        history = read_history(rows, topic_metadata)
    except UnreplayableError as error:
        return _table([[(group_id, name, *_UNKNOWN, str(error)) for name in names]])
    generations = merge_handovers(history.generations, int(history.starts[-1]))
    replayers: list[_Replayer] = []
    if with_actual:
        replayers.append(_Actual(any(each.handovers for each in generations)))
    for assignor in assignors:
        custom = CustomAssignor(assignor.make, history)
        replayers.append(_Cached(assignor.name, cache) if assignor.is_cached else _Custom(custom))
    replay = _Replay(replace(history, generations=generations), names, replayers, cache)
    return _table([[(group_id, *row) for row in rows] for rows in replay.rows()])


class _Replay:
    """Replay of one group's history with several assignors at once."""

    def __init__(
        self,
        history: History,
        names: Sequence[str],
        replayers: Sequence[_Replayer],
        cache: AssignmentCache,
    ) -> None:
        self._history = history
        self._names = names
        self._replayers = replayers
        self._cache = cache
        self._durations = Durations.of(history.generations)
        partitions = int(history.starts[-1])
        self._owner_identities = np.full((len(replayers), partitions), UNASSIGNED, np.int64)

    def rows(self) -> Iterator[list[tuple[Any, ...]]]:
        """Yield the rows of each generation with members, without the group."""
        generations = self._history.generations
        times = [generation.time for generation in generations[1:]]
        for recorded, end in zip_longest(generations, times):
            if recorded.key is None:
                self._owner_identities[:] = UNASSIGNED
            else:
                held = None if end is None else (end - recorded.time) / 1e6
                yield list(self._generation(recorded, self._cache.shape(recorded.key), held))

    def _generation(
        self, recorded: RecordedGeneration, shape: GroupShape, held: float | None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield a row for each assignor.

        Args:
            recorded: The generation.
            shape: The group's shape.
            held: Seconds until the next generation; None for the last.
        """
        had_owner = self._owner_identities[:, recorded.partition_indices] != UNASSIGNED
        owned = _owned(self._history, recorded, shape, self._owner_identities)
        assigned = owned.copy()
        results = [
            _run(replayer, recorded, shape, owned[row], assigned[row])
            for row, replayer in enumerate(self._replayers)
        ]
        quality = evaluate(self._cache, shape, owned, assigned)
        loads = peak_loads(shape, assigned, self._history.weights[recorded.partition_indices])
        _store_owners(
            recorded, self._owner_identities, assigned, [result.error is None for result in results]
        )
        common = (recorded.number, recorded.time, shape.members, shape.partitions)
        for row, (name, result) in enumerate(zip(self._names, results, strict=True)):
            if result.error is not None:
                yield (name, *common, *_UNKNOWN_COST, result.seconds, result.error)
                continue
            moved, fewest, imbalance, spread, rack_mismatches = (column[row] for column in quality)
            yield (
                name,
                *common,
                *self._stops(row, recorded, had_owner[row], owned[row], result),
                moved,
                fewest,
                imbalance,
                held,
                loads[row],
                spread,
                rack_mismatches,
                result.rounds,
                result.seconds,
                None,
            )

    def _stops(
        self,
        row: int,
        recorded: RecordedGeneration,
        had_owner: npt.NDArray[np.bool_],
        owned: Owners,
        result: _Result,
    ) -> tuple[int | None, float | None]:
        """Return the number of stopped partitions, and the sum of the times for which they stop."""
        is_cooperative = self._replayers[row].is_cooperative(recorded)
        if is_cooperative is None:
            return None, None
        if not is_cooperative:
            stopped = int(np.count_nonzero(had_owner))
            return stopped, self._durations.partition_seconds(recorded, stopped, 0)
        stopped = int(np.count_nonzero(had_owner & (owned == UNASSIGNED))) + result.revoked
        seconds = self._durations.partition_seconds(recorded, stopped, result.revoked)
        if self._names[row] in BROKERS and seconds is not None:
            seconds = stopped * BROKER_SECONDS
        return stopped, seconds


def _count_moves(owned: Owners, assigned: Owners) -> int:
    return int(np.count_nonzero((owned != UNASSIGNED) & (owned != assigned)))


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
) -> _Result:
    """Call the assignor, and store the owners in `assigned`."""
    if not shape.partitions:
        return _Result()
    started = perf_counter()
    try:
        owners, rounds, revoked = replayer.replay(recorded, shape, owned)
    except Exception as error:  # noqa: BLE001 - a user's assignor may raise anything, and the others go on
        message = f"{type(error).__name__}: {error}"
        return _Result(None, 0, perf_counter() - started, message[:_ERROR_LENGTH])
    assigned[:] = owners
    return _Result(rounds, revoked, perf_counter() - started)


def _store_owners(
    recorded: RecordedGeneration,
    owner_identities: np.ndarray[Any, Any],
    assigned: Owners,
    succeeded: Sequence[bool],
) -> None:
    """Store the owners after a generation; after an error, members keep their partitions."""
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
