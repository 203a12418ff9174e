"""Forks of a simulated process: a real child, made by `os.fork`, calls the consumer that it has inherited.

The child has a copy of the whole simulation, and the consumer's real hooks of a fork run in it. As in any
forked child, the thread that forked is the only one: a call that waits for another thread waits forever. The
child reports what it has done wrong, and ends; its parent goes on in virtual time.
"""

import math
import os
import random
import signal
from collections.abc import Callable
from typing import Any, NoReturn

from confluent_kafka import TopicPartition

from groupwright.testing._simulation.cluster import Cluster, Connection
from groupwright.testing._simulation.scheduler import SECOND
from integration_tests.simulation import runtime
from integration_tests.simulation.runtime import VirtualThread

_LONGEST_CALL = 1.0
"""Seconds of virtual time; no call of the child has anything to wait for."""
_LIMIT_SECONDS = 30
"""Real seconds after which a child that does not end is killed."""
_ONE = [TopicPartition("orders", 0, 0)]
_CALLS: dict[str, Callable[[Any], object]] = {
    "poll": lambda consumer: consumer.poll(0.1),
    "consume": lambda consumer: consumer.consume(5, 0.1),
    "commit": lambda consumer: consumer.commit(asynchronous=False),
    "commit of an offset": lambda consumer: consumer.commit(offsets=_ONE),
    "store_offsets": lambda consumer: consumer.store_offsets(offsets=_ONE),
    "subscribe": lambda consumer: consumer.subscribe(["orders"]),
    "unsubscribe": lambda consumer: consumer.unsubscribe(),
    "enforce_rebalance": lambda consumer: consumer.enforce_rebalance(),
    "assign": lambda consumer: consumer.assign(_ONE),
    "unassign": lambda consumer: consumer.unassign(),
    "incremental_assign": lambda consumer: consumer.incremental_assign(_ONE),
    "incremental_unassign": lambda consumer: consumer.incremental_unassign(_ONE),
    "seek": lambda consumer: consumer.seek(_ONE[0]),
    "pause": lambda consumer: consumer.pause(_ONE),
    "resume": lambda consumer: consumer.resume(_ONE),
    "assignment": lambda consumer: consumer.assignment(),
    "position": lambda consumer: consumer.position(_ONE),
    "committed": lambda consumer: consumer.committed(_ONE, 0.1),
    "close": lambda consumer: consumer.close(),
}


class ChildError(BaseException):
    """Raised in a child that does what harms its parent, or hangs."""


def fork(consumer: Any, seed: float) -> str:
    """Have a child of the present process make all calls in an order by seed; return its wrongs in words."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        _be_child(consumer, seed, writing)
    os.close(writing)
    with os.fdopen(reading) as answer:
        words = answer.read()
    _, status = os.waitpid(child, 0)
    return words if not status else f"{words} and ends by {os.waitstatus_to_exitcode(status)}"


def _be_child(consumer: Any, seed: float, writing: int) -> NoReturn:
    signal.alarm(_LIMIT_SECONDS)
    wrongs: list[str] = []
    try:
        _replace_the_world(consumer, wrongs)
        _use(consumer, seed, wrongs)
    except BaseException as error:  # noqa: BLE001 - the parent reports it
        wrongs.append(repr(error))
    os.write(writing, "; ".join(dict.fromkeys(wrongs)).encode())
    os._exit(0)


def _replace_the_world(consumer: Any, wrongs: list[str]) -> None:
    """Let no call of the child wait, use librdkafka's handle, or send anything."""

    def fail(words: str) -> NoReturn:
        wrongs.append(words)
        raise ChildError(words)

    def block(thread: VirtualThread, seconds: float) -> None:
        thread.process.scheduler.now += 0 if seconds == math.inf else int(seconds * SECOND)
        if seconds == math.inf or thread.process.scheduler.now > began + _LONGEST_CALL * SECOND:
            fail("a call waits for a thread that does not exist")

    class Untouchable:
        def __getattr__(self, _name: str) -> NoReturn:
            fail("a call uses librdkafka's handle")

    began = runtime.present().scheduler.now
    VirtualThread.block = block  # type: ignore[method-assign,assignment] # in the child alone
    Connection.send = lambda *_: fail("a call sends a request")  # type: ignore[method-assign] # as above
    Cluster.connect = lambda *_: fail("a call connects to a broker")  # type: ignore[method-assign] # as above
    consumer.librdkafka = Untouchable()
    process = runtime.current().process
    process.on_wake = lambda: None
    process.takes_signals, process.stop_after = False, None  # signals to come are the parent's


def _use(consumer: Any, seed: float, wrongs: list[str]) -> None:
    names = list(_CALLS)
    random.Random(seed).shuffle(names)  # noqa: S311 - no secret
    words = "created before a fork"
    for name in names:
        try:
            returned = _CALLS[name](consumer)
        except RuntimeError as error:
            if name == "close" or words not in str(error):
                wrongs.append(f"{name} raises {error!r}")
        except ChildError as error:
            wrongs.append(f"{name}: {error}")
        else:
            if name != "close":
                wrongs.append(f"{name} returns {returned}")
        if name == "close":
            words = "Consumer closed"
    consumer.wakeup()
    consumer._collection_hook.__del__()  # as at the end of the child's interpreter
