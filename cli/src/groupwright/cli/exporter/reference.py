"""The reference page of the exporter's metrics: ``python -m groupwright.cli.exporter.reference``.

`CATALOGUE` has the metrics, and `LABEL_VALUES` the values of those labels that have only some.
"""

import sys
from collections.abc import Iterator, Mapping

from groupwright.cli.exporter.catalogue import (
    CATALOGUE,
    LABELS,
    OUTCOMES,
    REASONS_LEFT_OUT,
    REASONS_STUCK,
    RECORD_OUTCOMES,
    STATES,
    Level,
)
from groupwright.core.metrics import label_table, metric_table

__all__ = ["CATALOGUE", "LABEL_VALUES", "page"]

LABEL_VALUES: Mapping[str, frozenset[str]] = {
    "outcome": frozenset({*OUTCOMES, *RECORD_OUTCOMES}),
    "reason": frozenset({*REASONS_STUCK, *REASONS_LEFT_OUT}),
    "state": frozenset(STATES),
}

_HEAD = """\
<!-- Made by `python -m groupwright.cli.exporter.reference`; change the catalogue, not this page. -->
# Metrics of the exporter

`groupwright exporter` serves these metrics; [README.md](README.md#groupwright-exporter) describes the
command. Names pass `promtool check metrics`. They differ from those of [instrumented
clients](../instrumentation/REFERENCE.md): a cluster may have both.

◆ Only `--source offsets-topic` has this metric."""

_TITLES = {
    Level.GROUP: "Groups",
    Level.TOPIC: "Topics of groups",
    Level.PARTITION: "Partitions of groups",
    Level.CLUSTER: "The cluster",
    Level.EXPORTER: "The exporter",
}


def page() -> str:
    """Return the page, in Markdown."""
    return "\n".join([_HEAD, *_metrics(), "\n## Labels\n", *label_table(LABELS), ""])


def _metrics() -> Iterator[str]:
    for level, title in _TITLES.items():
        yield f"\n## {title}\n"
        of_level = (spec for spec in CATALOGUE if spec.level is level)
        yield from metric_table(of_level, lambda spec: spec.offsets_topic_only)


if __name__ == "__main__":
    sys.stdout.write(page())
