"""An application that assigns partitions by hand, in a group of its own.

Now and then it subscribes, and is the group's only member; then it leaves, and assigns by hand again.
"""

from typing import Any

from confluent_kafka import TopicPartition

from groupwright.core import TopicPartitionKey as Key
from groupwright.testing._simulation.scheduler import Scheduler
from integration_tests.simulation.member import RealMember
from integration_tests.simulation.observer import HandObserver
from integration_tests.simulation.scenario import MemberPlan, Scenario


class HandMember(RealMember):
    """A consumer that assigns, commits, seeks, pauses and closes."""

    def __init__(
        self, plan: MemberPlan, scenario: Scenario, scheduler: Scheduler, observer: HandObserver
    ) -> None:
        """Create the process; `start` starts it."""
        super().__init__(plan, scenario, scheduler, observer)
        self._watch = observer
        self.partitions = [
            (name, number)
            for name, count in scenario.topics
            if name in plan.topics
            for number in range(count)
        ]
        """All partitions that it may assign."""
        self._is_subscribed = self._was_member = False
        self._commits_each = False
        """True if it commits after each poll until the group assigns, so that a commit is under way then."""

    @property
    def group(self) -> str:
        """Its `group.id`."""
        return self.name

    @property
    def session_until(self) -> int | None:
        """End of its session; what was assigned by hand is read beyond it."""
        return super().session_until if self.consumer._member.ownership else None

    def resume_all(self) -> None:
        """Have the application resume what it has paused, and assign everything, for good."""
        super().resume_all()
        self.orders.append(self._subscribe)

    def _subscribe(self) -> None:
        if self._is_subscribed and self.calm:
            self._leave(self.consumer)  # it may have subscribed to some of its topics alone
        if self._holds_partitions:
            self.orders.append(self._subscribe)  # the next poll calls on_revoke
        elif not self._is_subscribed:
            self._assign(dict.fromkeys(self.partitions))

    @property
    def _holds_partitions(self) -> bool:
        """True if the next poll revokes the group's partitions, as after `unsubscribe`."""
        return not self._is_subscribed and bool(self.consumer._member.ownership)

    def must_return(self, why: str, since: int | None = None) -> None:
        """Expect no revocation of partitions that were assigned by hand."""
        if self._is_subscribed and self.consumer._member.ownership:
            super().must_return(why, since)

    def _act(self, consumer: Any) -> None:
        super()._act(consumer)
        if self._commits_each:
            self._commit(consumer, synchronous=False)
            return
        if self.calm or self._random.random() >= self.plan.reassigns:
            return
        if self._is_subscribed and self._owned and self._random.random() < 0.3:
            # An eager member may replace what its group has assigned, until the next revocation.
            some = self._random.sample(self.partitions, self._random.randint(1, len(self.partitions)))
            self._assign(dict.fromkeys(sorted(some)))
        elif self._is_subscribed and self._random.random() < 0.3:
            self.close()  # as a member, perhaps with what it has assigned itself
        elif self._is_subscribed:
            self._leave(consumer)
        elif self._random.random() < self.plan.subscribes:
            self._join(consumer)
        else:
            self._reassign(consumer)

    # --- The group

    def _join(self, consumer: Any) -> None:
        is_first = consumer._member.membership.facts.last_generation < 0
        consumer.subscribe(
            list(self._random.choice((self.plan.topics, self.plan.topics[:1]))),
            on_assign=self._on_assign,
            on_revoke=self._on_revoke,
            on_lost=self._on_lost,
        )
        self._is_subscribed = True
        self._observer.said(self, "has subscribed")
        if is_first and not self._is_automatic and self._random.random() < 0.5:
            self._commit_before_joining(consumer)
        self._commits_each = not self._is_automatic and self._random.random() < 0.5

    def _commit_before_joining(self, consumer: Any) -> None:
        """Commit before the first generation, which the coordinator decides about."""
        offsets = [TopicPartition(*key, last + 1) for key, last in self._last.items() if key in self._owned]
        if not offsets:
            return
        refused = self._watch.refusals(self)
        error = super()._commit(consumer, synchronous=True, offsets=offsets)
        if error == "UNKNOWN_MEMBER_ID" and self._watch.refusals(self) == refused:
            self.broken("the coordinator decides on a commit before the first generation", error)

    def _leave(self, consumer: Any) -> None:
        consumer.unsubscribe()
        self._is_subscribed = self._commits_each = False
        self._observer.said(self, "has unsubscribed")

    def _on_assign(self, consumer: Any, partitions: list[TopicPartition]) -> None:
        self._was_member, self._commits_each = True, False
        self._owned.clear()  # an eager assignment replaces all
        self._last.clear()
        super()._on_assign(consumer, partitions)

    def _revoked(self, partitions: list[TopicPartition], *, lost: bool) -> None:
        self._owned.clear()  # a revocation also ends what was assigned by hand
        self._last.clear()
        super()._revoked(partitions, lost=lost)

    # --- The assignment

    def _reassign(self, consumer: Any) -> None:
        """Change the assignment in one of all ways, often while a commit is under way."""
        if self._holds_partitions:
            return
        chance, owned = self._random, sorted(self._owned)
        if not self._is_automatic and chance.random() < 0.5:
            self._commit(consumer, synchronous=False)
        some = sorted(chance.sample(self.partitions, chance.randint(1, len(self.partitions))))
        # An eager member may not change parts of its assignment.
        match chance.randrange(4 if self._was_member else 5):
            case 0:
                self._assign(dict.fromkeys(owned))
            case 1:
                self._assign(dict.fromkeys(some))
            case 2:
                self._assign({key: self._position(key) for key in some})
            case 3:
                consumer.unassign()
                self._changed(owned, {})
            case _:
                removed = [key for key in some if key in self._owned]
                consumer.incremental_unassign(_unset(removed))
                self._changed(removed, {})
                added = dict.fromkeys(key for key in some if key not in removed or chance.random() < 0.5)
                consumer.incremental_assign(_unset(added))
                self._changed([], added)

    def _position(self, key: Key) -> int | None:
        return self._last[key] + 1 if key in self._last else None

    def _assign(self, starts: dict[Key, int | None]) -> None:
        self.consumer.assign(
            [
                TopicPartition(*key) if offset is None else TopicPartition(*key, offset)
                for key, offset in starts.items()
            ]
        )
        self._changed(sorted(self._owned), starts)

    def _changed(self, removed: list[Key], starts: dict[Key, int | None]) -> None:
        self._owned.difference_update(removed)
        self._owned.update(starts)
        for key, offset in starts.items():
            if offset is None:
                self._last.pop(key, None)
        self._watch.changed(self, removed, starts)

    # --- Commits

    def _commit(self, consumer: Any, *, synchronous: bool, **what: Any) -> str | None:
        """Commit all, some offsets, or the last message."""
        offsets = {key: self._last[key] + 1 for key in sorted(self._owned) if key in self._last}
        form = self._random.randrange(3)
        newest = self._newest
        if form == 1 and newest is not None:
            key = (newest.topic(), newest.partition())
            if offsets.get(key) == newest.offset() + 1:
                return super()._commit(consumer, synchronous=synchronous, message=newest, **what)
        if form == 2 and offsets:
            what["offsets"] = [TopicPartition(*key, offset) for key, offset in offsets.items()]
        return super()._commit(consumer, synchronous=synchronous, **what)


def _unset(keys: Any) -> list[TopicPartition]:
    return [TopicPartition(*key) for key in keys]
