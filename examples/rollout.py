"""Cost of a rolling deploy under four settings, simulated: no Kafka, and seconds instead of minutes.

    python examples/rollout.py --pods 20 --partitions 120

Each pod is a consumer of one group. The deploy replaces some pods at a time; the consumers and the group's
coordinator run in virtual time. Static members keep their partitions over a restart, so the group does not
rebalance, but these partitions are not read until the pod is back.
"""

import argparse
from collections.abc import Callable
from dataclasses import replace

from groupwright.testing.simulation import Result, RollingRestart, Settings, run_scenario

SETTINGS = Settings(session_timeout_ms=45_000, start_seconds=15, messages_per_second=0.1)
COLUMNS: dict[str, Callable[[Result], str]] = {
    "rebalances": lambda result: f"{result.rebalances}",
    "moves": lambda result: f"{result.moves}",
    "needed": lambda result: f"{result.min_moves}",
    "longest pause": lambda result: f"{result.longest_pause:.1f} s",
    "pauses, total": lambda result: f"{result.total_pause:.0f} s",
}


def deploy(pods: int, partitions: int, at_once: int) -> dict[str, Result]:
    """Simulate the same deploy under each setting."""
    settings = {
        f"{assignor}, {'static' if static else 'dynamic'}": replace(
            SETTINGS, assignor=assignor, static_membership=static
        )
        for assignor in ("range", "cooperative-sticky")
        for static in (False, True)
    }
    scenario, size = RollingRestart(at_once), {"orders": partitions}
    return {name: run_scenario(scenario, each, pods=pods, topics=size) for name, each in settings.items()}


def main() -> None:
    """Print a row for each setting."""
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    arguments.add_argument("--pods", type=int, default=20)
    arguments.add_argument("--partitions", type=int, default=120)
    arguments.add_argument("--at-once", type=int, default=2, help="pods that are replaced at a time")
    options = arguments.parse_args()
    print(f"{'':<28}", *(f"{name:>14}" for name in COLUMNS))
    for name, result in deploy(options.pods, options.partitions, options.at_once).items():
        print(f"{name:<28}", *(f"{column(result):>14}" for column in COLUMNS.values()), flush=True)


if __name__ == "__main__":
    main()
