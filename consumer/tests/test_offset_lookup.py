"""Offsets of "beginning" and "end", which no poll waits for."""

import asyncio
import logging
import socket
import threading
import time
from collections.abc import Callable, Collection, Coroutine, MutableMapping
from typing import Any

import pytest
from confluent_kafka import OFFSET_BEGINNING, OFFSET_END, TopicPartition

from groupwright.consumer import Consumer
from groupwright.consumer._config.log import GroupLog
from groupwright.consumer._membership.classic_membership import ClassicMembership
from groupwright.consumer._membership.handle import Native
from groupwright.consumer._membership.offset_lookup import LogicalOffset, OffsetLookup
from groupwright.consumer._protocol.events import Assign
from groupwright.consumer._protocol.model import DisconnectedError, MemberIdentity
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("no_thread_stays")

LOG = GroupLog(logging.getLogger("groupwright.consumer"), "c", "g")
FIRST, SECOND = (("t", 0), OFFSET_BEGINNING), (("t", 1), OFFSET_BEGINNING)
Answer = Callable[[MutableMapping[LogicalOffset, int | None]], object]


class Source:
    """Answers of brokers, one for each attempt; after the last one nothing is answered."""

    def __init__(self, *answers: Answer) -> None:
        self.answers = list(answers)
        self.asked: list[set[LogicalOffset]] = []
        self.pending: list[Coroutine[Any, Any, None]] = []

    def call_soon(self, function: Callable[..., object], *args: object) -> None:
        function(*args)

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        self.pending.append(coroutine)

    def run(self) -> None:
        """Do what the network thread would."""
        while self.pending:
            asyncio.run(self.pending.pop(0))

    async def sleep(self, seconds: float) -> None:
        assert seconds > 0

    async def list_offsets(
        self,
        wanted: Collection[LogicalOffset],
        found: MutableMapping[LogicalOffset, int | None],
        timeout: float,
        *,
        read_committed: bool,
    ) -> None:
        assert timeout > 0
        assert read_committed
        self.asked.append(set(wanted))
        self.answers.pop(0)(found)


def fail(_found: MutableMapping[LogicalOffset, int | None]) -> None:
    raise DisconnectedError("no broker can be reached")


def answer(**offsets: int | None) -> Answer:
    """Return the answer with the offsets of these partitions, ``p0`` and so on."""

    def give(found: MutableMapping[LogicalOffset, int | None]) -> None:
        found.update({(("t", int(name[1:])), OFFSET_BEGINNING): offset for name, offset in offsets.items()})

    return give


def test_a_failed_lookup_is_retried() -> None:
    source = Source(fail, fail, answer(p0=5, p1=6))
    lookup = OffsetLookup(source, LOG)
    lookup.begin([FIRST, SECOND])
    assert lookup.pending

    source.run()

    assert source.asked == [{FIRST, SECOND}] * 3
    assert not lookup.pending
    assert [lookup.find(*FIRST), lookup.find(*SECOND)] == [5, 6]
    assert lookup.find(("t", 0), OFFSET_END) is None


def test_a_partition_that_fails_does_not_undo_the_others() -> None:
    source = Source(answer(p0=5), fail, answer(p1=6))
    lookup = OffsetLookup(source, LOG)
    lookup.begin([FIRST, SECOND])

    source.run()

    assert source.asked == [{FIRST, SECOND}, {SECOND}, {SECOND}]
    assert [lookup.find(*FIRST), lookup.find(*SECOND)] == [5, 6]


def test_a_partition_that_is_refused_is_left_to_librdkafka() -> None:
    source = Source(answer(p0=None, p1=6))
    lookup = OffsetLookup(source, LOG)
    lookup.begin([FIRST, SECOND])

    source.run()

    assert not lookup.pending
    assert [lookup.find(*FIRST), lookup.find(*SECOND)] == [None, 6]


def test_a_lookup_ends_after_a_second_and_keeps_what_was_found() -> None:
    now = 100.0

    def late(found: MutableMapping[LogicalOffset, int | None]) -> None:
        nonlocal now
        answer(p0=5)(found)
        now = 101.0

    source = Source(late)
    lookup = OffsetLookup(source, LOG, lambda: now)
    lookup.begin([FIRST, SECOND])
    now = 100.9
    assert lookup.pending

    source.run()

    assert not lookup.pending
    assert [lookup.find(*FIRST), lookup.find(*SECOND)] == [5, None]


def test_a_lookup_that_was_replaced_does_not_count() -> None:
    source = Source(answer(p1=6))
    lookup = OffsetLookup(source, LOG)
    lookup.begin([FIRST])
    lookup.begin([SECOND])

    source.run()

    assert source.asked == [{SECOND}]
    assert [lookup.find(*FIRST), lookup.find(*SECOND)] == [None, 6]


def test_nothing_to_look_up_is_no_request() -> None:
    source = Source()
    lookup = OffsetLookup(source, LOG)
    lookup.begin([])

    assert not source.pending
    assert not lookup.pending
    lookup.wait(PATIENCE)


def test_waiters_are_woken_when_all_offsets_are_found() -> None:
    source = Source(answer(p0=5))
    lookup = OffsetLookup(source, LOG, lambda: 0.0)
    lookup.begin([FIRST])
    waiting = threading.Thread(target=lookup.wait, args=(PATIENCE,))
    waiting.start()

    source.run()

    waiting.join(PATIENCE)
    assert not waiting.is_alive()


@pytest.mark.medium
@pytest.mark.parametrize("reset", ["earliest", "latest"])
def test_no_poll_waits_for_a_broker_that_does_not_answer(reset: str) -> None:
    """The assignment is applied after at most 1 s; until then polls with a timeout of 0 return at once."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        config = {
            "bootstrap.servers": f"127.0.0.1:{silent.getsockname()[1]}",
            "group.id": "g",
            "log_level": 0,
        }
        with Consumer(config | {"auto.offset.reset": reset, "socket.timeout.ms": 1000}) as consumer:
            member = consumer._member
            assert isinstance(member, ClassicMembership)
            gained = {f"t{number}": (0,) for number in range(10)}
            member.events._inbox.put(Assign(1, gained, gained, {}, MemberIdentity(3, "m", "range"), None))
            polls, began = 0, time.monotonic()
            while member.events._inbox:
                assert time.monotonic() < began + PATIENCE
                assert consumer.poll(0) is None
                polls += 1

            assert polls > 10
            start = OFFSET_BEGINNING if reset == "earliest" else OFFSET_END
            assert {p.topic: p.offset for p in Native.assignment(consumer)} == dict.fromkeys(gained, start)
            assert TopicPartition("t0", 0) in consumer.assignment()
