"""Bounds of cardinality: the groups and topics that have series. Pure."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Patterns:
    """Regular expressions, matched against whole names.

    Attributes:
        include: A name must match one of these; empty for all names.
        exclude: A name must match none of these.
    """

    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()

    @classmethod
    def of(cls, include: Iterable[str], exclude: Iterable[str]) -> "Patterns":
        """Compile expressions.

        Raises:
            re.error: One of them is invalid.
        """
        return cls(tuple(map(re.compile, include)), tuple(map(re.compile, exclude)))

    def select(self, name: str) -> bool:
        """Return whether a name is selected."""
        return (not self.include or any(each.fullmatch(name) for each in self.include)) and not any(
            each.fullmatch(name) for each in self.exclude
        )


class GroupLimit:
    """The groups that are shown: no more than a number. Those that are shown stay as long as they exist."""

    def __init__(self, patterns: Patterns, max_groups: int) -> None:
        """Start with no groups shown."""
        self._patterns = patterns
        self._max = max_groups
        self._shown: set[str] = set()

    def choose(self, names: Collection[str], *, are_all: bool = True) -> tuple[list[str], Mapping[str, int]]:
        """Return the groups to show, by name, and the number of the others by reason.

        Args:
            names: The groups that exist.
            are_all: Whether there are no others. Else those that are missing keep their places.
        """
        selected = [name for name in names if self._patterns.select(name)]
        missing = set() if are_all else self._shown.difference(names)
        places = self._max - len(missing)
        first = sorted(selected, key=lambda name: (name not in self._shown, name))[:places]
        self._shown = {*first, *missing}
        left_out = {
            "excluded": len(names) - len(selected),
            "max_groups": len(selected) - len(first),
        }
        return sorted(first), left_out
