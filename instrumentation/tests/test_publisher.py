"""Gauges of processes that fork."""

import subprocess
import sys
from pathlib import Path

from harness.patience import PATIENCE

FORK = """
import os, pathlib, sys, threading
from groupwright.instrumentation._metrics import multiprocess
from groupwright.instrumentation._tracking.publisher import Publisher

class Gauges:
    written = threading.Event()
    def publish(self, folder, number):
        multiprocess.write(folder, number, {}, 0.0)
        self.written.set()

folder, gauges = pathlib.Path(sys.argv[1]), Gauges()
multiprocess.INTERVAL = 600
Publisher(gauges, folder).start()
assert gauges.written.wait(30)
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
print(len(list(folder.glob("*.db"))), flush=True)
"""


def test_the_exit_of_a_forked_process_keeps_the_gauges_of_its_parent(tmp_path: Path) -> None:
    found = subprocess.run(
        [sys.executable, "-c", FORK, str(tmp_path)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )

    assert found.stdout == "3\n"
    assert list(tmp_path.glob("*.db")) == []  # its own exit removes them
