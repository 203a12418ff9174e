"""What a member's process tells the demo: one JSON object a line.

A line that was cut short, because its writer was killed, is no report. What it would have told had not been
committed (a member reports before it commits), so that somebody else reports it.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from groupwright.cli.demo.offsets import Span


@dataclass(frozen=True, slots=True)
class Started:
    """The process is up, serves its metrics, and joins the group now."""

    metrics: str
    """The address of its metrics."""


@dataclass(frozen=True, slots=True)
class Revoked:
    """Partitions were given up, or were lost."""

    partitions: tuple[int, ...]
    lost: bool = False


@dataclass(frozen=True, slots=True)
class Rebalanced:
    """A rebalance has ended, with an assignment applied."""

    generation: int
    seconds: float
    owned: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Consumed:
    """Messages were delivered. They have not been committed yet."""

    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Committed:
    """A commit has been stored: the next offset to read, by partition."""

    offsets: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Failed:
    """The member ends, for this reason."""

    reason: str


Report = Started | Revoked | Rebalanced | Consumed | Committed | Failed


_DECODERS: Mapping[str, Callable[[dict[str, Any]], Report]] = {
    "Started": lambda fields: Started(**fields),
    "Revoked": lambda fields: Revoked(tuple(fields["partitions"]), fields["lost"]),
    "Rebalanced": lambda fields: Rebalanced(**{**fields, "owned": tuple(fields["owned"])}),
    "Consumed": lambda fields: Consumed(tuple(Span(*span) for span in fields["spans"])),
    "Committed": lambda fields: Committed({int(key): offset for key, offset in fields["offsets"].items()}),
    "Failed": lambda fields: Failed(**fields),
}


def encode(report: Report) -> bytes:
    """Return the report's line."""
    return json.dumps({"report": type(report).__name__, **asdict(report)}).encode() + b"\n"


def decode(line: bytes) -> Report | None:
    """Return the line's report; None for a line that was cut short."""
    if not line.endswith(b"\n"):
        return None
    fields: dict[str, Any] = json.loads(line)
    return _DECODERS[fields.pop("report")](fields)
