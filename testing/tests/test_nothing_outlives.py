"""No broker outlives the program that started it, however that ends."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.kafka

Eventually = Callable[[Callable[[], bool]], bool]
Alive = Callable[[int | None], bool]

PROGRAM = """
import signal
import sys
from groupwright.testing import LocalKafka

# What starts the tests may have its children ignore Ctrl-C, as a shell does in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)
kafka = LocalKafka()
kafka.start()
print(kafka.pid, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def program(temporary: Path, tmp_path: Path) -> subprocess.Popen[str]:
    """A program with a broker, which waits for the end of its standard input.

    Its cache is empty, so that Kafka's tool formats the storage.
    """
    return subprocess.Popen(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary), "XDG_CACHE_HOME": str(tmp_path)},
    )


@pytest.mark.parametrize(
    ("ending", "exit_code"),
    [
        pytest.param(None, 0, id="its end", marks=(pytest.mark.slow, pytest.mark.endurance)),
        pytest.param(signal.SIGINT, -signal.SIGINT, id="Ctrl-C", marks=pytest.mark.slow),
        pytest.param(signal.SIGKILL, -signal.SIGKILL, id="SIGKILL"),
    ],
)
def test_a_broker_ends_with_its_program(
    program: subprocess.Popen[str],
    ending: signal.Signals | None,
    exit_code: int,
    temporary: Path,
    alive: Alive,
    eventually: Eventually,
) -> None:
    """The program neither closes its broker nor catches anything."""
    assert program.stdout is not None
    broker = int(program.stdout.readline())
    assert alive(broker)

    if ending:
        program.send_signal(ending)
    complaints = program.communicate(timeout=PATIENCE)[1]

    assert program.returncode == exit_code
    assert "Warning" not in complaints
    assert eventually(lambda: not alive(broker))
    assert eventually(lambda: list(temporary.iterdir()) == [])


@pytest.mark.parametrize("main_class", ["kafka.tools.StorageTool", "kafka.Kafka"])
def test_ctrl_c_during_the_start_leaves_nothing(
    program: subprocess.Popen[str],
    main_class: str,
    temporary: Path,
    child_commands: Callable[[int], list[str]],
    eventually: Eventually,
) -> None:
    assert eventually(lambda: any(main_class in command for command in child_commands(program.pid)))

    program.send_signal(signal.SIGINT)
    complaints = program.communicate(timeout=PATIENCE)[1]

    assert program.returncode == -signal.SIGINT
    assert complaints.rstrip().endswith("KeyboardInterrupt")
    assert list(temporary.iterdir()) == []
