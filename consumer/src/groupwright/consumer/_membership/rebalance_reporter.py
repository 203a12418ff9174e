"""Rebalance reporter: reports each rebalance and each load check."""

from __future__ import annotations

import dataclasses
import logging
import time

from groupwright.consumer._coordinator.inbox import LoadChecked
from groupwright.consumer._membership.listeners import Listeners
from groupwright.consumer._protocol.events import Assign
from groupwright.consumer._protocol.model import MemberIdentity, count
from groupwright.consumer._protocol.timeline import Timeline
from groupwright.consumer._protocol.timers import Clock
from groupwright.core import Kind, LoadCheckResult, Outcome, Partitions, Rebalance


class RebalanceReporter:
    """Reports what one member's rebalances have come to. Used by the polling thread alone."""

    def __init__(
        self,
        group_id: str,
        client_id: str,
        kind: Kind,
        log: logging.LoggerAdapter[logging.Logger],
        clock: Clock = time.monotonic,
    ) -> None:
        """Create it without listeners; `log` receives each rebalance, at INFO."""
        self.listeners = Listeners(log)
        self._group_id = group_id
        self._client_id = client_id
        self._kind = kind
        self._log = log
        self._clock = clock

    def completed(self, timeline: Timeline, event: Assign, now: float) -> None:
        """Report the rebalance that this assignment has completed, at the monotonic time `now`."""
        outcome = Outcome.LOST if timeline.lost else Outcome.COMPLETED
        self._report(timeline, outcome, event.identity, event.owned, now)

    def failed(self, timeline: Timeline | None, error: str) -> None:
        """Report the rebalance that an error has ended, if one was under way."""
        if timeline is not None:
            self._report(timeline, Outcome.FAILED, MemberIdentity(), {}, self._clock(), error)

    def load_checked(self, event: LoadChecked) -> None:
        """Report the result of a load check."""
        numbers = {} if event.found is None else dataclasses.asdict(event.found)
        result = LoadCheckResult(
            self._group_id, self._client_id, event.generation, event.outcome, event.ended_at, **numbers
        )
        self.listeners.notify("load_checked", result)

    def _report(
        self,
        timeline: Timeline,
        outcome: Outcome,
        identity: MemberIdentity,
        partitions: Partitions,
        now: float,
        error: str | None = None,
    ) -> None:
        rebalance = Rebalance(
            group=self._group_id,
            client_id=self._client_id,
            member_id=identity.member_id,
            generation=identity.generation,
            protocol=identity.protocol,
            outcome=outcome,
            reason=timeline.reason,
            duration=now - timeline.started,
            phases=dict(timeline.phases),
            partitions=partitions,
            ended_at=time.time(),
            error=error,
            kind=self._kind,
            partitions_before=timeline.before,
            leadership=timeline.leadership,
            trigger=timeline.trigger,
            undecodable=dict(timeline.undecodable),
            assigned_by_broker=timeline.assigned_by_broker,
        )
        self._log.info(
            "rebalance %s in %.3f s: generation %d, %d partitions (%s)",
            outcome,
            rebalance.duration,
            identity.generation,
            count(partitions),
            timeline.reason,
        )
        if timeline.leadership is not None and timeline.leadership.load is not None:
            self._log.info("load: %s", timeline.leadership.load)
        self.listeners.notify("rebalanced", rebalance)
