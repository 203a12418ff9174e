"""Look-ups of log ends, with an admin client that has to wait, and the end of that client."""

import gc
import threading
import time
from collections.abc import Callable
from typing import Any

import psutil  # type: ignore[import-untyped]
import pytest
from prometheus_client import CollectorRegistry

from groupwright.core import TopicPartitionKey
from groupwright.instrumentation import Metrics
from groupwright.instrumentation._librdkafka import log_ends
from groupwright.instrumentation._librdkafka.log_ends import LogEnds
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

UNREACHABLE = {"bootstrap.servers": "127.0.0.1:1", "log_level": 0}


def threads() -> set[int]:
    """Return the ids of this process's threads, librdkafka's included.

    Not their number: threads of an earlier test may end while this one starts its own.
    """
    return {thread.id for thread in psutil.Process().threads()}


@pytest.mark.medium
def test_a_slow_token_does_not_delay_the_poll_that_delivers_statistics() -> None:
    asked, released = threading.Event(), threading.Event()

    def oauth_cb(_: str) -> tuple[str, float]:
        asked.set()
        released.wait(PATIENCE)
        return "token", time.time() + 3600

    config = {
        "bootstrap.servers": "127.0.0.1:1",
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanisms": "OAUTHBEARER",
        "oauth_cb": oauth_cb,
        "log_level": 0,
    }

    before = threads()
    ends = LogEnds(config, read_uncommitted=False)
    ends.look_up([("orders", 0)], lambda *_: None)
    try:
        assert asked.wait(PATIENCE)  # `look_up` has returned, and there is no token yet
        assert not released.is_set()
    finally:
        released.set()
        ends.close()
        wait_until(lambda: threads() <= before, "the admin client's threads have ended")


def test_the_admin_client_is_closed_while_it_waits_for_a_broker() -> None:
    before = threads()
    ends = LogEnds(UNREACHABLE, read_uncommitted=False)
    ends.look_up([("orders", 0)], lambda *_: None)
    wait_until(lambda: len(threads() - before) > 1, "the admin client has threads")

    ends.close()

    wait_until(lambda: threads() <= before, "all of them have ended")
    ends.look_up([("orders", 0)], lambda *_: None)
    assert threads() <= before


@pytest.mark.parametrize("end", ["removed", "collected"])
def test_the_admin_client_is_closed_with_its_consumer(
    registry: CollectorRegistry, new_consumer: Callable[..., Any], end: str
) -> None:
    before, consumer = threads(), new_consumer()
    ends = LogEnds(UNREACHABLE, read_uncommitted=False)
    instrumentation = Metrics.of(registry).add_consumer(consumer, ends=ends)
    ends.look_up([("orders", 0)], lambda *_: None)
    wait_until(lambda: len(threads() - before) > 1, "the admin client has threads")

    if end == "removed":
        instrumentation.remove()
    else:
        del consumer
        gc.collect()

    wait_until(lambda: threads() <= before, "all of them have ended")


def test_the_admin_client_is_closed_after_a_while_without_paused_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(log_ends, "IDLE", 0.2)
    monkeypatch.setattr(log_ends, "_TIMEOUT", 0.1)
    before, found = threads(), list[int]()
    ends = LogEnds(UNREACHABLE, read_uncommitted=False)

    def fail() -> None:
        found.clear()
        ends.look_up([("orders", 0)], lambda _, end: found.append(end))
        wait_until(lambda: found == [log_ends.UNKNOWN], "the look-up has failed")
        wait_until(lambda: threads() <= before, "the admin client's threads have ended")

    fail()
    fail()  # which creates another client


def test_ends_are_unknown_if_there_is_no_admin_client(caplog: pytest.LogCaptureFixture) -> None:
    wrong = {**UNREACHABLE, "security.protocol": "ssl", "ssl.ca.location": "/nowhere"}
    ends, found = LogEnds(wrong, read_uncommitted=False), list[tuple[TopicPartitionKey, int]]()

    def look_up() -> None:
        found.clear()
        ends.look_up([("orders", 0), ("orders", 1)], lambda key, end: found.append((key, end)))
        wait_until(lambda: len(found) == 2, "both look-ups have failed")
        assert found == [(("orders", number), log_ends.UNKNOWN) for number in (0, 1)]

    try:
        look_up()
        look_up()  # the first one does not stay pending
    finally:
        ends.close()
    (warning,) = caplog.records
    assert "log ends of partitions that are not fetched cannot be looked up" in warning.getMessage()
