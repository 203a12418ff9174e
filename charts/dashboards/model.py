"""What a dashboard is made of, as plain data: `grafana` makes Grafana's JSON of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """How a panel is drawn, in Grafana's words."""

    STAT = "stat"
    LINES = "timeseries"
    STATES = "state-timeline"
    TABLE = "table"


class Stacking(StrEnum):
    """Whether the lines of a panel add up, and how they are drawn."""

    NONE = "none"
    AREAS = "areas"
    BARS = "bars"


@dataclass(frozen=True, slots=True)
class Query:
    """One PromQL expression; `@member`, `@group` and `@namespace` in it stand for the variables' matchers."""

    expr: str
    legend: str = ""
    """As Grafana has it, labels in ``{{}}``; of a table the column's title."""


@dataclass(frozen=True, slots=True)
class Limit:
    """From this value on a panel has this colour."""

    value: float
    colour: str


@dataclass(frozen=True, slots=True)
class Panel:
    """One panel."""

    title: str
    description: str
    unit: str
    queries: tuple[Query, ...]
    kind: Kind = Kind.LINES
    limits: tuple[Limit, ...] = ()
    """Above the base, which is green; drawn as lines where the panel has any axes."""
    runbook: str = ""
    """The page of docs/runbooks that this panel helps with."""
    width: int = 8
    """Of 24."""
    height: int = 8
    decimals: int | None = None
    stacking: Stacking = Stacking.NONE
    values: Mapping[float, tuple[str, str]] = field(default_factory=dict)
    """What values are called, and their colours."""
    units: Mapping[str, str] = field(default_factory=dict)
    """Of a table: the units of columns that have another."""
    no_value: str = ""
    """What is shown without data."""
    base: str = "green"
    """The colour below all limits."""
    group_links: bool = False
    """Of a table: whether a group leads to its own dashboard."""


@dataclass(frozen=True, slots=True)
class Row:
    """Panels below one title."""

    title: str
    panels: tuple[Panel, ...]


class Scope(StrEnum):
    """Which variables a dashboard has."""

    GROUP = "group"
    FLEET = "fleet"


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard."""

    uid: str
    title: str
    description: str
    scope: Scope
    rows: tuple[Row, ...]
    since: str = "now-6h"


_NAMESPACE = 'namespace=~"$namespace"'
_MATCHERS = {
    Scope.GROUP: {
        "@namespace": _NAMESPACE,
        "@group": f'{_NAMESPACE}, group="$group"',
        "@member": f'{_NAMESPACE}, group="$group", client_id=~"$client"',
    },
    Scope.FLEET: {
        "@namespace": _NAMESPACE,
        "@group": f'{_NAMESPACE}, group=~"$group"',
        "@member": f'{_NAMESPACE}, group=~"$group", client_id=~"$client"',
    },
}


def expression(query: Query, scope: Scope) -> str:
    """Return a query's PromQL, with the matchers of its dashboard's variables."""
    expr = query.expr
    for token, matchers in _MATCHERS[scope].items():
        expr = expr.replace(token, matchers)
    return expr
