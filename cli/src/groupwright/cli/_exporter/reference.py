"""The reference page of the exporter's metrics: ``python -m groupwright.cli._exporter.reference``."""

import sys
from collections.abc import Iterator

from groupwright.cli._exporter.catalogue import CATALOGUE, LABELS, Level

_HEAD = """\
<!-- Made by `python -m groupwright.cli._exporter.reference`; change the catalogue, not this page. -->
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
    return "\n".join([_HEAD, *_metrics(), "\n## Labels\n", *_labels(), ""])


def _metrics() -> Iterator[str]:
    for level, title in _TITLES.items():
        yield f"\n## {title}\n"
        yield "| metric | type | labels | meaning |"
        yield "|---|---|---|---|"
        for spec in CATALOGUE:
            if spec.level is level:
                labels = ", ".join(f"`{label}`" for label in spec.labels)
                meaning = spec.help + (" ◆" if spec.offsets_topic_only else "")
                yield f"| `{spec.name}` | {spec.type} | {labels} | {meaning} |"


def _labels() -> Iterator[str]:
    yield "| label | meaning |"
    yield "|---|---|"
    for name, meaning in LABELS.items():
        yield f"| `{name}` | {meaning} |"


if __name__ == "__main__":
    sys.stdout.write(page())
