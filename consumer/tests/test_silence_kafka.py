"""A process that cannot run: busy in Python, blocked in a C call, or stopped."""

import re
import signal
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest

from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = pytest.mark.kafka

PROGRAM = """
    import ctypes, logging, sys, time
    from groupwright.consumer import Consumer
    logging.basicConfig(level=logging.WARNING, format="%(name)s %(message)s", stream=sys.stderr)
    consumer = Consumer({{
        "bootstrap.servers": {servers!r}, "group.id": {group!r}, "auto.offset.reset": "earliest",
        "session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "log_level": 0,
    }})
    calls, began = [], time.monotonic()
    consumer.subscribe(
        [{topic!r}],
        on_assign=lambda *_: calls.append("assigned"),
        on_revoke=lambda *_: calls.append("revoked"),
        on_lost=lambda *_: calls.append("lost"),
    )
    while not calls:
        consumer.poll(0.1)
    {hold_up}
    ends = time.monotonic() + {seconds}
    while time.monotonic() < ends and calls[-1] != "lost":
        consumer.poll(0.1)
    print(calls, flush=True)
    print(time.monotonic() - began, flush=True)
    consumer.close()
"""


def run(scene: "Scene", hold_up: str, seconds: float) -> tuple[str, float, str]:
    """Run the program, with a loss at most `seconds` after; return its calls, its seconds, and its log."""
    text = textwrap.dedent(PROGRAM).format(
        servers=scene.kafka.bootstrap_servers,
        group=scene.group,
        topic=scene.topic(),
        hold_up=hold_up,
        seconds=seconds,
    )
    ended = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=2 * PATIENCE
    )
    assert ended.returncode == 0, ended.stderr
    calls, lasted = ended.stdout.splitlines()
    return calls, float(lasted), ended.stderr


@pytest.mark.slow
def test_a_thread_that_is_busy_beyond_the_session_loses_nothing(scene: "Scene") -> None:
    """Heartbeats have a thread of their own; the interpreter gives it its turn."""
    calls, _, log = run(scene, "ends = time.monotonic() + 9\nwhile time.monotonic() < ends: pass", 3)

    assert (calls, log) == ("['assigned']", "")


@pytest.mark.slow
def test_a_call_that_holds_the_interpreter_beyond_the_session_is_told_as_a_loss(scene: "Scene") -> None:
    """A call into C that keeps the global lock stops all threads, the heartbeats' too."""
    calls, lasted, log = run(scene, "ctypes.PyDLL(None).sleep(9)", PATIENCE)

    assert calls == "['assigned', 'lost']", log
    # Other lines may tell of the connection, which broke meanwhile.
    (warning,) = [line for line in log.splitlines() if "did not run for" in line]
    seconds = re.search(r"did not run for (\d+\.\d) s, and session\.timeout\.ms is 6000", warning)
    assert seconds is not None, warning
    assert 8 <= float(seconds[1]) <= lasted
    assert "run it in a process of its own, or raise session.timeout.ms" in warning


STOPPED = """
    import sys, time
    from groupwright.consumer import Consumer
    consumer = Consumer({{
        "bootstrap.servers": {servers!r}, "group.id": {group!r}, "auto.offset.reset": "earliest",
        "session.timeout.ms": 6000, "heartbeat.interval.ms": 500, "log_level": 0,
    }})
    calls = []
    consumer.subscribe(
        [{topic!r}], on_assign=lambda *_: calls.append("assigned"), on_lost=lambda *_: calls.append("lost")
    )
    last, woke, stale = time.monotonic(), None, 0
    while "lost" not in calls:
        asked = time.monotonic()
        if asked - last > 5:
            woke = asked
        message = consumer.poll(0.2)
        last = time.monotonic()
        if woke is not None and message is not None and "lost" not in calls:
            stale += 1
        if last - asked > 5:
            woke = last  # stopped in this very poll
        if message is not None:
            time.sleep(0.005)  # its work; many more have been fetched meanwhile
            if calls == ["assigned"]:
                calls.append("consuming")
                print("consuming", flush=True)
    print(f"{{stale}} stale", flush=True)
    consumer.close()
"""


def test_a_stopped_process_receives_no_message_that_another_consumes(scene: "Scene") -> None:
    """Seen under chaos: messages that librdkafka had fetched were returned before the loss was known."""
    topic = scene.topic(messages=2000)
    text = textwrap.dedent(STOPPED).format(
        servers=scene.kafka.bootstrap_servers, group=scene.group, topic=topic
    )
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as stopped:
        try:
            assert stopped.stdout is not None
            assert stopped.stdout.readline() == "consuming\n"
            stopped.send_signal(signal.SIGSTOP)
            successor = scene.consumer(session_timeout_ms=6000)
            successor.subscribe([topic])
            scene.own(successor, 1)
            scene.take(successor, 1)
            stopped.send_signal(signal.SIGCONT)
            output, _ = stopped.communicate(timeout=PATIENCE)
        finally:
            stopped.kill()

    assert (output, stopped.returncode) == ("0 stale\n", 0)
