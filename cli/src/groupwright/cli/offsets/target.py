"""Targets of a reset: the values of `--reset-to` and `--shift`."""

import datetime as dt
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path

from groupwright.cli._cluster.model import CommittedOffset
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli.offsets.files import read_offsets
from groupwright.core import TopicPartitionKey
from groupwright.core.spelling import did_you_mean


class LogEnd(Enum):
    """An end of each partition's log."""

    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class Timestamp:
    """The first message at or after a time, in milliseconds since the epoch."""

    milliseconds: int

    def __str__(self) -> str:
        """Return the time in UTC, as `--reset-to timestamp:` takes it."""
        moment = dt.datetime.fromtimestamp(self.milliseconds / 1000, dt.UTC)
        return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Offset:
    """The same offset in each partition."""

    offset: int


@dataclass(frozen=True, slots=True)
class Shift:
    """The committed offset plus a number, which may be negative."""

    by: int


@dataclass(frozen=True, slots=True)
class Offsets:
    """An offset for each partition, from a file.

    Attributes:
        topic_ids: The ids of topics that the file has.
        commits: The offsets with the leader epochs and metadata that the file has.
    """

    path: Path
    offsets: Mapping[TopicPartitionKey, int]
    topic_ids: Mapping[str, str] = field(default_factory=dict)
    commits: Mapping[TopicPartitionKey, CommittedOffset] = field(default_factory=dict)


Target = LogEnd | Timestamp | Offset | Shift | Offsets

FORMS = "earliest, latest, timestamp:2026-01-31T12:00:00Z, duration:PT1H, offset:123 or file:offsets.csv"

_ISO_DURATION = re.compile(
    r"P(?!$)(?:(?P<w>\d+)W)?(?:(?P<d>\d+)D)?"
    r"(?:T(?=\d)(?:(?P<h>\d+)H)?(?:(?P<m>\d+)M)?(?:(?P<s>\d+(?:\.\d+)?)S)?)?"
)
_SHORT_DURATION = re.compile(
    r"(?=\d)(?:(?P<w>\d+)w)?(?:(?P<d>\d+)d)?(?:(?P<h>\d+)h)?(?:(?P<m>\d+)m)?(?:(?P<s>\d+(?:\.\d+)?)s)?"
)
_SECONDS = {"w": 604_800, "d": 86_400, "h": 3_600, "m": 60, "s": 1}


def parse_target(text: str, group: str, now: dt.datetime) -> Target:
    """Return the target that the value of `--reset-to` stands for.

    Args:
        text: One of `FORMS`.
        group: The group; of a file with offsets of several groups, its own are read.
        now: The time from which a duration is subtracted.

    Raises:
        CommandError: It is none of the forms (the message suggests one), or its file cannot be read.
    """
    if text in set(_values()):
        return LogEnd(text)
    kind, _, value = text.partition(":")
    match kind if value else "":
        case "timestamp":
            if (moment := _moment(value)) is not None:
                return Timestamp(_milliseconds(moment))
            raise _wrong(text, "write a time as 2026-01-31T12:00:00Z or 2026-01-31T13:00:00+01:00")
        case "duration":
            if (seconds := _duration(value)) is not None:
                try:
                    return Timestamp(_milliseconds(now - dt.timedelta(seconds=seconds)))
                except OverflowError:
                    pass
            raise _wrong(text, "write a duration as PT1H, P1DT12H, 1h or 1d12h")
        case "offset":
            if value.isascii() and value.isdecimal():
                return Offset(int(value))
            raise _wrong(text, "an offset is a number from 0 on; --shift takes negative numbers")
        case "file":
            path = Path(value)
            return Offsets(path, *read_offsets(path, group))
    raise _wrong(text, f"write {FORMS}", hint=_hint(text))


def _values() -> list[str]:
    return [each.value for each in LogEnd]


def _hint(text: str) -> str:
    """Return the form that a text may have meant, by its value or by its spelling; empty if none is close."""
    forms = {
        "offset": text.isascii() and text.isdecimal(),
        "duration": _duration(text) is not None,
        "timestamp": _moment(text) is not None,
        "file": text.endswith((".csv", ".json")),
    }
    for kind, is_meant in forms.items():
        if is_meant and ":" not in text.partition("T")[0]:
            return f", did you mean {f'{kind}:{text}'!r}?"
    _, _, value = text.partition(":")
    return did_you_mean(text, [*_values(), *(f"{kind}:{value}" for kind in forms if value)])


def _moment(text: str) -> dt.datetime | None:
    """Return a time; one without a zone is UTC, as in Kafka's tools."""
    try:
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)


def _milliseconds(moment: dt.datetime) -> int:
    """Return milliseconds since the epoch; not less than 0, since -1 and -2 are the ends of a log."""
    epoch = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
    return max(0, (moment - epoch) // dt.timedelta(milliseconds=1))


def _duration(text: str) -> float | None:
    found = _ISO_DURATION.fullmatch(text) or _SHORT_DURATION.fullmatch(text)
    if found is None:
        return None
    return sum(float(number) * _SECONDS[unit] for unit, number in found.groupdict().items() if number)


def _wrong(text: str, advice: str, hint: str = "") -> CommandError:
    return CommandError(f"--reset-to {text!r} is not understood{hint or f': {advice}'}", ExitStatus.USAGE)
