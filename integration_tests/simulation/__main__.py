"""Play groups in virtual time with the real consumer, and hold them to guarantees.

python -m integration_tests.simulation --minutes 1                 fresh seeds for a minute, on all cores
python -m integration_tests.simulation --rebalances 1000000        until so many rebalances were played
python -m integration_tests.simulation --seed 4711                 replay one seed, and print its story
python -m integration_tests.simulation --seed 4711 --picture FILE  and draw it as SVG
python -m integration_tests.simulation --story consume-gathers     what once broke a guarantee
"""

import argparse
import multiprocessing
import os
import secrets
import sys
import time
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from integration_tests.simulation import lanes
from integration_tests.simulation.stories import STORIES

_CHUNK = 2
"""Seeds that a worker plays before it reports."""
_SHRINK_SECONDS = 120
_HASH_SEED = "0"
"""`PYTHONHASHSEED` of all simulations: the order of a set of strings depends on it."""


def main() -> int:
    """Play, and return exit status 1 if a guarantee was broken."""
    options = _options().parse_args()
    if os.environ.get("PYTHONHASHSEED") != _HASH_SEED:
        arguments = [sys.executable, "-m", "integration_tests.simulation", *sys.argv[1:]]
        os.execve(sys.executable, arguments, {**os.environ, "PYTHONHASHSEED": _HASH_SEED})  # noqa: S606 - itself
    if options.story is not None:
        return _play_stories(options.story)
    if options.seed is not None:
        return _replay(options.seed, options.picture, shrinks=options.shrink)
    return _play_many(options)


def _play_many(options: argparse.Namespace) -> int:
    if not (options.minutes or options.core_minutes or options.seeds or options.rebalances):
        options.minutes = 1.0
    first = secrets.randbelow(10**9) if options.first is None else options.first
    print(f"seeds from {first:,} on, in {options.lanes} processes")
    began, totals, broken = time.monotonic(), lanes.Totals(), list[tuple[int, str]]()
    chunks = _chunks(first, options.seeds)
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    spawn = multiprocessing.get_context("spawn")
    with (
        Progress(*columns, disable=not sys.stdout.isatty(), transient=True) as progress,
        ProcessPoolExecutor(options.lanes, spawn, lanes.start, max_tasks_per_child=50) as workers,
    ):
        task = progress.add_task("", total=1)

        def share() -> float:
            shares = [(time.monotonic() - began) / (options.minutes * 60)] if options.minutes else []
            if options.core_minutes:
                shares.append(totals.core_minutes / options.core_minutes)
            shares += [totals.rebalances / options.rebalances] if options.rebalances else []
            shares += [totals.seeds / options.seeds] if options.seeds else []
            return float(max(shares))

        under_way: set[Future[tuple[lanes.Totals, list[tuple[int, str]]]]] = set()
        while not (len(broken) >= options.most or share() >= 1):
            while len(under_way) < 2 * options.lanes and (chunk := next(chunks, None)) is not None:
                under_way.add(workers.submit(lanes.play_chunk, chunk))
            if not under_way:
                break  # a seed that the simulation itself has failed to play does not count
            done, under_way = wait(under_way, return_when=FIRST_COMPLETED)
            for future in done:
                part, found = future.result()
                totals.add(part)
                broken += found
            words = (
                f"{totals.seeds:,} seeds, {totals.rebalances:,} rebalances, {len(broken)} broken guarantees"
            )
            progress.update(task, completed=share(), description=words)
        workers.shutdown(wait=True, cancel_futures=True)
    print(totals)
    for seed, words in broken:
        print(f"seed {seed}: {words}")
    if broken:
        print(f"Replay one with: python -m integration_tests.simulation --seed {broken[0][0]}")
        return 1
    print("every guarantee was kept")
    return 0


def _play_stories(names: list[str]) -> int:
    lanes.start()
    from integration_tests.simulation.player import play  # after `start`

    status = 0
    for name in names:
        scenarios = (each for each in STORIES[name]() if play(each).violation is not None)
        broken = next(scenarios, None)
        if broken is None:
            print(f"{name}: every guarantee was kept")
        else:
            outcome = play(broken, keep=True)
            print("\n".join(map(str, outcome.story.lines)))
            print(f"{name}: BROKEN: {outcome.violation}")
            status = 1
    return status


def _chunks(first: int, seeds: int | None) -> Iterator[range]:
    end = first + (10**12 if seeds is None else seeds)
    for begin in range(first, end, _CHUNK):
        yield range(begin, min(begin + _CHUNK, end))


def _replay(seed: int, picture: Path | None, *, shrinks: bool) -> int:
    lanes.start()
    from integration_tests.simulation.player import play  # after `start`
    from integration_tests.simulation.scenario import Scenario, describe, generate
    from integration_tests.simulation.shrink import shrink
    from integration_tests.simulation.timeline import draw

    outcome = play(generate(seed), keep=True)
    violation = outcome.violation
    if violation is not None and shrinks:
        guarantee = violation.guarantee

        def breaks(scenario: Scenario) -> bool:
            again = play(scenario).violation
            return again is not None and again.guarantee == guarantee

        end = time.monotonic() + _SHRINK_SECONDS
        print(f"making it small, for {_SHRINK_SECONDS} s at most", file=sys.stderr)
        outcome = play(shrink(outcome.scenario, breaks, lambda: time.monotonic() > end), keep=True)
    print(describe(outcome.scenario))
    print("\n".join(map(str, outcome.story.lines)))
    print(
        f"seed {seed}: {outcome.generations} generations, {outcome.rebalances} rebalances of members, "
        f"{outcome.delivered} messages, {outcome.virtual_seconds:.1f} s of virtual time, "
        f"{outcome.events} events, digest {outcome.digest:08x}"
    )
    print("every guarantee was kept" if outcome.violation is None else f"BROKEN: {outcome.violation}")
    if picture is not None:
        picture.write_text(draw(outcome.story.lines))
        print(f"drawn in {picture}")
    return 0 if outcome.violation is None else 1


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m integration_tests.simulation",
        description="Play groups in virtual time, and hold them to guarantees.",
    )
    parser.add_argument("--seed", type=int, help="replay this seed, and print its story")
    parser.add_argument(
        "--no-shrink", dest="shrink", action="store_false", help="leave a violation as long as it is"
    )
    parser.add_argument("--picture", type=Path, help="draw the replay into this file, as SVG")
    parser.add_argument(
        "--story", nargs="+", choices=STORIES, help="play scenarios that once broke a guarantee"
    )
    parser.add_argument("--minutes", type=float, help="play for so long (default: 1)")
    parser.add_argument("--core-minutes", type=float, help="play for so much processor time")
    parser.add_argument("--seeds", type=int, help="play so many seeds")
    parser.add_argument("--rebalances", type=int, help="play until members have completed so many rebalances")
    parser.add_argument("--first", type=int, help="the first seed (default: a random one)")
    parser.add_argument("--lanes", type=int, default=os.cpu_count(), help="processes (default: all cores)")
    parser.add_argument(
        "--most", type=int, default=10, help="end after so many broken guarantees (default: 10)"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
