"""Networks of a player: to a broker in real time, or to a second model in virtual time."""

import asyncio
import itertools
from typing import Protocol

from groupwright.testing._simulation.coordinator import Coordinator
from groupwright.testing._simulation.messages import Reply, Request, Response
from groupwright.testing._simulation.settings import GroupSettings, KafkaVersion

CLIENT_ID = "model"


class Link(Protocol):
    """Connections to a coordinator."""

    async def send(self, request: Request) -> asyncio.Future[Response]:
        """Send a request; return the future that has its response."""

    async def ask(self, request: Request, timeout: float) -> Response:
        """Send a request, and wait for its response."""

    async def close(self) -> None:
        """Close all connections."""


class Network(Protocol):
    """A coordinator that can be reached, and its clock."""

    patience: float
    """Seconds to wait for a response that is due."""

    def open(self) -> Link:
        """Open connections."""

    def time(self) -> float:
        """Return the time in seconds."""

    async def sleep(self, seconds: float) -> None:
        """Let time pass."""


class ModelNetwork:
    """A model in place of the broker. Time passes only while the player sleeps, so a play takes none."""

    patience = 0.0

    def __init__(self, settings: GroupSettings, version: KafkaVersion) -> None:
        self._settings = settings
        self._version = version
        self._milliseconds = 0
        self._ids = itertools.count(1)
        self._sent = itertools.count(1)
        self._under_way: dict[int, asyncio.Future[Response]] = {}
        self._coordinator = Coordinator(self._new_id, settings, version)

    def open(self) -> "ModelNetwork":
        return self

    def time(self) -> float:
        return self._milliseconds / 1000

    async def sleep(self, seconds: float) -> None:
        end = self._milliseconds + round(seconds * 1000)
        while (deadline := self._coordinator.next_timer()) is not None and deadline <= end:
            self._deliver(self._coordinator.advance(deadline))
        self._milliseconds = end

    async def send(self, request: Request) -> asyncio.Future[Response]:
        number = next(self._sent)
        future = self._under_way[number] = asyncio.get_running_loop().create_future()
        self._deliver(self._coordinator.handle(number, request, self._milliseconds))
        return future

    async def ask(self, request: Request, timeout: float) -> Response:  # noqa: ARG002 - no time passes
        return (await self.send(request)).result()

    async def close(self) -> None:
        self._under_way.clear()

    async def restart(self) -> None:
        self._coordinator = Coordinator(
            self._new_id, self._settings, self._version, log=self._coordinator.log, now=self._milliseconds
        )

    def _new_id(self, prefix: str) -> str:
        return f"{prefix}{next(self._ids)}"

    def _deliver(self, replies: list[Reply]) -> None:
        for reply in replies:
            future = self._under_way.pop(reply.correlation_id, None)
            if future is not None:
                future.set_result(reply.response)
