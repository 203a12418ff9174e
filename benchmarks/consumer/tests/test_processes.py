"""A contestant may be slow, silent, or die; the run goes on, and says what happened."""

import os
import sys
import time

import pytest

from benchmarks.consumer.processes import RunFailedError, measured, programs
from benchmarks.consumer.results import Status
from integration_tests.harness.patience import PATIENCE


def python(program: str) -> tuple[str, ...]:
    return sys.executable, "-c", program


@pytest.mark.medium
@pytest.mark.parametrize(
    ("program", "status", "note"),
    [
        ("print('ready', flush=True); input()", Status.TIMEOUT, "no result in 1 s"),
        ("print('ready'); raise MemoryError('no room')", Status.FAILED, "MemoryError: no room"),
        ("print('failed KeyError: 1')", Status.FAILED, "KeyError: 1"),
        ("print('lacks sticky')", Status.LACKING, "sticky"),
        ("pass", Status.FAILED, "it ended without a word"),
    ],
)
def test_a_failed_run_is_noted(program: str, status: Status, note: str) -> None:
    with pytest.raises(RunFailedError) as raised:
        measured(python(program), {}, seconds=1 if status is Status.TIMEOUT else PATIENCE)

    assert (raised.value.status, raised.value.note) == (status, note)


def test_a_program_gets_its_settings_and_its_result_is_read() -> None:
    program = "import sys, json; print('ready'); print('result', json.dumps(dict([sys.argv[1].split('=')])))"

    assert measured(python(program), {"topic": "orders"}, seconds=PATIENCE) == {"topic": "orders"}


def test_programs_follow_orders_and_may_end_when_they_are_done() -> None:
    program = "print('ready', flush=True); print('said', input(), flush=True); print('done', flush=True)"

    with programs() as running:
        running.start(python(program), {})
        running.start(python(program), {})
        running.await_all("ready")
        running.order("stop")
        running.await_all("done")


def test_a_program_that_is_done_may_be_killed_and_is_not_waited_for() -> None:
    killed = "import os, signal; print('done', flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    other = "print('ready', flush=True); print('done', flush=True) if input() else None"

    with programs() as running:
        running.start(python(killed), {})
        assert running.next_line(time.monotonic() + PATIENCE) == "done"
        running.start(python(other), {})
        running.await_all("ready", PATIENCE)
        running.order("stop")
        running.await_all("done", PATIENCE)


def test_no_program_outlives_the_run() -> None:
    with programs() as running:
        running.start(python("import os; print(os.getpid(), flush=True); input()"), {})
        pid = running.next_line(time.monotonic() + PATIENCE)

    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
