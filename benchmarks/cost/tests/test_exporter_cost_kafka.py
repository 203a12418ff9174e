"""The exporter's benchmark runs, and says what it should."""

import dataclasses

import pytest

from benchmarks.cost.busy_groups import BusyGroups
from benchmarks.cost.exporter import Run, measure
from benchmarks.cost.exporter_report import (
    MOST_CPU_SECONDS,
    MOST_MEMORY,
    MOST_SCRAPE_MS,
    Results,
    findings,
    missed,
)
from groupwright.testing import LocalKafka

GOOD = Run("admin", 1, 1, 1, 1.0, 1.0, MOST_CPU_SECONDS, MOST_MEMORY, 1.0, MOST_SCRAPE_MS, 1e9, 10, 1)


def results(*runs: Run) -> Results:
    return Results("python", "now", {"CPU": "one"}, 2, 3, list(runs))


def test_a_limit_that_is_kept_is_no_matter_and_any_other_is_named() -> None:
    changes = ({"scrape_p99_ms": 101.0}, {"cpu_seconds": 3.1}, {"memory_bytes": MOST_MEMORY + 1})

    assert list(missed(results(GOOD))) == []
    for change in changes:
        (sentence,) = missed(results(dataclasses.replace(GOOD, **change)))
        assert sentence.startswith("admin: ")
    by_partition = dataclasses.replace(GOOD, name="admin, by partition", cpu_seconds=9.0)
    assert list(missed(results(by_partition))) == []
    assert [str(each) for each in findings(results(GOOD))] == ["✓ All limits are kept."]


@pytest.mark.kafka
def test_a_small_cluster_is_measured(local_kafka: LocalKafka) -> None:
    with BusyGroups(local_kafka, groups=4, partitions=2):
        run = measure("admin", local_kafka.bootstrap_servers, ["--group=group-.*"], 0.5, 2)

    assert run.series >= 4 * 9 + 4 * 7
    assert run.refreshes == 2
    assert 0 < run.scrape_ms <= run.scrape_max_ms
    assert run.memory_bytes > 0
    assert run.compressed_bytes < run.page_bytes
