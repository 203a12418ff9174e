"""Numbers in Grafana's units, as people read them."""

import math
from datetime import UTC, datetime

_DURATIONS = ((3600, "h"), (60, "min"), (1, "s"), (1e-3, "ms"), (1e-6, "µs"))
_LARGE = ((1e9, " Bil"), (1e6, " Mil"), (1e3, " K"))
_RATES = {"ops": " ops/s", "reqps": " req/s"}


def readable(value: float, unit: str, decimals: int | None) -> str:
    """Return a value in one of the units that the dashboards have."""
    if math.isnan(value):
        return "-"
    match unit:
        case "percentunit":
            return f"{_digits(value * 100, decimals)}%"
        case "dateTimeAsIso":
            return f"{datetime.fromtimestamp(value / 1000, UTC):%Y-%m-%d %H:%M:%S}"
        case "s":
            factor, name = next((each for each in _DURATIONS if abs(value) >= each[0]), (1, "s"))
            return f"{_digits(value / factor, decimals)} {name}"
    factor, name = next((each for each in _LARGE if abs(value) >= each[0]), (1, ""))
    return f"{_digits(value / factor, decimals)}{name}{_RATES.get(unit, '')}"


def _digits(value: float, decimals: int | None) -> str:
    if decimals is not None:
        return f"{value:.{decimals}f}"
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"
