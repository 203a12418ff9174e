"""Members' processes: small programs in the members' place, which do what members may."""

import sys
import time
from pathlib import Path
from queue import SimpleQueue

import psutil  # type: ignore[import-untyped]
import pytest

from groupwright.cli.demo.events import Event, Events, MemberEnded, MemberReported
from groupwright.cli.demo.group import Group
from groupwright.cli.demo.reports import Report, Started

_PATIENCE = 30.0

WELL_BEHAVED = """
import sys
print('{"report": "Started", "metrics": "here"}', flush=True)
print("a word for the log", file=sys.stderr)
sys.stdin.read()
print('{"report": "Started", "metrics": "gone"}', flush=True)
"""

HANGS = """
import time
print('{"report": "Started", "metrics": "here"}', flush=True)
while True:
    time.sleep(1)
"""

DIES_IN_MID_LINE = """
import os, signal
os.write(1, b'{"report": "Started", "metrics": "here"}\\n{"report": "Started", "met')
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def events() -> Events:
    return SimpleQueue()


def group_of(program: str, logs: Path, events: Events) -> Group:
    return Group(lambda _: [sys.executable, "-c", program], logs=logs, events=events)


def reported(metrics: str) -> Event:
    report: Report = Started(metrics)
    return MemberReported("m", report)


def test_the_end_of_its_input_has_a_member_leave(tmp_path: Path, events: Events) -> None:
    with group_of(WELL_BEHAVED, tmp_path, events) as group:
        group.start("m")
        assert events.get(timeout=_PATIENCE) == reported("here")
        group.leave("m")
        assert events.get(timeout=_PATIENCE) == reported("gone")
        assert events.get(timeout=_PATIENCE) == MemberEnded("m", 0)
        assert group.log_tail("m") == "a word for the log"


def test_the_end_of_the_block_has_all_members_leave(tmp_path: Path, events: Events) -> None:
    before = set(psutil.Process().children())
    with group_of(WELL_BEHAVED, tmp_path, events) as group:
        for name in ("a", "b", "c"):
            group.start(name)
    ends = [
        event for event in (events.get(timeout=_PATIENCE) for _ in range(9)) if isinstance(event, MemberEnded)
    ]
    assert {(end.name, end.exit_code) for end in ends} == {("a", 0), ("b", 0), ("c", 0)}
    assert set(psutil.Process().children()) <= before


def test_a_member_that_is_killed_leaves_what_it_had_reported(tmp_path: Path, events: Events) -> None:
    with group_of(HANGS, tmp_path, events) as group:
        group.start("m")
        assert events.get(timeout=_PATIENCE) == reported("here")
        group.kill("m")
        assert events.get(timeout=_PATIENCE) == MemberEnded("m", -9)


def test_a_report_that_was_cut_short_is_dropped(tmp_path: Path, events: Events) -> None:
    with group_of(DIES_IN_MID_LINE, tmp_path, events) as group:
        group.start("m")
        assert events.get(timeout=_PATIENCE) == reported("here")
        assert events.get(timeout=_PATIENCE) == MemberEnded("m", -9)


def test_a_member_that_hangs_is_killed_when_the_user_insists(tmp_path: Path, events: Events) -> None:
    """Its time to leave is 15 s; hurry cuts that short."""
    command = [sys.executable, "-c", HANGS]
    started = time.monotonic()
    with Group(lambda _: command, logs=tmp_path, events=events, hurry=lambda: True) as group:
        group.start("m")
        events.get(timeout=_PATIENCE)
    assert events.get(timeout=_PATIENCE) == MemberEnded("m", -9)
    assert time.monotonic() - started < 10


def test_a_member_ends_with_an_exception_in_the_block(tmp_path: Path, events: Events) -> None:
    before = set(psutil.Process().children())

    def fail_in_the_block() -> None:
        with group_of(WELL_BEHAVED, tmp_path, events) as group:
            group.start("m")
            raise RuntimeError("unforeseen")

    with pytest.raises(RuntimeError, match="unforeseen"):
        fail_in_the_block()
    assert set(psutil.Process().children()) <= before
