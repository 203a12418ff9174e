"""Conversion of the membership's partitions to and from ConsumerProtocol bytes."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from contextlib import suppress

from groupwright.assignors import (
    Assignor,
    PartitionsByTopic,
    RebalanceProtocol,
    Subscription,
    decode_assignment,
    encode_subscription,
)
from groupwright.consumer._protocol.membership import SubscriptionEncoder
from groupwright.core import Partitions


def subscription_encoder(
    assignors: Mapping[str, Assignor],
    rack: str | None,
    log: logging.LoggerAdapter[logging.Logger],
    processing_times: Callable[[], Mapping[str, Mapping[int, float]]] = dict,
    *,
    cooperative: bool = False,
) -> SubscriptionEncoder:
    """Return the encoder of JoinGroup's protocols: for each assignor its name and subscription bytes.

    Args:
        assignors: The assignors that the member offers, by name.
        rack: The member's rack.
        log: The log of the consumer.
        processing_times: Returns the seconds per message that were measured, by topic and partition.
        cooperative: Whether the member rebalances cooperatively (KIP-429).
    """
    protocol = RebalanceProtocol.COOPERATIVE if cooperative else RebalanceProtocol.EAGER

    def user_data(assignor: Assignor, topics: tuple[str, ...]) -> bytes | None:
        if needs_processing_times(assignor):
            assignor.processing_times = processing_times()
        with suppress(AttributeError):  # a frozen assignor
            assignor.rebalance_protocol = protocol
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


def needs_processing_times(assignor: Assignor) -> bool:
    """Return whether the assignor's source of weights needs the members' processing times."""
    return assignor.weights is not None and assignor.weights.needs_processing_times


def read_assignment(data: bytes) -> Partitions:
    """Decode SyncGroup's bytes.

    Raises:
        MalformedBytesError: The bytes are no assignment.
    """
    return decode_assignment(data).partitions.as_tuples()
