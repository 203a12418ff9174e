"""`groupwright doctor`: what it reads, what it finds in a real group, and how it ends."""

import json
import time
from pathlib import Path

import pytest
from confluent_kafka import Consumer
from typer.testing import CliRunner, Result

from groupwright.cli.app import app
from groupwright.testing import LocalKafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from harness.patience import PATIENCE

GOOD = (
    "group.id=billing",
    "client.id=billing-1",
    "partition.assignment.strategy=cooperative-sticky",
    "enable.auto.offset.store=false",
)


def doctor(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments])


def rules(result: Result) -> list[str]:
    return [finding["rule"] for finding in json.loads(result.stdout)]


def test_a_good_configuration_passes() -> None:
    result = doctor(*GOOD)

    assert (result.exit_code, result.stdout) == (0, "0 warnings, 0 notes\n")


def test_a_finding_has_evidence_consequence_and_change_and_warnings_fail() -> None:
    result = doctor(*GOOD, "session.timeout.ms=6000")

    assert result.exit_code == 1
    assert "warning: session-timeout\n  evidence     session.timeout.ms is 6000" in result.stdout
    assert "  change       Set session.timeout.ms to 9000" in result.stdout
    assert result.stdout.endswith("1 warnings, 0 notes\n")


def test_notes_alone_do_not_fail() -> None:
    result = doctor(*GOOD, "enable.auto.offset.store=true", "--json")

    assert result.exit_code == 0
    assert rules(result) == ["auto-commit"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        (
            "consumer.properties",
            "# a comment\n\ngroup.id = billing\nclient.id=b\nsession.timeout.ms = 6000\n",
        ),
        ("consumer.json", '{"group.id": "billing", "client.id": "b", "session.timeout.ms": 6000}'),
        ("consumer.toml", 'group.id = "billing"\n"client.id" = "b"\n[session]\ntimeout.ms = 6000\n'),
    ],
)
def test_files_are_read_and_settings_win_over_them(name: str, text: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")

    assert "session-timeout" in rules(doctor("--config", str(path), "--json"))
    assert "session-timeout" not in rules(doctor("--config", str(path), "session.timeout.ms=45000", "--json"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no settings are given: pass KEY=VALUE"),
        (("session.timeout.ms",), "is not a setting"),
        (("--config", "nowhere.properties"), "does not exist"),
    ],
)
def test_what_cannot_be_read_is_said(arguments: tuple[str, ...], words: str) -> None:
    result = doctor(*arguments)

    assert result.exit_code == 2
    assert words in " ".join(result.stderr.replace("│", " ").split())


def test_a_file_that_is_no_json_is_said(tmp_path: Path) -> None:
    path = tmp_path / "consumer.json"
    path.write_text("{", encoding="utf-8")

    result = doctor("--config", str(path))

    assert result.exit_code == 2
    assert "cannot be read" in " ".join(result.stderr.replace("│", " ").split())


def test_what_is_known_of_the_service_counts() -> None:
    result = doctor(*GOOD, "--longest-processing", "200", "--restarts-often", "--json")

    assert rules(result) == ["max-poll-interval", "static-membership"]


def test_a_broker_that_is_not_there_is_said_and_offline_asks_none() -> None:
    servers = "bootstrap.servers=127.0.0.1:1"

    result = doctor(*GOOD, servers, "--timeout", "1")
    assert result.exit_code == 2
    assert "cannot query the broker at 127.0.0.1:1" in result.stderr
    assert doctor(*GOOD, servers, "--offline").exit_code == 0


@pytest.mark.kafka
def test_a_real_broker_and_a_real_group_are_held_against_the_configuration(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic
) -> None:
    """The group uses range, one of its two members is static, and the session exceeds the broker's limit."""
    topic = new_kafka_topic(partitions=2)
    usual = {
        "bootstrap.servers": local_kafka.bootstrap_servers,
        "group.id": topic,
        "session.timeout.ms": 6000,
    }
    static = {"client.id": "a", "group.instance.id": "a", "partition.assignment.strategy": "range"}
    dynamic = {"client.id": "b", "partition.assignment.strategy": "range"}
    members = [Consumer({**usual, **own}) for own in (static, dynamic)]
    try:
        for member in members:
            member.subscribe([topic])
        deadline = time.monotonic() + PATIENCE
        while not all(member.assignment() for member in members):
            assert time.monotonic() < deadline
            for member in members:
                member.poll(0.05)
        result = doctor(
            *GOOD[1:],
            f"bootstrap.servers={local_kafka.bootstrap_servers}",
            f"group.id={topic}",
            "session.timeout.ms=9999999",
            "--json",
        )
    finally:
        for member in members:
            member.close()

    assert rules(result) == ["broker-session-limits", "mixed-strategies", "partly-static"]
    assert result.exit_code == 1


@pytest.mark.kafka
def test_a_group_that_does_not_exist_yet_is_no_error(local_kafka: LocalKafka) -> None:
    result = doctor(*GOOD, f"bootstrap.servers={local_kafka.bootstrap_servers}", "group.id=not-yet", "--json")

    assert (result.exit_code, rules(result)) == (0, [])
