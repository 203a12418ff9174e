"""Lanes: run scenarios on both sides in parallel, several at a time, and compare the traces."""

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from groupwright.testing import Listener, LocalKafka, Security
from integration_tests.parity.compare import Comparison, Difference, differences, explain, is_slow
from integration_tests.parity.scenarios import Scenario
from integration_tests.parity.table import ROWS, Row
from integration_tests.parity.trace import Trace

USERS = {"limited": "limited-secret", "stranger": "stranger-secret"}
"""Users of the secured listener: one with the rights that a scenario gives, one without any."""
TRIES = 4
"""Runs of the original to learn what it may do, before ours is said to differ."""
_GRACE = 30.0
_QUICK = {"group.consumer.heartbeat.interval.ms": 500, "group.consumer.min.heartbeat.interval.ms": 500}
"""So that a KIP-848 member learns of a rebalance as soon as a classic one does."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request to run a scenario or a program."""

    name: str
    seconds: float
    program: Any = None
    """A random program; else the scenario of this name."""
    breaks_kafka: bool = False
    """True if it needs a separate broker."""
    tries: int = TRIES
    """Runs of the original to learn what it may do."""

    def to_json(self) -> str:
        what = {"scenario": self.name} if self.program is None else {"program": self.program}
        return json.dumps({**what, "seconds": self.seconds})


def request_of(scenario: Scenario) -> Request:
    """Return the request for a scenario."""
    return Request(scenario.name, scenario.seconds, breaks_kafka=scenario.breaks_kafka)


@dataclass(frozen=True, slots=True)
class Broker:
    """The broker of the scenarios."""

    bootstrap_servers: str
    secured: Mapping[str, Mapping[str, Any]]


@contextmanager
def shared_broker() -> Iterator[Broker]:
    """Start the broker shared by all scenarios, except those that break it."""
    security = Security(users=USERS, authorize=True)
    with LocalKafka(security=security, config=_QUICK, heap="512m") as kafka:
        secured = {
            user: kafka.secure_config(Listener.SASL_PLAINTEXT, mechanism="PLAIN", user=user) for user in USERS
        }
        yield Broker(kafka.bootstrap_servers, secured)


class Side:
    """A worker process of one side, started on demand."""

    def __init__(
        self,
        side: str,
        broker: Broker,
        log: Path | None = None,
        environment: Mapping[str, str] = os.environ,
    ) -> None:
        self.name = side
        self._broker = broker
        self._log = log
        self._environment = {**environment, "PYTHONPATH": _path(environment)}
        self._process: subprocess.Popen[str] | None = None

    def run(self, request: Request) -> Trace:
        """Run one scenario; if it hangs, return its trace so far."""
        process = self._started()
        assert process.stdin is not None
        assert process.stdout is not None
        seconds = request.seconds + _GRACE
        killed = threading.Event()

        def kill() -> None:
            killed.set()
            process.kill()

        watchdog = threading.Timer(seconds, kill)
        watchdog.start()
        try:
            process.stdin.write(request.to_json() + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        finally:
            watchdog.cancel()
        if not answer:
            self.close()
            trace = Trace()
            # A process that died by itself has crashed; one that was killed may be slow on a busy machine.
            crashed = f"the process died ({process.returncode})"
            trace.add("scenario", f"no response within {seconds:.0f} s" if killed.is_set() else crashed)
            return trace
        read = json.loads(answer)
        if read["hung"]:
            self.close()
        return Trace.from_json(read["trace"])

    def _started(self) -> "subprocess.Popen[str]":
        if self._process is None or self._process.poll() is not None:
            secured = json.dumps(self._broker.secured)
            command = [
                sys.executable,
                "-m",
                "integration_tests.parity.worker",
                self.name,
                self._broker.bootstrap_servers,
                secured,
            ]
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL if self._log is None else self._log.open("ab"),
                text=True,
                env=self._environment,
            )
        return self._process

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            process, self._process = self._process, None
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.close()
            try:
                process.wait(_GRACE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(_GRACE)
            process.stdout.close()


def _path(environment: Mapping[str, str]) -> str:
    """Return the PYTHONPATH of the process; the environment's comes first, to test a copy of the sources."""
    return os.pathsep.join(filter(None, [environment.get("PYTHONPATH", ""), str(Path(__file__).parents[2])]))


class Lane:
    """One process of each side."""

    def __init__(self, broker: Broker, rows: Iterable[Row] = ROWS) -> None:
        self.original = Side("original", broker)
        self.ours = Side("ours", broker)
        self._rows = tuple(rows)

    def compare(self, request: Request, known: list[Trace] | None = None) -> Comparison:
        """Run both sides in parallel; our trace must equal that of one of the original's runs.

        Args:
            request: The scenario or program.
            known: Traces of the original's earlier runs; the new one is appended. Once `known` has as many
                traces as the request allows tries, only ours is run.
        """
        known = [] if known is None else known
        if len(known) < request.tries:
            with ThreadPoolExecutor(1) as pool:
                awaited = pool.submit(self.original.run, request)
                ours = self.ours.run(request)
                known.append(awaited.result())
        else:
            ours = self.ours.run(request)
        best, run = self._explained(request, known[0], ours, 1), 1
        while not best.good:
            if run == len(known):
                if run >= request.tries:
                    break
                if all(map(is_slow, best.unexplained)):
                    ours = self.ours.run(request)  # a busy machine makes one call slow, a defect each
                known.append(self.original.run(request))
            found = self._explained(request, known[run], ours, run + 1)
            run += 1
            if len(found.unexplained) <= len(best.unexplained):
                best = found
        return best

    def _explained(self, request: Request, original: Trace, ours: Trace, run: int) -> Comparison:
        if (failure := original.failure) is not None:
            return Comparison(request.name, (Difference("scenario", (failure,), ()),), (), run)
        return explain(request.name, differences(original, ours), self._rows, run)

    def close(self) -> None:
        """End both processes."""
        self.original.close()
        self.ours.close()


class Lanes:
    """Several lanes that share the requests; scenarios that break their Kafka use separate lanes."""

    def __init__(self, broker: Broker, count: int = 3, *, breaking: int = 1) -> None:
        """Start no process yet.

        Args:
            broker: The broker of the scenarios that leave it whole.
            count: Lanes for these.
            breaking: Lanes for the others. Both processes of such a lane have a broker of their own.
        """
        self.count = count
        self._shared = _LanePool([Lane(broker) for _ in range(count)])
        self._breaking = _LanePool([Lane(broker) for _ in range(breaking)])
        self._submitted: set[Future[Comparison]] = set()

    def submit(self, request: Request, known: list[Trace] | None = None) -> "Future[Comparison]":
        """Start a comparison; return its future."""
        future = (self._breaking if request.breaks_kafka else self._shared).submit(request, known)
        self._submitted.add(future)
        future.add_done_callback(self._submitted.discard)
        return future

    def confirm(self, request: Request, found: Comparison) -> Comparison:
        """Repeat a comparison that differed, without other load, which may change the order of events.

        A crash is not retried.
        """
        if found.good or found.crashed:
            return found
        wait(set(self._submitted))
        return self.compare(request)

    def compare(self, request: Request, known: list[Trace] | None = None) -> Comparison:
        """Compare in the next free lane; `known` is as for a `Lane`."""
        return self.submit(request, known).result()

    def compare_all(self, requests: Iterable[Request]) -> Iterator[Comparison]:
        """Compare many requests; yield each result when it is ready."""
        for future in as_completed([self.submit(request) for request in requests]):
            yield future.result()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in (self._shared, self._breaking):
            pool.close()


class _LanePool:
    """A pool of lanes, each of which takes the next request."""

    def __init__(self, lanes: list[Lane]) -> None:
        self._lanes = lanes
        self._free: queue.SimpleQueue[Lane] = queue.SimpleQueue()
        for lane in lanes:
            self._free.put(lane)
        self._threads = ThreadPoolExecutor(len(lanes))

    def submit(self, request: Request, known: list[Trace] | None) -> "Future[Comparison]":
        return self._threads.submit(self._compare, request, known)

    def _compare(self, request: Request, known: list[Trace] | None) -> Comparison:
        lane = self._free.get()
        try:
            return lane.compare(request, known)
        finally:
            self._free.put(lane)

    def close(self) -> None:
        self._threads.shutdown(cancel_futures=True)
        for lane in self._lanes:
            lane.close()
