"""The leader's work between JoinGroup and SyncGroup: fresh metadata, then the assignor.

The assignor runs on a thread of its own, so that heartbeats go on however long it takes: elsewhere, leaders have
been expelled from their groups while they were still assigning. That thread also imports numpy, which a member that never
leads does without.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from groupwright.assignors import Assignor, AssignorError, JoinedMember
from groupwright.consumer._coordinator.fork_safety import not_while_forking
from groupwright.consumer._network.connections import AccessError, Network
from groupwright.consumer._protocol.model import DisconnectedError, MetadataResponse
from groupwright.consumer._protocol.rebalance import Leadership

if TYPE_CHECKING:
    from groupwright.consumer._coordinator.assignment_stats import PreviousAssignment
    from groupwright.consumer._coordinator.planning import Planned

_Result = TypeVar("_Result")

_PAUSE = 0.1  # seconds between two tries to fetch metadata


@dataclass(frozen=True, slots=True)
class GroupAssignment:
    """A plan, and what it was made from."""

    assignments: Mapping[str, bytes]
    asked: frozenset[str]
    """All topics that members subscribe to."""
    topics: MetadataResponse
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
        self._made: PreviousAssignment | None = None

    async def plan(
        self,
        protocol: str,
        members: tuple[JoinedMember, ...],
        wanted: Callable[[], bool],
        *,
        generation: int = -1,
        skip: bool = False,
    ) -> GroupAssignment | None:
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
        asked = await self._in_thread(lambda: _read_topics(members))
        topics = await self._fetch_topics(asked, wanted)
        if topics is None:
            return None
        if skip:
            return GroupAssignment({}, asked, topics)
        before = self._made if self._made is not None and self._made.generation == generation - 1 else None
        started = time.monotonic()
        assigned = await self._in_thread(lambda: self._make(assignor, members, topics, generation, before))
        took = time.monotonic() - started
        self._log.info(
            "assigned %d topics to %d members by %r in %.3f s",
            len(topics.topics),
            len(assigned.assignments),
            protocol,
            took,
        )
        if assigned.made is not None:
            self._made = assigned.made
        return GroupAssignment(assigned.assignments, asked, topics, assigned.leadership, assigned.change)

    def _make(
        self,
        assignor: Assignor,
        members: tuple[JoinedMember, ...],
        topics: MetadataResponse,
        generation: int,
        before: "PreviousAssignment | None",
    ) -> "Planned":
        from groupwright.consumer._coordinator.planning import make_plan  # noqa: PLC0415 - only leaders need numpy

        return make_plan(
            assignor, members, topics.topics, generation, before, self._log, cooperative=self._cooperative
        )

    async def _fetch_topics(
        self, asked: frozenset[str], wanted: Callable[[], bool]
    ) -> MetadataResponse | None:
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

    async def _in_thread(self, work: Callable[[], _Result]) -> _Result:
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
        result: _Result = await future
        return result


def _read_topics(members: tuple[JoinedMember, ...]) -> frozenset[str]:
    """Return all topics that members subscribe to. The first call imports what a plan takes; for the assignor's thread."""
    with not_while_forking():
        from groupwright.consumer._coordinator.planning import subscribed_topics  # noqa: PLC0415 - only leaders need numpy

    return subscribed_topics(members)
