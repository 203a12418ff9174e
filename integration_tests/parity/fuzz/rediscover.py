"""`python -m parity.fuzz.rediscover`: put fixed defects back, and time their discovery by random programs.

python -m parity.fuzz.rediscover                  all of `mutations/mended.py`
python -m parity.fuzz.rediscover seek commit      those with one of these words in their names
python -m parity.fuzz.rediscover --seeds 300      for longer

A program finds a defect if a difference appears in all of three rounds with the defect, and in none of three
without it. The scenario is run for a defect that no program can show.
"""

import argparse
import itertools
import os
import queue
import sys
import tempfile
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from mutations.mended import MENDED
from mutations.mutation import Mutation
from mutations.runner import Copy
from parity.compare import Comparison, Difference, differences, explain
from parity.fuzz.__main__ import request_of as request_of_program
from parity.fuzz.programs import random_program
from parity.lanes import TRIES, Broker, Request, Side, request_of, shared_broker
from parity.scenarios import all_scenarios
from parity.table import ROWS
from parity.trace import Trace

_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Found:
    """The result for a defect: how it was found, or that it was not."""

    mutation: Mutation
    seeds: int
    """Seeds that were tried."""
    programs: int
    """Programs that ran, repetitions and both sides counted."""
    seconds: float
    by: str = ""
    """The seed or the scenario that shows it; empty if none did."""
    differences: frozenset[Difference] = frozenset()

    def __str__(self) -> str:
        """Return a row of the table."""
        seeds = str(self.seeds) if self.seeds else ""
        programs = str(self.programs) if self.seeds else ""
        by = self.by or "**not found**"
        return f"| {self.mutation.name} | {by} | {seeds} | {programs} | {self.seconds:.0f} |"


class _Sides:
    """Processes of one side; each runs one request at a time."""

    def __init__(self, sides: list[Side]) -> None:
        self._sides = sides
        self._free: queue.SimpleQueue[Side] = queue.SimpleQueue()
        for side in sides:
            self._free.put(side)

    def run(self, request: Request) -> Trace:
        side = self._free.get()
        try:
            return side.run(request)
        finally:
            self._free.put(side)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for side in self._sides:
            side.close()


class Rediscovery:
    """Runs programs on the original (once each), on ours, and on ours with a defect."""

    def __init__(self, broker: Broker, copy: Copy, lanes: int) -> None:
        self._broker = broker
        self._copy = copy
        self._lanes = lanes
        # Of the sources themselves: a process that starts while the copy has a defect would have it too.
        self._original = self._sides("original", os.environ)
        self._ours = self._sides("ours", os.environ)
        self._traces: dict[str, list[Trace]] = {}
        self._without: dict[int, list[frozenset[Difference]]] = {}
        """Differences of a seed's program in three rounds without a defect."""
        self._programs = 0

    def _sides(self, side: str, environment: Mapping[str, str]) -> _Sides:
        return _Sides([Side(side, self._broker, None, environment) for _ in range(self._lanes)])

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for sides in (self._original, self._ours):
            sides.__exit__()

    def search(self, mutation: Mutation, first: int, most: int) -> Found:
        """Try so many seeds up to the first that shows the defect; if none does, run its scenario."""
        began, self._programs = time.monotonic(), 0
        with self._copy.broken(mutation), self._sides("ours", self._copy.environment) as broken:
            tried = 0
            seeds = iter(_seeds(first, most) if mutation.in_fuzzing else ())
            with closing(self._tried(broken, seeds)) as all_tried:
                for seed, found in all_tried:
                    tried += 1
                    if found:
                        taken = time.monotonic() - began
                        return Found(mutation, tried, self._programs, taken, f"seed {seed}", found)
            found = frozenset()
            if mutation.scenario:
                scenario = all_scenarios()[mutation.scenario]
                found = frozenset(self._compare(request_of(scenario), broken).unexplained)
            by = f"`{mutation.scenario}`" if found else ""
        return Found(mutation, tried, self._programs, time.monotonic() - began, by, found)

    def _tried(
        self, broken: _Sides, seeds: Iterator[int]
    ) -> Generator[tuple[int, frozenset[Difference]], None, None]:
        """Try several seeds at a time; yield each one with its differences, if it shows the defect."""
        over = threading.Event()
        with ThreadPoolExecutor(self._lanes) as pool, ExitStack() as at_the_end:
            at_the_end.callback(over.set)
            running: dict[Future[frozenset[Difference]], int] = {
                pool.submit(self._shown, broken, seed, over): seed
                for seed in itertools.islice(seeds, self._lanes)
            }
            while running:
                done, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in done:
                    yield running.pop(future), future.result()
                for seed in itertools.islice(seeds, len(done)):
                    running[pool.submit(self._shown, broken, seed, over)] = seed

    def _shown(self, broken: _Sides, seed: int, over: threading.Event) -> frozenset[Difference]:
        """Return the differences that appear in all three rounds with the defect and in none without it."""
        request = request_of_program(random_program(seed), seed)
        found = frozenset(self._compare(request, broken).unexplained)
        for _ in range(_ROUNDS - 1):
            if found and not over.is_set():
                found &= frozenset(self._compare(request, broken).unexplained)
        without = self._without.setdefault(seed, [])
        while found and len(without) < _ROUNDS and not over.is_set():
            without.append(frozenset(self._compare(request, self._ours).unexplained))
        return found.difference(*without)

    def _compare(self, request: Request, sides: _Sides) -> Comparison:
        with ThreadPoolExecutor(1) as pool:
            awaited = pool.submit(self._trace, request, 0)
            self._programs += 1
            ours = sides.run(request)
            awaited.result()
        for run in range(TRIES):
            original = self._trace(request, run)
            found = explain(request.name, differences(original, ours), ROWS, run + 1)
            if found.good:
                break
        return found

    def _trace(self, request: Request, run: int) -> Trace:
        """Return the trace of one run of the original."""
        traces = self._traces.setdefault(request.name, [])
        while len(traces) <= run:
            self._programs += 1
            traces.append(self._original.run(request))
        return traces[run]


def _seeds(first: int, most: int) -> Iterator[int]:
    """Return seeds without outages: those need one broker per process, and are left to scenarios."""
    return itertools.islice(
        (seed for seed in itertools.count(first) if not random_program(seed).breaks_kafka), most
    )


def main() -> int:
    """Search; return exit status 1 if no program or scenario shows a defect that one should."""
    parser = argparse.ArgumentParser(
        prog="python -m parity.fuzz.rediscover", description="Find mended defects again."
    )
    parser.add_argument("words", nargs="*", help="parts of mutations' names")
    parser.add_argument("--seeds", type=int, default=100, help="how many are tried for each, at most")
    parser.add_argument("--seed", type=int, default=1, help="the first")
    parser.add_argument("--lanes", type=int, default=4, help="programs at a time")
    given = parser.parse_args()
    chosen = [each for each in MENDED if not given.words or any(word in each.name for word in given.words)]
    found: list[Found] = []
    with (
        tempfile.TemporaryDirectory(prefix="groupwright-rediscover-") as directory,
        shared_broker() as broker,
        Rediscovery(broker, Copy(Path(directory)), given.lanes) as rediscovery,
    ):
        for mutation in chosen:
            one = rediscovery.search(mutation, given.seed, given.seeds)
            found.append(one)
            print(one, flush=True)
            for difference in sorted(one.differences, key=str):
                print(difference, flush=True)
    print("\n| defect | found by | seeds | programs | seconds |\n|---|---|--:|--:|--:|")
    for one in found:
        print(one)
    return int(any(not one.by for one in found if one.mutation.in_fuzzing or one.mutation.scenario))


if __name__ == "__main__":
    sys.exit(main())
