"""The bytes of `Consumer.consumer_group_metadata`.

librdkafka is in no group here. Its own metadata has no generation, so the broker would not fence a
transaction that commits offsets for a stale one. So the membership's identity is encoded in librdkafka's
format.
"""

from __future__ import annotations

from groupwright.consumer._protocol.model import MemberIdentity
from groupwright.core.group_metadata import GroupMetadata


def encode(identity: MemberIdentity, group_id: str, group_instance_id: str | None) -> bytes:
    """Return the metadata of this member of this generation."""
    return GroupMetadata(group_id, identity.generation, identity.member_id, group_instance_id).encode()
