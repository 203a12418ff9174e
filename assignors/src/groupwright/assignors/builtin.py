"""Built-in assignors by name."""

from __future__ import annotations

from collections.abc import Callable

from groupwright.assignors._model.assignor import Assignor
from groupwright.assignors.broker import BrokerRangeAssignor, UniformAssignor
from groupwright.assignors.co_partitioned import CoPartitionedStickyAssignor
from groupwright.assignors.errors import AssignorError
from groupwright.assignors.load_aware import LoadAwareAssignor
from groupwright.assignors.range import RangeAssignor
from groupwright.assignors.roundrobin import RoundRobinAssignor
from groupwright.assignors.sticky import CooperativeStickyAssignor, StickyAssignor
from groupwright.assignors.weights import Throughput

_MAKERS: dict[str, Callable[[], Assignor]] = {
    RangeAssignor.name: RangeAssignor,
    RoundRobinAssignor.name: RoundRobinAssignor,
    StickyAssignor.name: StickyAssignor,
    CooperativeStickyAssignor.name: CooperativeStickyAssignor,
    CoPartitionedStickyAssignor.name: CoPartitionedStickyAssignor,
    LoadAwareAssignor.name: lambda: LoadAwareAssignor(weights=Throughput()),
}
_BROKERS: dict[str, Callable[[], Assignor]] = {
    UniformAssignor.name: UniformAssignor,
    BrokerRangeAssignor.name: BrokerRangeAssignor,
}


def builtin_assignors() -> tuple[Assignor, ...]:
    """Return a new instance of each built-in assignor of members, as `by_name` does."""
    return tuple(make() for make in _MAKERS.values())


def by_name(name: str) -> Assignor:
    """Return a new instance of the built-in assignor with this name.

    By its name, `load-aware` weighs partitions by their throughput (`Throughput()`). The broker's assignors
    are named `broker:uniform` and `broker:range`.

    Raises:
        AssignorError: There is none; the message lists the names.
    """
    make = _MAKERS.get(name) or _BROKERS.get(name)
    if make is not None:
        return make()
    known = ", ".join(sorted(_MAKERS))
    raise AssignorError(
        f"no assignor is named {name!r}; there are: {known}. Pass one of your own as an object"
    )
