"""Partitions that a command is about: `--topic orders`, `--topic orders:0,3-5`."""

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.core import TopicPartitionKey
from groupwright.core.spelling import did_you_mean

_NUMBERS = re.compile(r"\d+(-\d+)?(,\d+(-\d+)?)*", re.ASCII)
_MOST_NUMBERS = 1_000_000


@dataclass(frozen=True, slots=True)
class Choice:
    """A topic, and the numbers of its chosen partitions; None for all."""

    topic: str
    partitions: frozenset[int] | None = None


def parse_choice(text: str) -> Choice:
    """Return the choice that the value of `--topic` stands for.

    Raises:
        CommandError: The part after the colon is not numbers and ranges.
    """
    topic, colon, numbers = text.partition(":")
    if topic and not colon:
        return Choice(topic)
    if topic and _NUMBERS.fullmatch(numbers):
        ranges = [list(map(int, each.split("-"))) for each in numbers.split(",")]
        if all(each[0] <= each[-1] < _MOST_NUMBERS for each in ranges):
            chosen = frozenset(number for each in ranges for number in range(each[0], each[-1] + 1))
            return Choice(topic, chosen)
    raise CommandError(
        f"--topic {text!r} is not understood: write a topic, or partitions as in orders:0,3-5",
        ExitStatus.USAGE,
    )


def selected(
    choices: Iterable[Choice], candidates: Collection[TopicPartitionKey], partitions: Mapping[str, int]
) -> list[TopicPartitionKey]:
    """Return the chosen partitions, in order.

    Args:
        choices: The choices; without any, all candidates.
        candidates: Partitions with a committed offset, or with an offset in the file.
        partitions: Numbers of partitions of the topics that exist.

    Raises:
        CommandError: A chosen topic or partition does not exist.
    """
    chosen: set[TopicPartitionKey] = set()
    for choice in choices:
        of_topic = {key for key in candidates if key[0] == choice.topic}
        count = partitions.get(choice.topic)
        if count is None:
            if not of_topic:
                known = {*partitions, *(topic for topic, _ in candidates)}
                hint = did_you_mean(choice.topic, known) or ", or these credentials may not see it"
                raise CommandError(f"there is no topic {choice.topic!r}{hint}", ExitStatus.NOT_FOUND)
            chosen |= {key for key in of_topic if choice.partitions is None or key[1] in choice.partitions}
            continue
        wanted = range(count) if choice.partitions is None else choice.partitions
        if beyond := sorted(number for number in wanted if number >= count):
            raise CommandError(
                f"the topic {choice.topic!r} has no partition {beyond[0]}: it has {count}, from 0 on",
                ExitStatus.NOT_FOUND,
            )
        chosen |= {(choice.topic, number) for number in wanted}
    return sorted(chosen if choices else candidates)
