"""The reference page of all metrics, printed by ``python -m groupwright.instrumentation.reference``."""

import sys
from collections.abc import Iterator

from groupwright.instrumentation._metrics.catalogue import CATALOGUE
from groupwright.instrumentation._metrics.labels import BUCKETS_REASON, DURATION_BUCKETS, LABELS

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
    return "\n".join([_HEAD, *_metrics(), "\n## Labels\n", *_labels(), "\n## Buckets\n", _buckets()])


def _metrics() -> Iterator[str]:
    yield "| metric | type | labels | meaning | in Java |"
    yield "|---|---|---|---|---|"
    for spec in CATALOGUE:
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        meaning = spec.help + (" ◆" if spec.own_membership else "")
        yield f"| `{spec.name}` | {spec.type} | {labels} | {meaning} | {spec.java or ''} |"


def _labels() -> Iterator[str]:
    yield "| label | meaning |"
    yield "|---|---|"
    for name, meaning in LABELS.items():
        yield f"| `{name}` | {meaning} |"


def _buckets() -> str:
    bounds = " ".join(f"{bound:g}" for bound in DURATION_BUCKETS)
    return f"All durations are in seconds and share these upper bounds:\n\n    {bounds}\n\n{BUCKETS_REASON}"


if __name__ == "__main__":
    sys.stdout.write(page())
