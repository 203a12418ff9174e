"""Schedule of faults, drawn from a seed. Pure: the same seed gives the same schedule."""

import random
from dataclasses import dataclass
from enum import StrEnum


class Kind(StrEnum):
    """Kinds of faults."""

    KILL_DRIVER = "kill driver"
    """SIGKILL of the driver and its JVM; the job is started again."""
    KILL_WORKER = "kill worker"
    """SIGKILL of a worker and its executors, or without a cluster of Spark's Python processes."""
    RECREATE = "recreate topic"
    """The events topic is deleted and created again."""
    SECOND_WRITER = "second writer"
    """A batch job is started beside the stream."""
    DELETE_STATE = "delete state"
    """SIGKILL of the driver; the folder `_state` is deleted before the next start."""
    ADD_PARTITIONS = "add partitions"
    """The events topic gets a partition."""
    TRANSACTION = "open transaction"
    """A transaction with events and offsets stays open for some seconds, then is committed or aborted."""


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault.

    Attributes:
        at: When it is injected, in seconds since the job is ready.
        kind: Its kind.
        number: A random number, by which a fault chooses its target.
    """

    at: float
    kind: Kind
    number: int


def draw(seed: int, seconds: float, interval: float) -> list[Fault]:
    """Return the faults of a run: each kind once in random order, then again in another order.

    Args:
        seed: The seed.
        seconds: Length of the run.
        interval: Mean time between two faults, in seconds.
    """
    random_ = random.Random(seed)  # noqa: S311 - it is to be repeatable
    faults: list[Fault] = []
    at, kinds = 0.0, list[Kind]()
    while True:
        at += interval * random_.uniform(0.5, 1.5)
        if at > seconds:
            return faults
        if not kinds:
            kinds = random_.sample(list(Kind), len(Kind))
        faults.append(Fault(round(at, 1), kinds.pop(), random_.randrange(1_000_000)))
