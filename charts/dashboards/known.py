"""The metrics that dashboards and alerts may use, and those they omit on purpose."""

import re
from collections.abc import Iterable, Iterator, Mapping

from charts.dashboards import promql
from groupwright.cli.exporter import reference as exporter
from groupwright.core.metrics import MetricSpec, MetricType
from groupwright.instrumentation import reference as clients
from groupwright.pipeline import reference as pipeline

TARGET_LABELS = frozenset(
    {"cluster", "namespace", "pod", "container", "service", "endpoint", "job", "instance"}
)
"""Labels of the scraped target, which Prometheus adds to every series; `cluster` is the chart's value."""


CATALOGUE: tuple[MetricSpec, ...] = (*clients.CATALOGUE, *exporter.CATALOGUE, *pipeline.CATALOGUE)
"""All metrics: those of instrumented clients, the exporter's and the streaming job's."""

VALUES: Mapping[str, frozenset[str]] = {
    label: frozenset().union(*(each.LABEL_VALUES.get(label, ()) for each in (clients, exporter, pipeline)))
    for label in clients.LABEL_VALUES.keys() | exporter.LABEL_VALUES.keys() | pipeline.LABEL_VALUES.keys()
}
"""The values of those labels that have only some."""

UNSHOWN = {
    "groupwright_producer_queue_messages": "queue_used_ratio shows both limits at once",
    "groupwright_producer_queue_size_bytes": "as queue_messages",
    "groupwright_producer_batch_size_bytes": "for tuning a producer, not for watching it",
    "groupwright_producer_batch_messages": "as batch_size_bytes",
    "groupwright_producer_sent_bytes_total": "messages_total shows the same course",
    "groupwright_cluster_partition_lag": "by choice of the user; the dashboard is by topic",
    "groupwright_cluster_partition_lag_seconds": "as partition_lag",
    "groupwright_cluster_partition_committed_offset": "as partition_lag",
    "groupwright_leader_undecodable_members_total": "the leader's log names each member and the reason",
    **dict.fromkeys(
        (spec.name for spec in clients.CATALOGUE if spec.name.startswith("groupwright_parallel_")),
        "only of services that work in parallel; their page has the queries",
    ),
    **dict.fromkeys(
        (spec.name for spec in clients.CATALOGUE if spec.name.startswith("groupwright_share_")),
        "only of share consumers, which have no rebalances",
    ),
}
"""Metrics that are neither shown nor alerted on, and why."""

_ALERTS = {"ALERTS": frozenset({"alertname", "alertstate", "severity", "group", "client_id"}) | TARGET_LABELS}
_SUFFIXES: Mapping[str, tuple[str, ...]] = {MetricType.HISTOGRAM: ("_bucket", "_sum", "_count")}


def series() -> dict[str, frozenset[str]]:
    """Return the labels of every scraped series, by name."""
    return {
        spec.name + suffix: frozenset(spec.labels)
        | TARGET_LABELS
        | ({"le"} if suffix == "_bucket" else set())
        for spec in CATALOGUE
        for suffix in _SUFFIXES.get(spec.type, ("",))
    }


def recorded(records: Iterable[str], group_labels: Iterable[str]) -> dict[str, frozenset[str]]:
    """Return the labels of recording rules, by name prefix, and of Prometheus' ``ALERTS``."""
    levels = {
        "group": frozenset(group_labels),
        "member": frozenset({"group", "client_id"}) | TARGET_LABELS,
    }
    return {record: levels[record.partition(":")[0]] for record in records} | _ALERTS


def family(name: str) -> str:
    """Return the catalogue's name of a series."""
    for spec in CATALOGUE:
        if name in {spec.name + suffix for suffix in _SUFFIXES.get(spec.type, ("",))}:
            return spec.name
    raise ValueError(f"{name} is no series of the catalogue")


def selected(selector: str, names: Iterable[str]) -> set[str]:
    """Return the metrics that a selector may select: by its name, or by a regular expression for names."""
    expr = promql.parse(selector)
    pattern = re.search(r'__name__=~"([^"]+)"', selector)
    by_name = {name for name in names if pattern and re.fullmatch(pattern[1], name)}
    return by_name or {*promql.metrics(expr)} & {*names}


def mistakes(text: str, labels_of: Mapping[str, frozenset[str]], legend: str = "") -> Iterator[str]:
    """Report unknown metrics and labels in an expression and its legend.

    Args:
        text: PromQL.
        labels_of: the labels of every metric that there is.
        legend: as Grafana has it.

    Raises:
        ValueError: it is no PromQL.
    """
    expr = promql.parse(text)
    for metric in sorted(promql.metrics(expr) - labels_of.keys()):
        yield f"no such metric: {metric}"
    for matcher in promql.matchers(expr):
        if matcher.label not in labels_of.get(matcher.metric, ()):
            yield f"{matcher.metric} has no label {matcher.label}"
        for value in set(matcher.values) - VALUES.get(matcher.label, {*matcher.values}):
            yield f"the label {matcher.label} is never {value}"
    for naming in [*promql.namings(expr), promql.Naming(promql.legend_labels(legend), promql.metrics(expr))]:
        of_any = frozenset[str]().union(*(labels_of.get(metric, ()) for metric in naming.metrics))
        for label in sorted(naming.labels - of_any):
            yield f"none of {', '.join(sorted(naming.metrics))} has the label {label}"
