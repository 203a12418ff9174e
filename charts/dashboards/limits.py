"""The limits that panels show: those of the alerts, as the chart's values have them."""

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
    """Return the limit that an alert has by default."""
    return Limit(float(alerts()["rules"][rule][key]), colour)


SOME = (Limit(1, "orange"),)
"""Of what should not happen at all."""
