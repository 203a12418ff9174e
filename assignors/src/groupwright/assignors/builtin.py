"""Built-in assignors by name."""

from groupwright.assignors._model.assignor import Assignor
from groupwright.assignors.co_partitioned import CoPartitionedStickyAssignor
from groupwright.assignors.errors import AssignorError
from groupwright.assignors.range import RangeAssignor
from groupwright.assignors.roundrobin import RoundRobinAssignor
from groupwright.assignors.sticky import CooperativeStickyAssignor, StickyAssignor


def builtin_assignors() -> tuple[Assignor, ...]:
    """Return a new instance of each built-in assignor."""
    return (
        RangeAssignor(),
        RoundRobinAssignor(),
        StickyAssignor(),
        CooperativeStickyAssignor(),
        CoPartitionedStickyAssignor(),
    )


def by_name(name: str) -> Assignor:
    """Return a new instance of the built-in assignor with this name.

    Raises:
        AssignorError: There is none; the message lists the names.
    """
    assignors = {assignor.name: assignor for assignor in builtin_assignors()}
    if name in assignors:
        return assignors[name]
    known = ", ".join(sorted(assignors))
    raise AssignorError(
        f"no assignor is named {name!r}; there are: {known}. Pass one of your own as an object"
    )
