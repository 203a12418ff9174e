"""A member of the demo's group: one consumer in a process of its own.

It reports to the process that started it on standard output (`reports`), and leaves the group in good order
when its standard input ends: because the demo wants it to leave, or because the demo is gone.

Commits are automatic, so they begin inside a call of `consume`. What a call has returned is reported before
the next call; hence nothing is ever committed that was not reported, however the process ends.
"""

import argparse
import logging
import os
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from confluent_kafka import KafkaException, Message, TopicPartition
from prometheus_client import CollectorRegistry, start_http_server

from groupwright.assignors import GroupwrightError
from groupwright.cli.demo.offsets import spans
from groupwright.cli.demo.reports import (
    Committed,
    Consumed,
    Failed,
    Rebalanced,
    Report,
    Revoked,
    Started,
    encode,
)
from groupwright.consumer import Consumer, Outcome, Rebalance
from groupwright.core import RebalanceListener
from groupwright.instrumentation import instrument

Partitions = Mapping[str, Sequence[int]]

SESSION_SECONDS = 6
"""How long the coordinator waits for a killed member; brokers allow no less by default."""

COMMIT_SECONDS = 1
"""How often a member commits what it has consumed."""

_BATCH = 500
_BATCH_SECONDS = 0.1
_LEAVE_SECONDS = 8.0

_log = logging.getLogger("groupwright.cli.demo")


def command(*, name: str, bootstrap_servers: str, topic: str, group: str, assignor: str) -> list[str]:
    """Return the command line that starts a member."""
    options = {
        "--name": name,
        "--bootstrap-servers": bootstrap_servers,
        "--topic": topic,
        "--group": group,
        "--assignor": assignor,
    }
    return [sys.executable, "-m", __name__, *(word for option in options.items() for word in option)]


def main(arguments: Sequence[str] | None = None) -> int:
    """Be a member until standard input ends; return the exit status."""
    options = _options().parse_args(arguments)
    reports = ReportPipe(_take_standard_output())
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    leaving = threading.Event()
    threading.Thread(target=_await_end_of_input, args=(leaving,), daemon=True).start()
    try:
        _consume(options, reports, leaving)
    except BrokenPipeError:
        return 1  # nobody reads the reports any more
    except (GroupwrightError, KafkaException) as error:
        _log.exception("the member ends")
        reports.send(Failed(str(error)))
        return 1
    return 0


class ReportPipe:
    """Writes whole lines to a pipe; only the polling thread does."""

    def __init__(self, descriptor: int) -> None:
        """Write to the file descriptor."""
        self._descriptor = descriptor

    def send(self, report: Report) -> None:
        """Write the report, and return when it cannot be lost any more: the pipe outlives this process."""
        line = encode(report)
        while line:
            line = line[os.write(self._descriptor, line) :]


class RebalanceReporter(RebalanceListener):
    """A listener of the consumer that reports what it hears."""

    def __init__(self, reports: ReportPipe, topic: str) -> None:
        """Report the partitions of the one topic."""
        self._reports = reports
        self._topic = topic

    def partitions_revoked(self, partitions: Partitions, seconds: float) -> None:  # noqa: ARG002 - a Listener's
        """Report partitions that were given up."""
        self._reports.send(Revoked(self._of_topic(partitions)))

    def partitions_lost(self, partitions: Partitions, seconds: float) -> None:  # noqa: ARG002 - a Listener's
        """Report partitions that others may own already."""
        self._reports.send(Revoked(self._of_topic(partitions), lost=True))

    def rebalanced(self, rebalance: Rebalance) -> None:
        """Report what came of the rebalance, unless it failed: `consume` raises that."""
        if rebalance.outcome is not Outcome.FAILED:
            owned = self._of_topic(rebalance.partitions)
            self._reports.send(Rebalanced(rebalance.generation, rebalance.duration or 0.0, owned))

    def _of_topic(self, partitions: Partitions) -> tuple[int, ...]:
        return tuple(int(partition) for partition in partitions.get(self._topic, ()))


def _consume(options: argparse.Namespace, reports: ReportPipe, leaving: threading.Event) -> None:
    def committed(error: object, partitions: list[TopicPartition]) -> None:
        if error is None:
            reports.send(Committed({partition.partition: partition.offset for partition in partitions}))
        else:
            _log.warning("a commit failed: %s", error)

    registry = CollectorRegistry()
    with Consumer(_configuration(options), on_commit=committed) as consumer:
        consumer.add_listener(RebalanceReporter(reports, options.topic))
        instrument(consumer, registry=registry)
        server, _ = start_http_server(0, addr="127.0.0.1", registry=registry)
        reports.send(Started(f"http://127.0.0.1:{server.server_port}/metrics"))
        consumer.subscribe([options.topic])
        while not leaving.is_set():
            consumed = _offsets(consumer.consume(_BATCH, _BATCH_SECONDS))
            if consumed:
                reports.send(Consumed(tuple(spans(consumed))))


def _configuration(options: argparse.Namespace) -> dict[str, Any]:
    return {
        "bootstrap.servers": options.bootstrap_servers,
        "client.id": options.name,
        "group.id": options.group,
        "partition.assignment.strategy": options.assignor,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": COMMIT_SECONDS * 1000,
        "session.timeout.ms": SESSION_SECONDS * 1000,
        "heartbeat.interval.ms": 500,
    }


def _offsets(messages: list[Message]) -> list[tuple[int, int]]:
    offsets = []
    for message in messages:
        error = message.error()
        partition, offset = message.partition(), message.offset()
        if error is not None:
            _log.warning("consume returned an error: %s", error)
        elif partition is not None and offset is not None:
            offsets.append((partition, offset))
    return offsets


def _await_end_of_input(leaving: threading.Event) -> None:
    """Wait until standard input ends, ask for the end, and bring it about if it does not come."""
    while os.read(0, 1024):
        pass
    leaving.set()
    # Nobody may be left to end a member that hangs; this thread ends with one that does not.
    time.sleep(_LEAVE_SECONDS)
    os._exit(1)


def _take_standard_output() -> int:
    """Keep standard output for the reports: what else writes to it reaches standard error."""
    descriptor = os.dup(1)
    os.dup2(2, 1)
    return descriptor


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"python -m {__name__}", description="A member of the demo's group."
    )
    for option in ("--name", "--bootstrap-servers", "--topic", "--group", "--assignor"):
        parser.add_argument(option, required=True)
    return parser


if __name__ == "__main__":
    sys.exit(main())
