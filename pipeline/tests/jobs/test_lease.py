"""Leases: one job writes, a second one is refused, and a job that died is replaced."""

import json
import subprocess
import sys
import threading
import time
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from groupwright.pipeline import Batch, TablesError
from groupwright.pipeline._jobs import lease as lease_module
from groupwright.pipeline._jobs.lease import LeaseFile, hold_lease, this_process
from groupwright.pipeline._jobs.state import BatchRange, State
from groupwright.pipeline._tables.files import Folder
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until


@pytest.fixture
def folder(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Folder:
    monkeypatch.setattr(lease_module, "RENEWAL_SECONDS", 0.05)
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


def test_a_job_that_may_still_write_leaves_its_lease_to_expire(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "EXPIRY_SECONDS", 0.3)
    with hold_lease(folder, "stream") as first:
        first.abandon()
        with pytest.raises(TablesError, match="the job has lost its lease"):
            first.check()
    (left,) = folder.names()
    assert '"released": false' in (folder.read(left) or "")
    with monkeypatch.context() as elsewhere:
        # This process is alive, and no longer renews it.
        elsewhere.setattr(lease_module, "_start_of", lambda _: left)
        with hold_lease(folder, "batch") as second:
            assert second.number == first.number + 1


def test_a_living_job_is_seen_although_the_first_look_takes_long(
    folder: Folder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lease_module, "EXPIRY_SECONDS", 1.0)
    with hold_lease(folder, "stream"):
        read = Folder.read

        def read_slowly(at: Folder, name: str) -> str | None:
            text = read(at, name)
            monkeypatch.setattr(Folder, "read", read)
            time.sleep(1.1)  # a slow storage: the whole time for the holder to show that it is alive
            return text

        monkeypatch.setattr(Folder, "read", read_slowly)
        with pytest.raises(TablesError, match="is writing the tables"), hold_lease(folder, "batch"):
            pytest.fail("both hold the lease")


def test_of_jobs_that_start_at_once_one_holds_the_lease(folder: Folder) -> None:
    outcomes: list[str] = []
    done = threading.Event()

    def start() -> None:
        try:
            with hold_lease(folder, "stream"):
                outcomes.append("held")
                done.wait(PATIENCE)
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


@pytest.mark.parametrize("namespace", ["this", "another"])
def test_the_lease_of_a_job_that_died_is_taken(
    folder: Folder, monkeypatch: pytest.MonkeyPatch, namespace: str
) -> None:
    """In this PID namespace its process is known to have ended; in another one its lease expires."""
    monkeypatch.setattr(lease_module, "EXPIRY_SECONDS", 600.0 if namespace == "this" else 0.3)
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    dead = replace(this_process("stream"), pid=ended.pid)
    if namespace == "another":
        dead = replace(dead, pid_namespace=namespace)
    folder.write("000000000007.json", json.dumps(asdict(dead)))
    with hold_lease(folder, "batch") as lease:
        assert lease.number == 8


def test_a_job_of_another_container_with_the_same_host_name_is_not_taken_for_dead() -> None:
    """Each container has PIDs of its own, so the same number is another process, or none."""
    this = this_process("stream")
    assert not this.is_dead
    assert not replace(this, pid=2**22 + 1, pid_namespace=f"{this.pid_namespace[:-2]}0]").is_dead
    assert replace(this, pid=2**22 + 1).is_dead
    assert replace(this, started="1").is_dead, "the PID was given to another process"
    assert not replace(this, pid=2**22 + 1, pid_namespace="").is_dead, "without /proc it is unknown"


def test_a_job_that_ended_and_was_not_waited_for_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as child:
        try:
            started = lease_module._start_of(child.pid)
            running = replace(this_process("stream"), pid=child.pid, started=started)
            assert not running.is_dead
        finally:
            child.kill()
        wait_until(lambda: running.is_dead, "its end is seen")


def test_a_lease_that_is_being_renewed_is_not_taken(folder: Folder) -> None:
    """Some file systems show a file before all of it is written."""
    ended = threading.Event()

    def renew() -> None:
        holder, file = this_process("stream"), Path(folder.path, "000000000007.json")
        while not ended.is_set():
            holder = replace(holder, beat=holder.beat + 1)
            text = json.dumps(asdict(holder))
            for part in ("", text[:20], text):
                file.write_text(part)
                ended.wait(0.01)

    Path(folder.path).mkdir()
    thread = threading.Thread(target=renew)
    thread.start()
    try:
        wait_until(lambda: folder.names() != [], "the holder's file")
        with (
            pytest.raises(TablesError, match=r"the job stream .* is writing the tables"),
            hold_lease(folder, "batch"),
        ):
            pytest.fail("both hold the lease")
    finally:
        ended.set()
        thread.join()


def test_a_lease_that_is_deleted_while_it_is_read_is_a_missing_one(folder: Folder) -> None:
    folder.write("1.json", "0")
    ended = threading.Event()

    def replace_often() -> None:
        for _ in range(200):
            folder.delete("1.json")
            folder.write("1.json", "0")
        ended.set()

    thread = threading.Thread(target=replace_often)
    thread.start()
    seen = set()
    while not ended.is_set():
        seen.add(folder.read("1.json"))
    thread.join()
    assert seen <= {"0", None}
    assert (folder / "missing").names() == []


def test_a_reader_never_misses_a_file_that_is_replaced(folder: Folder) -> None:
    """Hadoop's local rename deletes the target first: a lease that was being renewed seemed to be free."""
    folder.write("1.json", "0")
    ended = threading.Event()

    def rewrite() -> None:
        for number in range(300):
            folder.write("1.json", str(number))
        ended.set()

    thread = threading.Thread(target=rewrite)
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


def test_a_job_that_has_lost_its_lease_leaves_the_unfinished_batch_of_the_next_one(folder: Folder) -> None:
    with hold_lease(folder, "stream") as lost:
        pass
    with hold_lease(folder, "batch") as held:
        state, late = State(folder / "_state", held), State(folder / "_state", lost)
        span = BatchRange(Batch("batch", 0), {"orders": {0: 0}}, {"orders": {0: 1}})
        state.begin(span)
        with pytest.raises(TablesError, match="the job has lost its lease"):
            late.begin(replace(span, batch=Batch("stream", 0)))
        with pytest.raises(TablesError, match="the job has lost its lease"):
            late.finish()
        assert state.pending() == span
        state.finish()
        assert state.pending() is None
