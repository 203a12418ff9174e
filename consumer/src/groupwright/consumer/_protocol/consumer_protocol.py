"""Between the membership's plain partitions and the bytes that the assignors' part reads and writes."""

import logging
from collections.abc import Mapping

from groupwright.assignors import (
    Assignor,
    PartitionsByTopic,
    Subscription,
    decode_assignment,
    encode_subscription,
)
from groupwright.consumer._protocol.membership_state import SubscriptionEncoder
from groupwright.consumer._protocol.model import Partitions


def subscription_encoder(
    assignors: Mapping[str, Assignor], rack: str | None, log: logging.LoggerAdapter[logging.Logger]
) -> SubscriptionEncoder:
    """Return what makes JoinGroup's list: each assignor's name, with the subscription as it wants it."""

    def user_data(assignor: Assignor, topics: tuple[str, ...]) -> bytes | None:
        try:
            return assignor.user_data(frozenset(topics))
        except Exception:
            log.exception("user_data of the assignor %r raised; joining without it", assignor.name)
            return None

    def encode(topics: tuple[str, ...], owned: Partitions, generation: int) -> tuple[tuple[str, bytes], ...]:
        claims = PartitionsByTopic.of_ints(owned)
        return tuple(
            (
                name,
                encode_subscription(
                    Subscription(topics, user_data(assignor, topics), claims, generation, rack)
                ),
            )
            for name, assignor in assignors.items()
        )

    return encode


def read_assignment(data: bytes) -> Partitions:
    """Read SyncGroup's bytes.

    Raises:
        MalformedBytesError: they are no assignment.
    """
    return decode_assignment(data).partitions.as_tuples()
