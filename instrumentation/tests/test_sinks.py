"""Events: what is in them, where they go, and sinks that fail, hang or are full."""

import json
import logging
import multiprocessing
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer
from prometheus_client import CollectorRegistry

from groupwright.consumer import Outcome, Rebalance
from groupwright.instrumentation import (
    EventSink,
    GroupLoad,
    Leadership,
    LoadCheckEvent,
    LoadCheckOutcome,
    LoadCheckResult,
    RebalanceEvent,
    instrument,
    to_callback,
    to_file,
    to_kafka,
    to_logging,
)
from groupwright.instrumentation.events import make_event, make_load_check_event, schema
from groupwright.testing import LocalKafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.patience import PATIENCE

Value = Callable[..., float | None]
NewConsumer = Callable[..., Any]
NewRebalance = Callable[..., Rebalance]
NewLoadCheck = Callable[..., LoadCheckResult]


@pytest.fixture
def event(new_rebalance: NewRebalance) -> RebalanceEvent:
    return make_event("billing", "c-1", new_rebalance())


def outcomes(value: Value, sink: str) -> dict[str, float | None]:
    words = ("sent", "dropped", "failed")
    return {word: value("groupwright_events_total", sink=sink, outcome=word) for word in words}


def test_an_event_says_what_happened(event: RebalanceEvent) -> None:
    reported = event.to_dict()

    assert len(reported.pop("id")) == 36
    assert reported == {
        "version": 1,
        "group": "billing",
        "client_id": "c-1",
        "member_id": "c-1-5d0c",
        "generation": 7,
        "protocol": "range",
        "kind": reported["kind"],
        "outcome": "completed",
        "trigger": "group",
        "reason": "members or partitions changed",
        "started_at": "2023-11-14T22:13:20.200000Z",
        "ended_at": "2023-11-14T22:13:20.500000Z",
        "duration_seconds": 0.3,
        "phases": {"revoke": 0.02, "join": 0.2, "sync": 0.05, "assign": 0.03},
        "partitions_before": {"orders": [0, 1]},
        "partitions_after": {"orders": [0, 1, 2]},
        "leader": None,
        "undecodable": {},
        "assigned_by_broker": False,
        "error": None,
    }


def test_the_event_of_a_leader_by_weight_has_the_loads_of_the_members(
    new_rebalance: NewRebalance, group_load: GroupLoad
) -> None:
    leadership = Leadership(members=2, moved=1, min_moves=0, imbalance=1, load=group_load)

    reported = json.loads(make_event("billing", "c-1", new_rebalance(leadership=leadership)).to_json())

    assert reported["leader"] == {
        "members": 2,
        "moved": 1,
        "min_moves": 0,
        "imbalance": 1,
        "load": {
            "loads": {"m-1": 10, "m-2": 6},
            "busiest": "m-1",
            "peak": 1.25,
            "bound": 1.125,
            "moved_load": 4,
        },
    }


def test_events_keep_to_the_schema(new_rebalance: NewRebalance, group_load: GroupLoad) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    jsonschema.Draft202012Validator.check_schema(schema())
    validator = jsonschema.Draft202012Validator(schema())
    failed = new_rebalance(
        outcome=Outcome.FAILED,
        protocol=None,
        generation=-1,
        member_id="",
        partitions={},
        phases={},
        error="no",
    )
    led = new_rebalance(leadership=Leadership(2, 1, 0, 1))
    led_by_weight = new_rebalance(leadership=Leadership(2, 1, 0, 1, load=group_load))
    for record in (new_rebalance(), failed, led, led_by_weight):
        validator.validate(json.loads(make_event("billing", "c-1", record).to_json()))

    wrong = json.loads(make_event("billing", "c-1", new_rebalance()).to_json()) | {"outcome": "fine"}
    with pytest.raises(jsonschema.ValidationError, match="'fine' is not one of"):
        validator.validate(wrong)


def test_the_schema_requires_each_key_that_an_event_has(event: RebalanceEvent) -> None:
    assert list(schema()["properties"]) == schema()["required"] == list(event.to_dict())


def test_each_rebalance_goes_to_each_sink_once(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    new_rebalance: NewRebalance,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "groupwright.rebalances")
    reported: list[RebalanceEvent] = []
    path = tmp_path / "rebalances.jsonl"
    sinks = [to_callback(reported.append), to_file(path), to_logging()]
    listener = instrument(new_consumer(), registry, events=sinks)
    assert outcomes(value, "file") == {"sent": 0, "dropped": 0, "failed": 0}
    listener.rebalanced(new_rebalance(partitions={"orders": [0, 1]}))
    listener.rebalanced(new_rebalance(partitions_before={"orders": [0, 1]}, partitions={"orders": [0]}))
    for sink in sinks:
        sink.close()

    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [event.to_dict() for event in reported] == lines
    assert [json.loads(record.getMessage()) for record in caplog.records] == lines
    assert lines[1]["partitions_before"] == {"orders": [0, 1]}
    assert lines[1]["partitions_after"] == {"orders": [0]}
    for name in ("callback", "file", "logging"):
        assert outcomes(value, name) == {"sent": 2, "dropped": 0, "failed": 0}


def test_load_checks_go_to_sinks_of_their_own(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    new_rebalance: NewRebalance,
    new_load_check: NewLoadCheck,
    tmp_path: Path,
) -> None:
    reported: list[LoadCheckEvent] = []
    rebalances, checks = to_file(tmp_path / "rebalances.jsonl"), to_callback(reported.append, "checks")
    listener = instrument(new_consumer(), registry, events=[rebalances], load_checks=[checks])
    assert outcomes(value, "checks") == {"sent": 0, "dropped": 0, "failed": 0}
    listener.rebalanced(new_rebalance())
    listener.load_checked(new_load_check())
    for sink in (rebalances, checks):
        sink.close()

    (event,) = (json.loads(each.to_json()) for each in reported)
    assert len(event.pop("id")) == 36
    assert event == {
        "version": 1,
        "group": "billing",
        "client_id": "c-1",
        "generation": 7,
        "outcome": "rebalanced",
        "ended_at": "2023-11-14T22:18:20.000000Z",
        "peak": 1.5,
        "bound": 1.0,
        "expected": 1.0625,
        "moves": 3,
        "partitions": 12,
    }
    assert outcomes(value, "checks") == outcomes(value, "file") == {"sent": 1, "dropped": 0, "failed": 0}


def test_load_checks_keep_to_their_schema(new_load_check: NewLoadCheck) -> None:
    jsonschema = pytest.importorskip("jsonschema", reason="jsonschema is not installed")
    found = schema(LoadCheckEvent)
    jsonschema.Draft202012Validator.check_schema(found)
    validator = jsonschema.Draft202012Validator(found)
    nothing = dict.fromkeys(("peak", "bound", "expected", "moves", "partitions"))
    failed = new_load_check(LoadCheckOutcome.FAILED, **nothing)
    for result in (*map(new_load_check, LoadCheckOutcome), failed):
        event = make_load_check_event(result).to_dict()
        validator.validate(event)
        assert list(found["properties"]) == found["required"] == list(event)


def test_a_sink_that_hangs_drops_and_holds_up_nobody(
    registry: CollectorRegistry, value: Value, new_consumer: NewConsumer, new_rebalance: NewRebalance
) -> None:
    began, go_on = threading.Event(), threading.Event()

    def hang(_: RebalanceEvent) -> None:
        began.set()
        assert go_on.wait(PATIENCE)

    sink = EventSink("hanging", hang, capacity=2)
    listener = instrument(new_consumer(), registry, events=[sink])
    listener.rebalanced(new_rebalance())
    assert began.wait(PATIENCE)
    for _ in range(5):
        listener.rebalanced(new_rebalance())

    assert outcomes(value, "hanging") == {"sent": 0, "dropped": 3, "failed": 0}
    go_on.set()
    sink.close()
    assert outcomes(value, "hanging") == {"sent": 3, "dropped": 3, "failed": 0}
    listener.rebalanced(new_rebalance())
    assert outcomes(value, "hanging") == {"sent": 3, "dropped": 4, "failed": 0}
    assert value("groupwright_rebalances_total", protocol="range", outcome="completed") == 7


def test_a_sink_that_fails_is_counted_each_time_and_logged_once(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: NewConsumer,
    new_rebalance: NewRebalance,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    sink = to_file(tmp_path / "absent" / "rebalances.jsonl")
    listener = instrument(new_consumer(), registry, events=[sink])
    for _ in range(3):
        listener.rebalanced(new_rebalance())
    sink.close()

    assert outcomes(value, "file") == {"sent": 0, "dropped": 0, "failed": 3}
    (logged,) = caplog.records
    assert "the event sink 'file' failed: FileNotFoundError" in logged.getMessage()
    assert value("groupwright_instrumentation_errors_total") == 0


def test_a_sink_that_can_hold_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="capacity of a sink is 0: set it to 1 or more"):
        EventSink("none", lambda _: None, capacity=0)


@pytest.mark.medium
def test_a_broker_that_is_not_there_makes_events_fail_in_time(event: RebalanceEvent) -> None:
    ended: list[str] = []
    nowhere = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}
    with to_kafka(nowhere, delivery_timeout=0.5) as sink:
        sink.offer(event, ended.append)

    assert ended == ["failed"]


@pytest.mark.kafka
def test_events_go_to_a_topic_with_the_group_as_key(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, event: RebalanceEvent
) -> None:
    topic = new_kafka_topic()
    ended: list[str] = []
    with to_kafka({"bootstrap.servers": local_kafka.bootstrap_servers}, topic) as sink:
        sink.offer(event, ended.append)
    assert ended == ["sent"]

    consumer = Consumer(
        {
            "bootstrap.servers": local_kafka.bootstrap_servers,
            "group.id": topic,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.subscribe([topic])
        message = consumer.poll(PATIENCE)
        assert message is not None
        assert message.key() == b"billing"
        assert json.loads(message.value() or b"") == event.to_dict()
    finally:
        consumer.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="there is no fork here")
def test_after_a_fork_the_child_has_a_thread_of_its_own(event: RebalanceEvent, tmp_path: Path) -> None:
    """gunicorn forks its workers: the child lacks the parent's thread, and its queue would only fill."""
    path = tmp_path / "events.jsonl"
    sink = to_file(path)
    sink.offer(event, lambda _: None)

    def in_child() -> None:
        sink.offer(event, lambda _: None)
        sink.close()

    child = multiprocessing.get_context("fork").Process(target=in_child)
    child.start()
    child.join(PATIENCE)
    sink.close()

    assert child.exitcode == 0
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2
