"""Mutation: a single change that breaks the product."""

from dataclasses import dataclass

from mutations.rewriting import PatternError, rewrite

CORE = "core/src/groupwright/core"
ASSIGNORS = "assignors/src/groupwright/assignors"
CONSUMER = "consumer/src/groupwright/consumer"


@dataclass(frozen=True, slots=True)
class Mutation:
    """A change of one function that breaks the product."""

    name: str
    """The resulting defect, in words."""
    place: str
    """The file, relative to the repository's root, and the function or class: ``path::Class.method``."""
    old: str
    """A pattern of code that occurs once there (`rewriting`); if empty, `new` is appended to the module, and
    patches an attribute by its name."""
    new: str
    """The replacement."""
    caught_by: str
    """The test, from the repository's root."""
    scenario: str = ""
    """The scenario of the parity suite that shows it, of a defect beside confluent-kafka."""
    in_fuzzing: bool = False
    """True if random programs can show it."""
    outside_simulation: str = ""
    """The reason why no simulation can find it; empty if it lies in simulated code."""
    story: str = ""
    """The story of the simulation that finds it, if seeds have not."""

    @property
    def file(self) -> str:
        """Path of the file, relative to the repository's root."""
        return self.place.partition("::")[0]

    def applied_to(self, source: str) -> str:
        """Return the mutated source of the file.

        Raises:
            PatternError: The code to replace does not occur exactly once.
        """
        if not self.old:
            return source + self.new
        try:
            return rewrite(source, self.place.partition("::")[2], self.old, self.new)
        except PatternError as error:
            raise PatternError(f"{self.name!r} in {self.place}: {error}; correct it in mutations/") from error
