"""`groupwright watch` on a real Kafka: groups of all types, members that come and go, a broker that stops."""

import json
import os
import re
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import confluent_kafka
import jsonschema  # type: ignore[import-untyped]
import pytest
from confluent_kafka import Producer, TopicPartition

from groupwright import cli
from groupwright.consumer import Consumer
from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.terminal import Terminal
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

Run = Callable[..., "subprocess.CompletedProcess[str]"]

SCHEMA = json.loads(
    (Path(cli.__file__).parent / "_schemas" / "watch.schema.json").read_text(encoding="utf-8")
)
# `jsonschema.validate` would check the schema each time.
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)
PARTITIONS = 4
KINDS: dict[str, dict[str, Any]] = {
    "confluent-kafka": {"session.timeout.ms": 6000, "heartbeat.interval.ms": 200},
    "groupwright": {"make": Consumer, "session.timeout.ms": 6000, "heartbeat.interval.ms": 200},
    "KIP-848": {"group.protocol": "consumer"},
}


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    config = {
        "group.min.session.timeout.ms": 1000,
        "group.consumer.min.session.timeout.ms": 1000,
        "group.consumer.session.timeout.ms": 6000,
        "group.consumer.min.heartbeat.interval.ms": 200,
        "group.consumer.heartbeat.interval.ms": 200,
    }
    with LocalKafka(config=config) as kafka:
        kafka.create_topic("orders", PARTITIONS)
        produce(kafka, 25)
        yield kafka


def produce(kafka: LocalKafka, messages: int) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(messages * PARTITIONS):
        producer.produce("orders", b"x", partition=number % PARTITIONS)
    assert producer.flush(PATIENCE) == 0


@pytest.fixture
def group() -> str:
    return f"billing-{uuid.uuid4().hex[:8]}"


def settings(kafka: LocalKafka, group: str, name: str, **more: Any) -> dict[str, Any]:
    return {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": group,
        "client.id": name,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": 500,
        **more,
    }


@contextmanager
def member(kafka: LocalKafka, group: str, name: str, **more: Any) -> Iterator[Any]:
    """A member that polls in a thread until the end of the block, where it leaves."""
    make: Any = more.pop("make", confluent_kafka.Consumer)
    consumer = make(settings(kafka, group, name, **more))
    consumer.subscribe(["orders"])
    stopped = threading.Event()

    def poll() -> None:
        while not stopped.is_set():
            consumer.poll(0.05)
            stopped.wait(0.01)  # else confluent-kafka lets no other thread in

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield consumer
    finally:
        stopped.set()
        thread.join(PATIENCE)
        consumer.close()


@contextmanager
def doomed_member(
    kafka: LocalKafka, group: str, name: str, **more: Any
) -> Iterator["subprocess.Popen[bytes]"]:
    """A member in a process of its own, which can be killed."""
    more.pop("make", None)
    program = (
        "import json, sys, confluent_kafka\n"
        "consumer = confluent_kafka.Consumer(json.loads(sys.argv[1]))\n"
        "consumer.subscribe(['orders'])\n"
        "while True: consumer.poll(0.1)\n"
    )
    configuration = json.dumps(settings(kafka, group, name, **more))
    process = subprocess.Popen([sys.executable, "-c", program, configuration])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class Watching:
    """The command as a process without a terminal."""

    def __init__(self, kafka: LocalKafka, directory: Path, *arguments: str, timeout: str) -> None:
        self._path = directory / f"{uuid.uuid4().hex}.out"
        self._read = 0
        self._documents: list[dict[str, Any]] = []
        with self._path.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    *(sys.executable, "-m", "groupwright.cli", "watch", *arguments),
                    *(
                        "--bootstrap-servers",
                        kafka.bootstrap_servers,
                        "--interval",
                        "0.1",
                        "--timeout",
                        timeout,
                    ),
                ],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )

    @property
    def output(self) -> str:
        return self._path.read_text(encoding="utf-8")

    def documents(self) -> list[dict[str, Any]]:
        """Return the events so far, all of which are valid."""
        with self._path.open(encoding="utf-8") as output:
            output.seek(self._read)
            while (line := output.readline()).endswith("\n"):
                self._read = output.tell()
                self._documents.append(json.loads(line))
                VALIDATOR.validate(self._documents[-1])
        return self._documents

    def skip(self) -> None:
        """Leave what was printed so far, which is for people, out of the events."""
        self._read = self._path.stat().st_size

    def wait_for(self, pattern: str, after: int = 0) -> int:
        """Wait for a pattern in the output after a position; return the position of its end."""
        found: list[re.Match[str]] = []

        def has() -> bool:
            assert self.process.poll() is None, self.output
            match = re.compile(pattern).search(self.output, after)
            found.extend([match] if match else [])
            return bool(found)

        wait_until(has, f"{pattern} in {self._path}")
        return found[0].end()

    def wait_for_event(self, condition: Callable[[dict[str, Any]], bool], what: str) -> dict[str, Any]:
        """Wait for an event and return it."""
        wait_until(lambda: any(map(condition, self.documents())), f"{what} in {self._path}")
        return next(filter(condition, self.documents()))

    def interrupt(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@pytest.fixture
def watch(kafka: LocalKafka, tmp_path: Path) -> Iterator[Callable[..., Watching]]:
    with ExitStack() as cleanup:

        def start(*arguments: str, timeout: str = "10") -> Watching:
            watching = Watching(kafka, tmp_path, *arguments, timeout=timeout)
            cleanup.callback(watching.process.wait)
            cleanup.callback(watching.process.kill)
            return watching

        yield start


def gained(name: str) -> Callable[[dict[str, Any]], bool]:
    return lambda event: event["event"] == "rebalance" and name in event["gained"]


# --- Members come and go


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_members_that_join_leave_and_die_are_followed(
    kafka: LocalKafka, group: str, watch: Callable[..., Watching], kind: str
) -> None:
    watching = watch(group, "--wait", "--output", "json", "--lag-every", "0.5")
    watching.wait_for("waiting for the group.*\n")
    watching.skip()
    wait_for = watching.wait_for_event

    with member(kafka, group, "one", **KINDS[kind]):
        first = wait_for(lambda event: event["event"] == "group", "the first snapshot")
        assert first["type"] == ("consumer" if kind == "KIP-848" else "classic")
        # None while a classic group rebalances, of which no move is claimed.
        if first["partitions"] is not None and first["partitions"] < PARTITIONS:
            wait_for(gained("one"), "the first assignment")
        wait_for(lambda event: event["event"] == "lag" and event["lag"]["messages"] == 0, "no lag")
        with member(kafka, group, "two", **KINDS[kind]):
            joined = wait_for(gained("two"), "the second member's assignment")
            assert len(joined["gained"]["two"]["orders"]) == PARTITIONS // 2
            assert joined["moved"] >= PARTITIONS // 2
            assert (joined["epoch"] is None) == (kind != "KIP-848")
            assert joined["epoch"] is None or joined["epoch"] > joined["epoch_before"]
        left = wait_for(lambda event: event["event"] == "left" and event["member"] == "two", "the leave")
        assert left["client_id"] == "two"
        back = wait_for(
            lambda event: event["event"] == "rebalance" and "two" in event["lost"], "partitions back"
        )
        assert back["gained"]["one"] == back["lost"]["two"]
        with doomed_member(kafka, group, "three", **KINDS[kind]) as process:
            wait_for(gained("three"), "the third member's assignment")
            process.kill()
            wait_for(
                lambda event: event["event"] == "left" and event["member"] == "three", "its session's end"
            )
            wait_for(
                lambda event: event["event"] == "rebalance" and "three" in event["lost"], "partitions back"
            )
    wait_for(lambda event: event["event"] == "state" and event["after"] == "Empty", "no members")
    kafka.admin().delete_consumer_groups([group])[group].result(PATIENCE)
    wait_for(lambda event: event["event"] == "state" and event["after"] == "Dead", "no group")
    assert watching.interrupt() == 130


def test_a_static_member_that_restarts_is_seen_as_itself(
    kafka: LocalKafka, group: str, watch: Callable[..., Watching]
) -> None:
    static = {**KINDS["confluent-kafka"], "group.instance.id": "pod-1", "session.timeout.ms": 300_000}
    with doomed_member(kafka, group, "app", **static) as process:
        watching = watch(group, "--wait")
        at = watching.wait_for("pod-1 gained orders 0-3|4 partitions, lag|what moved is not known")
        process.kill()
        process.wait()
        with doomed_member(kafka, group, "app", **static):
            watching.wait_for(r"pod-1 has a new member id, on 127.0.0.1\n", at)
    assert "left" not in watching.output
    assert watching.interrupt(signal.SIGTERM) == 143


# --- The broker comes and goes


@pytest.mark.slow
def test_a_broker_that_stops_leaves_the_last_view_and_is_found_again(
    kafka: LocalKafka, group: str, watch: Callable[..., Watching]
) -> None:
    with member(kafka, group, "one", **KINDS["confluent-kafka"]) as consumer:
        wait_until(lambda: len(consumer.assignment()) == PARTITIONS, "the assignment")
        lines, documents = watch(group), watch(group, "--output", "json")
        lines.wait_for("Stable|Rebalance")
        documents.wait_for('"event": "group"')
        kafka.stop()
        try:
            stopped = lines.wait_for("Z  no answer: ")
            documents.wait_for_event(lambda event: event["event"] == "unavailable", "the event unavailable")
        finally:
            kafka.start()
        lines.wait_for(r"Z  brokers answer again, after \d+\.\d s", stopped)
        answer = documents.wait_for_event(lambda event: event["event"] == "available", "the event available")
        assert answer["seconds"] > 0
    assert lines.output.count("no answer") == 1
    assert (lines.interrupt(), documents.interrupt()) == (130, 130)
    assert "Traceback" not in lines.output + documents.output


def test_ctrl_c_ends_at_once_while_no_broker_answers(
    kafka: LocalKafka, group: str, watch: Callable[..., Watching]
) -> None:
    commit(kafka, group)
    watching = watch(group, timeout="2")
    watching.wait_for("Empty")
    kafka.pause()
    try:
        watching.wait_for("no answer: ")
        watching.process.send_signal(signal.SIGINT)
        assert watching.process.wait(PATIENCE) == 130
    finally:
        kafka.resume()


def commit(kafka: LocalKafka, group: str) -> None:
    consumer = confluent_kafka.Consumer(settings(kafka, group, "committer"))
    consumer.commit(offsets=[TopicPartition("orders", 0, 5)], asynchronous=False)
    consumer.close()


# --- One view, and the terminal


@pytest.mark.parametrize("width", [80, 200])
def test_one_view_fits_the_width_and_has_no_colours(
    kafka: LocalKafka, group: str, groupwright: Run, width: int
) -> None:
    with member(kafka, group, "one", **KINDS["confluent-kafka"], **{"client.rack": "a"}) as consumer:
        wait_until(lambda: len(consumer.assignment()) == PARTITIONS, "the assignment")
        arguments = ("watch", group, "--once", "--bootstrap-servers", kafka.bootstrap_servers)
        result = groupwright(*arguments, COLUMNS=str(width))
        found = groupwright(*arguments, "-o", "json")

    assert (result.returncode, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert max(map(len, lines)) <= width
    assert "\x1b" not in result.stdout
    assert lines[0].startswith(f"{group}  Stable  classic, range")
    assert re.search(r"^one +127.0.0.1 .* 4 +orders 0-3", result.stdout, re.MULTILINE)
    assert lines[-1] == "No rebalance seen"
    document = json.loads(found.stdout)
    VALIDATOR.validate(document)
    assert [each["assigned"] for each in document["members"]] == [{"orders": [0, 1, 2, 3]}]


def test_unknown_groups_are_not_found_or_awaited(kafka: LocalKafka, group: str, groupwright: Run) -> None:
    commit(kafka, group)
    broker = ("--bootstrap-servers", kafka.bootstrap_servers)

    unknown = groupwright("watch", f"{group}x", *broker)
    awaited = groupwright("watch", "zzzzzz", "--wait", "--for", "0.5", "--interval", "0.1", *broker)

    assert (unknown.returncode, unknown.stdout) == (4, "")
    assert unknown.stderr == f"groupwright watch: there is no group '{group}x', did you mean '{group}'?\n"
    assert (awaited.returncode, awaited.stdout) == (4, "")
    assert awaited.stderr.endswith("the group 'zzzzzz' did not appear in time\n")


def test_ctrl_c_on_a_terminal_restores_it_and_leaves_the_last_view(kafka: LocalKafka, group: str) -> None:
    with member(kafka, group, "one", **KINDS["confluent-kafka"]) as consumer:
        wait_until(lambda: len(consumer.assignment()) == PARTITIONS, "the assignment")
        terminal = Terminal(
            "watch", group, "--bootstrap-servers", kafka.bootstrap_servers, "--interval", "0.2"
        )
        try:
            wait_until(lambda: "orders" in terminal.output, "a frame")
            with member(kafka, group, "two", **KINDS["confluent-kafka"]):
                wait_until(lambda: "moved recently" in terminal.output, "moves")
            terminal.press(b"\x03")
            assert terminal.process.wait(PATIENCE) == 130
            wait_until(lambda: "\x1b[?1049l" in terminal.output, "the screen before")
            shown = terminal.output
            assert terminal.after() == terminal.before
        finally:
            terminal.close()

    assert shown.index("\x1b[?1049h") < shown.index("orders") < shown.index("\x1b[?1049l")
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")  # the cursor is visible
    last = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", shown[shown.index("\x1b[?1049l") :])
    assert f"{group}  " in last
    assert "Traceback" not in last
    assert max(map(len, last.replace("\r", "").splitlines())) <= 80
