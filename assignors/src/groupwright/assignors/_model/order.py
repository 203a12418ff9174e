"""Kafka's order of members and names: Java's string order, which can differ from Python's outside ASCII."""

from collections.abc import Collection, Iterable
from operator import attrgetter, lt
from typing import TYPE_CHECKING

from groupwright.assignors.errors import InvalidInputError

if TYPE_CHECKING:
    from groupwright.assignors._model.group import Member


def utf16_order(text: str) -> bytes:
    """Return a sort key that orders strings as Java's `String.compareTo` does.

    Java compares UTF-16 code units, Python code points. The orders differ between a character beyond the
    Basic Multilingual Plane (two code units, the first below 0xE000) and one from 0xE000 to 0xFFFF.
    """
    return text.encode("utf-16-be", "surrogatepass")


def member_order(member: "Member") -> tuple[bool, bytes, bytes]:
    """Return a sort key: static members first, by `group.instance.id`, then dynamic ones by member id.

    This is the order of Java's `AbstractPartitionAssignor.MemberInfo`, except that members with the same
    instance id are sorted by member id. Java leaves them in the order of a hash map; a coordinator never puts
    them into one generation.
    """
    instance_id = member.instance_id
    return instance_id is None, utf16_order(instance_id or ""), utf16_order(member.id)


def sorted_members(members: Collection["Member"]) -> list["Member"]:
    """Sort members by `member_order`."""
    is_simple = all(member.instance_id is None for member in members) and _is_ascii([m.id for m in members])
    return sorted(members, key=attrgetter("id") if is_simple else member_order)


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Sort names as Java does.

    Raises:
        InvalidInputError: A name is not a string.
    """
    listed = list(names)
    # The two orders are the same in ASCII, to which topic names are limited.
    return tuple(sorted(listed) if _is_ascii(listed) else sorted(listed, key=utf16_order))


def strictly_ascending(names: tuple[str, ...]) -> bool:
    """Return whether names are in Java's order, without duplicates."""
    keys = names if _is_ascii(names) else tuple(map(utf16_order, names))
    return all(map(lt, keys, keys[1:]))


def _is_ascii(names: Iterable[str]) -> bool:
    try:
        return "".join(names).isascii()
    except TypeError as error:
        raise InvalidInputError(f"names must be strings: {error}") from error
