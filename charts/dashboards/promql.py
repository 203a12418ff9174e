"""Metrics, matchers and labels used in a PromQL expression."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import promql_parser
from promql_parser import AggregateExpr, BinaryExpr, Expr, MatchOp, VectorSelector

_DURATIONS = re.compile(r"\$__(rate_interval|interval|range)")
_LEGEND_LABEL = re.compile(r"\{\{ *(\w+) *\}\}")


@dataclass(frozen=True, slots=True)
class Matcher:
    """A label matcher."""

    metric: str
    label: str
    values: tuple[str, ...]
    """The matched values, if the matcher is a list of alternatives; empty for variables."""


@dataclass(frozen=True, slots=True)
class Naming:
    """A clause that names labels, such as ``by (…)``, and the metrics to which it applies."""

    labels: frozenset[str]
    metrics: frozenset[str]


def parse(expr: str) -> Expr:
    """Parse an expression, which may contain Grafana's interval variables.

    Raises:
        ValueError: it is no PromQL.
    """
    parsed: Expr = promql_parser.parse(_DURATIONS.sub("5m", expr))
    return parsed


def metrics(expr: Expr) -> frozenset[str]:
    """Return the names of all metrics in an expression."""
    return frozenset(selector.name or "" for selector in _selectors(expr))


def matchers(expr: Expr) -> list[Matcher]:
    """Return the label matchers in an expression."""
    return [
        Matcher(selector.name or "", each.name, _alternatives(each.op, each.value))
        for selector in _selectors(expr)
        for each in selector.matchers.matchers
    ]


def namings(expr: Expr) -> list[Naming]:
    """Return the clauses that name labels: aggregations and vector matching."""
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
