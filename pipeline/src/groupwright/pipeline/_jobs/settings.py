"""All that a job can be told, in one place.

A setting comes from a file (`--config`, TOML: keys by these names, and the tables `[kafka]` and `[spark]`) or from the
command line (`KEY=VALUE`), which wins. `python -m groupwright.pipeline.reference settings` prints the README's table.
"""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from pathlib import Path
from typing import Any

from groupwright.pipeline.errors import PipelineError

_SHOWN = {"security.protocol", "sasl.mechanism", "ssl.endpoint.identification.algorithm"}
"""What of Kafka's own settings may be logged: of the rest any may be a secret."""
_PASSED_ON = ("kafka", "spark")
_TRUE, _FALSE = {"true", "yes", "1"}, {"false", "no", "0"}


def _setting(meaning: str, default: Any = MISSING, *, least: float | None = None) -> Any:
    return field(default=default, metadata={"meaning": meaning, "least": least})


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """A job's settings; `SETTINGS` has each one's meaning.

    Raises:
        PipelineError: A value is out of its range.
    """

    bootstrap_servers: str = _setting("The cluster, `host:port,...`.")
    tables: str = _setting(
        "Where the tables are: a folder, as a path or a URI that Hadoop knows; of Iceberg, "
        "`catalog.namespace`."
    )
    format: str = _setting("What they are: `parquet`, `delta` or `iceberg`.", "parquet")
    state: str = _setting(
        "Folder for the checkpoint, and for what jobs have read and have yet to do. By default "
        "`_state` in the folder of the tables.",
        "",
    )
    events_topic: str = _setting(
        "The topic of the members' events, of `groupwright.instrumentation.to_kafka`; empty "
        "for none. It may come into being later; a running stream then has to be started "
        "again.",
        "groupwright.rebalances",
    )
    start: str = _setting(
        "Where to begin in what the tables have not: `earliest`, `latest`, or a time in ISO 8601.", "earliest"
    )
    end: str = _setting(
        'Where a batch ends: `latest`, a time in ISO 8601, or offsets as `{"topic": {"0": 123}}`, exclusive.',
        "latest",
    )
    max_offsets_per_trigger: int = _setting(
        "The most records that are taken at once: what bounds memory.", 1_000_000, least=1
    )
    trigger_seconds: float = _setting("How often a stream looks for records.", 10.0, least=0)
    once: bool = _setting(
        "Whether a stream ends when it has read all that was there as it began.", default=False
    )
    watermark_seconds: float = _setting(
        "How late a record may be, against the newest, before its date counts as "
        "over: the date is then put into few files. A later one is taken all the "
        "same.",
        3600.0,
        least=0,
    )
    derive_seconds: float = _setting(
        "How often a stream makes derived tables anew, for the dates that have changed.", 300.0, least=0
    )
    lookback_days: int = _setting(
        "How far back the generation before a date's first one is looked for.", 7, least=1
    )
    end_offsets_seconds: float = _setting(
        "How often a stream samples where logs end, for lag; 0 for never. A batch samples once.",
        60.0,
        least=0,
    )
    fail_on_data_loss: bool = _setting(
        "Whether a job ends with an error if records are gone before it read them.", default=True
    )
    stop_seconds: float = _setting(
        "How long a stream that is told to stop (SIGTERM, SIGINT) may go on with the "
        "batch at hand; after that the batch is done again at the next start.",
        60.0,
        least=0,
    )
    kafka: Mapping[str, str] = field(
        default_factory=dict,
        metadata={
            "meaning": "Settings of Kafka's Java clients, such as `kafka.security.protocol`; none of their "
            "values is ever logged, except for a few that cannot be secret.",
            "least": None,
        },
    )
    spark: Mapping[str, str] = field(
        default_factory=dict,
        metadata={
            "meaning": "Settings of a Spark that the command itself starts, such as `spark.driver.memory`.",
            "least": None,
        },
    )

    def __post_init__(self) -> None:
        """Check ranges."""
        for each in fields(self):
            least, value = each.metadata["least"], getattr(self, each.name)
            if least is not None and value < least:
                raise PipelineError(f"{each.name}={value}: it must be at least {least:g}")
        if not self.state and self.format == "iceberg":
            raise PipelineError(
                "state is not set: tables as iceberg have no folder of their own to keep it in"
            )

    @property
    def state_folder(self) -> str:
        """Where the jobs' state is."""
        return self.state or f"{self.tables.rstrip('/')}/_state"

    @property
    def checkpoint(self) -> str:
        """Where the stream's checkpoint is."""
        return f"{self.state_folder}/checkpoint"

    @property
    def client(self) -> dict[str, str]:
        """What Kafka's Java clients are configured with."""
        return {**self.kafka, "bootstrap.servers": self.bootstrap_servers}

    def __repr__(self) -> str:
        """Show what is set, and no secret."""
        return f"Settings({', '.join(f'{name}={value}' for name, value in self.shown().items())})"

    def shown(self) -> dict[str, str]:
        """Return what may be logged of what is not as by default."""
        own = {
            each.name: str(getattr(self, each.name))
            for each in fields(self)
            if each.name not in _PASSED_ON and getattr(self, each.name) != each.default
        }
        return own | {
            f"kafka.{key}": value if key in _SHOWN else "[hidden]"
            for key, value in sorted(self.kafka.items())
        }


SETTINGS: Mapping[str, Field[Any]] = {each.name: each for each in fields(Settings)}
"""The settings by name; the metadata's `meaning` says what each is."""


def settings_from(values: Iterable[str], config: Path | None = None) -> Settings:
    """Read settings.

    Args:
        values: `KEY=VALUE`, each; they win over the file's.
        config: A TOML file.

    Raises:
        PipelineError: A setting is unknown, missing, or no value of its kind; or the file cannot be read.
    """
    given: dict[str, Any] = {"kafka": {}, "spark": {}}
    for key, value in [*(_read(config) if config else ()), *map(_pair, values)]:
        family, _, rest = key.partition(".")
        if rest and family in _PASSED_ON:
            own = rest.removeprefix(f"{family}.")  # the table [spark] may have the whole name
            given[family][own if family == "kafka" else f"spark.{own}"] = str(value)
        elif key in SETTINGS and key not in _PASSED_ON:
            given[key] = _typed(SETTINGS[key], value)
        else:
            raise PipelineError(f"no setting is named {key!r}; there are: {', '.join(SETTINGS)}")
    missing = [name for name, each in SETTINGS.items() if _required(each) and not given.get(name)]
    if missing:
        raise PipelineError(f"{' and '.join(missing)} must be set: as KEY=VALUE, or in the file of --config")
    return Settings(**given)


def _required(setting: Field[Any]) -> bool:
    return setting.default is MISSING and setting.default_factory is MISSING


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not separator or not key.strip():
        raise PipelineError(f"{text!r} is no setting: write KEY=VALUE, as in trigger_seconds=30")
    return key.strip(), value.strip()


def _read(path: Path) -> list[tuple[str, Any]]:
    try:
        loaded = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise PipelineError(f"{path} cannot be read: {error}") from error
    return list(_flat(loaded, ""))


def _flat(table: Mapping[str, Any], prefix: str) -> Iterable[tuple[str, Any]]:
    """Return the table with dotted keys: TOML makes tables of them unless they are quoted."""
    for key, value in table.items():
        name = f"{prefix}{key}"
        yield from _flat(value, f"{name}.") if isinstance(value, Mapping) else [(name, value)]


def _typed(setting: Field[Any], value: Any) -> Any:
    kind = type(setting.default) if setting.default is not MISSING else str
    try:
        if kind is bool and not isinstance(value, bool):
            return _truth(str(value))
        return kind(value)
    except ValueError:
        raise PipelineError(f"{setting.name}={value!r} is no {kind.__name__}") from None


def _truth(text: str) -> bool:
    if text.lower() not in _TRUE | _FALSE:
        raise ValueError(text)
    return text.lower() in _TRUE
