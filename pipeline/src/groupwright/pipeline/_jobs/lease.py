"""Lease of the right to write tables: one job at a time.

A lease is a file `<number>.json`, and the one with the highest number is valid. Its job rewrites the file
every `RENEWAL_SECONDS`. A job that finds a lease waits: if the file changes, the holder is alive and the job
is refused; if it does not change for `EXPIRY_SECONDS`, the job takes the next number. Clocks of different
machines are never compared.
"""

import json
import logging
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from threading import Event, Thread
from uuid import uuid4

from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline.errors import TablesError

RENEWAL_SECONDS = 5.0
"""Interval of renewals."""
EXPIRY_SECONDS = 30.0
"""Time without a renewal after which a lease expires."""
_POLL_SECONDS = 0.5
_VISIBILITY_SECONDS = 2.0
"""Time in which concurrent writes to an object store become visible, when two jobs start at once."""

_START_TIME = 19
"""Index of `starttime` after the process's name in /proc/<pid>/stat."""
_ENDED = ("Z", "X")
"""States of a process that has ended and is still listed."""

_log = logging.getLogger("groupwright.pipeline")


@dataclass(frozen=True, slots=True)
class LeaseFile:
    """Contents of a lease's file.

    Attributes:
        job: Name of the job.
        host: Name of its host, for messages: containers of several hosts can have the same.
        pid: Its process, in its own PID namespace.
        token: A unique text.
        pid_namespace: The PID namespace, unique among all hosts since their boot; empty if unknown.
        started: When the process started, in the kernel's own unit; empty if unknown.
        beat: Number of the last renewal.
        released: Whether the job has ended.
    """

    job: str
    host: str
    pid: int
    token: str
    pid_namespace: str = ""
    started: str = ""
    beat: int = 0
    released: bool = False

    @property
    def is_dead(self) -> bool:
        """True if the holder was a process of this PID namespace that no longer exists.

        False if that is unknown: then the lease has to expire.
        """
        if not self.pid_namespace or self.pid_namespace != _pid_namespace():
            return False
        return self.started != _start_of(self.pid)


class Lease:
    """A held lease.

    Attributes:
        number: Its number, higher than that of any earlier lease.
    """

    def __init__(self, folder: Folder, number: int, contents: LeaseFile) -> None:
        """Start to renew the lease; use `hold_lease` to acquire one."""
        self.number = number
        self._folder = folder
        self._contents = contents
        self._renewed = time.monotonic()
        self._is_lost = False
        self._ended = Event()
        self._thread = Thread(target=self._renew, name="lease", daemon=True)
        self._thread.start()

    @property
    def is_held(self) -> bool:
        """True if the job may write: no other job has taken over, and the lease was renewed in time."""
        return not self._is_lost and time.monotonic() - self._renewed < EXPIRY_SECONDS

    def check(self) -> None:
        """Raise if the lease has been lost.

        Raises:
            TablesError: Another job has taken over, or the lease could not be renewed in time.
        """
        if not self.is_held:
            raise TablesError(
                f"{self._folder.path}: the job has lost its lease, and another one may write the tables. "
                "Restart it; unfinished batches are repeated"
            )

    def release(self) -> None:
        """Stop renewing the lease, refuse later writes of this job, and let the next one start at once."""
        self._ended.set()
        self._thread.join()
        was_lost, self._is_lost = self._is_lost, True  # a stuck batch may go on in its thread
        if not was_lost:
            self._folder.write(_name(self.number), json.dumps(asdict(replace(self._contents, released=True))))

    def abandon(self) -> None:
        """Refuse later writes of this job, and let the next one wait until the lease has expired.

        For a job whose last write may still be under way.
        """
        self._is_lost = True

    def _renew(self) -> None:
        while not self._ended.wait(RENEWAL_SECONDS) and not self._is_lost:
            started = time.monotonic()
            try:
                self._is_lost = _newest(self._folder) != self.number
                if not self._is_lost:
                    self._contents = replace(self._contents, beat=self._contents.beat + 1)
                    self._folder.write(_name(self.number), json.dumps(asdict(self._contents)))
                    self._renewed = started
            except (OSError, Py4JError):
                _log.exception("The lease %s could not be renewed", self._folder.path)


@contextmanager
def hold_lease(folder: Folder, job: str) -> Iterator[Lease]:
    """Acquire the lease of a folder, renew it, and release it at the end of the context.

    Args:
        folder: The folder of the leases.
        job: Name of the job, for the message of a job that is refused.

    Raises:
        TablesError: Another job holds the lease.
    """
    lease = _acquire(folder, this_process(job))
    try:
        yield lease
    finally:
        lease.release()


def this_process(job: str) -> LeaseFile:
    """Return the lease's contents for a job of this process."""
    pid = os.getpid()
    return LeaseFile(job, socket.gethostname(), pid, str(uuid4()), _pid_namespace(), _start_of(pid))


def _pid_namespace() -> str:
    """Return the id of the kernel's boot and of the PID namespace; empty without Linux's /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        return f"{boot}/{Path('/proc/self/ns/pid').readlink()}"
    except OSError:
        return ""


def _start_of(pid: int) -> str:
    """Return when a process started, in clock ticks since the boot; empty if it does not exist any more."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    fields = stat.rpartition(")")[2].split()  # the name before them may have any characters
    return "" if fields[0] in _ENDED else fields[_START_TIME]


def _acquire(folder: Folder, contents: LeaseFile) -> Lease:
    while True:
        number = _newest(folder)
        if number:
            _wait_for_expiry(folder, number)
        if _create(folder, number + 1, contents):
            if _newest(folder) > number + 1:  # a later lease has already deleted the one that was waited for
                folder.delete(_name(number + 1))
                continue
            for name in folder.names():
                if name.removesuffix(".json").isdigit() and int(name.removesuffix(".json")) <= number:
                    folder.delete(name)
            return Lease(folder, number + 1, contents)


def _create(folder: Folder, number: int, contents: LeaseFile) -> bool:
    text = json.dumps(asdict(contents))
    if folder.has_atomic_rename:
        return folder.write(_name(number), text, replace=False)
    folder.write(_name(number), text)
    time.sleep(_VISIBILITY_SECONDS)
    return folder.read(_name(number)) == text


def _wait_for_expiry(folder: Folder, number: int) -> None:
    """Return when the lease is released or its holder no longer renews it.

    Raises:
        TablesError: The holder is alive.
    """
    first: LeaseFile | None = None
    deadline = time.monotonic() + EXPIRY_SECONDS
    while time.monotonic() < deadline:
        text = folder.read(_name(number))
        if text is None:  # the next holder has deleted it
            return
        if (now := _contents(text)) is not None:
            if now.released or now.is_dead:
                return
            if first is None:
                first, deadline = now, time.monotonic() + EXPIRY_SECONDS  # a read may have taken long
                _log.info("Waiting up to %.0f s to see whether %s is alive", EXPIRY_SECONDS, _holder(first))
            elif now.beat != first.beat:
                raise TablesError(
                    f"{folder.path}: {_holder(now)} is writing the tables, and only one job at a time may "
                    "write. Stop it, or start this job when it has ended"
                )
        time.sleep(_POLL_SECONDS)


def _holder(contents: LeaseFile) -> str:
    return f"the job {contents.job} (process {contents.pid} on {contents.host})"


def _contents(text: str) -> LeaseFile | None:
    """Return a lease's contents; None for a part, which some file systems show while it is being written."""
    try:
        return LeaseFile(**json.loads(text))
    except ValueError:
        return None


def _newest(folder: Folder) -> int:
    numbers = (name.removesuffix(".json") for name in folder.names())
    return max((int(number) for number in numbers if number.isdigit()), default=0)


def _name(number: int) -> str:
    return f"{number:012d}.json"
