"""A process that plays seeds, and the sums that it reports."""

import logging
import os
from dataclasses import dataclass


@dataclass(slots=True)
class Totals:
    """Sums over simulations."""

    seeds: int = 0
    generations: int = 0
    rebalances: int = 0
    delivered: int = 0
    virtual_hours: float = 0.0
    core_minutes: float = 0.0

    def add(self, other: "Totals") -> None:
        """Add another sum."""
        self.seeds += other.seeds
        self.generations += other.generations
        self.rebalances += other.rebalances
        self.delivered += other.delivered
        self.virtual_hours += other.virtual_hours
        self.core_minutes += other.core_minutes

    def __str__(self) -> str:
        """Write the sums in words."""
        minutes = max(self.core_minutes, 1e-9)
        return (
            f"{self.seeds:,} seeds, {self.virtual_hours:,.0f} hours of virtual time: {self.rebalances:,} "
            f"rebalances of members in {self.generations:,} generations, {self.delivered:,} messages; "
            f"{self.core_minutes:.1f} core-minutes, {self.rebalances / minutes:,.0f} rebalances "
            f"({self.generations / minutes:,.0f} generations) a core-minute"
        )


def start() -> None:
    """Prepare a worker."""
    from integration_tests.simulation.install import install  # a worker alone imports what it replaces

    logging.disable(logging.CRITICAL)  # the consumer's warnings of what is done to it
    install()


def play_chunk(seeds: range) -> tuple[Totals, list[tuple[int, str]]]:
    """Play some seeds in a worker; return sums, and the seeds that broke a guarantee."""
    from integration_tests.simulation.player import play  # after `install`
    from integration_tests.simulation.runtime import SignalError
    from integration_tests.simulation.scenario import generate

    totals, broken, began = Totals(), [], _processor_seconds()
    for seed in seeds:
        try:
            outcome = play(generate(seed))
        except (Exception, SignalError) as error:  # noqa: BLE001 - one seed ends no run
            broken.append((seed, f"the simulation itself has failed: {error!r}"))
            continue
        totals.seeds += 1
        totals.generations += outcome.generations
        totals.rebalances += outcome.rebalances
        totals.delivered += outcome.delivered
        totals.virtual_hours += outcome.virtual_seconds / 3600
        if outcome.violation is not None:
            broken.append((seed, str(outcome.violation)))
    totals.core_minutes = (_processor_seconds() - began) / 60
    return totals, broken


def _processor_seconds() -> float:
    """Return the processor time of this process and of its forked children."""
    return sum(os.times()[:4])
