"""Kafka's order of members and of names: Java's, which is not always Python's."""

from collections.abc import Collection, Iterable
from operator import attrgetter, lt
from typing import TYPE_CHECKING

from groupwright.assignors.errors import InvalidInputError

if TYPE_CHECKING:
    from groupwright.assignors._model.group import Member


def utf16_order(text: str) -> bytes:
    """Return a sort key that orders strings as Java's `String.compareTo` does.

    Java compares UTF-16 code units, Python code points. They differ where a character beyond the Basic
    Multilingual Plane (two units, the first below 0xE000) meets one from 0xE000 to 0xFFFF.
    """
    return text.encode("utf-16-be", "surrogatepass")


def member_order(member: "Member") -> tuple[bool, bytes, bytes]:
    """Return a sort key: static members first, by `group.instance.id`, then dynamic ones by member id.

    This is the order of Java's `AbstractPartitionAssignor.MemberInfo`. Member ids also part static members
    of one instance id, which a coordinator does not let into one generation, and which Java leaves in the
    order of a hash map.
    """
    instance_id = member.instance_id
    return instance_id is None, utf16_order(instance_id or ""), utf16_order(member.id)


def sorted_members(members: Collection["Member"]) -> list["Member"]:
    """Return members in the order of `member_order`."""
    is_simple = all(member.instance_id is None for member in members) and _is_ascii([m.id for m in members])
    return sorted(members, key=attrgetter("id") if is_simple else member_order)


def sorted_names(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in Java's order.

    Raises:
        InvalidInputError: One of them is not a string.
    """
    listed = list(names)
    # Among ASCII, which is all that a topic's name may hold, the two orders are one.
    return tuple(sorted(listed) if _is_ascii(listed) else sorted(listed, key=utf16_order))


def strictly_ascending(names: tuple[str, ...]) -> bool:
    """Tell whether names are in Java's order, each once."""
    keys = names if _is_ascii(names) else tuple(map(utf16_order, names))
    return all(map(lt, keys, keys[1:]))


def _is_ascii(names: Iterable[str]) -> bool:
    try:
        return "".join(names).isascii()
    except TypeError as error:
        raise InvalidInputError(f"names must be strings: {error}") from error
