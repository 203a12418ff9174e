"""Dashboards as plain data, which `grafana` turns into Grafana's JSON."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class Kind(StrEnum):
    """Grafana's panel types."""

    STAT = "stat"
    LINES = "timeseries"
    STATES = "state-timeline"
    TABLE = "table"


class Stacking(StrEnum):
    """Stacking and drawing style of a panel's series."""

    NONE = "none"
    AREAS = "areas"
    BARS = "bars"


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL expression, in which `@member`, `@group` and `@namespace` are replaced by matchers.

    `@target` stands for the labels that separate groups with the same name: `cluster` and `namespace`.
    """

    expr: str
    legend: str = ""
    """The legend, with labels in ``{{}}``; in a table, the column's title."""


@dataclass(frozen=True, slots=True)
class Limit:
    """A threshold, and the colour from it on."""

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
    """Thresholds above the green base; drawn as lines in panels with axes."""
    runbook: str = ""
    """The page of docs/runbooks to link to."""
    width: int = 8
    """Width in columns, of 24."""
    height: int = 8
    decimals: int | None = None
    stacking: Stacking = Stacking.NONE
    values: Mapping[float, tuple[str, str]] = field(default_factory=dict)
    """Names and colours of values."""
    units: Mapping[str, str] = field(default_factory=dict)
    """In a table, the units of columns that differ."""
    no_value: str = ""
    """The text shown without data."""
    base: str = "green"
    """The colour below all limits."""
    group_links: bool = False
    """In a table, whether group names link to the group's dashboard."""


@dataclass(frozen=True, slots=True)
class Row:
    """A titled row of panels."""

    title: str
    panels: tuple[Panel, ...]
    """They fill lines of 24 columns."""


class Scope(StrEnum):
    """The variables of a dashboard."""

    GROUP = "group"
    FLEET = "fleet"
    CLUSTER = "cluster"
    """All groups, as the exporter sees them, which knows no clients."""
    SERVICES = "services"
    """The workloads of the Helm chart, which belong to no group."""


@dataclass(frozen=True, slots=True)
class Board:
    """One dashboard."""

    uid: str
    title: str
    description: str
    scope: Scope
    rows: tuple[Row, ...]
    since: str = "now-6h"


_NAMESPACE = 'cluster=~"$cluster", namespace=~"$namespace"'
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
    Scope.CLUSTER: {
        "@namespace": _NAMESPACE,
        "@group": f'{_NAMESPACE}, group=~"$group"',
    },
    Scope.SERVICES: {"@namespace": _NAMESPACE},
}


def expression(query: Query, scope: Scope) -> str:
    """Return a query's PromQL, with the matchers of its dashboard's variables."""
    expr = query.expr.replace("@target", "cluster, namespace")
    for token, matchers in _MATCHERS[scope].items():
        expr = expr.replace(token, matchers)
    return expr
