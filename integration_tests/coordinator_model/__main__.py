"""`python -m integration_tests.coordinator_model`: compare the coordinator's model with a real broker."""

import argparse
import asyncio
import sys
import time

from groupwright.testing import LocalKafka
from integration_tests.coordinator_model import runner
from integration_tests.coordinator_model.programs import Program, generate


def main() -> int:
    """Play random programs; return exit status 1 if answers differ."""
    options = _options().parse_args()
    began = time.monotonic()
    total = runner.Outcome()
    parts = (
        ("no initial delay", 0, False, 0.45),
        ("an initial delay of 0.6 s", 600, False, 0.45),
        ("a restart of the broker", 0, True, 0.1),
    )
    seed = options.seed
    for name, delay_ms, restart, share in parts:
        count = round(options.sequences * share)
        if options.only is not None and options.only not in name:
            continue
        programs = [generate(each, restart=restart) for each in range(seed, seed + count)]
        seed += count
        group = runner.settings(delay_ms, options.pace)
        with LocalKafka(version=options.kafka, config=runner.broker_config(group)) as kafka:
            player = runner.Runner(kafka, group, options.at_once, options.pace)
            player.create_topics()
            outcome = asyncio.run(_run(player, programs, options.shrink))
            total.add(outcome)
            print(f"Kafka {kafka.version}, {name}: {outcome}", flush=True)
    print(f"In all, in {(time.monotonic() - began) / 60:.1f} min: {total}")
    return 1 if total.differences else 0


async def _run(player: runner.Runner, programs: list[Program], shown: int) -> runner.Outcome:
    outcome = await player.run(programs)
    print(outcome, flush=True)
    for difference in outcome.once:
        print(f"Once and not again:\n{difference.words()}")
    for number, difference in enumerate(outcome.differences):
        if number < shown:
            print((await player.shrink(difference)).words(), flush=True)
        else:
            print(f"Also {difference.program.name}: " + "; ".join(line[:300] for line in difference.lines))
    return outcome


def _options() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="coordinator_model", description=main.__doc__)
    parser.add_argument("--sequences", type=int, default=500, help="number of random programs (default: 500)")
    parser.add_argument("--seed", type=int, default=1, help="seed of the first program (default: 1)")
    parser.add_argument("--only", help="run only the part whose name has this, such as restart")
    parser.add_argument("--kafka", help="the broker's version, such as 3.9.2 (default: LocalKafka's)")
    parser.add_argument("--shrink", type=int, default=3, help="differences to make small (default: 3)")
    parser.add_argument(
        "--pace", type=float, default=1.0, help="factor of all times, 3 on a busy machine (default: 1)"
    )
    parser.add_argument("--at-once", type=int, default=150, help="programs side by side (default: 150)")
    return parser


if __name__ == "__main__":
    sys.exit(main())
