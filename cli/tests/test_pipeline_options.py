"""Options of `groupwright pipeline report` and `deploys`. Needs no Spark."""

from datetime import UTC, datetime
from typing import Any

import pytest
from typer.testing import CliRunner

from groupwright.assignors import AssignorError, InvalidInputError
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli.pipeline.command import pipeline, status_of
from groupwright.cli.pipeline.deploys import PresentGroup, simulate_group
from groupwright.cli.pipeline.reading import ReportOptions
from groupwright.pipeline import jobs
from groupwright.pipeline.errors import PipelineError, SettingsError, UnreachableError
from groupwright.testing.simulation import Behaviour, Settings

NOTHING: dict[str, Any] = {
    "groups": (),
    "since": None,
    "until": None,
    "deploy": None,
    "hours": 24.0,
    "before": None,
    "after": None,
    "simulate": None,
    "assignors": None,
}


def of(**options: Any) -> ReportOptions:
    return ReportOptions.of(**NOTHING | options)


def test_a_deploy_is_compared_with_the_hours_before_it() -> None:
    compared = of(deploy="2026-11-21T08:00Z", hours=12.0).compared
    assert compared is not None
    assert compared.before.since == datetime(2026, 11, 20, 20, tzinfo=UTC)
    assert compared.before.until == compared.after.since == compared.deploy
    assert compared.after.until == datetime(2026, 11, 21, 20, tzinfo=UTC)


def test_times_without_a_zone_are_utc() -> None:
    options = of(
        since="2026-11-21", before="2026-11-01/2026-11-02", after="2026-11-08T00:00+01:00/2026-11-09"
    )
    assert options.shown.since == datetime(2026, 11, 21, tzinfo=UTC)
    assert options.compared is not None
    assert options.compared.after.since == datetime(2026, 11, 7, 23, tzinfo=UTC)
    assert options.compared.deploy is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"since": "yesterday"}, "--since is 'yesterday', which is not an ISO 8601 time"),
        ({"since": "2026-11-02", "until": "2026-11-01"}, "is not before --until"),
        ({"before": "2026-11-01/2026-11-02"}, "--before and --after belong together"),
        ({"before": "2026-11-01", "after": "2026-11-02"}, "--before is '2026-11-01', which is not a range"),
        ({"before": "2026-11-02/2026-11-01", "after": "2026-11-02"}, "which ends before it starts"),
        (
            {"deploy": "2026-11-02", "before": "a/b", "after": "c/d"},
            "--deploy and --before exclude each other",
        ),
    ],
)
def test_impossible_options(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        of(**options)


def test_errors_have_the_statuses_of_all_commands() -> None:
    errors = {
        SettingsError(""): ExitStatus.USAGE,
        InvalidInputError(""): ExitStatus.USAGE,
        AssignorError(""): ExitStatus.USAGE,
        UnreachableError(""): ExitStatus.UNREACHABLE,
        CommandError("", ExitStatus.NOT_FOUND): ExitStatus.NOT_FOUND,
        PipelineError(""): ExitStatus.FINDINGS,
    }

    assert [status_of(each) for each in errors] == list(errors.values())


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["batch", "tables=t"], 2, "batch: bootstrap_servers must be set"),
        (["report", "tabels=t"], 2, "report: unknown setting 'tabels'"),
        (["report", "tables=t", "--since", "yesterday"], 2, "report: --since is 'yesterday', which is not"),
        (["export", "tables=t", "--out=o", "--table=lags"], 2, "export: no table lags; the tables are "),
        (["deploys", "billing", "format=csv", "tables=t"], 2, "deploys: format=csv: it must be delta"),
        (
            ["stream", "bootstrap_servers=127.0.0.1:1,[::1]:1", "tables=t"],
            3,
            "stream: no broker can be reached (127.0.0.1:1: Connection refused; [::1]:1: ",
        ),
        (
            ["batch", "bootstrap_servers=PLAINTEXT://127.0.0.1:1", "tables=t"],
            3,
            "batch: no broker can be reached (PLAINTEXT://127.0.0.1:1: Connection refused). Check",
        ),
    ],
)
def test_what_cannot_work_is_said_before_spark_starts(
    monkeypatch: pytest.MonkeyPatch, arguments: list[str], status: int, message: str
) -> None:
    monkeypatch.delattr(jobs, "local_session")
    result = CliRunner().invoke(pipeline, arguments)

    assert result.exit_code == status, result.output
    assert result.stderr.startswith(f"groupwright pipeline {message}")


@pytest.mark.medium
def test_deploys_are_simulated_with_the_present_settings_and_with_others() -> None:
    settings = Settings(assignor="range", client=Behaviour.LIBRDKAFKA, session_timeout_ms=45_000)
    found = simulate_group(PresentGroup("billing", 3, {"orders": 6}, settings))
    costs = {(cost.scenario, cost.settings): cost for cost in found.costs}
    assert [cost.settings for cost in found.costs if cost.is_present] == ["as now"] * 2
    restart, crash = "a rolling restart", "a crash of one pod"
    assert costs[restart, "as now"].rebalances[0] >= 3
    assert costs[restart, "static membership"].rebalances == (0, 0)
    now, short = costs[crash, "as now"], costs[crash, "session.timeout.ms=10000"]
    assert short.longest_pause[1] < now.longest_pause[0], "a crash is noticed when the session times out"
    assert any("session.timeout.ms=45000" in assumption for assumption in found.assumptions)
