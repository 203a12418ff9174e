"""The assignors that come with Groupwright, by name."""

from groupwright.assignors.assignor import Assignor
from groupwright.assignors.errors import AssignorError
from groupwright.assignors.range import RangeAssignor
from groupwright.assignors.roundrobin import RoundRobinAssignor

_KAFKAS_OTHERS = frozenset({"sticky", "cooperative-sticky"})


def builtin_assignors() -> tuple[Assignor, ...]:
    """Return a new instance of each."""
    return RangeAssignor(), RoundRobinAssignor()


def by_name(name: str) -> Assignor:
    """Return a new instance of the assignor that Kafka knows by this name.

    Raises:
        AssignorError: There is none; the message names those that there are.
    """
    assignors = {assignor.name: assignor for assignor in builtin_assignors()}
    if name in assignors:
        return assignors[name]
    known = ", ".join(sorted(assignors))
    if name in _KAFKAS_OTHERS:
        raise AssignorError(
            f"Kafka's assignor {name!r} is not in this version of Groupwright; it has: {known}"
        )
    raise AssignorError(
        f"no assignor is named {name!r}; there are: {known}. Pass one of your own as an object"
    )
