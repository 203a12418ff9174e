"""Ownership: the partitions that the application owns, and as which member, on the polling thread."""

from __future__ import annotations

import time
from collections.abc import Iterable

from groupwright.consumer._protocol.events import Revoke
from groupwright.consumer._protocol.membership import Membership
from groupwright.consumer._protocol.model import MemberIdentity, keys
from groupwright.core import Partitions, TopicPartitionKey, by_topic


class Ownership:
    """The owned partitions, the identity that they were assigned to, and whether they may be lost.

    A partition is owned from before its on_assign until after its on_revoke or on_lost. The partitions are
    those of the membership, which learns of either later, on the network thread: `MembershipState.owned`
    changes once the event was applied. Only what the last event has changed is kept here.
    """

    def __init__(self, membership: Membership) -> None:
        """Own nothing; `membership` is only read."""
        self.identity = MemberIdentity()
        """That of the last assignment, or of a revocation since, for transactions and commits."""
        self._membership = membership
        # The membership makes the next event after it has learnt of this one, so one of these is empty.
        self._gained: frozenset[TopicPartitionKey] = frozenset()
        self._given_up: frozenset[TopicPartitionKey] = frozenset()

    def __bool__(self) -> bool:
        """Return whether partitions are still to be revoked."""
        owned = self._membership.owned.items()
        kept = ((topic, number) not in self._given_up for topic, numbers in owned for number in numbers)
        return bool(self._gained) or any(kept)

    def __contains__(self, key: TopicPartitionKey) -> bool:
        """Return whether the partition is owned."""
        topic, number = key
        is_known = number in self._membership.owned.get(topic, ())
        return key in self._gained or (is_known and key not in self._given_up)

    @property
    def partitions(self) -> Partitions:
        """The owned partitions, sorted."""
        return by_topic(sorted(self._gained.union(keys(self._membership.owned)) - self._given_up))

    def gain(self, partitions: Iterable[TopicPartitionKey]) -> None:
        """Own the partitions of an assignment, too."""
        self._gained, self._given_up = frozenset(partitions), frozenset()

    def give_up(self, partitions: Iterable[TopicPartitionKey]) -> None:
        """Own the partitions of a revocation, or of an assignment that is withdrawn, no longer."""
        self._gained, self._given_up = frozenset(), frozenset(partitions)

    # --- Loss ---------------------------------------------------------------------------------------

    @property
    def until(self) -> float:
        """Monotonic time until which the partitions are certainly owned.

        Without any it is infinite, once the membership has learnt of that.
        """
        membership = self._membership
        if not self:
            return membership.owned_until
        has_lost = self.identity.valid and not membership.identity.valid
        return 0.0 if has_lost else membership.session_until

    @property
    def expired(self) -> bool:
        """True if other members may own the partitions by now, after the process was stopped."""
        return time.monotonic() >= self.until

    @property
    def session_over(self) -> bool:
        """True if the session has expired, even if the network thread has not noticed it yet.

        Unlike `expired`, also before an assignment is applied.
        """
        return time.monotonic() >= self._membership.session_until

    def has_lost(self, event: Revoke) -> bool:
        """Return whether the partitions of a revocation are lost by now: other members may own them."""
        return event.lost or not self._membership.identity.valid or self.session_over
