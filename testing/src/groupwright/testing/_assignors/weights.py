"""Reproducible weights of partitions for testing assignors by load."""

import random
from collections.abc import Callable, Sequence

from groupwright.assignors import Group, Topic

Weights = Callable[[random.Random, int], Sequence[float] | None]
"""Function that creates the weights of a number of partitions, or None for unknown ones."""


def uniform_weights(rng: random.Random, partitions: int) -> list[float]:
    """Return weights that differ by a factor of 10 at most."""
    return [rng.uniform(1, 10) for _ in range(partitions)]


def skewed_weights(rng: random.Random, partitions: int) -> list[float]:
    """Return weights of which a few are most of the total: a Pareto distribution."""
    return [rng.paretovariate(1.1) for _ in range(partitions)]


def adversarial_weights(rng: random.Random, partitions: int) -> list[float] | None:
    """Return weights that are hard to balance, or extreme.

    They are one giant among small ones, all 0, some 0, of any magnitude, hardly different, hard for
    "largest first", or unknown.
    """
    kinds: list[Callable[[int], float] | None] = [
        lambda number: 1.0 if number else 1000.0,
        lambda _: 0.0,
        lambda _: rng.choice((0.0, 0.0, rng.random())),
        lambda _: 10.0 ** rng.randint(-320, 308),
        lambda _: 1.0 + rng.random() * 1e-12,
        lambda number: float(partitions + number // 2),
        None,
    ]
    kind = rng.choice(kinds)
    return None if kind is None else [kind(number) for number in range(partitions)]


def weighted(group: Group, rng: random.Random, weights: Weights) -> Group:
    """Return a group whose topics have other weights."""
    topics = {
        name: Topic(topic.partitions, topic.racks, weights(rng, topic.partitions))
        for name, topic in group.topics.items()
    }
    return Group(group.members, topics)


def drifted(group: Group, seed: int, deviation: float = 0.1) -> Group:
    """Return a group whose weights have drifted; topics without weights stay without.

    Args:
        group: The group.
        seed: Seed of the random generator.
        deviation: The standard deviation of the logarithm of the factor of each weight.
    """
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    topics = {}
    for name, topic in group.topics.items():
        given = topic.weights
        factors = [rng.lognormvariate(0, deviation) for _ in range(topic.partitions)]
        topics[name] = Topic(topic.partitions, topic.racks, None if given is None else given * factors)
    return Group(group.members, topics)
