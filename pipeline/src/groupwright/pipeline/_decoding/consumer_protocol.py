"""ConsumerProtocol in group metadata: subscriptions and assignments of the members of classic groups.

The formats are those of Kafka's `ConsumerProtocolSubscription` and `ConsumerProtocolAssignment`, versions 0
to 3. As in Kafka, newer versions are decoded as version 3. User data is decoded for the assignors `sticky`
(versions 0 and 1 of Kafka's `StickyAssignorUserData`) and `cooperative-sticky` (the generation).
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from groupwright.pipeline._decoding import arrays
from groupwright.pipeline._decoding.cursors import BatchCursor, Flags, Numbers
from groupwright.pipeline._decoding.schema import ASSIGNMENT, SUBSCRIPTION, TOPIC_PARTITIONS
from groupwright.pipeline._decoding.structs import Array, Fields, Struct
from groupwright.pipeline._decoding.types import Int, LengthPrefixed

NEWEST_VERSION = 3

_STRING, _NULLABLE_STRING = LengthPrefixed(2), LengthPrefixed(2, nullable=True)
_NULLABLE_BYTES = LengthPrefixed(4, nullable=True, is_text=False)
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
    """Decode subscriptions to structs of `SUBSCRIPTION`; null and empty bytes become null.

    If a subscription or the user data of a sticky assignor is malformed, `error` has the reason, and the
    fields of the malformed part are null. A negative generation means none, and becomes null.

    Args:
        data: `(members,) binary`, the subscriptions.
        protocols: `(members,) string`, the assignor of each member's group.
    """
    cursor = BatchCursor.over(data)
    starts = cursor.at
    has_bytes = cursor.at < cursor.ends
    versions = _versions(cursor)
    parts = []
    for version, struct in enumerate(_SUBSCRIPTIONS):
        rows = np.flatnonzero(has_bytes & cursor.valid & (np.minimum(versions, NEWEST_VERSION) == version))
        if rows.size:
            part = cursor.take(rows)
            columns = struct.columns(part, "subscription")
            cursor.merge_rejections(part, rows)
            parts.append((rows, arrays.structs(columns, SUBSCRIPTION, rows.size)))
    decoded = arrays.scatter(parts, len(cursor), SUBSCRIPTION)
    columns = {child.name: pc.struct_field(decoded, child.name) for child in SUBSCRIPTION}
    columns = {name: arrays.null_unless(column, cursor.valid) for name, column in columns.items()}
    columns["version"] = pa.array(versions.astype(np.int32), mask=~(has_bytes & cursor.valid))
    columns["generation"] = _null_if_negative(columns["generation"])
    errors = cursor.errors(starts)
    _read_user_data(columns, protocols, errors)
    columns["error"] = pa.array(errors, pa.string())
    return arrays.null_unless(arrays.structs(columns, SUBSCRIPTION, len(cursor)), has_bytes)


def decode_assignments(data: pa.Array) -> pa.Array:
    """Decode assignments to structs of `ASSIGNMENT`, as `decode_subscriptions` decodes subscriptions.

    The bytes are empty for a member that the leader left out of SyncGroup.

    Args:
        data: `(members,) binary`, the assignments.
    """
    cursor = BatchCursor.over(data)
    starts = cursor.at
    has_bytes = cursor.at < cursor.ends
    versions = _versions(cursor)
    rows = np.flatnonzero(has_bytes & cursor.valid)
    part = cursor.take(rows)
    columns = _ASSIGNMENT.columns(part, "assignment")
    cursor.merge_rejections(part, rows)
    decoded = arrays.scatter(
        [(rows, arrays.structs(columns, ASSIGNMENT, rows.size))], len(cursor), ASSIGNMENT
    )
    columns = {
        name: arrays.null_unless(pc.struct_field(decoded, name), cursor.valid)
        for name in ("partitions", "user_data")
    }
    columns["version"] = pa.array(versions.astype(np.int32), mask=~(has_bytes & cursor.valid))
    columns["error"] = pa.array(cursor.errors(starts), pa.string())
    return arrays.null_unless(arrays.structs(columns, ASSIGNMENT, len(cursor)), has_bytes)


def _versions(cursor: BatchCursor) -> Numbers:
    versions = cursor.integer(">i2", "version")
    cursor.reject(versions < 0, "version: a negative number")
    return versions


def _read_user_data(columns: dict[str, pa.Array], protocols: pa.Array, errors: list[str | None]) -> None:
    """Add the sticky assignors' user data to the columns."""
    data = columns["user_data"]
    cursor = BatchCursor.over(data)
    starts = cursor.at
    has_user_data = cursor.at < cursor.ends
    eager = np.flatnonzero(has_user_data & _is_protocol(protocols, "sticky"))
    cooperative = np.flatnonzero(has_user_data & _is_protocol(protocols, "cooperative-sticky"))
    if not eager.size and not cooperative.size:
        return
    eager_data = cursor.take(eager)
    owned = _PARTITIONS.read(eager_data, "user_data.owned")
    cursor.merge_rejections(eager_data, eager)
    ended = eager_data.at == eager_data.ends  # version 0 has no generation
    with_generation = np.concatenate([eager[eager_data.valid & ~ended], cooperative])
    positions = np.concatenate([eager_data.at[eager_data.valid & ~ended], cursor.at[cooperative]])
    by_row = np.argsort(with_generation, kind="stable")
    with_generation, positions = with_generation[by_row], positions[by_row]
    generation_data = cursor.sub_cursor(positions, cursor.ends[with_generation])
    generations = _INT32.read(generation_data, "user_data.generation")
    cursor.merge_rejections(generation_data, with_generation)
    owned = arrays.scatter([(eager, owned)], len(cursor), TOPIC_PARTITIONS)
    generations = arrays.scatter([(with_generation, generations)], len(cursor), pa.int32())
    columns["sticky_owned"] = arrays.null_unless(owned, cursor.valid)
    columns["sticky_generation"] = _null_if_negative(arrays.null_unless(generations, cursor.valid))
    for row, error in enumerate(cursor.errors(starts)):
        errors[row] = errors[row] or error


def _is_protocol(protocols: pa.Array, name: str) -> Flags:
    flags: npt.NDArray[np.bool_] = pc.equal(protocols, name).fill_null(False).to_numpy(zero_copy_only=False)  # noqa: FBT003 - Arrow's way
    return flags


def _null_if_negative(generation_data: pa.Array) -> pa.Array:
    return pc.if_else(pc.less(generation_data, 0), pa.scalar(None, generation_data.type), generation_data)
