"""Topic monitor: schedules metadata requests, and detects changes of topics that call for a rebalance.

Every member monitors the topics of its own subscription, and reports those that are not available. A member
that subscribes by regular expressions fetches the metadata of all topics, to find names that match. The
leader also monitors the topics of the whole group, and compares them with the metadata that its assignment
was computed from.

Metadata reaches the brokers one after the other, so their responses may differ for a while. A topic that is
created or gets partitions counts at once. A topic that is deleted or has fewer partitions counts after two
responses: otherwise stale metadata would revoke partitions. After each change that leads to a rebalance, the
interval of requests doubles, so that brokers whose metadata keeps differing do not rebalance the group
forever.

Sources: Kafka's ConsumerCoordinator.MetadataSnapshot (KAFKA-3949, KAFKA-9815), KIP-881.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from groupwright.assignors import Topic
from groupwright.consumer._protocol.model import MetadataResponse
from groupwright.consumer._protocol.subscription import TopicSubscription
from groupwright.consumer._protocol.timers import Backoff, Jitter, Timing
from groupwright.core import ErrorCode

_NEVER = float("inf")
_SHORTEST_INTERVAL = 1.0
"""Seconds until metadata is fetched again after an assignment, during which topics may have changed, and to
confirm that a topic was deleted or has fewer partitions."""


class TopicMonitor:
    """The topics of the last response, and the time of the next request. Pure: methods take the time."""

    def __init__(self, timing: Timing, jitter: Jitter = random.random, *, racks: bool = False) -> None:
        """Start with nothing to monitor; with `racks`, replicas in other racks are a change, too."""
        self.next_at = _NEVER
        """Time of the next request; infinite once it was sent."""
        self.seen = MetadataResponse()
        self.group_subscription: frozenset[str] | None = None
        """The topics of all members, if this one leads (Java's `SubscriptionState.groupSubscription`).

        Else None.
        """

        self._timing = timing
        self._jitter = jitter
        self._racks = racks
        self._backoff = Backoff(timing, jitter)
        self._under_way = False
        self._requested: frozenset[str] | None = frozenset()
        """Topics of the last request; None for all."""
        self._fresh_from = -_NEVER
        """When the last request was sent, and later, when its response came; never if it no longer counts."""
        self._not_before = -_NEVER
        self._unconfirmed: frozenset[str] = frozenset()
        """Topics that were missing, or had fewer partitions, in the last response alone."""
        self._assignment_snapshot: Mapping[str, Topic] = {}
        """Topics that the leader's assignment was computed from (Java's `assignmentSnapshot`)."""
        self._assignment_replicas: Mapping[str, tuple[tuple[int, ...], ...]] = {}
        """Replicas of these topics, by partition."""
        self._assignment_racks: dict[int, str | None] = {}
        """Racks of brokers at that time; of one that was listed only later, its first one."""
        self._interval = _SHORTEST_INTERVAL
        """Seconds from an assignment to the next request."""

    # --- When to fetch -------------------------------------------------------------------------------

    def start(self, topics: Iterable[str] | None, now: float) -> bool:
        """Start a request for these topics (None: all); return False if one is under way or just failed."""
        if self._under_way or now < self._not_before:
            return False
        self._under_way = True
        self._requested = None if topics is None else frozenset(topics)
        self._fresh_from = now
        self.next_at = _NEVER
        return True

    def covers(self, subscription: TopicSubscription) -> bool:
        """Return whether the last request was for all topics that this subscription may select."""
        if self._requested is None:
            return True
        return not subscription.patterns and subscription.names <= self._requested

    @property
    def retry_at(self) -> float:
        """Time at which a failed request may be sent again."""
        return self._not_before

    def is_fresh(self, now: float) -> bool:
        """Return whether the last response came less than ``retry.backoff.max.ms`` ago.

        Not whether it was requested then: a member whose Metadata takes longer would never join.
        """
        return not self._under_way and now - self._fresh_from < self._timing.retry_backoff_max

    def subscribed(self, now: float) -> None:
        """Fetch at once, and count no earlier request as fresh, because the subscription changed."""
        self._fresh_from = -_NEVER
        self.next_at = now

    def schedule(self, now: float) -> None:
        """Fetch within a second, because topics may have changed."""
        self.next_at = min(self.next_at, now + self._jitter() * _SHORTEST_INTERVAL)

    def stop(self) -> None:
        """Stop monitoring."""
        self.next_at = _NEVER
        self.group_subscription = None
        self._interval = _SHORTEST_INTERVAL

    # --- Responses -------------------------------------------------------------------------------

    def on_leader(self, subscribed: Iterable[str], response: MetadataResponse, now: float) -> None:
        """Record the metadata of this leader's assignment, and schedule the next request."""
        self.group_subscription = frozenset(subscribed)
        self._assignment_snapshot = {
            name: topic for name, topic in response.topics.items() if name in self.group_subscription
        }
        self._assignment_replicas, self._assignment_racks = response.replicas, dict(response.racks)
        # `seen` may keep a topic that one response lacked: see `found`. If the assignment's response lacks it
        # as well, `change` would call it created, and the group would rebalance for a deleted topic.
        kept = {
            name: topic
            for name, topic in self.seen.topics.items()
            if name not in self.group_subscription or name in response.unauthorized
        }
        self.seen = replace(
            self.seen,
            topics={**kept, **self._assignment_snapshot},
            replicas=response.replicas,
            racks=response.racks,
        )
        self._unconfirmed = frozenset()
        self.next_at = now + self._interval

    def on_follower(self, now: float) -> None:
        """Record that this member does not lead; the next request is due after the regular interval."""
        self.group_subscription = None
        self.next_at = now + self._period()

    def found(self, response: MetadataResponse, now: float) -> None:
        """Record a response."""
        self._under_way = False
        if self._fresh_from > -_NEVER:
            self._fresh_from = now
        self._backoff.reset()
        self._assignment_racks = {**response.racks, **self._assignment_racks}
        before = self.seen.topics
        # Topics that were deleted, or have fewer partitions. One that this client is no longer authorized to
        # describe still exists.
        shrunk = {
            name
            for name, topic in before.items()
            if (self._requested is None or name in self._requested)
            and name not in response.unauthorized
            and response.topics.get(name, Topic(0)).partitions < topic.partitions
        }
        kept = {name: before[name] for name in shrunk - self._unconfirmed}
        kept |= {name: before[name] for name in response.unauthorized if name in before}
        self.seen = replace(response, topics={**response.topics, **kept})
        self._unconfirmed = frozenset(shrunk - self._unconfirmed)
        self.next_at = now + (_SHORTEST_INTERVAL if self._unconfirmed else self._period())

    def missing(self, now: float) -> None:
        """Record that a request failed."""
        self._under_way = False
        self._fresh_from = -_NEVER
        self._not_before = now + self._backoff.pause()
        self.next_at = self._not_before

    def change(self) -> str | None:
        """Return a change of topics since this leader's assignment, in words, or None."""
        if self.group_subscription is None:
            return None
        differences = (self._difference(name) for name in sorted(self.group_subscription))
        found = next((difference for difference in differences if difference), None)
        if found is None:
            self._interval = _SHORTEST_INTERVAL
        else:
            self._interval = min(2 * self._interval, max(_SHORTEST_INTERVAL, self._timing.metadata_refresh))
        return found

    def _difference(self, name: str) -> str | None:
        before, seen = self._assignment_snapshot.get(name), self.seen.topics.get(name)
        if before is None:
            return None if seen is None else f"topic {name!r} was created"
        if seen is None:
            return f"topic {name!r} was deleted"
        if before.partitions != seen.partitions:
            return f"topic {name!r} has {seen.partitions} partitions, not {before.partitions}"
        if self._racks and self._has_other_racks(name):
            return f"replicas of topic {name!r} are in other racks"
        return None

    def _has_other_racks(self, name: str) -> bool:
        """Return whether replicas have moved to other racks, or brokers have.

        An unknown rack is not another rack: a broker that is down is in the rack where it was, and one that
        is listed for the first time has been in its rack before.
        """
        racks_before, racks = self._assignment_racks, {**self._assignment_racks, **self.seen.racks}
        replicas_before = self._assignment_replicas.get(name, ())
        replicas = self.seen.replicas.get(name, ())
        if racks_before == racks and replicas_before == replicas:
            return False
        # The lengths differ while a topic that has fewer partitions is not confirmed.
        return any(
            {racks_before.get(node) for node in old} - {None} != {racks.get(node) for node in new} - {None}
            for old, new in zip(replicas_before, replicas, strict=False)
        )

    def _period(self) -> float:
        # Shorter by up to 20 %, so that the members' requests are spread.
        return self._timing.metadata_refresh * (0.8 + 0.2 * self._jitter())


class TopicErrors:
    """Errors of subscribed topics, each of which the application receives once. Pure."""

    def __init__(self) -> None:
        """Start with nothing reported."""
        self._reported: dict[str, ErrorCode] = {}
        self._matched: frozenset[str] = frozenset()
        """Topics that a regular expression has matched since the subscription changed."""

    def subscribed(self) -> None:
        """Forget which topics have matched: the subscription changed."""
        self._matched = frozenset()

    def found(self, subscription: TopicSubscription, seen: MetadataResponse) -> list[tuple[str, ErrorCode]]:
        """Return the new (topic, error) pairs; an error that disappears and comes back is new again.

        As in librdkafka, a regular expression that matches nothing is reported by its text. A deleted topic
        that an expression has matched is reported by its name.
        """
        # A topic that this client is no longer authorized to describe is still in `seen.topics`.
        missing = [
            name for name in subscription.wanted_names if name in seen.unauthorized or name not in seen.topics
        ]
        matched = frozenset(filter(subscription.matches, seen.topics))
        gone = frozenset(filter(subscription.matches, self._matched)) - matched - subscription.names
        self._matched = matched | gone
        missing += gone
        missing += [
            pattern.pattern for pattern in subscription.patterns if not any(map(pattern.match, self._matched))
        ]
        errors = {name: _error_of(name, seen) for name in sorted(missing)}
        before, self._reported = self._reported, errors
        return [(name, error) for name, error in errors.items() if before.get(name) != error]


def _error_of(topic: str, seen: MetadataResponse) -> ErrorCode:
    if topic in seen.unauthorized:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
