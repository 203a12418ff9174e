"""Ends of a process that consumes, and their effect on its group."""

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="signals and forks are POSIX's"),
]


@contextmanager
def program(scene: "Scene", topic: str, then: str, before: str = "") -> Iterator[subprocess.Popen[str]]:
    """Run a program whose `consumer` has gained the topic; it says so, and does `then`."""
    begin = f"""
        import os, signal, sys, threading, time, warnings
        from groupwright.consumer import Consumer
        from groupwright.consumer._membership import classic_membership
        classic_membership._STOP_TIMEOUT = {PATIENCE}  # a busy machine may take long to let it leave
        signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for background jobs
        consumer = Consumer({{
            "bootstrap.servers": {scene.kafka.bootstrap_servers!r}, "group.id": {scene.group!r},
            "auto.offset.reset": "earliest", "heartbeat.interval.ms": 100, "log_level": 0,
        }})
        def signal_inside(number):
            def send():
                while not consumer._guard.ident:
                    time.sleep(0.001)
                os.kill(os.getpid(), number)
            threading.Thread(target=send, daemon=True).start()
        def on_assign(consumer, partitions): pass
        def on_revoke(consumer, partitions): print("revoked", flush=True)
    """
    wait = f"""
        consumer.subscribe([{topic!r}], on_assign=on_assign, on_revoke=on_revoke)
        while not consumer.assignment():
            consumer.poll(0.1)
        print("assigned", flush=True)
    """
    text = "".join(map(textwrap.dedent, (begin, before, wait, then)))
    child = subprocess.Popen(
        [sys.executable, "-c", text],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "assigned\n"
        yield child
    finally:
        child.kill()
        child.wait(PATIENCE)
        for stream in (child.stdin, child.stdout, child.stderr):
            if stream is not None:
                stream.close()


def end(child: subprocess.Popen[str]) -> tuple[int, str, str]:
    assert child.stdout is not None
    assert child.stderr is not None
    # Not `communicate`: it would miss what came together with the line that was read first.
    out, errors = child.stdout.read(), child.stderr.read()
    return child.wait(PATIENCE), out, errors


def test_a_program_that_ends_without_a_close_leaves_its_group(scene: "Scene") -> None:
    """Its partitions would else wait for the session's end, 45 s."""
    topic = scene.topic()
    with program(scene, topic, "print(time.monotonic(), flush=True)") as child:
        code, out, errors = end(child)
        assert time.monotonic() - float(out.splitlines()[0]) < PATIENCE / 4
    assert (code, errors) == (0, "")
    assert scene.members() == 0


def test_a_poll_on_another_daemon_thread_does_not_keep_the_process(scene: "Scene") -> None:
    topic = scene.topic()
    then = """
        def poll():
            while True:
                consumer.poll(0.1)
        threading.Thread(target=poll, daemon=True).start()
    """
    with program(scene, topic, then) as child:
        code, _out, errors = end(child)
    assert (code, errors) == (0, "")
    assert scene.members() == 0


def test_an_exit_in_a_callback_ends_the_program_with_its_code(scene: "Scene") -> None:
    topic = scene.topic()
    then = """
        def on_assign(consumer, partitions): sys.exit(7)
        consumer.unsubscribe()
        consumer.subscribe([TOPIC], on_assign=on_assign)
        while True:
            consumer.poll(1)
    """
    with program(scene, topic, then.replace("TOPIC", repr(topic))) as child:
        code, _out, errors = end(child)
    assert (code, errors) == (7, "")
    assert scene.members() == 0


def test_ctrl_c_ends_a_poll_and_a_with_block_gives_everything_up(scene: "Scene") -> None:
    topic = scene.topic()
    then = """
        try:
            with consumer:
                signal_inside(signal.SIGINT)
                consumer.poll()
        except KeyboardInterrupt:
            print("interrupted", flush=True)
    """
    with program(scene, topic, then) as child:
        code, out, errors = end(child)
    assert (code, out, errors) == (0, "revoked\ninterrupted\n", "")
    assert scene.members() == 0


@pytest.mark.parametrize("method", ["poll()", "consume(10)"])
def test_ctrl_c_reaches_a_call_without_a_limit_soon(scene: "Scene", method: str) -> None:
    """confluent-kafka's consume() is one native call, which nothing interrupts."""
    topic = scene.topic()
    then = f"""
        try:
            signal_inside(signal.SIGINT)
            consumer.{method}
        except KeyboardInterrupt:
            consumer.close()
            print("interrupted", flush=True)
    """
    with program(scene, topic, then) as child:
        code, out, _errors = end(child)
    assert (code, out) == (0, "revoked\ninterrupted\n")


def test_a_termination_that_is_not_handled_ends_the_process_at_once(
    scene: "Scene", eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """Nothing can be done then; a handler that raises SystemExit leaves cleanly."""
    topic = scene.topic()
    with program(scene, topic, "consumer.poll()") as child:
        child.send_signal(signal.SIGTERM)
        assert end(child)[0] == -signal.SIGTERM
    other = scene.topic()
    before = "signal.signal(signal.SIGTERM, lambda *_: sys.exit(3))"
    scene.group += "-2"
    with program(scene, other, "consumer.poll()", before) as child:
        child.send_signal(signal.SIGTERM)
        code, _out, errors = end(child)
    assert (code, errors) == (3, "")
    eventually(lambda: scene.members() == 0, "its leaving")


def test_a_fork_is_told_and_its_parent_goes_on(scene: "Scene") -> None:
    topic = scene.topic()
    then = """
        sys.stdin.readline()
        first = consumer.poll()
        warnings.filterwarnings("ignore", "This process .* is multi-threaded")  # Python 3.12 and later
        pid = os.fork()
        if pid == 0:
            try:
                consumer.poll(0)
            except RuntimeError as error:
                print(error, flush=True)
            consumer.close()
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
        print([first.offset(), consumer.poll().offset(), consumer.poll().offset()], flush=True)
        consumer.close()
    """
    with program(scene, topic, then) as child:
        scene.produce(topic, 3)
        assert child.stdin is not None
        child.stdin.close()
        code, out, errors = end(child)
    assert (code, errors) == (0, "")
    assert "this consumer was created before a fork; create a new one in the child process" in out
    assert out.endswith("revoked\n")
    assert scene.committed(topic) == [3]
