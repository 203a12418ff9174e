"""Load checker: has the group rebalance once its members' loads are uneven, and reports each check."""

from __future__ import annotations

import logging
import math
import random
import time

from groupwright.consumer._coordinator.commit_sender import Feed
from groupwright.consumer._coordinator.inbox import Inbox, LoadChecked
from groupwright.consumer._coordinator.leader import Leader
from groupwright.consumer._network.connections import Network
from groupwright.consumer._protocol.membership import Membership
from groupwright.core import LoadCheckOutcome

_SMOOTHED_CHECKS = 6
"""Load checks over which weights are averaged: with noise of 20 %, a group has no rebalance for hours."""


def smoothing(interval: float) -> float:
    """Return the time constant, in seconds, over which a leader averages weights; 0 without load checks."""
    return _SMOOTHED_CHECKS * interval if interval < math.inf else 0.0


class LoadChecker:
    """Checks the last assignment by weights of one leader, at intervals. For the network thread."""

    def __init__(
        self,
        leader: Leader,
        membership: Membership,
        network: Network,
        inbox: Inbox,
        log: logging.LoggerAdapter[logging.Logger],
        feed: Feed,
        *,
        interval: float,
        max_moves: float,
    ) -> None:
        """Create it with no check scheduled.

        Args:
            leader: Compares its last assignment with one by the present loads.
            membership: The state machine.
            network: The loop.
            inbox: Receives the result of each check.
            log: The consumer's log.
            feed: Calls an input of the membership, and carries out the actions that it returns.
            interval: Seconds from an assignment by weights, or a check of it, to the next check; infinite for
                none.
            max_moves: A check that would move more partitions than this causes no rebalance.
        """
        self._leader = leader
        self._membership = membership
        self._network = network
        self._inbox = inbox
        self._log = log
        self._feed = feed
        self._interval = interval
        self._max_moves = max_moves

    def schedule(self, generation: int) -> None:
        """Check an assignment that this leader has made, after an interval (+-20 %)."""
        if self._leader.has_loads_to_check(generation) and self._interval < math.inf:
            seconds = self._interval * (0.8 + 0.4 * random.random())  # noqa: S311 - jitter, no secret
            self._network.call_at(
                time.monotonic() + seconds, lambda: self._network.spawn(self._check(generation))
            )

    async def _check(self, generation: int) -> None:
        """Have the group rebalance if that is worth it; report the decision."""
        try:
            found = await self._leader.check_load(generation)
        except Exception:  # noqa: BLE001 - user code; the group keeps its assignment
            self._log.exception("the load could not be checked")
            self._inbox.put(LoadChecked(generation, LoadCheckOutcome.FAILED))
            self.schedule(generation)
            return
        if found is None or self._membership.identity.generation != generation:
            return
        outcome = LoadCheckOutcome.REBALANCED if found.moves else LoadCheckOutcome.UNCHANGED
        if found.moves > (limit := self._max_moves):
            outcome = LoadCheckOutcome.LIMITED
            self._log.info("load check: %s; no rebalance, since load.check.max.moves is %d", found, limit)
        else:
            self._log.info("load check: %s", found)
        self._inbox.put(LoadChecked(generation, outcome, found))
        if outcome is LoadCheckOutcome.REBALANCED:
            self._feed(self._membership.enforce_rebalance, "load check")
        # With a limit of 0, checks only report.
        elif limit and self._leader.must_ask_members():
            self._log.info("the members rebalance to send how long they take for messages")
            self._feed(self._membership.enforce_rebalance, "load check")
        else:
            self.schedule(generation)
