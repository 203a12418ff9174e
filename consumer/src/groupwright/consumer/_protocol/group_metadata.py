"""The bytes of `Consumer.consumer_group_metadata`, in librdkafka's own form.

librdkafka is in no group here, and its own metadata would pass the broker unfenced: a transaction could commit
offsets for a generation long gone. So the membership's identity is written in the layout that
`Producer.send_offsets_to_transaction` reads (librdkafka, rd_kafka_consumer_group_metadata_write).
"""

import struct

from groupwright.consumer._protocol.model import MemberIdentity

_MAGIC = b"CGMDv2:"
_GENERATION = struct.Struct("<i")


def encode(identity: MemberIdentity, group_id: str, group_instance_id: str | None) -> bytes:
    """Return the metadata of this member of this generation."""
    generation = _GENERATION.pack(identity.generation)
    instance = b"\x01" if group_instance_id is None else b"\x00" + group_instance_id.encode() + b"\x00"
    return (
        _MAGIC + generation + group_id.encode() + b"\x00" + identity.member_id.encode() + b"\x00" + instance
    )


def decode(metadata: bytes) -> MemberIdentity:
    """Return who a member is, as librdkafka's own metadata says; of one in no group, an identity that is not valid."""
    if not metadata.startswith(_MAGIC):
        return MemberIdentity()
    generation: int = _GENERATION.unpack_from(metadata, len(_MAGIC))[0]
    parts = metadata[len(_MAGIC) + _GENERATION.size :].split(b"\x00")
    return MemberIdentity(generation, parts[1].decode(errors="replace") if len(parts) > 1 else "")
