"""ConsumerProtocol in group metadata: subscriptions and assignments of the members of classic groups.

The formats are those of Kafka's `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, versions 0
to 3; as Kafka does, a newer version is taken for version 3. The user data of the assignors `sticky` and
`cooperative-sticky` is what Kafka's `StickyAssignor` (versions 0 and 1) and `CooperativeStickyAssignor`
write.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from groupwright.pipeline._decoding import arrays
from groupwright.pipeline._decoding.cursors import BatchCursor, Flags, Numbers
from groupwright.pipeline._decoding.schema import ASSIGNMENT, SUBSCRIPTION, TOPIC_PARTITIONS
from groupwright.pipeline._decoding.structs import Array, Fields, Struct
from groupwright.pipeline._decoding.types import Int, Sized

NEWEST_VERSION = 3

_STRING, _NULLABLE_STRING = Sized(2), Sized(2, nullable=True)
_NULLABLE_BYTES = Sized(4, nullable=True, is_text=False)
_INT32 = Int(4)
_PARTITIONS = Array(Struct((("topic", _STRING), ("partitions", Array(_INT32, 4)))), 4)

_SUBSCRIPTION_FIELDS: Fields = (
    ("topics", Array(_STRING, 4)),
    ("user_data", _NULLABLE_BYTES),
    ("owned", _PARTITIONS),
    ("generation", _INT32),
    ("rack", _NULLABLE_STRING),
)
_SUBSCRIPTIONS = [Struct(_SUBSCRIPTION_FIELDS[: 2 + version]) for version in range(NEWEST_VERSION + 1)]
_ASSIGNMENT = Struct((("partitions", _PARTITIONS), ("user_data", _NULLABLE_BYTES)))


def decode_subscriptions(data: pa.Array, protocols: pa.Array) -> pa.Array:
    """Decode subscriptions to structs of `SUBSCRIPTION`; null where there are no bytes.

    Where the bytes, or the user data of a sticky assignor, are malformed, `error` says why, and what could
    not be read is null. A negative generation, which stands for none, is null too.

    Args:
        data: The bytes.
        protocols: The name of the assignor that each is for.
    """
    cursor = BatchCursor.over(data)
    starts = cursor.at
    there = cursor.at < cursor.ends
    versions = _versions(cursor)
    parts = []
    for version, struct in enumerate(_SUBSCRIPTIONS):
        rows = np.flatnonzero(there & cursor.good & (np.minimum(versions, NEWEST_VERSION) == version))
        if rows.size:
            part = cursor.take(rows)
            columns = struct.columns(part, "subscription")
            cursor.refuse_with(part, rows)
            parts.append((rows, arrays.structs(columns, SUBSCRIPTION, rows.size)))
    read = arrays.scatter(parts, len(cursor), SUBSCRIPTION)
    columns = {child.name: pc.struct_field(read, child.name) for child in SUBSCRIPTION}
    columns = {name: arrays.only(column, cursor.good) for name, column in columns.items()}
    columns["version"] = pa.array(versions.astype(np.int32), mask=~(there & cursor.good))
    columns["generation"] = _none_if_negative(columns["generation"])
    errors = cursor.errors(starts)
    _read_user_data(columns, protocols, errors)
    columns["error"] = pa.array(errors, pa.string())
    return arrays.only(arrays.structs(columns, SUBSCRIPTION, len(cursor)), there)


def decode_assignments(data: pa.Array) -> pa.Array:
    """Decode assignments to structs of `ASSIGNMENT`, like `decode_subscriptions`.

    A coordinator keeps no bytes for a member to which the leader gave nothing at all.
    """
    cursor = BatchCursor.over(data)
    starts = cursor.at
    there = cursor.at < cursor.ends
    versions = _versions(cursor)
    rows = np.flatnonzero(there & cursor.good)
    part = cursor.take(rows)
    columns = _ASSIGNMENT.columns(part, "assignment")
    cursor.refuse_with(part, rows)
    read = arrays.scatter([(rows, arrays.structs(columns, ASSIGNMENT, rows.size))], len(cursor), ASSIGNMENT)
    columns = {
        name: arrays.only(pc.struct_field(read, name), cursor.good) for name in ("partitions", "user_data")
    }
    columns["version"] = pa.array(versions.astype(np.int32), mask=~(there & cursor.good))
    columns["error"] = pa.array(cursor.errors(starts), pa.string())
    return arrays.only(arrays.structs(columns, ASSIGNMENT, len(cursor)), there)


def _versions(cursor: BatchCursor) -> Numbers:
    versions = cursor.number(">i2", "version")
    cursor.refuse(versions < 0, "version: a negative number")
    return versions


def _read_user_data(columns: dict[str, pa.Array], protocols: pa.Array, errors: list[str | None]) -> None:
    """Add the sticky assignors' user data to the columns."""
    data = columns["user_data"]
    cursor = BatchCursor.over(data)
    starts = cursor.at
    some = cursor.at < cursor.ends
    eager = np.flatnonzero(some & _is(protocols, "sticky"))
    cooperative = np.flatnonzero(some & _is(protocols, "cooperative-sticky"))
    if not eager.size and not cooperative.size:
        return
    owners = cursor.take(eager)
    owned = _PARTITIONS.read(owners, "user_data.owned")
    cursor.refuse_with(owners, eager)
    ended = owners.at == owners.ends  # version 0 has no generation
    with_generation = np.concatenate([eager[owners.good & ~ended], cooperative])
    places = np.concatenate([owners.at[owners.good & ~ended], cursor.at[cooperative]])
    by_row = np.argsort(with_generation, kind="stable")
    with_generation, places = with_generation[by_row], places[by_row]
    numbers = cursor.within(places, cursor.ends[with_generation])
    generations = _INT32.read(numbers, "user_data.generation")
    cursor.refuse_with(numbers, with_generation)
    owned = arrays.scatter([(eager, owned)], len(cursor), TOPIC_PARTITIONS)
    generations = arrays.scatter([(with_generation, generations)], len(cursor), pa.int32())
    columns["sticky_owned"] = arrays.only(owned, cursor.good)
    columns["sticky_generation"] = _none_if_negative(arrays.only(generations, cursor.good))
    for row, error in enumerate(cursor.errors(starts)):
        errors[row] = errors[row] or error


def _is(protocols: pa.Array, name: str) -> Flags:
    flags: npt.NDArray[np.bool_] = pc.equal(protocols, name).fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - Arrow's way
    return flags


def _none_if_negative(numbers: pa.Array) -> pa.Array:
    return pc.if_else(pc.less(numbers, 0), pa.scalar(None, numbers.type), numbers)
