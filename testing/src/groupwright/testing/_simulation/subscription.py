"""Topics in a consumer's subscription: ConsumerProtocolSubscription version 0, which all versions extend.

Kafka takes bytes that end too early for a subscription to topics that it does not know, as this module does.
Other bytes that are no subscription, such as those with an impossible number of topics, are left out of the
model: 4.3.1 then begins a generation without answering its members.
"""

import struct


def topics(metadata: bytes) -> frozenset[str] | None:
    """Return the topics of a subscription, or None if the bytes are none."""
    try:
        _, count = struct.unpack_from(">hi", metadata)
        position = 6
        found = []
        for _ in range(count):
            (length,) = struct.unpack_from(">h", metadata, position)
            position += 2
            name = metadata[position : position + length]
            if len(name) != length:
                return None
            found.append(name.decode())
            position += length
        # The user data follows: a length, which is -1 for none, and as many bytes.
        (length,) = struct.unpack_from(">i", metadata, position)
    except (struct.error, UnicodeDecodeError):
        return None
    return frozenset(found) if count >= 0 and position + 4 + length <= len(metadata) else None


def encode(names: tuple[str, ...]) -> bytes:
    """Return the bytes of a subscription to these topics, without user data."""
    parts = [struct.pack(">hi", 0, len(names))]
    for name in names:
        parts += [struct.pack(">h", len(name.encode())), name.encode()]
    return b"".join([*parts, struct.pack(">i", -1)])
