"""What a PromQL expression uses: its metrics, its matchers, the labels that it names."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser
from promql_parser import AggregateExpr, BinaryExpr, Expr, MatchOp, VectorSelector

_DURATIONS = re.compile(r"\$__(rate_interval|interval|range)")
_LEGEND_LABEL = re.compile(r"\{\{ *(\w+) *\}\}")


@dataclass(frozen=True, slots=True)
class Matcher:
    """A condition on a label."""

    metric: str
    label: str
    values: tuple[str, ...]
    """The alternatives that it names, where it is no other regular expression; a variable has none."""


@dataclass(frozen=True, slots=True)
class Naming:
    """A place that names labels, as ``by (…)`` does, and the metrics to which it applies."""

    labels: frozenset[str]
    metrics: frozenset[str]


def parse(expr: str) -> Expr:
    """Parse an expression, Grafana's intervals in it or not.

    Raises:
        ValueError: it is no PromQL.
    """
    parsed: Expr = promql_parser.parse(_DURATIONS.sub("5m", expr))
    return parsed


def metrics(expr: Expr) -> frozenset[str]:
    """Return the names of all metrics in an expression."""
    return frozenset(selector.name or "" for selector in _selectors(expr))


def matchers(expr: Expr) -> list[Matcher]:
    """Return the conditions on labels in an expression."""
    return [
        Matcher(selector.name or "", each.name, _alternatives(each.op, each.value))
        for selector in _selectors(expr)
        for each in selector.matchers.matchers
    ]


def namings(expr: Expr) -> list[Naming]:
    """Return the places that name labels: aggregations, and matches of one vector with another."""
    found = []
    for node in _nodes(expr):
        named: list[str] = []
        if isinstance(node, AggregateExpr) and node.modifier is not None:
            named = node.modifier.labels
        elif (
            isinstance(node, BinaryExpr) and node.modifier is not None and node.modifier.matching is not None
        ):
            named = node.modifier.matching.labels
        if named:
            found.append(Naming(frozenset(named), metrics(node)))
    return found


def legend_labels(legend: str) -> frozenset[str]:
    """Return the labels that a legend shows."""
    return frozenset(_LEGEND_LABEL.findall(legend))


def _alternatives(op: MatchOp, value: str) -> tuple[str, ...]:
    if value.startswith("$"):
        return ()
    if op in (MatchOp.Equal, MatchOp.NotEqual):
        return (value,)
    return tuple(value.split("|")) if re.fullmatch(r"[\w|]+", value) else ()


def _selectors(expr: Expr) -> Iterator[VectorSelector]:
    return (node for node in _nodes(expr) if isinstance(node, VectorSelector))


def _nodes(expr: Expr) -> list[Expr]:
    nodes: list[Expr] = []
    promql_parser.walk(expr, nodes.append)
    return nodes
