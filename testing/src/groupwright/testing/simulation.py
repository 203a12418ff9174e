"""Simulation of a consumer group in virtual time: the cost of deploys, crashes and scaling.

`run_scenario` plays a scenario with a group: consumers that behave as Java's or as librdkafka's, and a model
of Kafka's group coordinator, which is held to real brokers by thousands of random requests. An hour of a
group takes seconds, and the same seed gives the same result. `study` plays it with several seeds.

Example: What does a rolling deploy of 40 pods with 400 partitions cost, four pods at a time?

    >>> from dataclasses import replace
    >>> deploy, size = RollingRestart(at_once=4), {"pods": 40, "topics": {"orders": 400}}
    >>> settings = Settings(assignor="cooperative-sticky", start_seconds=20, messages_per_second=0.1)
    >>> print(run_scenario(deploy, settings, **size))
    RollingRestart(at_once=4): 40 pods, 400 partitions, seed 0
      rebalances           4...
      moves of partitions  7..., of which 7... were needed
      partitions paused    400; longest ... s, mean 2... s, total ... s
      delivered twice      ... of 12,000 messages
      stable after         29... s; the last pod began or ended after 28... s
    >>> run_scenario(deploy, replace(settings, static_membership=True), **size).rebalances
    0

The simulation leaves out: failing brokers and networks, regular expressions, transactions, the time that
assignors and callbacks take, and `group.protocol=consumer` (KIP-848).
"""

from collections.abc import Iterable, Mapping, Sequence

from groupwright.testing._simulation.model_settings import Behaviour
from groupwright.testing._simulation.results import PartitionPause, Result, Study
from groupwright.testing._simulation.scenarios import (
    Crash,
    Join,
    Leave,
    RollingRestart,
    Scenario,
    Settings,
    check,
)
from groupwright.testing._simulation.settings import KafkaVersion
from groupwright.testing._simulation.simulated_group import SimulatedGroup
from groupwright.testing.errors import SimulationError

__all__ = [
    "Behaviour",
    "Crash",
    "Join",
    "KafkaVersion",
    "Leave",
    "PartitionPause",
    "Result",
    "RollingRestart",
    "Scenario",
    "Settings",
    "SimulationError",
    "Study",
    "run_scenario",
    "study",
]


def run_scenario(
    scenario: Scenario | Sequence[Scenario],
    settings: Settings | None = None,
    *,
    pods: int,
    topics: Mapping[str, int],
    seed: int = 0,
) -> Result:
    """Play a scenario with a stable group, and return what it costs.

    Args:
        scenario: The scenario, or several, each of which begins when the group is stable.
        settings: Settings of the consumers, brokers and pods.
        pods: Pods at the beginning, each with one consumer. All subscribe to all topics.
        topics: Numbers of partitions by topic.
        seed: Determines delays, and which pods are killed.

    Raises:
        SimulationError: The settings are impossible, or the group does not become stable again.
        Exception: An exception of the assignor.
    """
    scenarios = scenario if isinstance(scenario, Sequence) else (scenario,)
    check(scenarios, pods, topics)
    return SimulatedGroup(settings or Settings(), pods, topics, seed).play(scenarios)


def study(
    scenario: Scenario | Sequence[Scenario],
    settings: Settings | None = None,
    *,
    pods: int,
    topics: Mapping[str, int],
    seeds: Iterable[int] = range(5),
) -> Study:
    """Play a scenario once for each seed; see `run_scenario`.

    Raises:
        SimulationError: The settings are impossible, the group does not become stable again, or there are no
            seeds, or a single one.
        Exception: An exception of the assignor.
    """
    if not isinstance(seeds, Iterable):
        raise SimulationError(f"seeds is {seeds!r}: give several, such as range(5)")
    results = [run_scenario(scenario, settings, pods=pods, topics=topics, seed=seed) for seed in seeds]
    if not results:
        raise SimulationError("seeds is empty: give one or more, such as range(5)")
    return Study(tuple(results))
