"""Callbacks of the configuration: statistics, errors, throttling, and the logger."""

import json
import logging
import time
from functools import partial
from typing import Any

from integration_tests.parity.client import Client, record, show
from integration_tests.parity.lab import Lab, partitions
from integration_tests.parity.scenarios import scenario


def _raised(consumer: Client, seconds: float = 10.0) -> bool:
    """Poll until a callback's error leaves poll."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        try:
            consumer.poll(0.1)
        except ValueError:
            return True
    return False


@scenario()
def statistics_are_told(lab: Lab) -> None:
    """stats_cb is called by poll, with librdkafka's statistics."""
    topic = lab.topic(2, messages=5)
    reported: list[dict[str, Any]] = []
    consumer = lab.consumer(
        statistics_interval_ms=200, client_id="mine", stats_cb=lambda text: reported.append(json.loads(text))
    )
    consumer.subscribe([topic])
    consumer.read(10)
    reported.clear()
    consumer.until(lambda: len(reported) > 1, "statistics twice")
    last = reported[-1]
    lab.note(f"{last['client_id']} {last['type']} {sorted(last['topics']) == [topic]}")
    found = last["topics"][topic]["partitions"]
    lab.note(f"{sorted(found)}")
    for number in ("0", "1"):
        part = found[number]
        lab.note(
            f"{number}: app_offset {part['app_offset']}, stored {part['stored_offset']}, "
            f"lag {part['consumer_lag']}, lag stored {part['consumer_lag_stored']}, "
            f"next {part['next_offset']}, hi {part['hi_offset']}, fetch {part['fetch_state']}"
        )
    lab.note(f"{sorted(last)}")
    consumer.close()


@scenario()
def statistics_of_the_group(lab: Lab) -> None:
    """The statistics' part about the group."""
    topic = lab.topic(2, messages=5)
    reported: list[dict[str, Any]] = []
    consumer = lab.consumer(
        statistics_interval_ms=200, stats_cb=lambda text: reported.append(json.loads(text))
    )
    consumer.subscribe([topic])
    consumer.read(10)
    reported.clear()
    consumer.until(lambda: len(reported) > 1, "statistics twice")
    group = reported[-1]["cgrp"]
    lab.note(f"{sorted(group)}")
    lab.note(f"state {group['state']}, join state {group['join_state']}, size {group['assignment_size']}")
    consumer.close()


@scenario()
def statistics_of_committed_offsets(lab: Lab) -> None:
    """committed_offset and the lag behind it, by which many watch a consumer."""
    topic = lab.topic(messages=10)
    reported: list[dict[str, Any]] = []
    consumer = lab.consumer(
        statistics_interval_ms=200,
        enable_auto_commit=False,
        stats_cb=lambda text: reported.append(json.loads(text)),
    )
    consumer.subscribe([topic])
    consumer.read(10)
    consumer.commit(offsets=partitions(topic, 4), asynchronous=False)
    reported.clear()
    consumer.until(lambda: len(reported) > 1, "statistics twice")
    part = reported[-1]["topics"][topic]["partitions"]["0"]
    lab.note(f"committed {part['committed_offset']}, lag {part['consumer_lag']}, app {part['app_offset']}")
    consumer.close()


@scenario()
def statistics_of_what_was_taken(lab: Lab) -> None:
    """app_offset is the application's, not that of what was prefetched."""
    topic = lab.topic(messages=100)
    reported: list[dict[str, Any]] = []
    consumer = lab.consumer(
        statistics_interval_ms=200,
        enable_auto_commit=False,
        stats_cb=lambda text: reported.append(json.loads(text)),
    )
    consumer.assign(partitions(topic, 0))
    consumer.read(5)
    consumer.pause(partitions(topic, -1001))
    reported.clear()
    consumer.until(lambda: len(reported) > 1, "statistics twice")
    part = reported[-1]["topics"][topic]["partitions"]["0"]
    lab.note(f"app {part['app_offset']}, lag {part['consumer_lag']}")
    consumer.close()


@scenario()
def stats_cb_raises(lab: Lab) -> None:
    """An exception of stats_cb propagates from poll, and the consumer goes on."""
    topic = lab.topic(messages=5)

    def stats_cb(_: str) -> None:
        if len(consumer.messages) == 5 and not raised:
            raised.append(True)
            raise ValueError("a callback's own error")

    raised: list[bool] = []
    consumer = lab.consumer(statistics_interval_ms=300, stats_cb=stats_cb)
    consumer.subscribe([topic])
    consumer.read(5)
    lab.note(f"raised {_raised(consumer)}")
    lab.produce(topic, 2)
    consumer.until(lambda: consumer.messages and consumer.messages[-1].offset() == 6, "the last message")
    consumer.close()


@scenario()
def stats_cb_raises_in_consume(lab: Lab) -> None:
    """An exception of stats_cb propagates from consume."""

    def stats_cb(_: str) -> None:
        raise ValueError("a callback's own error")

    consumer = lab.consumer(statistics_interval_ms=300, stats_cb=stats_cb)
    deadline = time.monotonic() + 10
    raised = False
    while not raised and time.monotonic() < deadline:
        try:
            consumer.consume(10, 0.5)
        except ValueError:
            raised = True
    consumer.attempt("close")


@scenario()
def stats_cb_calls_the_consumer(lab: Lab) -> None:
    """stats_cb may ask the consumer."""
    topic = lab.topic(messages=5)
    held: list[Client] = []
    called: list[int] = []

    def stats_cb(_: str) -> None:
        if held and not called and held[0].raw.assignment():
            called.append(len(held[0].raw.assignment()))
            held[0].attempt("position", partitions(topic, -1001))
            held[0].attempt("committed", partitions(topic, -1001), timeout=10)
            held[0].attempt("pause", partitions(topic, -1001))
            held[0].attempt("commit", asynchronous=True)

    consumer = lab.consumer(statistics_interval_ms=200, stats_cb=stats_cb, enable_auto_commit=False)
    consumer.subscribe([topic])
    consumer.read(5)
    held.append(consumer)
    consumer.until(lambda: called, "stats_cb was called")
    consumer.close()


@scenario()
def no_statistics_without_an_interval(lab: Lab) -> None:
    """statistics.interval.ms is 0 by default."""
    reported: list[str] = []
    topic = lab.topic(messages=2)
    consumer = lab.consumer(stats_cb=reported.append)
    consumer.assign(partitions(topic, 0))
    consumer.read(2)
    consumer.idle(0.5)
    lab.note(f"{len(reported)}")
    consumer.close()


@scenario()
def statistics_without_callback(lab: Lab) -> None:
    """An interval without a callback is harmless."""
    topic = lab.topic(messages=2)
    consumer = lab.consumer(statistics_interval_ms=100)
    consumer.subscribe([topic])
    consumer.read(2)
    consumer.idle(0.3)
    consumer.close()


def _unreachable(lab: Lab) -> dict[str, Any]:
    return lab.config(bootstrap_servers="127.0.0.1:1", reconnect_backoff_ms=50)


@scenario()
def error_cb_hears_that_no_broker_answers(lab: Lab) -> None:
    """A connection that is refused, and then that all brokers are down."""
    heard: list[str] = []
    raw = lab.consumer_class({**_unreachable(lab), "error_cb": lambda error: heard.append(error.name())})
    deadline = time.monotonic() + 10
    while not {"_TRANSPORT", "_ALL_BROKERS_DOWN"} <= {*heard} and time.monotonic() < deadline:
        raw.poll(0.1)
    lab.note(f"{sorted({*heard})}")
    raw.close()


@scenario()
def error_cb_hears_that_no_broker_answers_a_subscription(lab: Lab) -> None:
    """The same for a subscribed consumer."""
    heard: list[str] = []
    raw = lab.consumer_class({**_unreachable(lab), "error_cb": lambda error: heard.append(error.name())})
    raw.subscribe(["anything"])
    deadline = time.monotonic() + 10
    events: set[str] = set()
    while not {"_TRANSPORT", "_ALL_BROKERS_DOWN"} <= {*heard} and time.monotonic() < deadline:
        message = raw.poll(0.1)
        if message is not None and message.error() is not None:
            events.add(show(lab, message.error()))
    lab.note(f"{sorted({*heard})} {sorted(events)}")
    raw.close()


@scenario()
def error_cb_raises(lab: Lab) -> None:
    """An exception of error_cb propagates from poll."""

    raised: list[bool] = []

    def error_cb(_: object) -> None:
        if not raised:
            raised.append(True)
            raise ValueError("a callback's own error")

    consumer = lab.adopt(lab.consumer_class({**_unreachable(lab), "error_cb": error_cb}))
    lab.note(f"raised {_raised_quietly(consumer)}")
    consumer.raw.close()
    consumer.closed = True


def _raised_quietly(consumer: Client) -> bool:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            consumer.raw.poll(0.1)
        except ValueError:
            return True
    return False


@scenario()
def throttle_cb_hears_of_quotas(lab: Lab) -> None:
    """throttle_cb is called when the broker holds a fetch back."""
    topic = lab.topic()
    client = f"{lab.id}.throttled"
    reported: list[Any] = []
    lab.throttle(client, 100_000)
    consumer = lab.consumer(client_id=client, throttle_cb=reported.append, enable_auto_commit=False)
    consumer.assign(partitions(topic, 0))

    def throttled() -> bool:
        if not reported:
            lab.produce(topic, 10, size=20_000)
        return bool(reported)

    consumer.until(throttled, "throttle_cb was called")
    lab.trace.timelines.pop(consumer.name)  # how much was read until then is left to chance
    lab.note(f"{type(reported[0]).__name__} {reported[0].broker_name != ''} {reported[0].throttle_time > 0}")
    consumer.close()


class _Handler(logging.Handler):
    def __init__(self, lines: list[str]) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.append(record.getMessage())


def _logger(lines: list[str]) -> logging.Logger:
    logger = logging.Logger("parity")  # noqa: LOG001 - a scenario's own
    logger.addHandler(_Handler(lines))
    return logger


@scenario()
def a_logger_gets_librdkafka_s_lines(lab: Lab) -> None:
    """`logger` in the configuration gets what librdkafka logs, by poll."""
    lines: list[str] = []
    consumer = lab.consumer(debug="consumer", log_level=7, logger=_logger(lines))
    lab.note(f"before a poll {bool(lines)}")
    consumer.until(lambda: lines, "a line is logged")
    consumer.close()


@scenario()
def a_logger_as_an_argument(lab: Lab) -> None:
    """`logger` may be a keyword beside the dict."""
    lines: list[str] = []
    config = {**lab.config(), "debug": "consumer", "log_level": 7}
    consumer = lab.adopt(lab.consumer_class(config, logger=_logger(lines)))
    consumer.until(lambda: lines, "a line is logged")
    consumer.close()


@scenario()
def callbacks_that_are_no_functions(lab: Lab) -> None:
    """They are refused when the consumer is made."""

    def make(name: str, value: object) -> None:
        lab.consumer_class({**lab.config(), name: value}).close()

    for name in ("stats_cb", "error_cb", "throttle_cb", "on_commit", "oauth_cb"):
        lab.attempt(name, partial(make, name, "text"))
        lab.attempt(f"{name} None", partial(make, name, None))


@scenario()
def callbacks_beside_the_configuration(lab: Lab) -> None:
    """Callbacks may be keywords."""
    topic = lab.topic(messages=3)
    reported: list[object] = []
    make: Any = lab.consumer_class
    config = {**lab.config(), "statistics.interval.ms": 200}
    consumer = lab.adopt(make(config, stats_cb=reported.append, on_commit=record))
    consumer.subscribe([topic])
    consumer.read(3)
    consumer.until(lambda: reported, "statistics")
    consumer.close()
