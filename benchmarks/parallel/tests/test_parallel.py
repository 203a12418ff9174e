"""The page of the benchmark; on a real broker, each contestant processes everything."""

import pytest

from benchmarks.parallel.__main__ import Results, fill, measure, page, summary
from benchmarks.parallel.contestants import CONTESTANTS
from groupwright.testing import LocalKafka


def test_the_page_tells_rates_costs_and_targets() -> None:
    of_all = dict.fromkeys(CONTESTANTS, (2.0, 1.0, 400_000))
    results = Results("make bench", "2026-11-28", {"cores": "2"}, {"nothing": of_all, "1 ms": of_all})
    text = "\n".join(page(results, None))

    assert "| by key | 200,000 | 2.5 µs |" in text
    assert [finding.reached for finding in summary(results)] == [True, True]


@pytest.mark.slow
@pytest.mark.kafka
def test_all_contestants_process_everything(local_kafka: LocalKafka) -> None:
    local_kafka.create_topic("bench-parallel", 3)
    fill(local_kafka.bootstrap_servers, "bench-parallel", 600)
    for name in CONTESTANTS:
        seconds, cpu = measure(local_kafka.bootstrap_servers, "bench-parallel", name, "1 ms", 600)
        assert seconds > 0.1
        assert cpu > 0
