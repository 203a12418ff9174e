"""The leader's work between JoinGroup and SyncGroup: fresh metadata, then the assignor.

The assignor runs on a thread of its own, so that heartbeats go on however long it takes: elsewhere, leaders have
been expelled from their groups while they were still assigning.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from groupwright.assignors import Assignor, AssignorError, JoinedMember, lead, subscribed_topics
from groupwright.consumer.network import AccessError, Network
from groupwright.consumer.protocol import DisconnectedError

_PAUSE = 0.1  # seconds between two tries to fetch metadata


class Leader:
    """Makes plans for a group, on the network's loop."""

    def __init__(
        self,
        network: Network,
        assignors: Mapping[str, Assignor],
        log: logging.LoggerAdapter[logging.Logger],
    ) -> None:
        """Lead with the assignors that this member has offered."""
        self._network = network
        self._assignors = assignors
        self._log = log

    async def plan(
        self, protocol: str, members: tuple[JoinedMember, ...], wanted: Callable[[], bool]
    ) -> dict[str, bytes] | None:
        """Return each member's assignment, or None once the plan is no longer `wanted`.

        Raises:
            Exception: whatever the assignor raised; `AssignorError` if its result is no assignment, or if this
                member does not have the assignor that was chosen.
        """
        assignor = self._assignors.get(protocol)
        if assignor is None:
            known = ", ".join(map(repr, self._assignors))
            message = f"the coordinator chose {protocol!r}, which this member does not have (it has {known})"
            raise AssignorError(message)
        topics = await self._partition_counts(members, wanted)
        if topics is None:
            return None
        started = time.monotonic()
        plan = await self._in_thread(lambda: lead(assignor, members, topics))
        took = time.monotonic() - started
        self._log.info(
            "assigned %d topics to %d members by %r in %.3f s", len(topics), len(plan), protocol, took
        )
        return plan

    async def _partition_counts(
        self, members: tuple[JoinedMember, ...], wanted: Callable[[], bool]
    ) -> dict[str, int] | None:
        """Fetch fresh metadata of every topic that a member subscribes to."""
        topics = subscribed_topics(members)
        while wanted():
            try:
                return await self._network.partition_counts(topics)
            except AccessError:
                raise
            except DisconnectedError as error:
                self._log.warning("the topics' metadata had no answer: %s", error)
                await self._network.sleep(_PAUSE)
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
