"""Reading librdkafka's statistics: recorded ones, and broken or old ones."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from groupwright.instrumentation._librdkafka.callbacks import LibrdkafkaCallbacks
from groupwright.instrumentation._librdkafka.statistics import (
    ConsumerStatistics,
    PartitionStatistics,
    read_consumer,
    read_producer,
)

Text = Callable[[str], str]


def test_a_consumers_statistics_are_read(statistics: Text) -> None:
    """Of three partitions with 10 messages each, the application read 10, 2 and none."""
    read = read_consumer(statistics("consumer"))

    assert read.state == "stable"
    assert read.partitions == {
        ("orders", 0): PartitionStatistics(-1001, 10, -1001, 10, 0, 10, 10, 19, 1800),
        ("orders", 1): PartitionStatistics(2, 10, -1001, 10, 0, 10, 10, 19, 1800),
        ("orders", 2): PartitionStatistics(10, 10, -1001, 10, 0, 10, 10, 19, 1800),
    }
    assert read.coordinator is not None
    assert read.coordinator.node == 1
    assert read.coordinator.errors == 0
    assert read.requests["join_group"] >= 1
    assert read.requests["sync_group"] == 1


def test_partitions_that_are_not_fetched_are_left_out(statistics: Text) -> None:
    """A revoked partition keeps its offsets in the statistics; partition -1 is internal."""
    everything = json.loads(statistics("consumer"))
    partitions = everything["topics"]["orders"]["partitions"]
    partitions["1"]["fetch_state"] = "stopped"
    partitions["-1"] |= {"fetch_state": "active"}

    assert list(read_consumer(json.dumps(everything)).partitions) == [("orders", 0), ("orders", 2)]


@pytest.mark.parametrize("client_id", ['we"ird', "CORP\\svc", "two\nlines"])
@pytest.mark.parametrize(("kind", "read"), [("consumer", read_consumer), ("producer", read_producer)])
def test_the_client_id_may_have_characters_that_librdkafka_does_not_escape(
    kind: str, read: Callable[[str], Any], client_id: str, statistics: Text
) -> None:
    text = statistics(kind)
    given = json.loads(text)["client_id"]
    unescaped = text.replace(f'"{given}"', f'"{client_id}"', 1)
    assert unescaped != text

    assert read(unescaped) == read(text)


def test_a_coordinator_that_is_not_known_yet_has_no_node(statistics: Text) -> None:
    everything = json.loads(statistics("consumer"))
    everything["brokers"]["GroupCoordinator"]["nodename"] = ""

    read = read_consumer(json.dumps(everything))

    assert read.coordinator is not None
    assert read.coordinator.node is None


def test_a_producers_statistics_are_read(statistics: Text) -> None:
    everything = json.loads(statistics("producer"))
    everything |= {"msg_cnt": 50_000, "msg_max": 100_000, "msg_size": 3_000, "msg_size_max": 1_000_000}

    read = read_producer(json.dumps(everything))

    assert (read.messages, read.queue_messages, read.queue_bytes, read.queue_used) == (40, 50_000, 3_000, 0.5)
    assert read.batch_messages == 10
    assert read.batch_bytes is not None
    assert 1_000 < read.batch_bytes < 1_500
    assert read.round_trip is not None
    assert 0 < read.round_trip < 1
    assert read.queue_latency is not None
    assert (read.request_errors, read.retries) == (0, 0)


def test_a_window_in_which_nothing_happened_has_no_averages(statistics: Text) -> None:
    everything = json.loads(statistics("producer"))
    for broker in everything["brokers"].values():
        broker["rtt"]["cnt"] = 0
    everything["topics"] = {}

    read = read_producer(json.dumps(everything))

    assert (read.round_trip, read.batch_bytes, read.batch_messages) == (None, None, None)


@pytest.mark.parametrize("text", ["", "{", "[]", "null", "{}", '{"brokers": 3}'])
@pytest.mark.parametrize("read", [read_consumer, read_producer])
def test_statistics_that_are_none_are_one_kind_of_error(read: Callable[[str], Any], text: str) -> None:
    with pytest.raises(ValueError, match=r"librdkafka's statistics cannot be read"):
        read(text)


def made_at(statistics: Text, seconds: float) -> str:
    return json.dumps(json.loads(statistics("consumer")) | {"ts": int(seconds * 1e6)})


def test_the_newest_are_kept_and_their_age_is_from_when_they_were_taken(statistics: Text) -> None:
    """After a stall the statistics of the meantime come first, one with each poll."""
    now = 1000.0
    callbacks: LibrdkafkaCallbacks[ConsumerStatistics] = LibrdkafkaCallbacks(read_consumer, lambda: now)
    assert callbacks.age is None
    callbacks.record_statistics(made_at(statistics, 50.0))
    assert callbacks.age == 0.0

    now += 90
    assert callbacks.age == 90.0
    callbacks.record_statistics(made_at(statistics, 65.0))
    assert callbacks.age == 75.0
    callbacks.record_statistics(made_at(statistics, 60.0))
    assert callbacks.age == 75.0
    callbacks.record_statistics(made_at(statistics, 140.0))
    assert callbacks.age == 0.0


def test_broken_statistics_are_told_of_and_the_last_good_ones_stay(statistics: Text) -> None:
    failures: list[tuple[str, Exception]] = []
    callbacks: LibrdkafkaCallbacks[ConsumerStatistics] = LibrdkafkaCallbacks(read_consumer)
    callbacks.on_failure = lambda where, error: failures.append((where, error))
    callbacks.record_statistics(statistics("consumer"))
    good = callbacks.statistics

    callbacks.record_statistics('{"ts": 1')

    assert callbacks.statistics is good
    ((where, error),) = failures
    assert where == "statistics"
    assert "cannot be read" in str(error)


def test_the_applications_callbacks_are_called_as_they_were_and_what_they_raise_is_theirs() -> None:
    def refuse(text: str) -> None:
        raise LookupError(text)

    callbacks: LibrdkafkaCallbacks[ConsumerStatistics] = LibrdkafkaCallbacks(read_consumer)
    config = {"group.id": "g", "statistics.interval.ms": 500, "stats_cb": refuse}
    configured = callbacks.configure(config, asynchronous=False)

    assert configured["statistics.interval.ms"] == 500
    assert config["stats_cb"] is refuse
    with pytest.raises(LookupError, match="some text"):
        configured["stats_cb"]("some text")
    assert configured["error_cb"](KafkaErrorLike()) is None
    assert callbacks.errors == {"_ALL_BROKERS_DOWN": 1}


class KafkaErrorLike:
    def name(self) -> str:
        return "_ALL_BROKERS_DOWN"
