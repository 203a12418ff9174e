"""Events of a watched group as JSON; see `watch.schema.json`. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any

from groupwright.cli.watch.events import Event, MemberView
from groupwright.cli.watch.progress import LagRate, Stalled
from groupwright.cli.watch.sentences import timestamp

_TIMES = frozenset({"time", "began"})


def document(group: str, event: Event) -> dict[str, Any]:
    """Return an event as a document."""
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    return {
        "event": event.kind,
        "group": group,
        **{name: timestamp(value) if name in _TIMES else _json(value) for name, value in values.items()},
    }


def _json(value: Any) -> Any:
    match value:
        case LagRate():
            return {
                "messages": value.lag,
                "unknown_partitions": value.unknown,
                "produced_per_second": _rounded(value.produced),
                "consumed_per_second": _rounded(value.consumed),
                "trend": value.trend.value,
                "drain_seconds": _rounded(value.drain_seconds),
            }
        case MemberView() | Stalled():
            return {field.name: _json(getattr(value, field.name)) for field in fields(value)}
        case Mapping():
            return {key: _json(each) for key, each in value.items()}
        case Sequence() if not isinstance(value, str):
            return [_json(each) for each in value]
    return _rounded(value) if isinstance(value, float) else value


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
