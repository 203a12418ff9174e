"""librdkafka's bytes of a group's metadata, beside its own."""

import confluent_kafka
import pytest

from groupwright.core.group_metadata import GroupMetadata


@pytest.mark.parametrize("group", ["orders", "grüße", "g" * 300])
def test_outside_a_generation_the_bytes_are_librdkafkas(group: str) -> None:
    native = confluent_kafka.Consumer({"bootstrap.servers": "127.0.0.1:1", "group.id": group, "log_level": 0})
    expected = native.consumer_group_metadata()
    native.close()

    assert GroupMetadata(group).encode() == expected
    assert GroupMetadata.decode(expected) == GroupMetadata(group)


@pytest.mark.parametrize("instance", [None, "", "i-1"])
def test_decoding_returns_what_was_encoded(instance: str | None) -> None:
    metadata = GroupMetadata("g", 0x01020304, "m-1", instance)

    assert GroupMetadata.decode(metadata.encode()) == metadata


@pytest.mark.parametrize(
    "metadata", [None, b"", b"CGMDv2:", b"CGMDv2:\x00\x00", b"CGMDv9:\x01\x00\x00\x00g\x00m\x00\x01"]
)
def test_other_bytes_are_those_of_a_member_of_no_group(metadata: bytes | None) -> None:
    assert GroupMetadata.decode(metadata) == GroupMetadata()
