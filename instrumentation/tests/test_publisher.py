"""Gauges of processes that fork, exit while they write, or are killed."""

import subprocess
import sys
from pathlib import Path

import pytest

from groupwright.instrumentation._metrics import multiprocess
from integration_tests.harness.patience import PATIENCE

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
assert gauges.written.wait(120)
child = os.fork()
if child == 0:
    sys.exit(0)
os.waitpid(child, 0)
print(len(list(folder.glob("*.db"))), flush=True)
"""

EXIT = """
import atexit, pathlib, sys, threading
from groupwright.instrumentation._metrics import multiprocess
from groupwright.instrumentation._tracking.publisher import Publisher

class Gauges:
    begun, late, written = threading.Event(), threading.Event(), threading.Event()
    def publish(self, folder, number):
        self.begun.set()
        self.late.wait(0.5)
        multiprocess.write(folder, number, {}, 0.0)
        self.written.set()

gauges = Gauges()

@atexit.register  # before the publisher's own, so that it is called after it
def end():
    gauges.late.set()
    assert gauges.written.wait(120)

Publisher(gauges, pathlib.Path(sys.argv[1])).start()
assert gauges.begun.wait(120)
"""


LAST = """
import pathlib, sys, threading
from groupwright.instrumentation._metrics import multiprocess
from groupwright.instrumentation._tracking.publisher import Publisher

class Gauges:
    written = threading.Event()
    def publish(self, folder, number):
        print("published", flush=True)
        self.written.set()

folder, gauges = pathlib.Path(sys.argv[1]), Gauges()
multiprocess.INTERVAL = 600
Publisher(gauges, folder).start()
assert gauges.written.wait(120)
"""

CLIENTS = """
import os
from prometheus_client import CollectorRegistry
from groupwright.core import MembershipSnapshot
from groupwright.instrumentation import instrument

class Consumer:
    group_id, client_id, settings, poll_age = "billing", "c-1", {}, 0.5
    membership_snapshot = MembershipSnapshot(poll_seconds=3.0)
    def add_listener(self, listener):
        pass

registry, consumer = CollectorRegistry(), Consumer()
instrument(consumer, registry)
def show(name):
    labels = {"group": "billing", "client_id": "c-1"}
    ages, polls = (registry.get_sample_value("groupwright_" + each, labels)
                   for each in ("last_poll_age_seconds", "poll_seconds_total"))
    print(name, ages, polls, flush=True)

child = os.fork()
if child == 0:
    show("child")
    os._exit(0)
os.waitpid(child, 0)
show("parent")
"""


def printed(program: str, *arguments: Path) -> str:
    """Run a program in an interpreter of its own, and return its output."""
    command = [sys.executable, "-c", program, *map(str, arguments)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    return ran.stdout


def test_a_forked_process_has_no_series_of_its_parents_clients() -> None:
    assert printed(CLIENTS) == "child None None\nparent 0.5 3.0\n"


def test_counters_are_written_for_the_last_time_at_the_exit(tmp_path: Path) -> None:
    assert printed(LAST, tmp_path) == "published\n" * 2


@pytest.mark.medium
def test_a_write_at_the_exit_leaves_no_gauges(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-c", EXIT, str(tmp_path)], timeout=PATIENCE, check=True)

    assert list(tmp_path.iterdir()) == []


def test_the_temporary_file_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        pass
    (tmp_path / f"gauge_livemax_{ended.pid}-groupwright-0.writing").touch()
    multiprocess.write(tmp_path, 0, {}, 0.0)

    multiprocess.remove_dead(tmp_path)

    assert {path.suffix for path in tmp_path.iterdir()} == {".db"}


def test_the_exit_of_a_forked_process_keeps_the_gauges_of_its_parent(tmp_path: Path) -> None:
    assert printed(FORK, tmp_path) == "3\n"
    assert list(tmp_path.glob("*.db")) == []  # its own exit removes them
