"""Leases: one job writes, a second one is refused, and a job that died is replaced."""

import json
import socket
import subprocess
import sys
import threading
from dataclasses import asdict
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from groupwright.pipeline import TablesError
from groupwright.pipeline._jobs import lease as lease_module
from groupwright.pipeline._jobs.lease import LeaseFile, hold_lease
from groupwright.pipeline._tables.files import Folder
from harness.waiting import wait_until


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setattr(lease_module, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(lease_module, "_POLL_SECONDS", 0.02)
    return Folder(spark, str(tmp_path / "_lease"))


def test_a_second_job_is_refused_while_the_first_is_alive_and_may_start_when_it_has_ended(
    folder: Folder,
) -> None:
    with hold_lease(folder, "stream") as first:
        with (
            pytest.raises(TablesError, match=r"the job stream \(process \d+ on .*\) is writing the tables"),
            hold_lease(folder, "batch"),
        ):
            pytest.fail("both hold the lease")
        first.check()
    with pytest.raises(TablesError, match="the job has lost its lease"):
        first.check()  # for a thread that has outlived its job
    with hold_lease(folder, "batch") as second:
        assert second.number == first.number + 1


def test_of_jobs_that_start_at_once_one_holds_the_lease(folder: Folder) -> None:
    outcomes: list[str] = []
    done = threading.Event()

    def start() -> None:
        try:
            with hold_lease(folder, "stream"):
                outcomes.append("held")
                done.wait(60)
        except TablesError:
            outcomes.append("refused")

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: len(outcomes) == len(threads), "every job knows")
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert sorted(outcomes) == ["held", "refused", "refused", "refused"]


@pytest.mark.parametrize("host", ["this", "another"])
def test_the_lease_of_a_job_that_died_is_taken(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """On this host its process is known to have ended; on another one its lease expires."""
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    monkeypatch.setattr(lease_module, "EXPIRY_SECONDS", 600.0 if host == "this" else 0.3)
    name = socket.gethostname() if host == "this" else "another"
    folder.write("000000000007.json", json.dumps(asdict(LeaseFile("stream", name, ended.pid, "a"))))
    with hold_lease(folder, "batch") as lease:
        assert lease.number == 8


def test_a_reader_never_misses_a_file_that_is_replaced(folder: Folder) -> None:
    """Hadoop's local rename deletes the target first: a lease that was being renewed seemed to be free."""
    folder.write("1.json", "0")
    ended = threading.Event()

    def replace() -> None:
        for number in range(300):
            folder.write("1.json", str(number))
        ended.set()

    thread = threading.Thread(target=replace)
    thread.start()
    seen = []
    while not ended.is_set():
        seen.append(folder.read("1.json"))
    thread.join()

    assert None not in seen
    assert folder.names() == ["1.json"]


def test_a_job_notices_that_another_has_taken_over(folder: Folder) -> None:
    with hold_lease(folder, "stream") as lease:
        folder.write(f"{lease.number + 1:012d}.json", json.dumps(asdict(LeaseFile("batch", "b", 1, "b"))))

        def is_lost() -> bool:
            try:
                lease.check()
            except TablesError as error:
                return "the job has lost its lease" in str(error)
            return False

        wait_until(is_lost, "the lease is lost")
