"""The leader's work between JoinGroup and SyncGroup: fresh metadata, then the assignor.

The assignor runs on a thread of its own, so that heartbeats go on however long it takes: elsewhere, leaders have
been expelled from their groups while they were still assigning.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from groupwright.assignors import (
    Assignment,
    Assignor,
    AssignorError,
    CooperativeStickyAssignor,
    Group,
    JoinedMember,
    lead,
    subscribed_topics,
    withhold_claimed,
)
from groupwright.assignors import assign as run_assignor
from groupwright.consumer.network import AccessError, Network
from groupwright.consumer.protocol import DisconnectedError, TopicsAnswer
from groupwright.consumer.rebalance import Leadership
from groupwright.consumer.weighing import MadePlan, Weighed, change_of_members

_PAUSE = 0.1  # seconds between two tries to fetch metadata


@dataclass(frozen=True, slots=True)
class LeadersPlan:
    """A plan, and what it was made from."""

    assignments: Mapping[str, bytes]
    asked: frozenset[str]
    """All topics that members subscribe to."""
    topics: TopicsAnswer
    leadership: Leadership | None = None
    change: str | None = None
    """How the group's members have changed, in words, where that is known."""


class Leader:
    """Makes plans for a group, on the network's loop."""

    def __init__(
        self,
        network: Network,
        assignors: Mapping[str, Assignor],
        log: logging.LoggerAdapter[logging.Logger],
        *,
        cooperative: bool = False,
    ) -> None:
        """Lead with the assignors that this member has offered."""
        self._network = network
        self._assignors = assignors
        self._log = log
        self._cooperative = cooperative
        self._made: MadePlan | None = None

    async def plan(
        self,
        protocol: str,
        members: tuple[JoinedMember, ...],
        wanted: Callable[[], bool],
        *,
        generation: int = -1,
        skip: bool = False,
    ) -> LeadersPlan | None:
        """Return each member's assignment for this generation, or None once the plan is no longer `wanted`.

        Topics that this client may not see are left out, with a warning.
        With `skip` the group keeps the plan that it has, and only its topics are looked at (KIP-814).

        Raises:
            Exception: whatever the assignor raised; `AssignorError` if its result is no assignment, or if this
                member does not have the assignor that was chosen.
        """
        assignor = self._assignors.get(protocol)
        if assignor is None:
            known = ", ".join(map(repr, self._assignors))
            message = f"the coordinator chose {protocol!r}, which this member does not have (it has {known})"
            raise AssignorError(message)
        asked = subscribed_topics(members)
        topics = await self._fetch_topics(asked, wanted)
        if topics is None:
            return None
        if skip:
            return LeadersPlan({}, asked, topics)
        if self._cooperative and not isinstance(assignor, CooperativeStickyAssignor):
            assignor = _Checked(assignor)
        before = self._made if self._made is not None and self._made.generation == generation - 1 else None
        weighed = Weighed(assignor, before, self._log)
        started = time.monotonic()
        plan = await self._in_thread(lambda: lead(weighed, members, topics.topics))
        took = time.monotonic() - started
        self._log.info(
            "assigned %d topics to %d members by %r in %.3f s", len(topics.topics), len(plan), protocol, took
        )
        if weighed.assignment is not None:
            self._made = MadePlan(generation, frozenset(plan), weighed.assignment)
        change = change_of_members(before, plan)
        return LeadersPlan(plan, asked, topics, weighed.leadership, change)

    async def _fetch_topics(self, asked: frozenset[str], wanted: Callable[[], bool]) -> TopicsAnswer | None:
        """Fetch fresh metadata of every topic that a member subscribes to."""
        while wanted():
            try:
                topics = await self._network.fetch_topics(asked)
            except AccessError:
                raise
            except DisconnectedError as error:
                self._log.warning("the topics' metadata had no answer: %s", error)
                await self._network.sleep(_PAUSE)
                continue
            if topics.refused:
                self._log.warning(
                    "this member leads the group, and may not see the topics %s that members subscribe to: nobody is "
                    "assigned their partitions. Allow its principal to DESCRIBE them",
                    ", ".join(map(repr, sorted(topics.refused))),
                )
            return topics
        return None

    async def _in_thread(self, work: Callable[[], dict[str, bytes]]) -> dict[str, bytes]:
        future: Any = self._network.future()

        def run() -> None:
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - it is raised again, on the loop
                self._network.call_soon(future.failure, error)
            except BaseException as error:  # noqa: BLE001 - sys.exit() in an assignor ends no loop
                self._network.call_soon(future.failure, AssignorError(f"it raised {error!r}"))
            else:
                self._network.call_soon(future.success, result)

        threading.Thread(target=run, name="groupwright-assignor", daemon=True).start()
        plan: dict[str, bytes] = await future
        return plan


class _Checked(Assignor):
    """An assignor of somebody's own, which in a cooperative group must not give away what is still owned (KIP-429)."""

    def __init__(self, assignor: Assignor) -> None:
        self.name = assignor.name
        self.protocols = assignor.protocols
        self._assignor = assignor

    def assign(self, group: Group) -> Assignment:
        plan = run_assignor(self._assignor, group)
        safe = withhold_claimed(group, plan)
        for member, partitions in plan.items():
            for topic, numbers in partitions.items():
                early = sorted(set(map(int, numbers)).difference(map(int, safe[member].get(topic, ()))))
                if early:
                    raise AssignorError(
                        f"assignor {self.name!r} rebalances cooperatively, but gives {topic!r} [{early[0]}] to {member!r} "
                        "while another member owns it: return withhold_claimed(group, plan) instead of the plan"
                    )
        return plan
