"""Settings: one place, checked, and no secret in a log."""

import re
from pathlib import Path

import pytest

from groupwright.pipeline._jobs.session import FEW_ROWS, settings_for
from groupwright.pipeline._jobs.settings import settings_from
from groupwright.pipeline.errors import SettingsError

NEEDED = ("bootstrap_servers=localhost:9092", "tables=/data/tables")


def test_the_command_line_wins_over_the_file_and_kafka_s_own_settings_are_passed_on(tmp_path: Path) -> None:
    config = tmp_path / "pipeline.toml"
    config.write_text(
        'bootstrap_servers = "kafka:9093"\ntables = "s3a://bucket/tables"\ntrigger_seconds = 30\nonce '
        "= true\n"
        '[kafka]\n"security.protocol" = "SASL_SSL"\nsasl.jaas.config = "password=secret"\n'
        '[spark]\n"spark.driver.memory" = "4g"\n'
    )
    settings = settings_from(["trigger_seconds=5", "kafka.sasl.mechanism=PLAIN"], config)
    assert (settings.trigger_seconds, settings.once, settings.tables) == (5.0, True, "s3a://bucket/tables")
    assert settings.client == {
        "bootstrap.servers": "kafka:9093",
        "security.protocol": "SASL_SSL",
        "sasl.jaas.config": "password=secret",
        "sasl.mechanism": "PLAIN",
    }
    assert dict(settings.spark) == {"spark.driver.memory": "4g"}
    assert settings.state_folder == "s3a://bucket/tables/_state"


def test_dates_that_derived_tables_need_are_kept() -> None:
    assert settings_from([*NEEDED, "retention_days=7"]).retention_days == 7
    assert settings_from([*NEEDED, "retention_days=3", "lookback_days=2"]).retention_days == 3


def test_no_secret_is_shown() -> None:
    settings = settings_from([*NEEDED, "kafka.ssl.keystore.password=hunter2", "kafka.security.protocol=SSL"])
    assert "hunter2" not in repr(settings)
    assert "kafka.ssl.keystore.password=[hidden]" in repr(settings)
    assert "kafka.security.protocol=SSL" in repr(settings)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (["tables=/data"], "bootstrap_servers must be set"),
        ([*NEEDED, "tabels=/data"], "unknown setting 'tabels'"),
        ([*NEEDED, "trigger_seconds=soon"], "trigger_seconds='soon' is not a valid float"),
        ([*NEEDED, "max_offsets_per_trigger=0"], "max_offsets_per_trigger=0: it must be at least 1"),
        ([*NEEDED, "on_data_loss=ignore"], "on_data_loss=ignore: it must be fail or restart"),
        ([*NEEDED, "once=perhaps"], "once='perhaps' is not a valid bool"),
        ([*NEEDED, "trigger_seconds"], "setting 3 is not of the form KEY=VALUE"),
        ([*NEEDED, "format=iceberg"], "state is not set"),
        ([*NEEDED, "retention_days=3"], "retention_days=3 is less than lookback_days=7"),
        ([*NEEDED, "trigger_seconds=nan"], "trigger_seconds=nan: it must be at most"),
        ([*NEEDED, "watermark_seconds=inf"], "watermark_seconds=inf: it must be at most"),
        ([*NEEDED, "retention_days=99999999"], "retention_days=99999999: it must be at most 36500"),
        ([*NEEDED, "lookback_days=10000000"], "lookback_days=10000000: it must be at most 36500"),
        ([*NEEDED, f"max_offsets_per_trigger={2**63}"], "it must be at most"),
    ],
)
def test_invalid_settings_are_reported(values: list[str], message: str) -> None:
    with pytest.raises(SettingsError, match=message.replace("(", r"\(")):
        settings_from(values)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("trigger_seconds = [1]", "trigger_seconds=[1] is a list: write one value, a float"),
        ('events_topic = ["a", "b"]', "events_topic=['a', 'b'] is a list: write one value, a str"),
        ("max_offsets_per_trigger = 1.9", "max_offsets_per_trigger=1.9 is not a valid int"),
        ("max_offsets_per_trigger = inf", "max_offsets_per_trigger=inf is not a valid int"),
        ("retention_days = true", "retention_days=True is not a valid int"),
    ],
)
def test_a_file_s_values_of_other_types_are_reported(tmp_path: Path, line: str, message: str) -> None:
    config = tmp_path / "pipeline.toml"
    config.write_text(line)
    with pytest.raises(SettingsError, match=re.escape(message)):
        settings_from(NEEDED, config)


def test_spark_is_set_for_few_rows_until_a_folder_has_more_than_four_megabytes(tmp_path: Path) -> None:
    def chosen(tables: object, *others: str) -> object:
        return settings_for(settings_from([NEEDED[0], f"tables={tables}", *others]))

    tables = tmp_path / "a folder"
    assert chosen(tables) is chosen(tables.as_uri()) is FEW_ROWS, "no tables yet"
    for name in ("lag", "churn"):
        (tables / name).mkdir(parents=True)
        (tables / name / "part").write_bytes(bytes(2_000_000))
    assert chosen(tables) is chosen(tables.as_uri()) is FEW_ROWS
    (tables / "churn" / "another").write_bytes(b"1")
    assert chosen(tables) == chosen(tables.as_uri()) == {}
    assert chosen("s3a://bucket/tables") == {}
    assert chosen("catalog.groups", "format=iceberg", "state=/data/state") == {}
