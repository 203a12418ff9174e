"""Topic subscriptions: names of topics, and regular expressions that select existing topics.

A topic that begins with ``^`` is a regular expression, as in librdkafka. The syntax is that of Python's `re`,
and a match may end before the name does: ``^orders`` matches ``orders-eu`` too, ``^orders$`` does not.
librdkafka has POSIX extended expressions; ``. * + ? | ( ) [ ] { } ^ $``, and punctuation with a backslash,
mean the same in both.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field

from groupwright.consumer._protocol.model import MetadataResponse

_POSIX_CLASS = re.compile(r"\[[:.=]\w*[:.=]\]")


@dataclass(frozen=True, slots=True)
class TopicSubscription:
    """A subscription as the application wrote it.

    Attributes:
        names: Topics by name; they need not exist.
        patterns: Regular expressions, each of which selects the topics that it matches. Kafka's internal
            topics are selected by name alone (``exclude.internal.topics`` of the Java client).
        ignored: Regular expressions of topics that are never selected (``topic.blacklist``), not even by
            name.
        wanted_names: `names` without ignored ones, sorted.
    """

    names: frozenset[str]
    patterns: tuple[re.Pattern[str], ...] = ()
    ignored: tuple[re.Pattern[str], ...] = ()
    wanted_names: tuple[str, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Compute `wanted_names` once: the membership reads it at every input."""
        object.__setattr__(self, "wanted_names", self._sorted(self.names))

    def among(self, existing: MetadataResponse, former: Iterable[str] = ()) -> tuple[str, ...]:
        """Return the topics for JoinGroup, sorted.

        Topics that this client is not authorized to describe are left out, since it could not fetch from
        them. A topic subscribed to by name stays after it was deleted: the leader assigns none of its
        partitions, and detects when it is created again.

        Args:
            existing: The topics that exist.
            former: The topics for JoinGroup until now.
        """
        named = self.names.intersection(existing.topics.keys() | frozenset(former)) - existing.unauthorized
        matched = {name for name in existing.topics if name not in existing.internal and self.matches(name)}
        return self._sorted(named | matched)

    def matches(self, topic: str) -> bool:
        """Return whether a regular expression selects this topic."""
        return any(pattern.match(topic) for pattern in self.patterns) and not self._is_ignored(topic)

    def covers(self, topic: str) -> bool:
        """Return whether this topic is selected if it exists."""
        return (topic in self.names and not self._is_ignored(topic)) or self.matches(topic)

    def _sorted(self, topics: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted(topic for topic in topics if not self._is_ignored(topic)))

    def _is_ignored(self, topic: str) -> bool:
        return any(pattern.search(topic) for pattern in self.ignored)


def parse_subscription(topics: Iterable[str], ignored: tuple[re.Pattern[str], ...] = ()) -> TopicSubscription:
    """Return the subscription to these topics; those that begin with ``^`` are regular expressions.

    Raises:
        ValueError: An expression is not valid; the message says which, and why.
    """
    written = frozenset(topics)
    patterns = sorted(topic for topic in written if topic.startswith("^"))
    return TopicSubscription(written.difference(patterns), tuple(map(read_pattern, patterns)), ignored)


def read_pattern(text: str) -> re.Pattern[str]:
    """Compile a regular expression.

    Raises:
        ValueError: It is not valid, or has a POSIX character class, which would silently mean something else.
    """
    if _POSIX_CLASS.search(text):
        raise ValueError(
            f"the regular expression {text!r} has a character class of POSIX, which Python does not support: "
            "write [a-z] for [[:lower:]], \\d for [[:digit:]]"
        )
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", FutureWarning)
            return re.compile(text)
    except (re.error, FutureWarning) as error:
        raise ValueError(f"{text!r} is no regular expression: {error}") from error
