"""Words for why a member cannot be in its group: what is wrong, and what to change."""

import time
from collections.abc import Iterable

from confluent_kafka import KafkaError

from groupwright.consumer.errors import (
    AssignorFailedError,
    FencedInstanceError,
    GroupError,
    InconsistentGroupProtocolError,
)
from groupwright.consumer.network import Network
from groupwright.consumer.protocol import DisconnectedError, ErrorCode

_PATIENCE = 5.0  # seconds to find out what the other members have agreed on
_PAUSE = 0.2
_STABLE = "Stable"


async def explain(error: int, detail: str, protocols: Iterable[str], network: Network) -> GroupError:
    """Return the exception for a refusal, asking the coordinator about the group where that helps."""
    match error:
        case ErrorCode.INCONSISTENT_GROUP_PROTOCOL:
            return InconsistentGroupProtocolError(error, await _compare_protocols(detail, protocols, network))
        case ErrorCode.FENCED_INSTANCE_ID:
            return FencedInstanceError(
                error,
                "another consumer has joined with this one's group.instance.id; give every consumer its own",
            )
        case ErrorCode.NONE:
            return AssignorFailedError(KafkaError._APPLICATION, detail)  # noqa: SLF001 - librdkafka's public code
        case ErrorCode.UNSUPPORTED_VERSION:
            words = (
                f"{detail}: the coordinator is too old for this member. It must be Kafka 0.11 or later, and 2.3 or later for a "
                "static member: upgrade the broker, or leave group.instance.id out"
            )
        case ErrorCode.GROUP_AUTHORIZATION_FAILED:
            words = f"{detail}: this client may not take part. Allow it the operation READ on the group {network.group_id!r}"
        case ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            words = detail
        case _:
            words = f"{detail} ({KafkaError(error).str()})"
    return GroupError(error, words)


async def _compare_protocols(detail: str, protocols: Iterable[str], network: Network) -> str:
    """Say what this member offers, what the others have agreed on, and how they get together."""
    mine = ", ".join(map(repr, protocols))
    message = f"the group refused this member: {detail}. It supports {mine}"
    deadline = time.monotonic() + _PATIENCE
    while time.monotonic() < deadline:
        try:
            group = await network.describe_group()
        except DisconnectedError:
            break
        # The coordinator tells of the others' choice once they have made it.
        if group.state == _STABLE and group.protocol:
            others = ", ".join(group.client_ids)
            return (
                f"{message}, while the group's members ({others}) have agreed on {group.protocol!r}. Add "
                f"{group.protocol!r} to this consumer's partition.assignment.strategy, or one of {mine} to theirs"
            )
        await network.sleep(_PAUSE)
    return f"{message}, and the group's other members have none of these in common"
