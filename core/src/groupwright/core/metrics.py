"""Description of a metric, and the tables of a reference page that are made of descriptions.

Each part that has metrics declares them in a catalogue, and makes its families for prometheus-client and its
page from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar


class MetricType(StrEnum):
    """The type of a metric, by Prometheus's name."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"
    INFO = "info"


_SUFFIXES = {MetricType.COUNTER: "_total", MetricType.INFO: "_info"}


@dataclass(frozen=True, slots=True, eq=False)
class MetricSpec:
    """The description of one metric. Each metric has one object, compared and hashed by identity.

    Attributes:
        name: The name in queries, with the suffix of its type (`_total`, `_info`).
        type: Its type.
        help: One sentence.
        labels: Names of labels, in their order.
        unit: The base unit at the end of the name; empty for plain numbers.
    """

    name: str
    type: MetricType
    help: str
    labels: tuple[str, ...] = ()
    unit: str = ""

    @property
    def family(self) -> str:
        """The name without the suffix of its type, as prometheus-client takes it."""
        return self.name.removesuffix(_SUFFIXES.get(self.type, ""))


_Spec = TypeVar("_Spec", bound=MetricSpec)


def defined_in(module: Mapping[str, object], kind: type[_Spec]) -> tuple[_Spec, ...]:
    """Return the metrics that a module defines, in their order.

    Args:
        module: The module's names with their values, which `globals()` returns.
        kind: Class of the descriptions.
    """
    return tuple(each for each in module.values() if isinstance(each, kind))


_NO_COLUMNS: Mapping[str, Callable[[MetricSpec], str]] = {}


def metric_table(
    specs: Iterable[_Spec],
    is_marked: Callable[[_Spec], bool] = lambda _: False,
    columns: Mapping[str, Callable[[_Spec], str]] = _NO_COLUMNS,
) -> Iterator[str]:
    """Yield a table of metrics in Markdown, line by line.

    Args:
        specs: The metrics.
        is_marked: Returns whether a metric's meaning ends with ◆, which the page explains.
        columns: Further columns: the heading, and a function that returns the text of a cell.
    """
    heads = ["metric", "type", "labels", "meaning", *columns]
    yield f"| {' | '.join(heads)} |"
    yield "|---" * len(heads) + "|"
    for spec in specs:
        labels = ", ".join(f"`{label}`" for label in spec.labels)
        meaning = spec.help + (" ◆" if is_marked(spec) else "")
        cells = [f"`{spec.name}`", spec.type, labels, meaning, *(cell(spec) for cell in columns.values())]
        yield f"| {' | '.join(cells)} |"


def label_table(meanings: Mapping[str, str]) -> Iterator[str]:
    """Yield a table of labels in Markdown, line by line."""
    yield "| label | meaning |"
    yield "|---|---|"
    for name, meaning in meanings.items():
        yield f"| `{name}` | {meaning} |"
