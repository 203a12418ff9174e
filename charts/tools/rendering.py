"""Renders and checks the chart in this process, with Helm's own engine.

The engine is loaded at the first use: it brings Go's runtime, whose threads and signal handlers do not belong
into the processes of other parts' tests.
"""

import copy
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import yaml

CHART = Path(__file__).parents[1] / "groupwright"

Manifest = dict[str, Any]


class RejectedError(Exception):
    """The schema, a template or Helm itself rejects the values; the message is Helm's."""


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
        RejectedError: if the values cannot be installed.
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


def warnings(values: str = "") -> list[str]:
    """Return the warnings and errors of ``helm lint``."""
    helm = _helm()
    linted = helm.lint(CHART, helm.values_from_yaml(values), strict=True)
    information = 1  # the severity below a warning
    return [each["error"] for each in linted["messages"] if each["severity"] > information]


def from_settings(settings: str) -> str:
    """Return the values of an argument of ``helm install --set``, as YAML."""
    return str(yaml.safe_dump(_helm().parse_set_string(settings)))


def _helm() -> Any:
    return import_module("helm_python")


@cache
def _rendered(values: str, release: str, namespace: str) -> dict[str, str]:
    """Return the text of each template."""
    helm = _helm()
    try:
        rendered: dict[str, str] = _chart().render(
            helm.values_from_yaml(values), name=release, namespace=namespace
        )
    except helm.HelmError as error:
        raise RejectedError(str(error)) from error
    return rendered


@cache
def _chart() -> Any:
    return _helm().Chart.load(CHART)


@cache
def _manifests(text: str) -> list[Manifest]:
    # In C, as the dashboards are 300 kB.
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]
