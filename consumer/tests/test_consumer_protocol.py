"""Encoding of the subscription, with user data for the protocol by which the member rebalances."""

import logging
from dataclasses import dataclass

import pytest

from groupwright.assignors import (
    LoadAwareAssignor,
    PartitionsByTopic,
    RangeAssignor,
    decode_previous_assignment,
    decode_subscription,
)
from groupwright.consumer._protocol.consumer_protocol import subscription_encoder

LOG = logging.LoggerAdapter(logging.getLogger("test"))
ORDERS = {"orders": (2, 3)}


@pytest.mark.parametrize("cooperative", [True, False])
def test_the_last_assignment_is_in_the_subscription_or_in_the_user_data(*, cooperative: bool) -> None:
    """A cooperative member still owns it when it joins; an eager one has revoked everything."""
    assignor = LoadAwareAssignor()
    encode = subscription_encoder({assignor.name: assignor}, None, LOG, cooperative=cooperative)
    assignor.on_assignment(PartitionsByTopic(ORDERS), 4)

    ((name, metadata),) = encode(("orders",), ORDERS if cooperative else {}, 4)

    sent = decode_subscription(metadata)
    decoded = decode_previous_assignment(sent.user_data, name)
    assert sent.owned == (ORDERS if cooperative else {})
    assert decoded == ({} if cooperative else ORDERS)


def test_an_assignor_may_be_frozen() -> None:
    """The join failed with FrozenInstanceError when the rebalance protocol was set."""

    @dataclass(frozen=True)
    class Frozen(RangeAssignor):
        region: str = "eu"

        def user_data(self, topics: frozenset[str]) -> bytes:
            return f"{self.region} {sorted(topics)}".encode()

    ((_, metadata),) = subscription_encoder({"range": Frozen()}, None, LOG)(("orders",), {}, -1)
    assert decode_subscription(metadata).user_data == b"eu ['orders']"
