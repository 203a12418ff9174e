"""The reference page of all metrics, printed by ``python -m groupwright.instrumentation.reference``.

`CATALOGUE` has the metrics, and `LABEL_VALUES` the values of those labels that have only some.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping

from groupwright.core import Kind, LoadCheckOutcome, Outcome, Phase
from groupwright.core.metrics import label_table, metric_table
from groupwright.instrumentation._metrics.catalogue import CATALOGUE
from groupwright.instrumentation._metrics.labels import (
    ACKNOWLEDGEMENTS,
    BUCKETS_REASON,
    CALLBACKS,
    DURATION_BUCKETS,
    EVENT_OUTCOMES,
    LABELS,
    REQUESTS,
    STATES,
)

__all__ = ["CATALOGUE", "LABEL_VALUES", "page"]

LABEL_VALUES: Mapping[str, frozenset[str]] = {
    "outcome": frozenset({*Outcome, *LoadCheckOutcome, *EVENT_OUTCOMES}),
    "phase": frozenset(Phase),
    "callback": frozenset(CALLBACKS),
    "kind": frozenset({*Kind, ""}),
    "state": frozenset(STATES),
    "request": frozenset(REQUESTS),
    "type": frozenset(ACKNOWLEDGEMENTS),
}

_HEAD = """\
<!-- Made by `python -m groupwright.instrumentation.reference`; change the catalogue, not this page. -->
# Metrics

Names pass `promtool check metrics`. A histogram has the series `_bucket`, `_sum` and `_count`. The last
column names the Java client's metric of the same meaning, or the closest one; an empty cell means that
there is none.

◆ Only Groupwright's own membership has this metric. librdkafka does not report it, so it is absent for a
plain consumer and for any consumer under `group.protocol=consumer`.
"""


def page() -> str:
    """Return the page, in Markdown."""
    metrics = metric_table(
        CATALOGUE, lambda spec: spec.own_membership, {"in Java": lambda spec: spec.java or ""}
    )
    labels = label_table(LABELS)
    return "\n".join([_HEAD, *metrics, "\n## Labels\n", *labels, "\n## Buckets\n", _buckets()])


def _buckets() -> str:
    bounds = " ".join(f"{bound:g}" for bound in DURATION_BUCKETS)
    return f"All durations are in seconds and share these upper bounds:\n\n    {bounds}\n\n{BUCKETS_REASON}"


if __name__ == "__main__":
    sys.stdout.write(page())
