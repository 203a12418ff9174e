"""`python -m integration_tests.parity`: run scenarios on both sides, and show how they differ.

python -m integration_tests.parity              all scenarios
python -m integration_tests.parity seek close   those whose name or theme has one of these words
python -m integration_tests.parity --list       what there is
python -m integration_tests.parity --show seek  the whole traces too
python -m integration_tests.parity table        write the table of differences into consumer/README.md
"""

import argparse
import sys
from collections.abc import Iterator

from integration_tests.parity.compare import Comparison
from integration_tests.parity.lanes import Lane, Lanes, Request, request_of, shared_broker
from integration_tests.parity.scenarios import Scenario, all_scenarios
from integration_tests.parity.table import PAGE, with_table


def main() -> int:
    """Run what is asked for; the exit status is 1 if a difference has no row in the table."""
    parser = argparse.ArgumentParser(
        prog="python -m integration_tests.parity", description="Compare our consumer with the original."
    )
    parser.add_argument("words", nargs="*", help="parts of scenarios' names or themes; `table` for the table")
    parser.add_argument("--list", action="store_true", help="list the scenarios")
    parser.add_argument("--show", action="store_true", help="show both traces of each scenario")
    parser.add_argument("--lanes", type=int, default=3, help="scenarios at a time")
    parser.add_argument("--repeat", type=int, default=1, help="times that each is run")
    given = parser.parse_args()
    if given.words == ["table"]:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return 0
    chosen = [found for found in all_scenarios().values() if _is_wanted(found, given.words)]
    if given.list:
        for found in chosen:
            print(f"{found.theme:16} {found.name}")
        return 0
    return _show(chosen) if given.show else _compare(chosen * given.repeat, given.lanes)


def _is_wanted(found: Scenario, words: list[str]) -> bool:
    return not words or any(word in found.name or word in found.theme for word in words)


def _compare(chosen: list[Scenario], lanes: int) -> int:
    bad = 0
    with shared_broker() as broker, Lanes(broker, lanes) as running:
        requests = [request_of(found) for found in chosen]
        for done, found in enumerate(_confirmed(running, requests), 1):
            rows = f" ({', '.join(found.rows)})" if found.rows else ""
            print(
                f"[{done}/{len(requests)}] {'same' if found.good else 'DIFFERS'} {found.scenario}{rows}",
                flush=True,
            )
            bad += not found.good
            for difference in found.unexplained:
                print(difference, flush=True)
    print(f"{len(chosen) - bad} of {len(chosen)} the same")
    return 1 if bad else 0


def _confirmed(running: Lanes, requests: list[Request]) -> Iterator[Comparison]:
    """Return comparisons when they are ready; at the end those that differed, made again one at a time."""
    differing: list[Comparison] = []
    for found in running.compare_all(requests):
        if found.good:
            yield found
        else:
            differing.append(found)
    by_name = {request.name: request for request in requests}
    for found in differing:
        for difference in found.unexplained:
            print(f"{found.scenario}, beside others:\n{difference}", flush=True)
        yield running.confirm(by_name[found.scenario], found)


def _show(chosen: list[Scenario]) -> int:
    with shared_broker() as broker:
        lane = Lane(broker)
        try:
            for found in chosen:
                request = request_of(found)
                for side, trace in (
                    ("original", lane.original.run(request)),
                    ("ours", lane.ours.run(request)),
                ):
                    print(f"== {found.name}: {side}")
                    print(trace)
        finally:
            lane.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
