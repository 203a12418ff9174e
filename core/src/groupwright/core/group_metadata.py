"""librdkafka's binary form of a consumer group's metadata, by which brokers fence transactions (KIP-447).

The layout is that of ``rd_kafka_consumer_group_metadata_write``: ``CGMDv2:``, the generation (int32,
little-endian), then group and member id, each ended by a zero byte, then one byte that says whether an
instance id is absent, and that id.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Self

_MAGIC = b"CGMDv2:"
_GENERATION = struct.Struct("<i")


@dataclass(frozen=True, slots=True)
class GroupMetadata:
    """A member's identity for `Producer.send_offsets_to_transaction` (Java's `ConsumerGroupMetadata`)."""

    group_id: str = ""
    generation: int = -1
    """-1 for a member that is in no generation."""
    member_id: str = ""
    group_instance_id: str | None = None

    def encode(self) -> bytes:
        """Encode as librdkafka does."""
        instance = (
            b"\x01" if self.group_instance_id is None else b"\x00" + self.group_instance_id.encode() + b"\x00"
        )
        return b"".join(
            (
                _MAGIC,
                _GENERATION.pack(self.generation),
                self.group_id.encode() + b"\x00",
                self.member_id.encode() + b"\x00",
                instance,
            )
        )

    @classmethod
    def decode(cls, metadata: bytes | None) -> Self:
        """Decode librdkafka's bytes; None, and bytes in another format, decode to a member of no group."""
        if (
            metadata is None
            or len(metadata) < len(_MAGIC) + _GENERATION.size
            or not metadata.startswith(_MAGIC)
        ):
            return cls()
        generation: int = _GENERATION.unpack_from(metadata, len(_MAGIC))[0]
        group, _, rest = metadata[len(_MAGIC) + _GENERATION.size :].partition(b"\x00")
        member, _, instance = rest.partition(b"\x00")
        return cls(
            group.decode(errors="replace"),
            generation,
            member.decode(errors="replace"),
            instance[1:-1].decode(errors="replace") if instance.startswith(b"\x00") else None,
        )
