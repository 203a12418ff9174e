"""`python -m integration_tests.parallel`: kill -9 and deploys of a service with workers, for minutes."""

import argparse
import random
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console

from groupwright.testing import LocalKafka
from integration_tests.harness.records import Tally
from integration_tests.harness.waiting import holds_within
from integration_tests.harness.workers import Workers
from integration_tests.parallel.service import NAMES, PARTITIONS, POISON_EVERY, SERVICES, Orders, charged

_PAUSE_SECONDS = (1.0, 15.0)
_CATCH_UP_SECONDS = 300.0


def main() -> int:
    """Run; return exit status 1 if an order was lost."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.parallel", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="duration of the faults (default: 5)")
    parser.add_argument("--seed", type=int, help="repeat the faults of an earlier run")
    parser.add_argument(
        "--service", choices=SERVICES, default="groupwright", help="whose (default: groupwright)"
    )
    options = parser.parse_args()
    seed = random.SystemRandom().randrange(1_000_000) if options.seed is None else options.seed
    console = Console(highlight=False)
    console.print(f"Seed {seed}, {options.service}")
    with tempfile.TemporaryDirectory(prefix="groupwright-parallel-") as folder, LocalKafka() as kafka:
        kafka.create_topic("orders", PARTITIONS)
        kafka.create_topic("failed", 1)
        program, more = SERVICES[options.service]
        options_of_service = ["--group", "billing", "--source", "orders", "--failed", "failed"]
        words = [kafka.bootstrap_servers, *options_of_service, *more]
        with Workers(program, words, Path(folder)) as service:
            choose = random.Random(seed)  # noqa: S311 - moments, no secrets
            return run(service, kafka.bootstrap_servers, choose, options.minutes, console)


def run(service: Workers, servers: str, choose: random.Random, minutes: float, console: Console) -> int:
    """Kill and deploy processes at random moments, then look for each order; return the exit status."""
    end, faults = time.monotonic() + 60 * minutes, 0
    with Orders(servers, "orders") as orders, Tally(servers, "failed", 1) as tally:
        for name in NAMES:
            service.start(name)
        while time.monotonic() < end:
            time.sleep(choose.uniform(*_PAUSE_SECONDS))
            names = choose.sample(NAMES, choose.randrange(1, len(NAMES) + 1))
            if choose.random() < 0.5:
                service.crash(*names)
            else:
                for name in names:
                    service.stop(name)
                    service.start(name)
            faults += 1
        orders.stop()
        good = orders.sent - orders.sent // POISON_EVERY
        is_done = holds_within(lambda: len(charged(service)) == good, _CATCH_UP_SECONDS, pause=1.0)
        kept = holds_within(
            lambda: bool(tally.read()) and {value for _, value in tally.counts} == orders.poisoned,
            _CATCH_UP_SECONDS,
        )
    found = charged(service)
    twice = sum(found.values()) - len(found)
    console.print(f"{orders.sent} orders, {faults} faults: {good - len(found)} lost, {twice} charged again")
    return 0 if is_done and kept else 1


if __name__ == "__main__":
    sys.exit(main())
