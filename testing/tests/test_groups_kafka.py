"""Groups under load on a real broker: members as threads and processes, faults, and checks of guarantees."""

import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest

from groupwright.consumer import Consumer
from groupwright.testing import LocalKafka
from groupwright.testing._groups import loaded_group
from groupwright.testing.groups import (
    Died,
    End,
    Event,
    GuaranteeViolatedError,
    Hooks,
    LoadedGroup,
    LoadedGroupError,
    MemberLoop,
    ProcessMember,
    ThreadMember,
    WithDetails,
    now,
)
from groupwright.testing.pytest_plugin import NewKafkaTopic

pytestmark = pytest.mark.kafka

CONFIG = {"session.timeout.ms": 6000, "heartbeat.interval.ms": 300, "auto.commit.interval.ms": 300}


def detailed(config: dict[str, Any]) -> WithDetails:
    """Make a consumer, and report something of it."""
    return WithDetails(Consumer(config), {"metrics": "http://nowhere"})


@dataclass(frozen=True, slots=True)
class Called(Event):
    """A signal arrived."""


def callable_by_signal(config: dict[str, Any]) -> WithDetails:
    """Make a consumer whose application records SIGHUP, and fails at SIGALRM."""

    def fail(*_: object) -> None:
        raise ValueError("unforeseen")

    def on_start(loop: MemberLoop) -> None:
        signal.signal(signal.SIGHUP, lambda *_: loop.record(Called(now())))
        signal.signal(signal.SIGALRM, fail)

    return WithDetails(Consumer(config), {}, Hooks(on_start=on_start))


class Amnesiac(confluent_kafka.Consumer):
    """Skips the messages that it gets first."""

    skipped = 0

    def poll(self, timeout: float = -1) -> confluent_kafka.Message | None:
        message = super().poll(timeout)
        if message is not None and self.skipped < 5:
            self.skipped += 1
            return None
        return message


class Slow(confluent_kafka.Consumer):
    """Returns ten messages a second at most."""

    def poll(self, timeout: float = -1) -> confluent_kafka.Message | None:
        threading.Event().wait(0.1)
        return super().poll(timeout)


class Committing(confluent_kafka.Consumer):
    """Commits each message synchronously before the application gets it."""

    def __init__(self, config: dict[str, Any]) -> None:
        super().__init__({**config, "enable.auto.commit": False})

    def poll(self, timeout: float = -1) -> confluent_kafka.Message | None:
        message = super().poll(timeout)
        if message is not None and message.error() is None:
            self.commit(message=message, asynchronous=False)
        return message


@pytest.mark.parametrize("make", [Consumer, confluent_kafka.Consumer])
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_members_in_threads_come_and_go_and_violate_no_guarantee(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, make: Callable[..., Any], strategy: str
) -> None:
    topics = {new_kafka_topic(4): 4, new_kafka_topic(3): 3}
    config = {**CONFIG, "partition.assignment.strategy": strategy}
    with LoadedGroup(local_kafka, topics, make, config=config, messages_per_second=300) as group:
        first, second = group.start_members(2)
        group.wait_until_settled()
        assert sorted(len(member.owned) for member in (first, second)) == [3, 4]
        group.start_member("late")
        group.wait_until_settled()
        group.wait_until_progress()
        group.leave(first)
        group.wait_until_settled()

        report = group.finish()

    assert report.produced > 0
    assert report.consumed == report.produced
    assert group.ledger.owners() == {}
    begun = [window for window in group.ledger.ownership() if window.member == "late"]
    assert begun
    assert group.ledger.owners_at(begun[0].begin)[begun[0].partition] == ["late"]


@pytest.mark.slow
@pytest.mark.parametrize(
    "make", [Consumer, pytest.param(confluent_kafka.Consumer, marks=pytest.mark.endurance)]
)
def test_processes_are_killed_and_suspended_and_only_what_was_not_committed_comes_twice(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, make: Callable[..., Any]
) -> None:
    topic = new_kafka_topic(6)
    config = {**CONFIG, "auto.commit.interval.ms": 60_000}
    with LoadedGroup(
        local_kafka, {topic: 6}, make, config=config, processes=True, batch=100, messages_per_second=300
    ) as group:
        killed, suspended, _ = group.start_members(3)
        assert isinstance(suspended, ProcessMember)
        group.wait_until_settled()
        # Only messages that come after the assignment are still uncommitted when their owner is killed.
        before, produced = group.ledger.ends(), group.ledger.ends
        group.wait_until(
            lambda: sum(end > before.get(each, 0) for each, end in produced().items()) == 6,
            "new messages in each partition",
        )
        group.wait_until_consumed()
        group.kill(killed)
        group.wait_until_settled()
        suspended.suspend()
        group.wait_until_settled()
        assert len(suspended.owned) == 3  # it does not know yet
        suspended.resume()
        group.wait_until(lambda: suspended.losses > 0, "the end of what it had lost")
        group.wait_until_settled()

        report = group.finish()

    assert {each.before for each in report.explained} >= {"member-1"}
    assert {window.ended_by for window in group.ledger.ownership()} == {End.KILLED, End.LOST, End.REVOKED}


@pytest.mark.slow
def test_a_member_that_polls_no_more_loses_its_partitions(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic(2)
    config = {**CONFIG, "max.poll.interval.ms": 6000}
    with LoadedGroup(local_kafka, {topic: 2}, Consumer, config=config) as group:
        paused, other = group.start_members(2)
        group.wait_until_settled()
        paused.pause_polling()
        group.wait_until_settled()
        assert other.owned == {(topic, 0), (topic, 1)}
        paused.resume_polling()
        group.wait_until_settled()
        assert paused.losses == 1

        group.finish()


@pytest.mark.slow
def test_a_message_that_no_member_was_given_is_reported(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic(1)
    with LoadedGroup(local_kafka, {topic: 1}, Amnesiac, config=CONFIG, patience=8) as group:
        group.start_member()
        group.wait_until(lambda: group.ledger.consumed_count > 0, "messages")

        with pytest.raises(GuaranteeViolatedError, match=rf"lost: {topic} \[0\], offsets 0-4"):
            group.finish()


def test_messages_that_a_slow_member_has_not_reached_are_not_lost(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic(1)
    with LoadedGroup(local_kafka, {topic: 1}, Slow, config=CONFIG, patience=3) as group:
        group.start_member()
        group.wait_until(lambda: group.ledger.produced_count > 200, "messages")
        with pytest.raises(
            LoadedGroupError, match=rf"messages are not consumed within 0\.1 s \({topic} \[0\], o"
        ):
            group.wait_until_consumed(timeout=0.1)

        with pytest.raises(GuaranteeViolatedError) as caught:
            group.finish()

    expected = rf"not consumed within 3 s: \d+ messages at the end of {topic} \[0\]"
    assert re.fullmatch(expected, str(caught.value))


@pytest.mark.parametrize("processes", [False, True], ids=["thread", "process"])
def test_synchronous_commits_are_seen(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, *, processes: bool
) -> None:
    topic = new_kafka_topic(2)
    with LoadedGroup(
        local_kafka, {topic: 2}, Committing, config=CONFIG, processes=processes, patience=20
    ) as group:
        group.start_member()
        group.wait_until_settled()
        group.wait_until_progress()
        report = group.finish()
    assert group.ledger.commits["member-1"] == report.consumed
    assert group.ledger.committed() == group.ledger.ends()


def test_topics_that_do_not_exist_or_are_smaller_are_reported(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded_group, "_METADATA_SECONDS", 1.0)
    topic = new_kafka_topic(2)
    missing = (
        rf"^the topic 'nowhere' does not exist: create it .*; the topic '{topic}' has 2 of 3 partitions$"
    )
    with (
        pytest.raises(LoadedGroupError, match=missing),
        LoadedGroup(local_kafka, {"nowhere": 1, topic: 3}, config=CONFIG),
    ):
        pytest.fail("begun")


def test_a_group_whose_broker_does_not_respond_is_not_settled(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded_group, "_REQUEST_TIMEOUT", 0.3)
    topic = new_kafka_topic(2)
    with LoadedGroup(local_kafka, {topic: 2}, config=CONFIG, messages_per_second=0) as group:
        group.start_members(2)
        group.wait_until_settled()
        local_kafka.pause()
        try:
            with pytest.raises(
                LoadedGroupError, match=r"has not settled .* the coordinator does not respond"
            ):
                group.wait_until_settled(timeout=1)
        finally:
            local_kafka.resume()
        group.wait_until_settled()


@pytest.mark.endurance
@pytest.mark.slow
def test_a_group_settles_after_its_broker_was_restarted() -> None:
    """librdkafka's `describe_consumer_groups` aborted the process, or never ended."""
    with LocalKafka() as kafka:
        kafka.create_topic("orders", partitions=6)
        with LoadedGroup(kafka, {"orders": 6}, config=CONFIG) as group:
            group.start_members(3)
            group.wait_until_settled()
            kafka.kill()
            kafka.start()
            group.wait_until_settled()
            group.wait_until_progress()


def test_a_process_reports_details_and_its_end_is_detected(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, tmp_path: Path
) -> None:
    topic = new_kafka_topic(1)
    with LoadedGroup(
        local_kafka.bootstrap_servers, {topic: 1}, detailed, config=CONFIG, processes=True, directory=tmp_path
    ) as group:
        member = group.start_member("m")
        assert isinstance(member, ProcessMember)
        group.wait_until_settled()
        assert member.details == {"metrics": "http://nowhere"}
        group.wait_until(lambda: member.generation >= 1, "its generation, which follows its partitions")
        assert member.pid is not None
        os.kill(member.pid, signal.SIGKILL)

        with pytest.raises(LoadedGroupError, match="m ended by itself, with exit status -9"):
            group.wait_until(lambda: False, "the end of the test")
    assert (tmp_path / "m.jsonl").read_text().startswith('["Started"')


def test_an_application_in_a_process_has_hooks_and_events_of_its_own(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic(1)
    with LoadedGroup(local_kafka, {topic: 1}, callable_by_signal, config=CONFIG, processes=True) as group:
        member = group.start_member()
        assert isinstance(member, ProcessMember)
        group.wait_until_settled()

        def events() -> list[type[Event]]:
            return [type(event) for event in group.ledger.histories[member.name]]

        member.signal(signal.SIGHUP)
        group.wait_until(lambda: Called in events(), "the event of the application")
        member.signal(signal.SIGALRM)
        with pytest.raises(LoadedGroupError, match=r"(?s)ended by itself, with exit status 1; .* unforeseen"):
            group.wait_until(lambda: False, "the end of the test")
        assert events()[-1] is Died
        assert group.ledger.owners() == {}


def test_members_leave_with_the_block_whatever_ends_it(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic, alive: Callable[[int | None], bool]
) -> None:
    topic = new_kafka_topic(1)
    members: list[Any] = []

    def fail_in_the_block() -> None:
        with LoadedGroup(local_kafka, {topic: 1}, Consumer, config=CONFIG) as group:
            members.extend([group.start_member("thread"), group.start_member("process", process=True)])
            group.wait_until_settled()
            raise RuntimeError("unforeseen")

    with pytest.raises(RuntimeError, match="unforeseen"):
        fail_in_the_block()
    thread, process = members
    assert isinstance(thread, ThreadMember)
    assert thread.has_ended
    assert not alive(process.pid)


PROGRAM = """
import sys
import confluent_kafka
from groupwright.testing.groups import LoadedGroup

with LoadedGroup(sys.argv[1], {sys.argv[2]: 2}, confluent_kafka.Consumer, processes=True) as group:
    members = group.start_members(2)
    group.wait_until_settled()
    members[0].suspend()
    print(*(member.pid for member in members), flush=True)
    sys.stdin.read()
"""


def test_a_program_that_is_killed_takes_its_members_along(
    local_kafka: LocalKafka,
    new_kafka_topic: NewKafkaTopic,
    temporary: Path,
    alive: Callable[[int | None], bool],
    eventually: Callable[[Callable[[], bool]], bool],
) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, local_kafka.bootstrap_servers, new_kafka_topic(2)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert program.stdout is not None
    members = [int(pid) for pid in program.stdout.readline().split()]
    assert [alive(pid) for pid in members] == [True, True]

    program.kill()
    program.communicate()

    assert eventually(lambda: not any(map(alive, members)))
    assert eventually(lambda: list(temporary.iterdir()) == [])
