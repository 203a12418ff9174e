"""The commands of docs/incident.md, replayed: a message that no member can process, and its repair."""

import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from typer.testing import CliRunner, Result

from groupwright.cli.app import app
from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

PAGE = (Path(__file__).parents[1] / "incident.md").read_text(encoding="utf-8")
POISON = ("orders", 3, 10)
MAX_POLL_SECONDS = 6
MEMBER = """
import json, sys, time
from confluent_kafka import Consumer
consumer = Consumer(json.loads(sys.argv[1]))
consumer.subscribe(["orders"])
while True:
    message = consumer.poll(0.1)
    if message is None or message.error():
        continue
    if message.value() == b"poison":
        time.sleep(float(sys.argv[2]))
        continue  # it has lost the partition meanwhile
    consumer.store_offsets(message)
"""


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    with LocalKafka() as kafka:
        kafka.create_topic("orders", 6)
        yield kafka


def produce(kafka: LocalKafka, partitions: Iterable[int], values: Sequence[bytes]) -> None:
    """Produce the values to each of the partitions."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for partition in partitions:
        for value in values:
            producer.produce("orders", value, partition=partition)
    assert producer.flush(PATIENCE) == 0


def start(kafka: LocalKafka, cleanup: ExitStack) -> None:
    """Start the group's members, which end with the context."""
    for number in (1, 2):
        settings: dict[str, Any] = {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": "billing",
            "client.id": f"billing-{number}",
            "auto.offset.reset": "earliest",
            "enable.auto.offset.store": False,
            "auto.commit.interval.ms": 200,
            "session.timeout.ms": MAX_POLL_SECONDS * 1000,
            "heartbeat.interval.ms": 200,
            "max.poll.interval.ms": MAX_POLL_SECONDS * 1000,
        }
        member = subprocess.Popen(
            [sys.executable, "-c", MEMBER, json.dumps(settings), str(MAX_POLL_SECONDS * 1.5)]
        )
        cleanup.callback(member.wait)
        cleanup.callback(member.kill)


@pytest.mark.endurance
def test_the_commands_lead_from_the_lag_to_the_message(
    kafka: LocalKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    blocks = "".join(re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL))
    commands = re.findall(r"^groupwright .*$", blocks, re.MULTILINE)
    lag, by_partition, watch, doctor, show, plan, execute, after = commands
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("GROUPWRIGHT_BOOTSTRAP_SERVERS", kafka.bootstrap_servers)
    Path("billing.properties").write_text(
        f"group.id=billing\nmax.poll.interval.ms={MAX_POLL_SECONDS * 1000}\n", encoding="utf-8"
    )
    output = tmp_path / "watch"
    groups = "groupwright groups billing -o json"
    _, poisoned, offset = POISON
    produce(kafka, set(range(6)) - {poisoned}, [b"x"] * 20)
    produce(kafka, [poisoned], [b"x"] * offset)

    with ExitStack() as cleanup:
        start(kafka, cleanup)
        # Whichever member gets the message first must not keep the others' partitions waiting.
        wait_until(lambda: '"lag": 0' in run(groups).stdout, "all is consumed")
        produce(kafka, [poisoned], [b"poison", *[b"x"] * (20 - offset - 1)])
        with output.open("wb") as lines:
            program = [sys.executable, "-m", "groupwright.cli", *shlex.split(watch)[1:]]
            watching = subprocess.Popen(
                [*program, "--wait", "--interval", "0.2", "--stalled-after", "2"],
                stdout=lines,
                stderr=lines,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        cleanup.callback(watching.wait)
        cleanup.callback(watching.kill)
        left = wait_for(
            output, r"(billing-\d) left after no progress of .*: it died, or exceeded max\.poll\.interval\.ms"
        )[1]
        other = wait_for(output, rf"rebalance: .*{left} left after .*; (billing-\d) gained orders ")[1]
        assert other != left
        wait_for(output, rf"{other} left after no progress of orders-3 at 10 for ")
        wait_for(output, rf"{left} joined again from 127\.0\.0\.1")

        assert re.search(r"^billing +\d+ +\d+\.\d", run(lag).stdout, re.MULTILINE)
        one_lags = r"billing +orders +3 +10 +\d+\.\d .*\n(billing +orders +\d +0 +0\.0 .*\n){5}"
        wait_until(lambda: bool(re.search(one_lags, run(by_partition).stdout)), "one partition lags")
        assert "warning: max-poll-interval" in run(doctor, status=1).stdout
        assert re.search(r"^orders +3 +0 +10 +20 +10", run(show).stdout, re.MULTILINE)
        assert message_read(kafka, capsys).endswith("b'poison'\n")
        refused = run(plan, status=6)
        assert re.search(r"^orders +3 +10 +11 +9 +planned", refused.stdout, re.MULTILINE)

    wait_until(lambda: "Empty" in run("groupwright groups billing").stdout, "the group has no members")
    assert re.search(r"^orders +3 +10 +11 +9 +done", run(execute).stdout, re.MULTILINE)
    with ExitStack() as cleanup:
        start(kafka, cleanup)
        wait_until(lambda: '"lag": 0' in run(groups).stdout, "the lag is drained")
        assert "lag 0" in run(f"{after} --once").stdout


def message_read(kafka: LocalKafka, capsys: pytest.CaptureFixture[str]) -> str:
    """Run the page's program for the message of this test, and return its output."""
    (program,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    # The offset first: the digits may also be in the broker's port.
    program = program.replace("299", str(POISON[2])).replace("localhost:9092", kafka.bootstrap_servers)
    exec(program, {})  # noqa: S102 - the documentation's own code
    return capsys.readouterr().out


def run(command: str, status: int = 0) -> Result:
    result = CliRunner().invoke(app, shlex.split(command)[1:], env={"COLUMNS": "200"})
    assert result.exit_code == status, result.output
    return result


def wait_for(path: Path, pattern: str) -> "re.Match[str]":
    found: list[re.Match[str]] = []

    def is_there() -> bool:
        match = re.search(pattern, path.read_text(encoding="utf-8"))
        found.extend([match] if match else [])
        return bool(found)

    wait_until(is_there, f"{pattern} in {path}")
    return found[0]
