"""What the group must know of its topics: when to look at them, and whether what is seen asks for a rebalance.

Two kinds of members look. The leader watches the topics of the whole group, and compares them with what its plan was
made from. One that subscribes by regular expressions watches all topics for names that match.

Brokers learn of changes one after the other, so two of them may tell different things for a while. What appears or
grows is believed at once. What vanishes or shrinks is believed when it was seen twice: else a broker that lags behind
would take partitions away. And the looks that have led to a rebalance come later and later, so that a cluster
which never agrees with itself does not keep the group from working.

Sources: Kafka's ConsumerCoordinator.MetadataSnapshot (KAFKA-3949, KAFKA-9815), KIP-881.
"""

import random
from collections.abc import Iterable, Mapping
from dataclasses import replace

from groupwright.assignors import Topic
from groupwright.consumer.protocol import TopicsAnswer
from groupwright.consumer.timing import Backoff, Jitter, Timing

_NEVER = float("inf")
_SOON = 1.0
"""Seconds to the second look: at what changed between the leader's plan and the group's having it, and at a loss."""


class TopicWatch:
    """Knows the topics as they were last seen. Pure: it is told the time, and asked what is due."""

    def __init__(self, timing: Timing, jitter: Jitter = random.random, *, racks: bool = False) -> None:
        """Start with nothing to watch; with `racks`, replicas that move to other racks are a change too."""
        self.next_at = _NEVER
        self.seen = TopicsAnswer()
        self.planned_for: frozenset[str] | None = None
        """The topics that the leader's plan is about, whether they exist or not; None in a follower."""

        self._timing = timing
        self._jitter = jitter
        self._racks = racks
        self._backoff = Backoff(timing, jitter)
        self._under_way = False
        self._looked_at = -_NEVER
        self._not_before = -_NEVER
        self._doubted: frozenset[str] = frozenset()
        self._plan: Mapping[str, Topic] = {}
        self._pause = _SOON

    # --- When to look -------------------------------------------------------------------------------

    def start(self, now: float) -> bool:
        """Start a look, unless one is under way or has just failed; return whether it was started."""
        if self._under_way or now < self._not_before:
            return False
        self._under_way = True
        self._looked_at = now
        return True

    @property
    def idle(self) -> bool:
        """Whether no look is under way."""
        return not self._under_way

    @property
    def retry_at(self) -> float:
        """When a look can be started again after one that failed."""
        return self._not_before

    def fresh(self, now: float) -> bool:
        """Whether the last look was so short ago that another one would say the same."""
        return not self._under_way and now - self._looked_at < self._timing.retry_backoff_max

    def forget(self) -> None:
        """Take no look that was started until now for fresh: other topics are wanted."""
        self._looked_at = -_NEVER

    def soon(self, now: float) -> None:
        """Look before long: something has hinted at a change."""
        self.next_at = min(self.next_at, now + self._jitter() * _SOON)

    def stop(self) -> None:
        """Stop watching."""
        self.next_at = _NEVER
        self.planned_for = None
        self._pause = _SOON

    # --- What is seen -------------------------------------------------------------------------------

    def lead(self, asked: Iterable[str], answer: TopicsAnswer, now: float) -> None:
        """Note what this member, as the leader, has made its plan from; look again soon, for what changed since."""
        self.planned_for = frozenset(asked)
        self._plan = {name: topic for name, topic in answer.topics.items() if name in self.planned_for}
        self.seen = replace(self.seen, topics={**self.seen.topics, **self._plan})
        self._doubted = frozenset()
        self.next_at = now + self._pause

    def follow(self, now: float) -> None:
        """Note that this member does not lead; one with regular expressions looks at the usual time."""
        self.planned_for = None
        self.next_at = now + self._period()

    def found(self, answer: TopicsAnswer, now: float) -> None:
        """Take what a look has brought."""
        self._under_way = False
        self._backoff.reset()
        before = self.seen.topics
        # What this client may not see (any longer) is not gone.
        worse = {
            name
            for name, topic in before.items()
            if name not in answer.refused and answer.topics.get(name, Topic(0)).partitions < topic.partitions
        }
        kept = {name: before[name] for name in worse - self._doubted}
        kept |= {name: before[name] for name in answer.refused if name in before}
        self.seen = replace(answer, topics={**answer.topics, **kept})
        self._doubted = frozenset(worse - self._doubted)
        self.next_at = now + (_SOON if self._doubted else self._period())

    def missing(self, now: float) -> None:
        """Note that a look failed."""
        self._under_way = False
        self._looked_at = -_NEVER
        self._not_before = now + self._backoff.pause()
        self.next_at = self._not_before

    def change(self) -> str | None:
        """Return in words how the topics differ from those of this leader's plan, or None."""
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
        # Never later than configured, and not at the same time in the whole group.
        return self._timing.metadata_refresh * (0.8 + 0.2 * self._jitter())
