"""Messages in flight: order, what may be committed, and limits."""

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from groupwright.consumer._parallel.work import GivenUp, Order, Retry, Run, Work

ORDERS = ("orders", 0)
PAYMENTS = ("payments", 1)
NEVER = Retry(0)


@dataclass(frozen=True)
class Sent:
    """A message as the client returns it."""

    place: tuple[str, int]
    number: int
    name: bytes | None = None

    def topic(self) -> str:
        return self.place[0]

    def partition(self) -> int:
        return self.place[1]

    def offset(self) -> int:
        return self.number

    def key(self) -> bytes | None:
        return self.name


def sent(*offsets: int, place: tuple[str, int] = ORDERS, key: bytes | None = None) -> Any:
    return [Sent(place, offset, key) for offset in offsets]


def work_of(
    order: Order = Order.PARTITION, workers: int = 2, max_in_flight: int = 100, retry: Retry = NEVER
) -> Work:
    work = Work(order, workers, max_in_flight, retry)
    work.assign([ORDERS])
    return work


def offsets(run: Run | None) -> list[int | None]:
    return [] if run is None else [message.offset() for message in run.messages]


def finish(work: Work, run: Run | None, done: int | None = None) -> None:
    assert run is not None
    run.done = len(run.messages) if done is None else done
    work.finish(run)


def test_a_partition_has_one_worker_and_its_messages_come_in_order() -> None:
    work = work_of()
    work.add(sent(5, 6), 0.0)
    run = work.take(0.0)
    work.add(sent(7), 0.0)
    assert offsets(run) == [5, 6]
    assert work.take(0.0) is None
    finish(work, run, 1)
    assert work.partitions[ORDERS].next_offset == 6
    assert offsets(work.take(0.0)) == [6, 7]


def test_messages_of_a_key_come_in_order_and_others_do_not_wait_for_them() -> None:
    work = work_of(Order.KEY)
    work.add([*sent(1, key=b"a"), *sent(2, key=b"b"), *sent(3, key=b"a"), *sent(4)], 0.0)
    a, b, unkeyed = work.take(0.0), work.take(0.0), work.take(0.0)
    assert (offsets(a), offsets(b), offsets(unkeyed)) == ([1, 3], [2], [4])
    finish(work, b)
    finish(work, unkeyed)
    assert work.partitions[ORDERS].next_offset == 1
    assert work.partitions[ORDERS].done_beyond == 2
    finish(work, a)
    assert work.partitions[ORDERS].next_offset == 5


def test_gaps_between_offsets_belong_to_no_message() -> None:
    """A compacted log, and a transaction's markers, have them."""
    work = work_of(Order.NONE)
    work.add(sent(10, 20), 0.0)
    work.add(sent(35), 1.0)
    first, second, third = work.take(1.0), work.take(1.0), work.take(1.0)
    finish(work, second)
    assert work.partitions[ORDERS].next_offset == 10
    finish(work, first)
    assert work.partitions[ORDERS].next_offset == 21
    assert work.partitions[ORDERS].waiting_since == 1.0
    finish(work, third)
    assert (work.partitions[ORDERS].next_offset, work.partitions[ORDERS].waiting_since) == (36, None)


def test_the_oldest_message_is_next_so_that_gaps_stay_small() -> None:
    """Not one of each key in turn: the second message of a key would wait for those of all others."""
    work = work_of(Order.KEY)
    work.add([*sent(1, 2, key=b"a"), *sent(3, key=b"b"), *sent(4, key=b"c")], 0.0)
    finish(work, work.take(0.0), 1)
    assert [offsets(work.take(0.0)) for _ in range(3)] == [[2], [3], [4]]


@pytest.mark.parametrize("order", Order)
def test_a_failed_message_is_tried_again_after_its_backoff_and_before_what_follows(order: Order) -> None:
    work = work_of(order, retry=Retry(2, backoff=1.0, max_backoff=1.5), workers=1)
    work.add(sent(1, 2, key=b"a"), 0.0)
    for failure, (begin, wait) in enumerate(((0.0, 1.0), (1.0, 1.5), (2.5, None))):
        run = work.take(begin)
        assert offsets(run)[:1] == [1]
        assert run is not None
        assert work.fail(run, begin) == (wait is not None), failure
        if wait is not None:
            assert work.next_retry() == begin + wait
            if order is not Order.NONE:
                assert work.take(begin + wait - 0.1) is None
            elif failure == 0:
                finish(work, work.take(begin))  # the others go on
    assert work.retries == 2
    assert work.partitions[ORDERS].next_offset == 1
    assert run is not None
    finish(work, run, 1)
    assert work.partitions[ORDERS].next_offset == (3 if order is Order.NONE else 2)


def test_failures_are_those_of_one_message() -> None:
    work = work_of(retry=Retry(1))
    work.add(sent(1, 2), 0.0)
    run = work.take(0.0)
    assert run is not None
    assert work.fail(run, 0.0)
    run = work.take(1.0)
    assert offsets(run) == [1]
    finish(work, run)
    run = work.take(1.0)
    assert run is not None
    assert work.fail(run, 1.0), "it is the first failure of this message"


def test_what_is_given_up_is_told_and_no_longer_counts() -> None:
    work = work_of(Order.KEY)
    work.add([*sent(1, key=b"a"), *sent(2, 3, key=b"b"), *sent(4, key=b"c")], 0.0)
    a, b = work.take(0.0), work.take(0.0)
    assert a is not None
    assert b is not None
    b.done = 1
    work.stop([ORDERS])
    assert b.is_cut
    (left,) = work.give_up([ORDERS])
    assert replace(left, running=sorted(left.running)) == GivenUp(ORDERS, 1, [1, 3], 3, 1)
    work.assign([ORDERS])
    work.add(sent(1, key=b"a"), 0.0)
    finish(work, a)
    assert work.fail(b, 0.0)
    assert work.partitions[ORDERS].next_offset == 1, "it was done by a former owner"
    assert offsets(work.take(0.0)) == [1]


def test_a_drain_closes_gaps_and_begins_nothing_else() -> None:
    work = work_of(Order.NONE, workers=1)
    work.add(sent(1, 2, 3, 4, 5), 0.0)
    first, second, third = work.take(0.0), work.take(0.0), work.take(0.0)
    assert (offsets(first), offsets(second), offsets(third)) == ([1, 2], [3], [4])
    finish(work, third)
    work.stop([ORDERS])
    finish(work, first, 1)
    finish(work, second)
    assert not work.is_drained([ORDERS])
    gap = work.take(0.0)
    assert offsets(gap) == [2]
    assert work.take(0.0) is None, "5 is not begun"
    finish(work, gap)
    assert work.is_drained([ORDERS])
    (left,) = work.give_up([ORDERS])
    assert (left.next_offset, left.in_flight, left.done_beyond) == (5, 1, 0)


def test_nothing_more_of_a_partition_is_processed_after_a_failure_for_good() -> None:
    work = work_of(Order.NONE, workers=1)
    work.add(sent(1, 2, 3, 4), 0.0)
    first, second = work.take(0.0), work.take(0.0)
    assert first is not None
    assert second is not None
    assert not work.fail(second, 0.0)
    assert work.abandon(second)
    assert not work.is_drained(), "what comes before it is still done, and committed"
    finish(work, first)
    assert work.take(0.0) is None
    assert work.is_drained()
    assert work.partitions[ORDERS].next_offset == 3


def test_a_failure_of_a_partition_that_was_given_up_stops_nothing() -> None:
    work = work_of()
    work.assign([PAYMENTS])
    work.add(sent(1), 0.0)
    run = work.take(0.0)
    assert run is not None
    work.give_up([ORDERS])
    assert not work.abandon(run)
    work.add(sent(1, place=PAYMENTS), 0.0)
    assert offsets(work.take(0.0)) == [1]


def test_a_partition_begins_again_where_its_offsets_do() -> None:
    """After a log was cut off, or after a revocation and an assignment within one call."""
    work = work_of()
    work.add(sent(5, 6), 0.0)
    finish(work, work.take(0.0))
    work.add(sent(3, 4), 0.0)
    assert offsets(work.take(0.0)) == [3, 4]
    work.add(sent(9, place=PAYMENTS), 0.0)
    assert work.take(0.0) is None, "it is not this process's"


def test_what_is_not_done_is_read_again_when_the_log_was_cut_off_behind_it() -> None:
    """Else the next commit would be of the offset that came last, and have them done."""
    work = work_of()
    work.add(sent(0, 1, 2, 3, 4, 5), 0.0)
    run = work.take(0.0)
    finish(work, run, 2)
    assert work.add(sent(4, 5), 0.0) == {ORDERS: 2}
    assert work.take(0.0) is None
    assert work.add(sent(2, 3, 4, 5), 0.0) == {}
    assert offsets(work.take(0.0)) == [2, 3, 4, 5]


def test_partitions_share_the_limit() -> None:
    work = work_of(max_in_flight=6)
    work.assign([PAYMENTS])
    work.add(sent(1, 2, 3), 0.0)
    assert (work.share, work.full(), work.room([]), work.room([ORDERS])) == (3, {ORDERS}, 1, 3)
    finish(work, work.take(0.0), 1)
    assert (work.full(), work.roomy(), work.room([])) == (set(), {PAYMENTS}, 1)


def test_the_age_is_that_of_the_message_that_holds_the_commit_back() -> None:
    work = work_of(Order.NONE, workers=1)
    work.add(sent(1), 10.0)
    work.add(sent(2), 11.0)
    first, second = work.take(11.0), work.take(11.0)
    finish(work, second)
    assert work.partitions[ORDERS].waiting_since == 10.0
    finish(work, first)
    assert work.partitions[ORDERS].waiting_since is None


def test_a_retry_has_sensible_values() -> None:
    assert [Retry(3, 0.5, 1.5).delay(number) for number in (1, 2, 3, 4)] == [0.5, 1.0, 1.5, None]
    assert Retry(10_000).delay(10_000) == 10.0
    with pytest.raises(ValueError, match="negative"):
        Retry(-1)


class History:
    """A random history of messages and workers. What is done is kept in lists, independently of `Work`."""

    def __init__(self, order: Order, workers: int, choose: random.Random) -> None:
        self.work = Work(order, workers, 1000, Retry(2, backoff=1.0))
        self.work.assign([ORDERS, PAYMENTS])
        self.order, self.workers, self.choose = order, workers, choose
        self.runs: list[Run] = []
        self.now = 0.0
        self.sent: dict[tuple[str, int], list[int]] = {ORDERS: [], PAYMENTS: []}
        self.done: dict[tuple[str, int], list[tuple[object, int]]] = {ORDERS: [], PAYMENTS: []}

    def add(self) -> None:
        place = self.choose.choice([ORDERS, PAYMENTS])
        for _ in range(self.choose.randrange(1, 8)):
            offset = (self.sent[place] or [0])[-1] + self.choose.choice([1, 1, 1, 3])
            self.sent[place].append(offset)
            key = self.choose.choice([b"a", b"b", b"c", None])
            self.work.add(sent(offset, place=place, key=key), self.now)

    def take(self) -> None:
        run = self.work.take(self.now) if len(self.runs) < self.workers else None
        self.runs += [run] if run else []

    def process(self) -> None:
        for run in self.runs[:1]:
            message = run.current
            if message is not None:
                self.done[run.lane.progress.key].append((message.key(), message.offset() or 0))
                run.done += 1

    def end(self) -> None:
        for run in self.runs[:1]:
            self.runs.remove(run)
            self.work.finish(run)

    def fail(self) -> None:
        for run in self.runs[:1]:
            if run.current is not None and self.work.fail(run, self.now):
                self.runs.remove(run)

    def wait(self) -> None:
        self.now += self.choose.choice([0.5, 5.0])

    def shuffle(self) -> None:
        self.choose.shuffle(self.runs)

    def check(self) -> None:
        self.work.settle()
        for place, progress in self.work.partitions.items():
            done = {offset for _, offset in self.done[place]}
            undone = [offset for offset in self.sent[place] if offset not in done]
            below = [offset for offset in self.sent[place] if not undone or offset < undone[0]]
            begin = self.sent[place][0] if self.sent[place] else None
            assert progress.next_offset == (below[-1] + 1 if below else begin)
            assert (progress.in_flight, progress.done_beyond) == (len(undone), len(done) - len(below))
            for key in (b"a", b"b", b"c"):
                of_key = [offset for other, offset in self.done[place] if other == key]
                assert self.order is Order.NONE or of_key == sorted(of_key)
            if self.order is Order.PARTITION:
                assert self.done[place] == sorted(self.done[place], key=lambda each: each[1])


STEPS = (
    History.add,
    History.take,
    History.process,
    History.end,
    History.fail,
    History.wait,
    History.shuffle,
)


@given(
    st.sampled_from(Order),
    st.integers(1, 4),
    st.lists(st.sampled_from(STEPS), max_size=120),
    st.randoms(use_true_random=False),
)
def test_the_offset_to_commit_is_that_below_which_everything_is_done(
    order: Order, workers: int, steps: list[Callable[[History], None]], choose: random.Random
) -> None:
    history = History(order, workers, choose)
    for step in steps:
        step(history)
        history.check()
