"""`python -m benchmarks.parallel`: the cost of workers, beside a bare thread pool and code by hand."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

import typer
from confluent_kafka import Producer

from benchmarks.layout import Finding, Report, Table, markdown
from benchmarks.parallel.contestants import CONTESTANTS, FUNCTIONS, WORKERS
from benchmarks.shell import Output, Quick, Shell
from groupwright.testing import LocalKafka

PARTITIONS = 6
KEYS = 1000
MESSAGES = {False: {"nothing": 600_000, "1 ms": 20_000}, True: {"nothing": 60_000, "1 ms": 2_000}}
"""By whether the run is quick, and by function."""
LEAST_BY_PARTITION = 100_000
"""Messages that do nothing, in a second."""
MOST_SLOWER = 0.15
"""Than by hand, on functions of 1 ms."""
_TIMEOUT_SECONDS = 600


@dataclass
class Results:
    """Seconds, processor seconds and number of messages, by function and contestant."""

    command: str
    date: str
    machine: dict[str, str]
    cells: dict[str, dict[str, tuple[float, float, int]]] = field(default_factory=dict)


def fill(servers: str, topic: str, messages: int) -> None:
    """Write messages with keys to all partitions.

    Raises:
        TimeoutError: The broker does not take them.
    """
    producer = Producer(
        {"bootstrap.servers": servers, "linger.ms": 20, "queue.buffering.max.messages": messages}
    )
    for number in range(messages):
        producer.produce(topic, b"x" * 100, f"key {number % KEYS}")
    if producer.flush(_TIMEOUT_SECONDS):
        raise TimeoutError("the broker does not take the messages")


def measure(servers: str, topic: str, contestant: str, function: str, messages: int) -> tuple[float, float]:
    """Return the seconds and the processor seconds of a contestant."""
    command = [sys.executable, "-m", "benchmarks.parallel.contestants", servers, topic, contestant, function]
    ended = subprocess.run(  # noqa: S603 - this program
        [*command, str(messages)], capture_output=True, text=True, timeout=_TIMEOUT_SECONDS, check=True
    )
    found = json.loads(ended.stdout)
    return found["seconds"], found["cpu"]


def tables(results: Results) -> list[Table]:
    """Return the table of each function."""
    found = []
    for function, cells in results.cells.items():
        rows = [
            [name, f"{number / seconds:,.0f}", f"{cpu / number * 1e6:.1f} µs"]
            for name, (seconds, cpu, number) in cells.items()
        ]
        title = f"{WORKERS} workers, a function that takes {function}"
        found.append(Table(title, ["contestant", "messages a second", "processor time each"], rows))
    return found


def summary(results: Results) -> Iterator[Finding]:
    """Yield the targets."""
    rates = {
        function: {name: number / seconds for name, (seconds, _, number) in cells.items()}
        for function, cells in results.cells.items()
    }
    rate = rates["nothing"]["by partition"]
    yield Finding(
        f"{rate:,.0f} messages a second by partition, at least {LEAST_BY_PARTITION:,}",
        rate >= LEAST_BY_PARTITION,
    )
    ratio = rates["1 ms"]["by key"] / rates["1 ms"]["by hand, by key"]
    yield Finding(
        f"{ratio:.2f} of the throughput by hand on functions of 1 ms, at least {1 - MOST_SLOWER:.2f}",
        ratio >= 1 - MOST_SLOWER,
    )


def page(results: Results, _: str | None) -> Iterator[str]:
    """Yield the page, line by line."""
    yield "# Work in parallel"
    yield ""
    yield f"Made by `{results.command}` on {results.date}. {PARTITIONS} partitions, {KEYS:,} keys,"
    yield "messages of 100 bytes, one process on a broker of the same machine. The bare thread pool commits"
    yield "nothing and keeps no order."
    for table in tables(results):
        yield from ("", f"## {table.title}", "", *markdown(table))
    yield from ("", *(f"- {finding}" for finding in summary(results)), "")
    yield ", ".join(f"{name}: {value}" for name, value in results.machine.items())
    yield ""


REPORT = Report("parallel", Results, tables, summary, page)


def run(results: Results, *, quick: bool, shell: Shell) -> None:
    """Measure all contestants, on one broker."""
    shell.expect(len(FUNCTIONS) * len(CONTESTANTS))
    with LocalKafka(heap="1g") as kafka:
        for function, messages in MESSAGES[quick].items():
            topic = f"orders-{messages}"
            kafka.create_topic(topic, PARTITIONS)
            fill(kafka.bootstrap_servers, topic, messages)
            for name in CONTESTANTS:
                number = messages // WORKERS if name == "no workers" and function != "nothing" else messages
                seconds, cpu = measure(kafka.bootstrap_servers, topic, name, function, number)
                results.cells.setdefault(function, {})[name] = seconds, cpu, number
                shell.advance(f"{name}, {function}")


def main(*, quick: Quick = False, output: Output = None) -> None:
    """Measure work in parallel: messages a second and processor time each."""
    shell = Shell("parallel")
    results = Results(**shell.origin())
    with shell.progress_shown():
        run(results, quick=quick, shell=shell)
    shell.finish(REPORT, results, output, is_whole=not quick)


if __name__ == "__main__":
    typer.run(main)
