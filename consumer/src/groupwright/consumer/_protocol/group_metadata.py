"""The bytes of `Consumer.consumer_group_metadata`.

librdkafka is in no group here, so the broker would not fence its own metadata: a transaction could commit
offsets for a stale generation. The membership's identity is therefore written in librdkafka's form.
"""

from groupwright.consumer._protocol.model import MemberIdentity
from groupwright.core.group_metadata import GroupMetadata


def encode(identity: MemberIdentity, group_id: str, group_instance_id: str | None) -> bytes:
    """Return the metadata of this member of this generation."""
    return GroupMetadata(group_id, identity.generation, identity.member_id, group_instance_id).encode()
