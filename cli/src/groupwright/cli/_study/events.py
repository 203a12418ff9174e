"""Events of a group to simulate, as they are written on the command line. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from groupwright.cli._command_line.exit import CommandError, ExitStatus

ROLLING = "rolling"
"""A restart of all members, one after the other."""

MOST_JOINING = 10_000
MOST_DIGITS = 9
"""Maximum number of digits of a number on the command line."""


@dataclass(frozen=True, slots=True)
class NewMember:
    """A member that joins. Attributes that are None are derived from the other members.

    Attributes:
        client_id: Its client id, with which its member id begins.
        capacity: Its capacity for `load-aware`.
    """

    client_id: str | None = None
    id: str | None = None
    topics: tuple[str, ...] | None = None
    instance_id: str | None = None
    rack: str | None = None
    capacity: float = 1.0


@dataclass(frozen=True, slots=True)
class Join:
    """Members join, all at once."""

    members: tuple[NewMember, ...]


@dataclass(frozen=True, slots=True)
class Leave:
    """Members leave, all at once; by name, member id, instance id or client id."""

    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddPartitions:
    """A topic grows.

    Attributes:
        partitions: The number of partitions afterwards, or the number of new ones.
        is_increment: Whether it is the number of new ones.
    """

    topic: str
    partitions: int
    is_increment: bool = False


@dataclass(frozen=True, slots=True)
class ChangeWeights:
    """The weights of topics' partitions change."""

    weights: Mapping[str, Sequence[float]]


@dataclass(frozen=True, slots=True)
class Restart:
    """A member restarts, or all members do so one after the other (`ROLLING`)."""

    member: str


Event = Join | Leave | AddPartitions | ChangeWeights | Restart


def events_of(
    join: Sequence[str], leave: Sequence[str], add_partitions: Sequence[str], restart: Sequence[str]
) -> tuple[Event, ...]:
    """Return the events of the command's options, in the order in which they are simulated.

    Raises:
        CommandError: An option cannot be understood.
    """
    return (
        *map(_join, join),
        *(Leave((member,)) for member in leave),
        *map(_add_partitions, add_partitions),
        *map(Restart, restart),
    )


def _join(text: str) -> Join:
    if text.isdecimal():
        if len(text) > MOST_DIGITS or not 1 <= int(text) <= MOST_JOINING:
            raise CommandError(f"--join {text}: write a number from 1 to {MOST_JOINING}", ExitStatus.USAGE)
        return Join((NewMember(),) * int(text))
    client_id, _, rack = text.partition(":")
    if not client_id or client_id.startswith("-"):
        raise CommandError(
            f"--join {text!r} is not understood: write the number of new members, or CLIENT-ID or "
            "CLIENT-ID:RACK of one",
            ExitStatus.USAGE,
        )
    return Join((NewMember(client_id, rack=rack or None),))


def _add_partitions(text: str) -> AddPartitions:
    topic, equals, number = text.rpartition("=")
    digits = number.removeprefix("+")
    if not (topic and equals and digits.isdecimal() and digits.isascii() and len(digits) <= MOST_DIGITS):
        raise CommandError(
            f"--add-partitions {text!r} is not understood: write TOPIC=TOTAL, as in orders=24, or TOPIC=+NEW",
            ExitStatus.USAGE,
        )
    return AddPartitions(topic, int(digits), is_increment=number.startswith("+"))
