"""`groupwright doctor`: what it reads, what it finds in a real group, and how it ends."""

import csv
import json
from pathlib import Path

import jsonschema  # type: ignore[import-untyped]
import pytest
from typer.testing import CliRunner, Result

from groupwright import cli
from groupwright.cli._command_line.exit import ExitStatus
from groupwright.cli.app import app
from groupwright.cli.doctor.report import Check, exit_status
from groupwright.instrumentation.advice import Finding
from groupwright.instrumentation.advice.findings import note, warning

SCHEMA = Path(cli.__file__).parent / "_schemas" / "doctor.schema.json"

GOOD = (
    "group.id=billing",
    "client.id=billing-1",
    "partition.assignment.strategy=cooperative-sticky",
    "enable.auto.offset.store=false",
)


def doctor(*arguments: str, width: int = 200) -> Result:
    return CliRunner().invoke(app, ["doctor", *arguments], env={"COLUMNS": str(width)})


def rules(result: Result) -> list[str]:
    report = json.loads(result.stdout)
    jsonschema.validate(report, json.loads(SCHEMA.read_text(encoding="utf-8")))
    return [finding["rule"] for finding in report["findings"]]


def test_a_good_configuration_passes() -> None:
    result = doctor(*GOOD)

    assert result.exit_code == 0
    assert result.stdout == (
        "checked\n"
        "  configuration  4 settings validated, 11 rules\n"
        "not checked\n"
        "  broker         bootstrap.servers is not set\n"
        "  group          bootstrap.servers is not set\n"
        "  offsets topic  bootstrap.servers is not set\n"
        "\n"
        "0 warnings, 0 notes\n"
    )


def test_a_finding_has_evidence_consequence_and_change_and_warnings_fail() -> None:
    result = doctor(*GOOD, "session.timeout.ms=6000")

    assert result.exit_code == 1
    assert "warning: session-timeout\n  evidence       session.timeout.ms is 6000" in result.stdout
    assert "  change         Set session.timeout.ms to 9000" in result.stdout
    assert result.stdout.endswith("1 warning, 0 notes\n")


def test_notes_alone_do_not_fail() -> None:
    result = doctor(*GOOD, "enable.auto.offset.store=true", "--output", "json")

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

    assert "session-timeout" in rules(doctor("--config", str(path), "--output", "json"))
    assert "session-timeout" not in rules(
        doctor("--config", str(path), "session.timeout.ms=45000", "--output", "json")
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "no settings are given: pass KEY=VALUE"),
        (("session.timeout.ms",), "setting 1 is not of the form KEY=VALUE"),
        (("--config", "nowhere.properties"), "cannot be read"),
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
    result = doctor(*GOOD, "--longest-processing", "200", "--restarts-often", "--output", "json")

    assert rules(result) == ["max-poll-interval", "static-membership"]


def test_a_broker_that_is_not_there_is_said_and_offline_asks_none() -> None:
    servers = "bootstrap.servers=127.0.0.1:1"

    result = doctor(*GOOD, servers, "--timeout", "1")
    assert result.exit_code == 3
    assert "not checked\n  broker         cannot query the cluster at 127.0.0.1:1" in result.stdout
    assert "KafkaError{" not in result.stdout
    offline = doctor(*GOOD, servers, "--offline")
    assert offline.exit_code == 0
    assert "broker         --offline is set" in offline.stdout


@pytest.mark.parametrize(
    ("settings", "rule", "words"),
    [
        (["sesion.timeout.ms=6000"], "unknown-setting", "did you mean 'session.timeout.ms'?"),
        (["session.timout.ms=1"], "unknown-setting", "did you mean 'session.timeout.ms'?"),
        (["quite.different=1"], "unknown-setting", "Remove quite.different"),
        (["session.timeout.ms=ten"], "invalid-setting", "a number from 1 to 3600000"),
        (["max.poll.interval.ms=1000"], "invalid-setting", "must not be less than session.timeout.ms"),
        (["enable.auto.commit=maybe"], "invalid-setting", "true or false"),
        (["ssl.ca.location=/nowhere.pem", "security.protocol=ssl"], "invalid-setting", "no such file"),
        (["linger.ms=5"], "ignored-setting", "a property of producers"),
        (["ssl.curves.list=P-256"], "unsupported-setting", "confluent-kafka's own classes may accept it"),
        (["group.protocol=consumer"], "classic-settings", "partition.assignment.strategy is set"),
    ],
)
def test_settings_are_validated_as_by_the_consumer(settings: list[str], rule: str, words: str) -> None:
    result = doctor(*GOOD, *settings, "--output", "json")

    assert rules(result) == [rule]
    assert words in result.stdout
    assert result.exit_code == int('"warning"' in result.stdout)


def test_an_unknown_assignor_is_named() -> None:
    result = doctor(*GOOD, "partition.assignment.strategy=cooperative-sticky,cooperativ-foo")

    assert result.exit_code == 1
    assert "no assignor is named 'cooperativ-foo'" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    ("java", "name"),
    [
        ("RangeAssignor", "range"),
        ("RoundRobinAssignor", "roundrobin"),
        ("StickyAssignor", "sticky"),
        ("CooperativeStickyAssignor", "cooperative-sticky"),
    ],
)
def test_javas_assignors_go_by_their_names(java: str, name: str) -> None:
    key = "partition.assignment.strategy"
    found = doctor(*GOOD, f"{key}=org.apache.kafka.clients.consumer.{java}")

    assert found.stdout == doctor(*GOOD, f"{key}={name}").stdout


def test_an_own_assignor_is_named_by_its_import_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_for_doctor.py").write_text(
        "from groupwright.assignors import StickyAssignor\nclass Mine(StickyAssignor):\n    name = 'mine'\n"
    )
    monkeypatch.chdir(tmp_path)
    found = doctor(*GOOD, "partition.assignment.strategy=mine_for_doctor:Mine", "-o", "json")

    assert (found.exit_code, rules(found)) == (0, ["not-in-librdkafka"])
    assert "partition.assignment.strategy has mine" in found.stdout
    missing = doctor(*GOOD, "partition.assignment.strategy=mine_for_doctor:Other")
    assert missing.exit_code == ExitStatus.USAGE
    assert "'mine_for_doctor:Other' cannot be loaded: AttributeError" in missing.stderr


def test_csv_has_the_findings_and_the_rest_on_standard_error() -> None:
    result = doctor(*GOOD, "linger.ms=5", "-o", "csv")

    header, row = csv.reader(result.stdout.splitlines())
    assert header == ["rule", "severity", "evidence", "consequence", "change"]
    assert row[:2] == ["ignored-setting", "note"]
    assert "not checked: group: bootstrap.servers is not set" in result.stderr


@pytest.mark.parametrize("width", [80, 200])
def test_lines_fit_the_terminal(width: int) -> None:
    lines = doctor("session.timeout.ms=1000", "bad.key=1", width=width).stdout.splitlines()

    assert width - 20 < max(map(len, lines)) <= width
    assert not any(line.endswith(" ") for line in lines)


NOTE, WARNING = note("n", "", "", ""), warning("w", "", "", "")


@pytest.mark.parametrize(
    ("findings", "failures", "status"),
    [
        ([NOTE], [], ExitStatus.OK),
        ([NOTE, WARNING], [], ExitStatus.FINDINGS),
        ([WARNING], [ExitStatus.UNREACHABLE], ExitStatus.UNREACHABLE),
        ([WARNING], [ExitStatus.INCOMPLETE, ExitStatus.NOT_FOUND], ExitStatus.NOT_FOUND),
        ([WARNING], [ExitStatus.INCOMPLETE, ExitStatus.FORBIDDEN], ExitStatus.FORBIDDEN),
        ([WARNING], [ExitStatus.INCOMPLETE], ExitStatus.FINDINGS),
        ([NOTE], [ExitStatus.INCOMPLETE], ExitStatus.INCOMPLETE),
    ],
)
def test_what_was_not_checked_is_never_taken_for_health(
    findings: list[Finding], failures: list[ExitStatus], status: ExitStatus
) -> None:
    checks = [Check("group", "", is_done=False, failure=failure) for failure in failures]

    assert exit_status(findings, checks) is status
