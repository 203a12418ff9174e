"""Java's hash of a string, and the order of the hash tables in which Kafka's coordinators keep members.

Kafka breaks ties by this order: which member becomes leader when the leader is gone, which protocol wins with
as many votes as another, and to which members the broker's assignor assigns one partition more. Member ids
end in a random UUID, so in a real group the new leader is random; with known ids it is not. A table never
shrinks, so for more than 11 members the order also depends on the past size of the group, which these
functions do not know: they take the smallest table that fits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

HashOrder = Callable[[Iterable[str]], list[str]]
"""Returns strings in a table's iteration order. Its input is in order of insertion."""

_WORD = 0xFFFFFFFF
_SMALLEST_TABLE = 16
_CHUNK_BITS = 5


def java_hash(text: str) -> int:
    """Return Java's ``String.hashCode``: a signed int32 over the UTF-16 code units."""
    units = text.encode("utf-16-be", "surrogatepass")
    value = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        value = (31 * value + (high << 8 | low)) & _WORD
    return _signed(value)


def java_hash_map(keys: Iterable[str]) -> list[str]:
    """Return keys in the order of `java.util.HashMap`."""
    found = list(keys)
    size = _SMALLEST_TABLE
    while len(found) > size * 3 // 4:
        size *= 2
    return sorted(found, key=lambda key: _spread(key) & (size - 1))


def scala_mutable_hash_map(keys: Iterable[str]) -> list[str]:
    """Return keys in the order of Scala 2.13's `mutable.HashMap`, which sorts each bucket by hash."""
    found = list(keys)
    size = _SMALLEST_TABLE
    while len(found) >= size * 3 // 4:
        size *= 2
    return sorted(found, key=lambda key: (_spread(key) & (size - 1), _signed(_spread(key))))


def scala_immutable_hash_map(keys: Iterable[str]) -> list[str]:
    """Return keys in the order of Scala 2.13's `immutable.HashMap`, a trie of 5 bits a level."""
    return _trie_order([(_improved(key), key) for key in keys])


def _trie_order(keys: list[tuple[int, str]], shift: int = 0) -> list[str]:
    chunks: dict[int, list[tuple[int, str]]] = {}
    for hashed, key in keys:
        chunks.setdefault(hashed >> shift & (1 << _CHUNK_BITS) - 1, []).append((hashed, key))
    branches = [chunks[chunk] for chunk in sorted(chunks)]
    order = [branch[0][1] for branch in branches if len(branch) == 1]
    for branch in branches:
        if len(branch) > 1:
            collide = len({hashed for hashed, _ in branch}) == 1
            order += [key for _, key in branch] if collide else _trie_order(branch, shift + _CHUNK_BITS)
    return order


def _spread(key: str) -> int:
    hashed = java_hash(key) & _WORD
    return hashed ^ hashed >> 16


def _improved(key: str) -> int:
    """Return `scala.collection.Hashing.improve` of the hash."""
    hashed = java_hash(key) & _WORD
    hashed = (hashed + ~(hashed << 9 & _WORD)) & _WORD
    hashed ^= hashed >> 14
    hashed = (hashed + (hashed << 4)) & _WORD
    return hashed ^ hashed >> 10


def _signed(word: int) -> int:
    return word - (1 << 32) if word >> 31 else word
