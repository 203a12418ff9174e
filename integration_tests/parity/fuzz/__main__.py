"""Random programs on both consumers, compared, and made small where they differ.

python -m integration_tests.parity.fuzz                                  two minutes
python -m integration_tests.parity.fuzz --minutes 60 --seed 1000         for longer, from another seed
python -m integration_tests.parity.fuzz --seed 1234 --programs 1 --show  one program, with both traces
"""

import argparse
import itertools
import json
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from pathlib import Path

from integration_tests.parity.compare import Comparison, died
from integration_tests.parity.fuzz.programs import Program, random_program
from integration_tests.parity.fuzz.shrink import shrink
from integration_tests.parity.lanes import Lane, Lanes, Request, shared_broker
from integration_tests.parity.trace import Trace

_SECONDS = 90.0
"""After which a program is taken to hang."""
_ROUNDS = 3
"""Times that a difference has to show before it is one: this excludes what either side does now and then."""
_TRIES = 6
"""Runs of the original; ours has to match one of them."""
_SMALLER = 40
"""Smaller programs that are tried for one that differs."""
_STORIES = Path(__file__).parents[3] / "build" / "fuzz"


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one seed."""

    seed: int
    comparison: Comparison
    shown: int
    """In how many of three rounds."""


@dataclass(slots=True)
class Result:
    """Result of many programs."""

    programs: int = 0
    settled: list[int] = field(default_factory=list)
    """Seeds of programs that differ in each round."""
    unsettled: list[int] = field(default_factory=list)
    """Seeds of programs that differ in some rounds: what either side does now and then."""


def main() -> int:
    """Run programs; the exit status is 1 if one shows a difference that no row of the table explains."""
    parser = argparse.ArgumentParser(
        prog="python -m integration_tests.parity.fuzz", description="Compare random programs."
    )
    parser.add_argument("--minutes", type=float, default=2.0, help="how long programs are started")
    parser.add_argument("--programs", type=int, help="how many at most")
    parser.add_argument("--seed", type=int, default=1, help="the first program's; the next has the next")
    parser.add_argument("--lanes", type=int, default=4, help="programs at a time")
    parser.add_argument("--show", action="store_true", help="show the traces of one program")
    parser.add_argument("--no-shrink", action="store_true", help="show programs as they were made")
    given = parser.parse_args()
    with shared_broker() as broker:
        if given.show:
            lane = Lane(broker)
            try:
                _show(lane, given.seed)
            finally:
                lane.close()
            return 0
        with Lanes(broker, given.lanes) as lanes:
            seeds = itertools.islice(itertools.count(given.seed), given.programs)
            tries = 0 if given.no_shrink else _SMALLER
            result = fuzz(lanes, seeds, time.monotonic() + 60 * given.minutes, tries=tries)
            return 1 if result.settled or result.unsettled else 0


def request_of(program: Program, seed: int) -> Request:
    """Return what runs a program."""
    return Request(f"program {seed}", _SECONDS, program.to_json(), program.breaks_kafka, _TRIES)


def fuzz(lanes: Lanes, seeds: Iterator[int], deadline: float, *, tries: int = _SMALLER) -> Result:
    """Compare programs until the deadline; print what differs, and every 25 programs how far it has come.

    Args:
        lanes: Where the programs run.
        seeds: Those of the programs.
        deadline: The monotonic time after which no further program is started.
        tries: Smaller programs that are tried for one that differs, at most.
    """
    result = Result()
    rows: dict[str, int] = {}
    began = time.monotonic()
    for finding in _findings(lanes, seeds, deadline):
        result.programs += 1
        for row in finding.comparison.rows:
            rows[row] = rows.get(row, 0) + 1
        if finding.shown:
            (result.settled if finding.shown == _ROUNDS else result.unsettled).append(finding.seed)
            _report(lanes, finding, tries if finding.shown == _ROUNDS else 0)
        if result.programs % 25 == 0 or finding.shown:
            minutes = (time.monotonic() - began) / 60
            differing = len(result.settled) + len(result.unsettled)
            print(f"{result.programs} programs in {minutes:.1f} min, {differing} differ", flush=True)
    print(
        f"{result.programs} programs: {len(result.settled)} differ {result.settled}, "
        f"{len(result.unsettled)} differ now and then {result.unsettled}"
    )
    for row, times in sorted(rows.items(), key=lambda item: -item[1]):
        print(f"  {row}: {times}")
    return result


def _findings(lanes: Lanes, seeds: Iterator[int], deadline: float) -> Iterator[Finding]:
    with ThreadPoolExecutor(lanes.count) as pool:
        running: set[Future[Finding]] = set()
        while True:
            while len(running) < lanes.count and time.monotonic() < deadline:
                seed = next(seeds, None)
                if seed is None:
                    break
                running.add(pool.submit(_examine, lanes, seed))
            if not running:
                return
            done, running = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                yield future.result()


def _examine(lanes: Lanes, seed: int) -> Finding:
    request = request_of(random_program(seed), seed)
    known: list[Trace] = []
    comparison = lanes.compare(request, known)
    if comparison.good or (any(map(died, known)) and not comparison.crashed):
        return Finding(seed, comparison, 0)  # where the original's process dies, ours has to survive
    shown = 1 + sum(not lanes.compare(request, known).good for _ in range(_ROUNDS - 1))
    return Finding(seed, comparison, shown)


def _report(lanes: Lanes, finding: Finding, tries: int) -> None:
    program, comparison = random_program(finding.seed), finding.comparison

    def still_differs(candidate: Program) -> bool:
        nonlocal comparison
        found = lanes.compare(request_of(candidate, finding.seed))
        if not found.good:
            comparison = found
        return not found.good

    program = shrink(program, still_differs, tries)
    shown = "\n".join(map(str, comparison.unexplained))
    story = f"seed {finding.seed} differs in {finding.shown} of {_ROUNDS} rounds:\n{program}\n{shown}\n"
    print(story, flush=True)
    _STORIES.mkdir(parents=True, exist_ok=True)
    (_STORIES / f"{finding.seed}.txt").write_text(story, encoding="utf-8")
    (_STORIES / f"{finding.seed}.json").write_text(json.dumps(program.to_json()), encoding="utf-8")


def _show(lane: Lane, seed: int) -> None:
    program = random_program(seed)
    print(program)
    for side in (lane.original, lane.ours):
        print(f"== {side.name}")
        print(side.run(request_of(program, seed)))


if __name__ == "__main__":
    sys.exit(main())
