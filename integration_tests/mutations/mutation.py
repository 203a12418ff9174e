"""A mutation: one way to break the product."""

from dataclasses import dataclass

CORE = "core/src/groupwright/core"
ASSIGNORS = "assignors/src/groupwright/assignors"
CONSUMER = "consumer/src/groupwright/consumer"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One way to break the product."""

    name: str
    """What is wrong then."""
    file: str
    """Which file, from the repository's root."""
    old: str
    """What stands in it, once."""
    new: str
    """What takes its place."""
    caught_by: str
    """The test, from the repository's root."""
    scenario: str = ""
    """The scenario of the parity suite that shows it, of a defect beside confluent-kafka."""
    in_fuzzing: bool = False
    """Whether a random program can show it."""
