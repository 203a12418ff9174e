"""The programs do on a real broker what they say, if only for a moment."""

from pathlib import Path

import pytest

from benchmarks.consumer.contestants import prepare
from benchmarks.consumer.plan import DEFAULT_FETCHERS, FETCHERS, MESSAGE_BYTES, Cell, Effort
from benchmarks.consumer.results import Results, Status
from benchmarks.consumer.runner import Bench

pytestmark = pytest.mark.kafka

MOMENT = Effort(
    messages=100_000,
    rounds=1,
    slow_rounds=1,
    frozen_rounds=1,
    default_rounds=1,
    longest=120.0,
    member_changes=(),
    group_rounds=1,
    disturbances=1,
    idle_seconds=1.0,
    idles=1,
)


@pytest.mark.endurance
def test_all_contestants_consume_wait_and_idle(tmp_path: Path) -> None:
    results = Results(command="", date="", machine={}, clients={}, messages=MOMENT.messages)
    steps: list[int] = []
    bench = Bench(
        prepare(tmp_path),
        MOMENT,
        [Cell.THROUGHPUT, Cell.FROZEN, Cell.EVENT, Cell.IDLE],
        lambda _, done: steps.append(done),
    )

    bench.run(results)

    assert {name: outcome.status for name, outcome in results.throughput.items()} == {
        each.name: Status.OK for each in FETCHERS
    }
    assert {name: outcome.status for name, outcome in results.frozen.items()} == {
        each.name: Status.OK for each in DEFAULT_FETCHERS
    }
    for outcome in (*results.throughput.values(), *results.frozen.values()):
        (run,) = outcome.runs
        assert (run.messages, run.size) == (100_000, 100_000 * MESSAGE_BYTES)
        assert 0 < run.first < run.messages
    (events,) = results.events["Groupwright"].runs
    # One assignment at the start; then another joins, and leaves.
    assert len(events.assigns) >= 3
    assert len(events.revokes) >= 2
    assert all(0 <= wait < 10 for wait in events.waits)
    for idle in results.idle.values():
        assert 0 < idle.runs[0].share < 1
    assert max(steps) + 1 == bench.runs
