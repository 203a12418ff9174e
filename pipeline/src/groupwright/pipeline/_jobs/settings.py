"""Settings of the jobs.

Settings are read from a TOML file (`--config`, with the tables `[kafka]` and `[spark]`) and from the command
line (`KEY=VALUE`), which takes precedence. `python -m groupwright.pipeline.reference settings` prints the
README's table.
"""

import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from groupwright.pipeline._tables import FORMATS
from groupwright.pipeline.errors import SettingsError

_LOGGABLE = {"security.protocol", "sasl.mechanism", "ssl.endpoint.identification.algorithm"}
"""Kafka client settings that may be logged; any other may contain a secret."""
_NESTED = ("kafka", "spark")
_MAX_SECONDS = 1e9
_MAX_DAYS = 36_500
_TRUE, _FALSE = {"true", "yes", "1"}, {"false", "no", "0"}


def _setting(
    meaning: str,
    default: Any = MISSING,
    *,
    minimum: float | None = None,
    maximum: float = _MAX_SECONDS,
    choices: Sequence[str] = (),
) -> Any:
    metadata = {"meaning": meaning, "minimum": minimum, "maximum": maximum, "choices": choices}
    return field(default=default, metadata=metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a job; `SETTINGS` has their meanings.

    Raises:
        SettingsError: A value is out of range.
    """

    bootstrap_servers: str = _setting("The Kafka brokers, `host:port,...`.")
    tables: str = _setting(
        "Location of the tables: a folder, as a path or a Hadoop URI; for Iceberg, `catalog.namespace`."
    )
    format: str = _setting("Format of the tables: `delta` or `iceberg`.", "delta", choices=FORMATS)
    state: str = _setting(
        "Folder for Spark's checkpoint and the jobs' work in progress. By default `_state` in the folder of "
        "the tables.",
        "",
    )
    events_topic: str = _setting(
        "The topic of the members' events, written by `groupwright.instrumentation.to_kafka`; empty to "
        "read none. The topic may be created later.",
        "groupwright.rebalances",
    )
    start: str = _setting(
        "Where to start if the tables are empty: `earliest`, `latest`, or an ISO 8601 time, in UTC if it has "
        "no offset.",
        "earliest",
    )
    end: str = _setting(
        "Where a batch ends: `latest`, an ISO 8601 time, in UTC if it has no offset, or offsets as "
        '`{"topic": {"0": 123}}`, exclusive.',
        "latest",
    )
    max_offsets_per_trigger: int = _setting(
        "Maximum number of records in a batch; bounds memory.", 1_000_000, minimum=1, maximum=2**63 - 1
    )
    trigger_seconds: float = _setting(
        "Interval at which a stream polls for records, in seconds.", 10.0, minimum=0
    )
    once: bool = _setting(
        "Whether a stream ends when it has read all records present at its start.", default=False
    )
    watermark_seconds: float = _setting(
        "Maximum delay of a record behind the newest, in seconds. Dates that the watermark has passed are "
        "compacted; later records are still added. A batch, and a stream with `once`, compact dates before "
        "today.",
        3600.0,
        minimum=0,
    )
    derive_seconds: float = _setting(
        "Interval at which a stream recomputes derived tables for changed dates, in seconds.",
        300.0,
        minimum=0,
    )
    retention_days: int = _setting(
        "Days for which dates of the tables are kept, at least `lookback_days`; 0 keeps them forever. "
        "`consumer_group_records`, `share_group_records` and `streams_group_records` are always kept.",
        0,
        minimum=0,
        maximum=_MAX_DAYS,
    )
    lookback_days: int = _setting(
        "Days to look back for the generation that precedes a date's first one.",
        7,
        minimum=1,
        maximum=_MAX_DAYS,
    )
    end_offsets_seconds: float = _setting(
        "Interval at which a stream samples log-end offsets for lag, in seconds; 0 disables it. "
        "A batch samples once.",
        60.0,
        minimum=0,
    )
    on_data_loss: str = _setting(
        "What a job does if a topic was deleted, created again, truncated or restored, or if records were "
        "deleted before they were read: `fail` with a message that says what is missing, or `restart`: log "
        "it and go on with what exists.",
        "fail",
        choices=("fail", "restart"),
    )
    stop_seconds: float = _setting(
        "Time for a stopping stream (SIGTERM, SIGINT) to finish its current batch and derived tables, in "
        "seconds. What is unfinished is cancelled within a minute, and repeated at the next start.",
        60.0,
        minimum=0,
    )
    metrics_address: str = _setting(
        "Address at which a stream serves its metrics and probes (`/metrics`, `/ready`, `/healthy`), as "
        "`host:port`; empty to serve none.",
        "",
    )
    stall_seconds: float = _setting(
        "Time without progress after which `/healthy` fails, in seconds, beside `trigger_seconds`; more than "
        "the longest batch takes.",
        1800.0,
        minimum=1,
    )
    kafka: Mapping[str, str] = field(
        default_factory=dict,
        metadata={
            "meaning": "Settings of Kafka's Java clients, such as `kafka.security.protocol`. Their values "
            "are not logged, except for a few that cannot be secret.",
            "minimum": None,
            "choices": (),
        },
    )
    spark: Mapping[str, str] = field(
        default_factory=dict,
        metadata={
            "meaning": "Settings of the Spark that the command starts, such as `spark.driver.memory`.",
            "minimum": None,
            "choices": (),
        },
    )

    def __post_init__(self) -> None:
        """Check ranges."""
        for each in fields(self):
            minimum, value = each.metadata["minimum"], getattr(self, each.name)
            if minimum is not None and value < minimum:
                raise SettingsError(f"{each.name}={value}: it must be at least {minimum:g}")
            if minimum is not None and not value <= each.metadata["maximum"]:  # nor is NaN
                raise SettingsError(f"{each.name}={value}: it must be at most {each.metadata['maximum']:g}")
            choices = each.metadata["choices"]
            if choices and value not in choices:
                raise SettingsError(f"{each.name}={value}: it must be {' or '.join(choices)}")
        if 0 < self.retention_days < self.lookback_days:
            raise SettingsError(
                f"retention_days={self.retention_days} is less than lookback_days={self.lookback_days}, so "
                "derived tables would miss dates that they need: keep more days, or lower lookback_days"
            )
        if not self.state and self.format == "iceberg":
            raise SettingsError(
                "state is not set, and Iceberg tables have no folder for it: set state to a folder"
            )

    @property
    def state_folder(self) -> str:
        """The folder of the jobs' state."""
        return self.state or f"{self.tables.rstrip('/')}/_state"

    @property
    def lease_folder(self) -> str:
        """The folder of the lease: beside the tables, so that jobs with different states find each other."""
        return f"{self.state_folder if self.format == 'iceberg' else self.tables.rstrip('/')}/_lease"

    @property
    def client(self) -> dict[str, str]:
        """The configuration of Kafka's Java clients."""
        return {**self.kafka, "bootstrap.servers": self.bootstrap_servers}

    def __repr__(self) -> str:
        """Show the settings that differ from their defaults, without secrets."""
        return f"Settings({', '.join(f'{name}={value}' for name, value in self.shown().items())})"

    def shown(self) -> dict[str, str]:
        """Return the settings that differ from their defaults, with secrets hidden."""
        own = {
            each.name: str(getattr(self, each.name))
            for each in fields(self)
            if each.name not in _NESTED and getattr(self, each.name) != each.default
        }
        return own | {
            f"kafka.{key}": value if key in _LOGGABLE else "[hidden]"
            for key, value in sorted(self.kafka.items())
        }


SETTINGS: Mapping[str, Field[Any]] = {each.name: each for each in fields(Settings)}
"""The settings by name; `metadata["meaning"]` describes each."""


def settings_from(values: Iterable[str], config: Path | None = None) -> Settings:
    """Read settings.

    Args:
        values: Settings as `KEY=VALUE`; they override the file's.
        config: A TOML file.

    Raises:
        SettingsError: A setting is unknown, missing or of the wrong type, or the file cannot be read.
    """
    given: dict[str, Any] = {"kafka": {}, "spark": {}}
    for key, value in [*(_read(config) if config else ()), *map(_pair, enumerate(values, start=1))]:
        family, _, rest = key.partition(".")
        if rest and family in _NESTED:
            own = rest.removeprefix(f"{family}.")  # the table [spark] may have the whole name
            text = str(value).lower() if isinstance(value, bool) else str(value)
            given[family][own if family == "kafka" else f"spark.{own}"] = text
        elif key in SETTINGS and key not in _NESTED:
            given[key] = _typed(SETTINGS[key], value)
        else:
            raise SettingsError(f"unknown setting {key!r}; known settings: {', '.join(SETTINGS)}")
    missing = [name for name, each in SETTINGS.items() if _required(each) and not given.get(name)]
    if missing:
        raise SettingsError(
            f"{' and '.join(missing)} must be set, as KEY=VALUE or in the file given by --config"
        )
    return Settings(**given)


def _required(setting: Field[Any]) -> bool:
    return setting.default is MISSING and setting.default_factory is MISSING


def _pair(numbered: tuple[int, str]) -> tuple[str, str]:
    number, text = numbered
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        # The argument is not shown: it may be a password.
        raise SettingsError(f"setting {number} is not of the form KEY=VALUE, such as trigger_seconds=30")
    return key.strip(), value.strip()


def _read(path: Path) -> list[tuple[str, Any]]:
    try:
        return list(_flat(tomllib.loads(path.read_text(encoding="utf-8")), ""))
    except (OSError, ValueError) as error:
        reason = str(error)
    # Without a cause, which would hold the whole file.
    raise SettingsError(f"{path} cannot be read: {reason}")


def _flat(table: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    """Flatten nested tables to dotted keys, which TOML parses as tables unless they are quoted."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        yield from _flat(value, f"{name}.") if isinstance(value, Mapping) else [(name, value)]


def _typed(setting: Field[Any], value: Any) -> Any:
    kind: type[Any] = str if setting.default is MISSING else type(setting.default)
    if isinstance(value, list):
        raise SettingsError(f"{setting.name}={value!r} is a list: write one value, a {kind.__name__}")
    try:
        if kind is bool:
            return value if isinstance(value, bool) else _parse_bool(str(value))
        # From text, so that neither `true` nor 1.9 is a whole number.
        return kind(str(value).removesuffix(".0") if kind is int else str(value))
    except ValueError:
        raise SettingsError(f"{setting.name}={value!r} is not a valid {kind.__name__}") from None


def _parse_bool(text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise ValueError(text)
    return text.lower() in _TRUE
