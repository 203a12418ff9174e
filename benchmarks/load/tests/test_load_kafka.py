"""The short form on a real broker: all contestants drain, consume and rebalance, if only for a moment."""

from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.consumer.results import Status
from benchmarks.load.contestants import JAVA_OPTIONS, Contestant, compile_members, groupwright
from benchmarks.load.plan import BY_TIME, COUNTS, LAG_BASED, PARTITIONS, QUICK
from benchmarks.load.report import REPORT
from benchmarks.load.results import Results
from benchmarks.load.runner import run

pytestmark = [pytest.mark.kafka, pytest.mark.endurance]

MOMENT = replace(QUICK, backlog_seconds=1.0, settle_seconds=4.0, window_seconds=1.0, drift_seconds=1.0)


def java_members(folder: Path) -> Contestant:
    """Return Java's members with an assignor of Kafka, since a repository may lack the lag-based one."""
    command = tuple(compile_members(folder).command("PacedMembers", *JAVA_OPTIONS))
    assignor = "org.apache.kafka.clients.consumer.RoundRobinAssignor"
    settings = (("assignor", assignor), ("max.poll.records", "50"))
    return Contestant(LAG_BASED, "", command, settings, one_process=True)


def test_all_contestants_drain_consume_and_rebalance(tmp_path: Path) -> None:
    contestants = [groupwright(COUNTS), java_members(tmp_path), groupwright(BY_TIME)]
    results = Results(command="", date="", machine={}, contestants={})
    steps: list[int] = []

    run(contestants, MOMENT, lambda _, done: steps.append(done), results)

    (outcomes,) = results.shapes.values()
    assert {name: outcome.status for name, outcome in outcomes.items()} == dict.fromkeys(
        (COUNTS, BY_TIME, LAG_BASED), Status.OK
    ), {name: outcome.note for name, outcome in outcomes.items()}
    runs = {name: outcome.run for name, outcome in outcomes.items() if outcome.run is not None}
    assert {found.drain.messages for found in runs.values()} == {2_000}
    assert all(found.drain.seconds > 0.9 * found.drain.ideal_seconds for found in runs.values())
    assert all(len(found.windows) == 2 and found.lag for found in runs.values())
    assert runs[COUNTS].drain.peak_over_bound == pytest.approx(1.8, abs=0.02)
    assert runs[BY_TIME].drain.peak_over_bound < 1.1
    assert (runs[COUNTS].moved, runs[COUNTS].revoked) == (0, 0)
    assert runs[LAG_BASED].revoked == PARTITIONS
    assert runs[BY_TIME].revoked == runs[BY_TIME].moved
    assert steps == [0, 1, 2]
    page, *_ = REPORT.keep(tmp_path / "kept", results)
    assert "neighbours: Groupwright load-aware by processing time" in page.read_text(encoding="utf-8")
