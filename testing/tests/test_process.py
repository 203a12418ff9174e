"""A guarded process ends cleanly, at once, or with the process that started it."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from groupwright.testing._kafka.process import GuardedProcess
from integration_tests.harness.patience import PATIENCE

Eventually = Callable[[Callable[[], bool]], bool]
Alive = Callable[[int | None], bool]
Start = Callable[[str], GuardedProcess]

PATIENT = "import sys, time; print('up', flush=True); time.sleep(600)"
BUSY = (
    "import threading\n"
    "def spin():\n"
    "    while True: pass\n"
    "for _ in range(4): threading.Thread(target=spin, daemon=True).start()\n"
) + PATIENT
STUBBORN = f"import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); {PATIENT}"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def start(log: Path, eventually: Eventually) -> Iterator[Start]:
    started: list[GuardedProcess] = []

    def launch(program: str) -> GuardedProcess:
        process = GuardedProcess([sys.executable, "-c", program], log_path=log, remove_if_orphaned=None)
        started.append(process)
        process.start()
        assert eventually(lambda: not process.running or "up" in log.read_text())
        return process

    yield launch
    for process in started:
        process.kill()


def test_a_stopped_program_gets_sigterm_first(start: Start, alive: Alive) -> None:
    process = start(PATIENT)

    process.stop(timeout=PATIENCE)

    assert process.exit_code == -signal.SIGTERM
    assert not alive(process.pid)


def test_a_program_that_heeds_no_sigterm_is_killed(start: Start, alive: Alive) -> None:
    process = start(STUBBORN)

    process.stop(timeout=0.2)

    assert process.exit_code == -signal.SIGKILL
    assert not alive(process.pid)


@pytest.mark.skipif(not hasattr(os, "waitid"), reason="macOS before Python 3.13 does not tell")
def test_a_program_has_stopped_when_it_is_suspended(start: Start) -> None:
    """Until one thread has run to receive the signal, the others go on, for long on a busy machine."""
    process = start(BUSY)
    program = psutil.Process(process.pid)
    process.suspend()
    assert program.status() == psutil.STATUS_STOPPED
    process.suspend()
    assert program.status() == psutil.STATUS_STOPPED

    process.resume()
    assert program.status() != psutil.STATUS_STOPPED


def test_a_suspended_program_can_be_stopped(start: Start) -> None:
    process = start(PATIENT)
    process.suspend()

    process.stop(timeout=PATIENCE)

    assert process.exit_code == -signal.SIGTERM


def test_a_program_that_ends_by_itself_tells_its_exit_code(start: Start, log: Path) -> None:
    process = start(
        "import sys; print(sys.stdin.read() + 'up', flush=True); print('bad', file=sys.stderr); sys.exit(3)"
    )

    assert process.wait(timeout=PATIENCE) == 3
    assert process.exit_code == 3
    assert not process.running
    assert log.read_text().split() == ["up", "bad"]


def test_waiting_for_a_program_that_runs_on_gives_nothing(start: Start) -> None:
    process = start(PATIENT)

    assert process.wait(timeout=0.05) is None
    assert process.running


def test_everything_may_be_said_to_a_program_that_was_not_started_or_has_ended(log: Path) -> None:
    process = GuardedProcess([sys.executable, "-c", ""], log_path=log, remove_if_orphaned=None)
    process.suspend()
    process.stop(timeout=1)
    assert process.pid is None
    assert process.wait(timeout=0) is None

    process.start()
    assert process.wait(timeout=PATIENCE) == 0
    process.suspend()
    process.stop(timeout=1)
    process.kill()

    assert process.exit_code == 0


def test_the_watcher_leaves_with_the_program(start: Start, alive: Alive, eventually: Eventually) -> None:
    process = start(PATIENT)
    [watcher] = psutil.Process(process.pid).children()

    process.stop(timeout=PATIENCE)

    assert eventually(lambda: not alive(watcher.pid))


def test_a_ctrl_c_in_the_terminal_does_not_reach_the_program(start: Start) -> None:
    process = start(PATIENT)

    assert process.pid is not None
    assert os.getsid(process.pid) == process.pid != os.getsid(0)


PARENT = """
import sys, time
from pathlib import Path
from groupwright.testing._kafka.process import GuardedProcess

directory = Path(sys.argv[1])
process = GuardedProcess(
    [sys.executable, "-c", "import time; time.sleep(600)"],
    log_path=directory / "log",
    remove_if_orphaned=directory,
)
process.start()
print(process.pid, flush=True)
{then}
"""


def parent(directory: Path, then: str) -> subprocess.Popen[str]:
    directory.mkdir()
    program = PARENT.format(then=then)
    return subprocess.Popen(
        [sys.executable, "-c", program, str(directory)], stdout=subprocess.PIPE, text=True
    )


def test_a_program_ends_with_a_killed_parent_and_its_directory_goes(
    tmp_path: Path, alive: Alive, eventually: Eventually
) -> None:
    with parent(tmp_path / "data", "time.sleep(600)") as killed:
        assert killed.stdout is not None
        program = int(killed.stdout.readline())
        assert alive(program)
        killed.kill()

    assert eventually(lambda: not alive(program))
    assert eventually(lambda: not (tmp_path / "data").exists())


def test_a_program_outlives_a_child_that_its_parent_forked(
    tmp_path: Path, alive: Alive, eventually: Eventually
) -> None:
    """A forked child inherits the pipe; the program ends when its last holder has ended, not its first."""
    fork = (
        "import os; child = os.fork()\n"
        "if child: os.waitpid(child, 0); print('child gone', flush=True); time.sleep(600)"
    )
    with parent(tmp_path / "data", fork) as forking:
        assert forking.stdout is not None
        program = int(forking.stdout.readline())
        assert forking.stdout.readline() == "child gone\n"
        assert alive(program)
        forking.kill()

    assert eventually(lambda: not alive(program))
