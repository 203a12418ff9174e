"""Words of the explanations. Pure."""

from collections.abc import Iterable, Sequence

from groupwright.cli._command_line.output import compact
from groupwright.cli._study.model import in_ranges
from groupwright.core import TopicPartitionKey, by_topic


def ordinal(number: int) -> str:
    """Return `1st`, `2nd`, `3rd`, `11th`."""
    teens = range(11, 14)
    ending = "th" if number % 100 in teens else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def of_topic(topic: str, numbers: Sequence[int]) -> str:
    """Return `partitions 0-3 of orders`."""
    if not numbers:
        return f"no partition of {topic}"
    return f"partition{'' if len(numbers) == 1 else 's'} {compact(numbers)} of {topic}"


def listed(keys: Iterable[TopicPartitionKey]) -> str:
    """Return partitions as ranges by topic."""
    return in_ranges(by_topic(keys))


def joined(names: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
