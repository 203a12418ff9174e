"""Mutation: a single change that breaks the product."""

from dataclasses import dataclass

CORE = "core/src/groupwright/core"
ASSIGNORS = "assignors/src/groupwright/assignors"
CONSUMER = "consumer/src/groupwright/consumer"


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of one file that breaks the product."""

    name: str
    """The resulting defect, in words."""
    file: str
    """Path of the file, relative to the repository's root."""
    old: str
    """Text to replace, which occurs once; if empty, `new` is appended and patches an attribute by name."""
    new: str
    """The replacement."""
    caught_by: str
    """The test, from the repository's root."""
    scenario: str = ""
    """The scenario of the parity suite that shows it, of a defect beside confluent-kafka."""
    in_fuzzing: bool = False
    """Whether random programs can show it."""
    in_simulation: bool = False
    """Whether simulations find it within ten minutes."""
