"""Members in processes of their own, with a stub consumer: their start, their history, and their signals."""

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from groupwright.testing.groups import (
    Consumed,
    HistoryReader,
    HistoryWriter,
    Ledger,
    LoadedGroupError,
    ProcessMember,
    Span,
    Started,
)
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import holds_within

T = "t"


class Returned:
    """The only message."""

    def error(self) -> None: ...

    def topic(self) -> str:
        return T

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return 0


class OneMessage:
    """A consumer that returns one message a call."""

    def __init__(self, _: dict[str, Any]) -> None: ...

    def subscribe(self, *_: object, **__: object) -> None: ...

    def consume(self, *_: object) -> list[Returned]:
        threading.Event().wait(0.01)
        return [Returned()]

    def close(self) -> None: ...


class Stuck(OneMessage):
    """A consumer that is never created."""

    def __init__(self, _: dict[str, Any]) -> None:
        threading.Event().wait()


@pytest.fixture
def started() -> Iterator[list[ProcessMember]]:
    members: list[ProcessMember] = []
    yield members
    for member in members:
        member.kill()


def start(
    started: list[ProcessMember],
    directory: Path,
    make: type[OneMessage] = OneMessage,
    patience: float = PATIENCE,
) -> tuple[ProcessMember, Ledger]:
    ledger = Ledger()
    member = ProcessMember(make, {"client.id": "m"}, [T], ledger, directory, patience=patience)
    started.append(member)
    return member, ledger


def has_consumed(member: ProcessMember, ledger: Ledger) -> bool:
    member.refresh()
    return ledger.consumed_by(member.name) > 0


@pytest.mark.medium
def test_an_earlier_history_in_a_kept_directory_is_removed(
    started: list[ProcessMember], tmp_path: Path
) -> None:
    earlier = HistoryWriter(tmp_path / "m.jsonl")
    earlier.write(Started(1, {}), Consumed(2, 1.5, (Span(T, 0, 0, 1000),)))
    earlier.close()

    member, ledger = start(started, tmp_path)
    assert holds_within(lambda: has_consumed(member, ledger), PATIENCE)
    member.leave()

    assert [type(event) for event in ledger.histories["m"]].count(Started) == 1
    assert {event.spans for event in ledger.histories["m"] if isinstance(event, Consumed)} == {
        (Span(T, 0, 0, 1),)
    }
    assert list(HistoryReader(tmp_path / "m.jsonl").read()) == ledger.histories["m"]


@pytest.mark.medium
@pytest.mark.parametrize("pauses", [True, False], ids=["paused", "resumed"])
def test_polling_may_be_paused_and_resumed_right_after_the_start(
    started: list[ProcessMember], tmp_path: Path, *, pauses: bool
) -> None:
    member, ledger = start(started, tmp_path)

    if pauses:
        member.pause_polling()
    member.resume_polling()

    assert holds_within(lambda: has_consumed(member, ledger), PATIENCE)
    member.leave()
    assert member.exit_code == 0


def test_polling_is_not_paused_before_the_process_has_started(
    started: list[ProcessMember], tmp_path: Path
) -> None:
    member, _ = start(started, tmp_path, Stuck, patience=0.1)

    with pytest.raises(LoadedGroupError, match=r"m did not start within 0\.1 s"):
        member.pause_polling()
    assert not member.has_ended

    member._process.kill()
    member.pause_polling()
