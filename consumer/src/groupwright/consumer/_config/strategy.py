"""``partition.assignment.strategy``: the assignors of one member, by preference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from groupwright.assignors import (
    Assignor,
    GroupwrightError,
    RebalanceProtocol,
    UniformAssignor,
    by_name,
    check_member_assignor,
)
from groupwright.consumer.errors import ConfigurationError
from groupwright.core.configuration import is_public, shown

_STRATEGY = "partition.assignment.strategy"
DEFAULT_STRATEGY = "range,roundrobin,cooperative-sticky"
"""librdkafka's default, so that members vote for an assignor as with librdkafka, and ``cooperative-sticky``
as in Java's default (KIP-726), so that a group changes to cooperative rebalances in one rolling bounce. A
member with an eager assignor in its list rebalances eagerly."""


def read_strategy(value: object) -> dict[str, Assignor]:
    """Read ``partition.assignment.strategy``: names, assignors, or a list of either, by preference.

    Raises:
        ConfigurationError: A name is unknown or that of the broker's assignor, two assignors have one name,
            or their protocols do not match.
    """
    items: Sequence[object]
    if isinstance(value, str) and is_public(_STRATEGY, value):
        items = [name.strip() for name in value.split(",") if name.strip()]
    elif isinstance(value, (Assignor, type)):
        items = [value]
    elif isinstance(value, (list, tuple)):
        items = value
    else:
        raise ConfigurationError(
            f"{_STRATEGY} takes names, assignors or a list of them, in order of preference; not "
            f"{shown(_STRATEGY, value)}"
        )
    assignors: dict[str, Assignor] = {}
    for index, item in enumerate(items):
        if isinstance(item, str) and item in items[:index]:
            continue  # a repeated name counts once, as in librdkafka
        assignor = _read_assignor(item)
        if assignor.name in assignors:
            raise ConfigurationError(
                f"{_STRATEGY} has two assignors of the name {assignor.name!r}; leave one of them out"
            )
        assignors[assignor.name] = assignor
    if not assignors:
        raise ConfigurationError(f"{_STRATEGY} is empty; leave it out for {DEFAULT_STRATEGY!r}")
    if not _protocols(assignors):
        names = ", ".join(map(repr, assignors))
        raise ConfigurationError(
            f"{_STRATEGY} mixes assignors without a rebalance protocol in common: {names}. "
            "Give assignors that are all eager, or all cooperative"
        )
    return assignors


def is_cooperative(assignors: Mapping[str, Assignor]) -> bool:
    """Return whether the highest protocol that all assignors support is the cooperative one."""
    return bool(assignors) and max(_protocols(assignors)) is RebalanceProtocol.COOPERATIVE


def _protocols(assignors: Mapping[str, Assignor]) -> frozenset[RebalanceProtocol]:
    """Return the rebalance protocols that all assignors support."""
    return frozenset(RebalanceProtocol).intersection(*(assignor.protocols for assignor in assignors.values()))


def _read_assignor(item: object) -> Assignor:
    if isinstance(item, type) and issubclass(item, Assignor):
        raise ConfigurationError(
            f"{_STRATEGY} has the class {item.__name__}; give an object: {item.__name__}()"
        )
    if not isinstance(item, (str, Assignor)):
        raise ConfigurationError(
            f"{_STRATEGY} has {shown(_STRATEGY, item)}, which is neither a name nor an Assignor"
        )
    if item == "uniform":
        item = UniformAssignor.name
    try:
        item = by_name(item) if isinstance(item, str) else item
        check_member_assignor(item)
    except GroupwrightError as error:
        raise ConfigurationError(f"{_STRATEGY}: {error}") from error
    return item
