"""The bytes that a transaction takes, beside librdkafka's own."""

import confluent_kafka
import pytest

from groupwright.consumer._protocol import group_metadata
from groupwright.consumer._protocol.model import MemberIdentity


@pytest.mark.parametrize("group", ["orders", "grüße", "g" * 300])
def test_outside_a_generation_it_is_librdkafkas_own(group: str) -> None:
    native = confluent_kafka.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": group, "log_level": 0})
    expected = native.consumer_group_metadata()
    native.close()

    assert group_metadata.encode(MemberIdentity(), group, None) == expected


def test_it_carries_the_generation_and_the_member() -> None:
    encoded = group_metadata.encode(MemberIdentity(0x01020304, "m-1", "range"), "g", None)

    assert encoded == b"CGMDv2:\x04\x03\x02\x01g\x00m-1\x00\x01"


def test_it_carries_the_instance_of_a_static_member() -> None:
    encoded = group_metadata.encode(MemberIdentity(5, "i-1-uuid", "range"), "g", "i-1")

    assert encoded == b"CGMDv2:\x05\x00\x00\x00g\x00i-1-uuid\x00\x00i-1\x00"
