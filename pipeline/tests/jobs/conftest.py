"""A Kafka with groups that have been through something, and the jobs and other programs as processes."""

import contextlib
import os
import signal
import sys
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException, Producer
from pyspark.sql import SparkSession
from typer.testing import CliRunner

from groupwright.cli.pipeline import command as pipeline
from groupwright.instrumentation import create_instrumented, to_kafka
from groupwright.pipeline import jobs
from groupwright.testing import LocalKafka
from integration_tests.harness.process import Process
from integration_tests.harness.waiting import holds_within

_PATIENCE_SECONDS = 300.0
EVENTS = "groupwright.rebalances"


class Groups:
    """Members of groups, each polled by a thread of its own until it leaves."""

    def __init__(self, kafka: LocalKafka) -> None:
        self.kafka = kafka
        self.events = to_kafka({"bootstrap.servers": kafka.bootstrap_servers, "log_level": 0})
        self._members: dict[str, tuple[Any, threading.Event, threading.Thread]] = {}
        self._consumed: dict[str, int] = {}

    def join(self, name: str, group: str, topic: str, **config: object) -> None:
        """Let a member join, and wait until it has consumed and committed something."""
        consumer = create_instrumented(
            Consumer,
            {
                "bootstrap.servers": self.kafka.bootstrap_servers,
                "group.id": group,
                "client.id": name,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
                **config,
            },
            events=[self.events],
        )
        leaving = threading.Event()
        thread = threading.Thread(target=self._run, args=(name, consumer, topic, leaving), daemon=True)
        self._members[name] = (consumer, leaving, thread)
        thread.start()
        self.wait_until(lambda: self._consumed.get(name, 0) > 0)

    def leave(self, *names: str) -> None:
        for name in names:
            self._members[name][1].set()
        for name in names:
            self._members.pop(name)[2].join(_PATIENCE_SECONDS)

    def leave_all(self) -> None:
        self.leave(*self._members)
        self.events.close()

    def produce(self, topic: str, messages: int, partitions: int) -> None:
        producer = Producer({"bootstrap.servers": self.kafka.bootstrap_servers})
        for number in range(messages):
            producer.produce(topic, b"message", partition=number % partitions)
        assert producer.flush(_PATIENCE_SECONDS) == 0

    def produce_raw(self, topic: str, key: bytes, value: bytes, partition: int) -> None:
        """Produce to an internal topic, which Kafka lets its own admin client do alone."""
        producer = Producer(
            {"bootstrap.servers": self.kafka.bootstrap_servers, "client.id": "__admin_client"}
        )
        producer.produce(topic, value, key, partition)
        assert producer.flush(_PATIENCE_SECONDS) == 0

    @staticmethod
    def wait_until(condition: Callable[[], bool]) -> None:
        assert holds_within(condition, _PATIENCE_SECONDS)

    def _run(self, name: str, consumer: Any, topic: str, leaving: threading.Event) -> None:
        consumer.subscribe([topic])
        while not leaving.is_set():
            message = consumer.poll(0.1)
            if message is not None and message.error() is None:
                with contextlib.suppress(KafkaException):  # the next commit has it too
                    consumer.commit(message, asynchronous=False)
                self._consumed[name] = self._consumed.get(name, 0) + 1
        consumer.close()


class Program(Process):
    """A program that runs in the folder where it also writes its output."""

    def __init__(self, folder: Path, *command: str, env: Mapping[str, str] = os.environ) -> None:
        super().__init__(folder / f"{uuid.uuid4()}.log", *command, env=env, cwd=folder)

    def wait_for(self, text: str) -> None:
        def is_written() -> bool:
            has_ended = self.status is not None
            is_found = text in self.output
            assert is_found or not has_ended, self.output
            return is_found

        assert holds_within(is_written, _PATIENCE_SECONDS), self.output

    def exit_status(self, patience: float = _PATIENCE_SECONDS) -> int:
        return self.wait(patience)


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    """A broker whose offsets topic has few partitions: each is a task of Spark's."""
    with LocalKafka(config={"offsets.topic.num.partitions": 3}) as kafka:
        yield kafka


@pytest.fixture
def groups(kafka: LocalKafka) -> Iterator[Groups]:
    groups = Groups(kafka)
    yield groups
    groups.leave_all()


@pytest.fixture
def start_program(tmp_path: Path) -> Iterator[Callable[..., Program]]:
    programs: list[Program] = []

    def start(*command: str, **options: Any) -> Program:
        programs.append(Program(tmp_path, *command, **options))
        return programs[-1]

    yield start
    for program in programs:
        program.kill()


@pytest.fixture
def run_job(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """The command in this process, on the Spark of the tests: starting another takes longer than the job."""
    monkeypatch.setattr(jobs, "local_session", lambda *_, **__: contextlib.nullcontext(spark))
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def run(*arguments: str, exit_code: int = 0) -> str:
        done = CliRunner().invoke(pipeline.pipeline, arguments)
        assert done.exit_code == exit_code, done.output
        return done.output

    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def start_job(start_program: Callable[..., Program]) -> Callable[..., Program]:
    """A job on a Spark of its own, as the command starts it."""

    def start(*arguments: str) -> Program:
        return start_program(sys.executable, "-m", "groupwright.cli", "pipeline", *arguments)

    return start
