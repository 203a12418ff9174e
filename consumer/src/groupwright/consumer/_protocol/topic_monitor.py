"""Topic monitor: schedules metadata requests, and detects changes of topics that call for a rebalance.

Every member monitors the topics of its own subscription, and reports those that are not available. A member
that subscribes by regular expressions fetches the metadata of all topics, to find names that match. The
leader also monitors the topics of the whole group, and compares them with the metadata that its assignment
was computed from.

Brokers learn of changes one after the other, so two of them may disagree for a while. A topic that appears or
grows is believed at once. A topic that disappears or shrinks is believed after two responses: else a broker
that lags behind would take partitions away. After each change that leads to a rebalance, the next request
comes later, so that brokers which keep disagreeing do not keep the group rebalancing.

Sources: Kafka's ConsumerCoordinator.MetadataSnapshot (KAFKA-3949, KAFKA-9815), KIP-881.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from groupwright.assignors import Topic
from groupwright.consumer._protocol.model import ErrorCode, MetadataResponse
from groupwright.consumer._protocol.subscription import TopicSubscription
from groupwright.consumer._protocol.timers import Backoff, Jitter, Timing

_NEVER = float("inf")
_SOON = 1.0
"""Seconds until metadata is fetched again: after an assignment, since which topics may have changed, and to
confirm that a topic disappeared or shrank."""


class TopicMonitor:
    """Topics as last seen, and the time of the next metadata request. Pure: methods take the time."""

    def __init__(self, timing: Timing, jitter: Jitter = random.random, *, racks: bool = False) -> None:
        """Start with nothing to monitor; with `racks`, replicas in other racks are a change, too."""
        self.next_at = _NEVER
        self.seen = MetadataResponse()
        self.planned_for: frozenset[str] | None = None
        """The topics that the leader's assignment covers, whether they exist or not; None in a follower."""

        self._timing = timing
        self._jitter = jitter
        self._racks = racks
        self._backoff = Backoff(timing, jitter)
        self._under_way = False
        self._asked: frozenset[str] | None = frozenset()
        self._looked_at = -_NEVER
        self._not_before = -_NEVER
        self._doubted: frozenset[str] = frozenset()
        self._plan: Mapping[str, Topic] = {}
        self._pause = _SOON

    # --- When to fetch -------------------------------------------------------------------------------

    def start(self, topics: Iterable[str] | None, now: float) -> bool:
        """Start a request for these topics (None: all); return False if one is under way or just failed."""
        if self._under_way or now < self._not_before:
            return False
        self._under_way = True
        self._asked = None if topics is None else frozenset(topics)
        self._looked_at = now
        return True

    def covers(self, selection: TopicSubscription) -> bool:
        """Whether the last request was for all topics that this subscription may select."""
        return self._asked is None or (not selection.patterns and selection.names <= self._asked)

    @property
    def idle(self) -> bool:
        """Whether no request is under way."""
        return not self._under_way

    @property
    def retry_at(self) -> float:
        """When a request may be sent again after one that failed."""
        return self._not_before

    def is_fresh(self, now: float) -> bool:
        """Whether the last response is less than ``retry.backoff.max.ms`` old."""
        return not self._under_way and now - self._looked_at < self._timing.retry_backoff_max

    def subscribed(self, now: float) -> None:
        """Fetch at once, and count no earlier response as fresh: other topics are wanted."""
        self._looked_at = -_NEVER
        self.next_at = now

    def schedule(self, now: float) -> None:
        """Fetch within a second: something hinted at a change."""
        self.next_at = min(self.next_at, now + self._jitter() * _SOON)

    def stop(self) -> None:
        """Stop monitoring."""
        self.next_at = _NEVER
        self.planned_for = None
        self._pause = _SOON

    # --- Responses -------------------------------------------------------------------------------

    def on_leader(self, asked: Iterable[str], answer: MetadataResponse, now: float) -> None:
        """Record the metadata that this leader's assignment was computed from; fetch it again soon."""
        self.planned_for = frozenset(asked)
        self._plan = {name: topic for name, topic in answer.topics.items() if name in self.planned_for}
        self.seen = replace(self.seen, topics={**self.seen.topics, **self._plan})
        self._doubted = frozenset()
        self.next_at = now + self._pause

    def on_follower(self, now: float) -> None:
        """Record that this member does not lead; the next request comes at the regular time."""
        self.planned_for = None
        self.next_at = now + self._period()

    def found(self, answer: MetadataResponse, now: float) -> None:
        """Take a response."""
        self._under_way = False
        self._backoff.reset()
        before = self.seen.topics
        # A topic that this client may no longer see still exists.
        worse = {
            name
            for name, topic in before.items()
            if (self._asked is None or name in self._asked)
            and name not in answer.refused
            and answer.topics.get(name, Topic(0)).partitions < topic.partitions
        }
        kept = {name: before[name] for name in worse - self._doubted}
        kept |= {name: before[name] for name in answer.refused if name in before}
        self.seen = replace(answer, topics={**answer.topics, **kept})
        self._doubted = frozenset(worse - self._doubted)
        self.next_at = now + (_SOON if self._doubted else self._period())

    def missing(self, now: float) -> None:
        """Record that a request failed."""
        self._under_way = False
        self._looked_at = -_NEVER
        self._not_before = now + self._backoff.pause()
        self.next_at = self._not_before

    def change(self) -> str | None:
        """Return in words how the topics differ from those of this leader's assignment, or None."""
        if self.planned_for is None:
            return None
        differences = (self._difference(name) for name in sorted(self.planned_for))
        found = next((difference for difference in differences if difference), None)
        if found is None:
            self._pause = _SOON
        else:
            self._pause = min(2 * self._pause, max(_SOON, self._timing.metadata_refresh))
        return found

    def _difference(self, name: str) -> str | None:
        planned, seen = self._plan.get(name), self.seen.topics.get(name)
        if planned is None or seen is None:
            return (
                None
                if planned is seen
                else f"topic {name!r} was {'created' if planned is None else 'deleted'}"
            )
        if planned.partitions != seen.partitions:
            return f"topic {name!r} has {seen.partitions} partitions, not {planned.partitions}"
        if self._racks and planned.racks != seen.racks:
            return f"replicas of topic {name!r} are in other racks"
        return None

    def _period(self) -> float:
        # Never later than configured, and not at the same time in all members.
        return self._timing.metadata_refresh * (0.8 + 0.2 * self._jitter())


class TopicErrors:
    """Errors of the topics that a member subscribes to. The application receives each once. Pure."""

    def __init__(self) -> None:
        """Start with nothing reported."""
        self._reported: dict[str, ErrorCode] = {}
        self._matched: frozenset[str] = frozenset()

    def subscribed(self) -> None:
        """Forget which topics have matched: the subscription changed."""
        self._matched = frozenset()

    def found(self, selection: TopicSubscription, seen: MetadataResponse) -> list[tuple[str, ErrorCode]]:
        """Return (topic, error) pairs that are new; an error that passes and comes back is new again.

        As in librdkafka, a regular expression that matches nothing is reported by its text, and a topic that
        one has matched and that was deleted by its name.
        """
        # A topic that this client may no longer see is still in `seen.topics`.
        missing = [name for name in selection.named if name in seen.refused or name not in seen.topics]
        matched = frozenset(filter(selection.matches, seen.topics))
        gone = frozenset(filter(selection.matches, self._matched)) - matched - selection.names
        self._matched = matched | gone
        missing += gone
        missing += [
            pattern.pattern for pattern in selection.patterns if not any(map(pattern.match, self._matched))
        ]
        errors = {name: _error_of(name, seen) for name in sorted(missing)}
        before, self._reported = self._reported, errors
        return [(name, error) for name, error in errors.items() if before.get(name) != error]


def _error_of(topic: str, seen: MetadataResponse) -> ErrorCode:
    if topic in seen.refused:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
