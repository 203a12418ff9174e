"""Runs all contestants with each shape, one after the other, on one broker and by the same timetable."""

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from benchmarks.consumer.ownership import Ownership, read_change
from benchmarks.consumer.processes import Programs, RunFailedError, programs
from benchmarks.consumer.programs.harness import now
from benchmarks.consumer.results import Status
from benchmarks.load import analysis
from benchmarks.load.contestants import Contestant, python
from benchmarks.load.plan import (
    CAPACITY,
    INITIAL_REBALANCE_DELAY_MS,
    LAG_HORIZON,
    MEMBER_TIMINGS,
    MEMBERS,
    PARTITIONS,
    SERVICE_SECONDS,
    TRAFFIC_SHARE,
    WEIGHT_WINDOW,
    Effort,
)
from benchmarks.load.results import Outcome, Results, Run
from benchmarks.load.shapes import Shape, Shares, drifted, shares, split
from groupwright.testing import LocalKafka

Progress = Callable[[str, int], None]
"""Called with the next run, and the number of runs that are done."""

_SLACK_SECONDS = SERVICE_SECONDS / 2
_JOIN_SECONDS = 60.0
_MOST_TIMES_IDEAL = 8
"""A group that drains its backlog this many times slower than an even one has a single consuming member."""

_LAG_STEP = 0.5


def run(contestants: Sequence[Contestant], effort: Effort, progress: Progress, results: Results) -> None:
    """Run all contestants with each shape; put what is found into the results, as it is found.

    Raises:
        GroupwrightError: The broker does not start.
    """
    config = {"group.initial.rebalance.delay.ms": INITIAL_REBALANCE_DELAY_MS}
    done = 0
    with LocalKafka(config=config, heap="1g") as broker:
        for shape in effort.shapes:
            outcomes = results.shapes.setdefault(shape, {})
            for contestant in contestants:
                progress(f"{shape}: {contestant.name}", done)
                outcomes[contestant.name] = _outcome(broker, contestant, shape, effort)
                done += 1


def _outcome(broker: LocalKafka, contestant: Contestant, shape: Shape, effort: Effort) -> Outcome:
    if contestant.absent:
        return Outcome(Status.LACKING, contestant.absent)
    topic = f"{shape}-{contestant.name}".replace(" ", "-")
    try:
        return Outcome(run=_Scene(broker, contestant, effort, topic).play(shares(shape, PARTITIONS)))
    except RunFailedError as error:
        return Outcome(error.status, error.note)
    except ValueError as error:
        return Outcome(Status.FAILED, str(error))


@dataclass
class _Scene:
    """One run of a contestant."""

    broker: LocalKafka
    contestant: Contestant
    effort: Effort
    topic: str

    def play(self, first: Shares) -> Run:
        """Have a group drain a backlog, and then consume traffic that drifts.

        Raises:
            RunFailedError: A program fails, or the group does not settle.
            ValueError: Messages are missing.
        """
        backlog = split(round(MEMBERS * CAPACITY * self.effort.backlog_seconds), first)
        self._create()
        with tempfile.TemporaryDirectory(prefix="groupwright-bench-") as name, programs() as running:
            self._start(running, name, backlog)
            group = _Group(running)
            running.order("join")
            group.drain(sum(backlog), _JOIN_SECONDS + _MOST_TIMES_IDEAL * self.effort.backlog_seconds)
            drain_owners = group.owners()
            began = now()
            assignments, windows, rebalances = [drain_owners], [], []
            mix = first
            running.order(_rates(mix))
            windows.append(self._window(group))
            for drift in range(self.effort.drifts):
                mix = drifted(mix, drift)
                running.order(_rates(mix))
                group.follow(self.effort.drift_seconds)
                before, past = group.owners(), group.changes
                running.order("rebalance")
                windows.append(self._window(group))
                assignments.append(group.owners())
                rebalances.append(
                    analysis.measure_rebalance(before, group.owners(), group.ownership.changes[past:])
                )
            ended = now()
            running.order("stop")
            running.await_all("done")
            consumed = analysis.read_consumed(Path(name), MEMBERS)
            written = analysis.read_written(Path(name))
        fresh = analysis.once(consumed)
        return Run(
            drain=analysis.measure_drain(fresh, backlog, drain_owners, MEMBERS, SERVICE_SECONDS),
            windows=tuple(
                analysis.measure_window(fresh, written, owners, MEMBERS, SERVICE_SECONDS, between)
                for owners, between in zip(assignments, windows, strict=True)
            ),
            rebalances=tuple(rebalances),
            lag=analysis.lag_over_time(fresh, written, sum(backlog), (began, ended), _LAG_STEP),
            twice=len(consumed) - len(fresh),
        )

    def _create(self) -> None:
        """Create the topic, and commit offset 0 of each partition, as of a group that was away."""
        self.broker.create_topic(self.topic, PARTITIONS)
        consumer = Consumer({"bootstrap.servers": self.broker.bootstrap_servers, "group.id": self.topic})
        offsets = [TopicPartition(self.topic, partition, 0) for partition in range(PARTITIONS)]
        consumer.commit(offsets=offsets, asynchronous=False)
        consumer.close()

    def _start(self, running: Programs, folder: str, backlog: Sequence[int]) -> None:
        """Start the members, which wait for an order to join, and the writer, which writes the backlog."""
        settings = {
            "servers": self.broker.bootstrap_servers,
            "topic": self.topic,
            "group": self.topic,
            "folder": folder,
            "service": SERVICE_SECONDS,
            "slack": _SLACK_SECONDS,
            "window": WEIGHT_WINDOW,
            "horizon": LAG_HORIZON,
            **MEMBER_TIMINGS,
            **dict(self.contestant.settings),
        }
        first_and_last = (
            [(0, MEMBERS - 1)]
            if self.contestant.one_process
            else [(number, number) for number in range(MEMBERS)]
        )
        for first, last in first_and_last:
            running.start(self.contestant.command, settings | {"first": first, "last": last})
        running.start(python("traffic"), settings | {"backlog": ",".join(map(str, backlog))})
        running.await_all("ready")

    def _window(self, group: "_Group") -> tuple[int, int]:
        """Let the group settle; return the times of the beginning and the end of a window.

        Raises:
            RunFailedError: The assignment changes in the window, or partitions have no owner.
        """
        group.follow(self.effort.settle_seconds)
        begin, past = now(), group.changes
        group.follow(self.effort.window_seconds)
        if group.changes > past or len(group.owners()) < PARTITIONS:
            raise RunFailedError(Status.TIMEOUT, f"no rest {self.effort.settle_seconds} s after a rebalance")
        return begin, now()


class _Group:
    """Reports of the members."""

    def __init__(self, running: Programs) -> None:
        self.ownership = Ownership(PARTITIONS)
        self._running = running
        self._consumed: dict[int, int] = {}

    @property
    def changes(self) -> int:
        return len(self.ownership.changes)

    def owners(self) -> dict[int, int]:
        return self.ownership.owners()

    def follow(self, seconds: float) -> None:
        """Follow the group for some seconds."""
        deadline = time.monotonic() + seconds
        while (line := self._running.next_line(deadline)) is not None:
            self._read(line)

    def drain(self, messages: int, seconds: float) -> None:
        """Follow the group until it has consumed so many messages.

        Raises:
            RunFailedError: It takes too long.
        """
        deadline = time.monotonic() + seconds
        while sum(self._consumed.values()) < messages:
            line = self._running.next_line(deadline)
            if line is None:
                raise RunFailedError(Status.TIMEOUT, f"the backlog was not consumed in {seconds:.0f} s")
            self._read(line)

    def _read(self, line: str) -> None:
        change = read_change(line)
        if change is not None:
            self.ownership.apply(change)
        elif line.startswith("consumed "):
            _, member, messages = line.split()
            self._consumed[int(member)] = int(messages)


def _rates(mix: Shares) -> str:
    rates = mix * TRAFFIC_SHARE * MEMBERS * CAPACITY
    return f"rates {','.join(f'{rate:.6f}' for rate in rates)}"
