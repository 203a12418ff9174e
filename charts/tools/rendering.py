"""Renders the chart in this process, with Helm's own engine."""

import copy
from functools import cache
from pathlib import Path
from typing import Any

import helm_python
import yaml

CHART = Path(__file__).parents[1] / "groupwright"

Manifest = dict[str, Any]


def render(
    values: str = "", *, template: str = "", release: str = "tower", namespace: str = "operations"
) -> list[Manifest]:
    """Return the objects of an installation.

    Args:
        values: YAML that overrides the chart's own values.
        template: Path below `templates` of the only template to return; empty: all.
        release: Its name.
        namespace: The release's namespace.

    Raises:
        helm_python.HelmError: if the schema, a template or Helm rejects the values.
    """
    rendered = _rendered(values, release, namespace)
    texts = [
        text
        for name, text in rendered.items()
        if name.endswith(".yaml") and name.endswith(f"/templates/{template}" if template else "")
    ]
    return copy.deepcopy([each for text in texts for each in _manifests(text)])


def notes(values: str = "") -> str:
    """Return what Helm prints after an installation; raises as `render`."""
    return _rendered(values, "tower", "operations")["groupwright/templates/NOTES.txt"]


@cache
def _rendered(values: str, release: str, namespace: str) -> dict[str, str]:
    """Return the text of each template."""
    overrides = helm_python.values_from_yaml(values) if values else None
    return _chart().render(overrides, name=release, namespace=namespace)


@cache
def _chart() -> helm_python.Chart:
    return helm_python.Chart.load(CHART)


@cache
def _manifests(text: str) -> list[Manifest]:
    # In C, as the dashboards are 300 kB.
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]
