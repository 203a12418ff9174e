"""Generations of classic groups, with the members' ConsumerProtocol bytes decoded."""

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from groupwright.pipeline._decoding import arrays
from groupwright.pipeline._decoding.consumer_protocol import decode_assignments, decode_subscriptions
from groupwright.pipeline._decoding.schema import CLASSIC_MEMBER

_CONSUMER = "consumer"


def with_consumer_protocol(generations: Mapping[str, pa.Array]) -> pa.Array:
    """Return the column `members` with decoded subscriptions and assignments.

    Both are null if the protocol type is not `consumer`: Kafka Connect's workers, for example, have another
    format.

    Args:
        generations: The columns of GroupMetadataValue, with subscriptions and assignments as bytes.
    """
    members = generations["members"]
    counts = members.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    generation_of = pa.array(np.repeat(np.arange(len(members)), counts))
    flat = members.flatten()
    columns = {child.name: pc.struct_field(flat, child.name) for child in flat.type}
    is_consumer = pc.equal(generations["protocol_type"], _CONSUMER).take(generation_of)
    protocols = generations["protocol"].take(generation_of)
    null = pa.scalar(None, pa.binary())
    subscriptions = pc.if_else(is_consumer, columns["subscription"], null)
    assignments = pc.if_else(is_consumer, columns["assignment"], null)
    columns["subscription"] = decode_subscriptions(subscriptions, protocols)
    columns["assignment"] = decode_assignments(assignments)
    return arrays.lists(counts.astype(np.int64), arrays.structs(columns, CLASSIC_MEMBER, len(flat)))


def member_errors(members: pa.Array) -> dict[int, str]:
    """Return the first error in a subscription or assignment of each generation that has one.

    Args:
        members: `(generations,)`, the result of `with_consumer_protocol`.
    """
    flat = members.flatten()
    errors = {part: pc.struct_field(flat, [part, "error"]) for part in ("subscription", "assignment")}
    found = np.zeros(len(flat), np.bool_)
    for of_part in errors.values():
        found |= of_part.is_valid().to_numpy(zero_copy_only=False)
    generations = np.repeat(np.arange(len(members)), members.value_lengths().fill_null(0))
    firsts: dict[int, str] = {}
    for row in np.flatnonzero(found).tolist():
        part, error = next((part, each[row].as_py()) for part, each in errors.items() if each[row].is_valid)
        member = pc.struct_field(flat, "member_id")[row].as_py()
        firsts.setdefault(int(generations[row]), f"{part} of member {member!r}: {error}")
    return firsts
