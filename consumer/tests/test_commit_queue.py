"""The queue of commits: ordered, merged, retried, or timed out."""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from groupwright.consumer._protocol.commit_queue import (
    NO_ANSWER,
    Commit,
    CommitQueue,
    CommitResult,
    PendingCommit,
)
from groupwright.consumer._protocol.model import MemberIdentity, Offset
from groupwright.core import TopicPartitionKey
from integration_tests.harness.patience import PATIENCE

ME = MemberIdentity(1, "m-1", "range")
LATER_ME = MemberIdentity(2, "m-1", "range")


@dataclass
class Desk:
    """A queue, and what became of the commits that were put in."""

    queue: CommitQueue = field(default_factory=CommitQueue)
    results: list[tuple[str, dict[TopicPartitionKey, int], str]] = field(default_factory=list)

    def add(
        self,
        name: str,
        offsets: dict[TopicPartitionKey, int],
        *,
        identity: MemberIdentity = ME,
        deadline: float = 100.0,
    ) -> None:
        def done(result: CommitResult) -> None:
            self.results.append((name, dict(result.errors), result.message))

        wanted = {key: Offset(offset) for key, offset in offsets.items()}
        self.queue.add(Commit(wanted, identity, deadline, done))

    def next_request(self) -> tuple[MemberIdentity, dict[TopicPartitionKey, int]] | None:
        request = self.queue.next_request()
        return request and (request[0], {key: offset.offset for key, offset in request[1].items()})


@pytest.fixture
def desk() -> Desk:
    return Desk()


A, B = ("t", 0), ("t", 1)


def test_one_request_is_under_way_at_a_time(desk: Desk) -> None:
    """franz-go 416e8269: a second connection overtook the first, and the committed offset went back."""
    desk.add("first", {A: 1})
    assert desk.next_request() == (ME, {A: 1})

    desk.add("second", {A: 2})
    assert desk.next_request() is None
    desk.queue.answered({A: 0}, now=0)
    assert desk.next_request() == (ME, {A: 2})


def test_commits_that_wait_are_merged_and_the_later_offset_wins(desk: Desk) -> None:
    desk.add("first", {A: 5, B: 1})
    desk.add("second", {A: 3})

    assert desk.next_request() == (ME, {A: 3, B: 1})
    desk.queue.answered({A: 0, B: 29}, now=0)
    assert desk.results == [("first", {A: 0, B: 29}, ""), ("second", {A: 0}, "")]
    assert desk.queue.idle


def test_commits_of_two_generations_are_not_merged(desk: Desk) -> None:
    desk.add("old", {A: 1})
    desk.add("new", {A: 2}, identity=LATER_ME)
    desk.add("newer", {B: 2}, identity=LATER_ME)

    assert desk.next_request() == (ME, {A: 1})
    desk.queue.answered({A: 22}, now=0)
    assert desk.next_request() == (LATER_ME, {A: 2, B: 2})


@pytest.mark.parametrize("code", [7, 14, 15, 16])
def test_a_failure_that_may_pass_is_tried_again_before_anything_later(desk: Desk, code: int) -> None:
    desk.add("first", {A: 1})
    desk.next_request()
    desk.add("second", {A: 2})

    assert desk.queue.answered({A: code}, now=0)
    assert desk.results == []
    assert desk.next_request() == (ME, {A: 2})  # both, and the later wins
    assert not desk.queue.answered({A: 0}, now=0)
    assert [name for name, _, _ in desk.results] == ["first", "second"]


@pytest.mark.parametrize("code", [12, 22, 25, 27, 28, 29, 30, 69, 82, -1, 999])
def test_a_failure_that_will_not_pass_is_told_at_once(desk: Desk, code: int) -> None:
    desk.add("first", {A: 1, B: 1})
    desk.next_request()

    assert not desk.queue.answered({A: code, B: 14}, now=0)
    assert desk.results == [("first", {A: code, B: 14}, "")]


def test_an_unknown_topic_is_asked_for_twice_more(desk: Desk) -> None:
    """As in librdkafka: a new topic is known by then, and one that was deleted must hold nothing up."""
    desk.add("gone", {A: 1})
    for _ in range(2):
        desk.next_request()
        assert desk.queue.answered({A: 3}, now=0)
    desk.next_request()

    assert not desk.queue.answered({A: 3}, now=0)
    assert desk.results == [("gone", {A: 3}, "")]


def test_a_commit_that_was_stored_in_part_is_not_retried(desk: Desk) -> None:
    desk.add("half", {A: 1, B: 1})
    desk.next_request()

    assert not desk.queue.answered({A: 0, B: 3}, now=0)
    assert desk.results == [("half", {A: 0, B: 3}, "")]


def test_nothing_is_tried_again_after_its_deadline(desk: Desk) -> None:
    desk.add("first", {A: 1}, deadline=10.0)
    desk.next_request()

    assert not desk.queue.answered({A: 14}, now=10.0)
    assert desk.results == [("first", {A: 14}, "")]


def test_a_broken_connection_is_no_answer(desk: Desk) -> None:
    desk.add("repeats", {A: 1})
    desk.add("is late", {B: 1}, deadline=5.0)
    desk.next_request()

    assert desk.queue.unanswered("it broke", now=5.0)
    assert desk.results == [("is late", {B: NO_ANSWER}, "it broke")]
    assert desk.next_request() == (ME, {A: 1})


def test_a_partition_that_the_answer_leaves_out_has_no_answer(desk: Desk) -> None:
    desk.add("first", {A: 1, B: 1})
    desk.next_request()
    desk.queue.answered({A: 0}, now=0)

    assert desk.results == [("first", {A: 0, B: NO_ANSWER}, "")]


def test_what_waits_too_long_is_given_up(desk: Desk) -> None:
    desk.add("under way", {A: 1}, deadline=10.0)
    desk.next_request()
    desk.add("early", {A: 1}, deadline=10.0)
    desk.add("late", {A: 1}, deadline=20.0)

    assert desk.queue.next_deadline == 10.0

    desk.queue.expire(10.0, "too late")
    assert desk.results == [
        ("under way", {A: NO_ANSWER}, "too late"),
        ("early", {A: NO_ANSWER}, "too late"),
    ]
    assert desk.queue.next_deadline == 20.0

    # Its request is still in flight: nothing overtakes it, and its answer settles nothing twice.
    assert not desk.queue.idle
    assert desk.next_request() is None
    desk.queue.answered({A: 0}, now=11.0)
    assert len(desk.results) == 2
    assert desk.next_request() == (ME, {A: 1})


def test_a_commit_that_was_retried_in_vain_ends_with_the_brokers_last_word(desk: Desk) -> None:
    desk.add("first", {A: 1, B: 1}, deadline=10.0)
    desk.next_request()
    assert desk.queue.answered({A: 14, B: 14}, now=0)

    desk.queue.expire(10.0, "too late")
    assert desk.results == [("first", {A: 14, B: 14}, "too late")]
    assert desk.queue.idle


def test_no_broker_sends_the_code_of_no_answer() -> None:
    """The protocol's UNKNOWN_SERVER_ERROR is -1, and must stay apart from it."""
    assert NO_ANSWER < -1


def clock(times: list[float]) -> Callable[[], float]:
    return iter(times).__next__


def test_a_pending_commit_gives_its_result() -> None:
    pending = PendingCommit({A: Offset(1)}, deadline=1e9)
    assert not pending.ready
    pending.complete(CommitResult({A: 0}))

    assert pending.ready
    assert pending.wait() == CommitResult({A: 0})


def test_a_pending_commit_ends_with_its_deadline() -> None:
    """A little later than the network's thread, which knows what the broker has said."""
    pending = PendingCommit({A: Offset(1)}, deadline=10.0, clock=clock([10.5, 11.0, 11.0]))
    assert not pending.ready
    assert pending.ready

    assert pending.wait() == CommitResult({A: NO_ANSWER}, "no answer in time")


def test_a_pending_commit_can_be_waited_for_a_while() -> None:
    pending = PendingCommit({A: Offset(1)}, deadline=1e9)

    assert pending.wait(0.001).errors == {A: NO_ANSWER}
    assert not pending.ready


def test_all_threads_that_wait_for_a_commit_are_woken() -> None:
    """`committed` waits for the commits of others: the committing thread slept on until the deadline."""
    pending = PendingCommit({A: Offset(1)}, deadline=1e9)
    began, results = threading.Semaphore(0), list[CommitResult]()

    def wait() -> None:
        began.release()
        results.append(pending.wait())

    threads = [threading.Thread(target=wait, daemon=True) for _ in range(3)]
    for thread in threads:
        thread.start()
        assert began.acquire(timeout=PATIENCE)
    pending.complete(CommitResult({A: 0}))
    for thread in threads:
        thread.join(PATIENCE)
    assert results == [CommitResult({A: 0})] * 3
