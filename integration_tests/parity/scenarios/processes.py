"""Forks, spawned processes, exec, and interpreters that end without close."""

import importlib
import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

from confluent_kafka import TopicPartition

from integration_tests.parity.client import Client
from integration_tests.parity.lab import Lab, callbacks
from integration_tests.parity.scenarios import scenario


def _read(lab: Lab, topic: str, count: int, **settings: Any) -> Client:
    consumer = lab.consumer(**settings)
    consumer.subscribe([topic], **callbacks())
    consumer.read(count)
    return consumer


def _fork(lab: Lab, program: Callable[[], object], *, seconds: float = 15.0) -> None:
    """Run a program in a forked child, and write down what it returns."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            result = str(program())
        except BaseException as error:  # noqa: BLE001 - part of what is compared
            result = f"raises {type(error).__name__}"
        os.write(writing, result.encode())
        os._exit(0)
    os.close(writing)
    watchdog = threading.Timer(seconds, os.kill, (child, 9))
    watchdog.start()
    _, status = os.waitpid(child, 0)
    watchdog.cancel()
    with os.fdopen(reading) as answer:
        lab.note(
            f"child {answer.read() or 'says nothing'}, ends by {_end(os.waitstatus_to_exitcode(status))}"
        )


def _end(code: int) -> str:
    return f"signal {-code}" if code < 0 else f"exit {code}"


def _go_on(lab: Lab, consumer: Client, topic: str) -> None:
    """See that the parent's consumer is none the worse: it reads, commits, and is a member still."""
    lab.produce(topic, 3)
    consumer.read(3)
    consumer.commit(asynchronous=False)
    lab.note_members(1)
    consumer.close()


@scenario(seconds=25)
def a_child_that_exits(lab: Lab) -> None:
    """A forked child that does nothing with the consumer does the parent's no harm."""
    topic = lab.topic(messages=3)
    consumer = _read(lab, topic, 3)
    _fork(lab, lambda: "does nothing")
    _go_on(lab, consumer, topic)


@scenario(seconds=25)
def a_child_that_ends_its_interpreter(lab: Lab) -> None:
    """A forked child that ends by sys.exit does not harm its parent."""
    topic = lab.topic(messages=3)
    consumer = _read(lab, topic, 3)
    context = multiprocessing.get_context("fork")
    child = context.Process(target=_nothing)
    child.start()
    child.join(10)
    lab.note(f"child ends by {child.exitcode if child.exitcode is None else _end(child.exitcode)}")
    child.kill()
    _go_on(lab, consumer, topic)


def _nothing() -> None:
    """Be a child's whole program."""


@scenario(seconds=25)
def a_child_with_a_consumer_of_its_own(lab: Lab) -> None:
    """A forked child may make a consumer of its own, in a group of its own."""
    topic = lab.topic(messages=3)
    consumer = _read(lab, topic, 3)
    config = lab.config(group_id=f"{lab.group}2")
    _fork(lab, lambda: _consume(lab.consumer_class, config, topic, 3))
    _go_on(lab, consumer, topic)


def _consume(class_: Any, config: dict[str, Any], topic: str, count: int) -> str:
    consumer = class_(config)
    consumer.subscribe([topic])
    offsets = []
    for _ in range(100):
        message = consumer.poll(0.1)
        if message is not None:
            offsets.append(message.offset())
        if len(offsets) == count:
            break
    consumer.close()
    return f"reads {offsets}"


def _consume_by_name(module: str, name: str, config: dict[str, Any], topic: str, count: int) -> str:
    return _consume(getattr(importlib.import_module(module), name), config, topic, count)


def _where(lab: Lab) -> tuple[str, str]:
    """Return the module and the name by which another process imports the class under test."""
    module = lab.consumer_class.__module__
    return "confluent_kafka" if module == "cimpl" else module, lab.consumer_class.__name__


@scenario(seconds=25)
def a_consumer_after_forking_workers(lab: Lab) -> None:
    """Children forked before the first consumer is created join one group, as in pre-forking servers."""
    topic = lab.topic(2, messages=5)
    config = lab.config()
    context = multiprocessing.get_context("fork")
    results = context.SimpleQueue()
    children = [
        context.Process(target=_worker, args=(lab.consumer_class, config, topic, results)) for _ in range(2)
    ]
    for child in children:
        child.start()
    got: list[tuple[int, int]] = []
    while len(got) < 10:
        got.append(results.get())
    for child in children:
        child.terminate()
        child.join(10)
    lab.note(f"read {len(set(got))} of 10")


def _worker(class_: Any, config: dict[str, Any], topic: str, results: Any) -> None:
    consumer = class_(config)
    consumer.subscribe([topic])
    while True:
        message = consumer.poll(0.1)
        if message is not None and message.error() is None:
            results.put((message.partition(), message.offset()))


@scenario(seconds=25)
def a_child_of_a_process_that_closed_its_consumer(lab: Lab) -> None:
    """After close, a forked child can make a consumer, which goes on where the parent's was."""
    topic = lab.topic(messages=6)
    consumer = _read(lab, topic, 3, enable_auto_commit=False)
    consumer.commit(offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    consumer.close()
    _fork(lab, lambda: _consume(lab.consumer_class, lab.config(), topic, 3))


@scenario(seconds=25)
def a_spawned_process_with_a_consumer(lab: Lab) -> None:
    """A spawned process has a consumer beside its parent's."""
    topic = lab.topic(messages=3)
    consumer = _read(lab, topic, 3)
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        config = lab.config(group_id=f"{lab.group}2")
        lab.note(pool.apply(_consume_by_name, (*_where(lab), config, topic, 3)))
    _go_on(lab, consumer, topic)


@scenario(seconds=25)
def a_subprocess_beside_a_consumer(lab: Lab) -> None:
    """Subprocesses started while a consumer polls do it no harm."""
    topic = lab.topic(messages=3)
    consumer = _read(lab, topic, 3)
    for _ in range(3):
        lab.note(subprocess.run(["echo", "hello"], capture_output=True, text=True, check=True).stdout.strip())  # noqa: S607 - a program that all systems have
        consumer.idle(0.2)
    _go_on(lab, consumer, topic)


def _program(lab: Lab, topic: str, ending: str, *, before: str = "", option: str = "-B") -> None:
    """Run a script with a consumer of this side that reads three messages and ends in a given way."""
    module, name = _where(lab)
    script = f"""
import json, os, signal, sys, threading
from {module} import {name} as Class
config = json.loads(sys.argv[1])
consumer = Class(config)
consumer.subscribe([sys.argv[2]], on_revoke=lambda *_: print("on_revoke", flush=True))
{before}
read = 0
while read < 3:
    read += consumer.poll(1) is not None
print("read", read, flush=True)
{ending}
"""
    ended = subprocess.run(
        [sys.executable, option, "-c", script, json.dumps(lab.config()), topic],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    error = ended.stderr.strip().rpartition("\n")[2].partition(":")[0]
    lab.note(f"prints {ended.stdout.split()}, {error}, {_end(ended.returncode)}")


def _ends(lab: Lab, ending: str, members: int, *, before: str = "") -> None:
    topic = lab.topic(messages=3)
    _program(lab, topic, ending, before=before)
    lab.note_members(members)
    lab.note(f"stored {lab.stored(topic)}")


@scenario(seconds=25)
def an_interpreter_that_ends_without_close(lab: Lab) -> None:
    """A script that ends without close: nothing is committed, no callback is called, and it does not hang."""
    _ends(lab, "", 0)


@scenario(seconds=25)
def an_interpreter_that_ends_by_sys_exit(lab: Lab) -> None:
    """A script that ends by sys.exit without close."""
    _ends(lab, "sys.exit(3)", 0)


@scenario(seconds=25)
def an_interpreter_that_ends_by_an_exception(lab: Lab) -> None:
    """A script that ends by an exception without close."""
    _ends(lab, "raise ValueError('on purpose')", 0)


@scenario(seconds=25)
def an_interpreter_that_ends_by_os_exit(lab: Lab) -> None:
    """os._exit ends at once, and the member stays until its session is over."""
    _ends(lab, "os._exit(4)", 1)


@scenario(seconds=25)
def an_interpreter_that_ends_by_sigterm(lab: Lab) -> None:
    """SIGTERM without a handler ends at once, and the member stays until its session is over."""
    _ends(lab, "os.kill(os.getpid(), signal.SIGTERM); threading.Event().wait(20)", 1)


@scenario(seconds=25)
def an_interpreter_that_closes_at_exit(lab: Lab) -> None:
    """A close registered with atexit commits, calls on_revoke and leaves."""
    _ends(lab, "", 0, before="import atexit; atexit.register(consumer.close)")


@scenario(seconds=25)
def an_interpreter_that_ends_with_a_consumer_in_a_daemon_thread(lab: Lab) -> None:
    """A script whose consumer polls in a daemon thread ends, and does not crash."""
    ending = """
def poll():
    while True:
        consumer.poll(0.1)
threading.Thread(target=poll, daemon=True).start()
threading.Event().wait(0.3)
"""
    _ends(lab, ending, 0)


@scenario(seconds=25)
def a_process_that_executes_another(lab: Lab) -> None:
    """os.exec without close: the new program runs, and the member stays until its session is over."""
    _ends(lab, "os.execv('/bin/echo', ['echo', 'another'])", 1)


@scenario(seconds=25)
def an_interpreter_without_assertions(lab: Lab) -> None:
    """python -O leaves assertions out, and nothing else."""
    _program(lab, lab.topic(messages=3), "consumer.close()", option="-O")
    lab.note_members(0)


@scenario(seconds=25)
def a_consumer_in_an_object_with_a_finalizer(lab: Lab) -> None:
    """A consumer that __del__ of an application's object closes when the interpreter ends."""
    before = """
class Service:
    def __init__(self, consumer):
        self.consumer = consumer
    def __del__(self):
        self.consumer.close()
        print("closed", flush=True)
service = Service(consumer)
del consumer
consumer = service.consumer
"""
    _ends(lab, "", 0, before=before)


@scenario(seconds=25)
def a_child_that_uses_its_parents_consumer(lab: Lab) -> None:
    """A forked child that polls its parent's consumer does the parent no harm."""
    topic = lab.topic(messages=3)
    consumer = _read(lab, topic, 3)
    _fork(lab, lambda: consumer.raw.poll(0.5), seconds=5)
    _go_on(lab, consumer, topic)


@scenario(seconds=25)
def a_child_that_closes_its_parents_consumer(lab: Lab) -> None:
    """A forked child that closes its parent's consumer does the parent no harm."""
    topic = lab.topic(messages=3)
    consumer = _read(lab, topic, 3)
    _fork(lab, consumer.raw.close, seconds=3)
    _go_on(lab, consumer, topic)
