"""The limits shown in panels: those of the alerts in the chart's values."""

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from charts.dashboards.model import Limit

VALUES = Path(__file__).parents[1] / "groupwright" / "values.yaml"


@cache
def alerts() -> dict[str, Any]:
    """Return the values of the chart's `alerts`."""
    values: dict[str, Any] = yaml.safe_load(VALUES.read_text(encoding="utf-8"))["alerts"]
    return values


def limit(rule: str, key: str, colour: str = "orange") -> Limit:
    """Return an alert's default limit."""
    return Limit(float(alerts()["rules"][rule][key]), colour)


SOME = (Limit(1, "orange"),)
"""Of what should not happen at all."""
