"""Requests to any broker: the next one is asked as soon as one has failed or takes long."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping
from typing import Any, Generic, Protocol, TypeVar

from groupwright.consumer._network.connection_errors import RequestRefusedError, RequestTimedOutError
from groupwright.consumer._protocol.known_brokers import Address, KnownBrokers, describe, stagger
from groupwright.consumer._protocol.model import DisconnectedError

_Result = TypeVar("_Result")


class NoBrokerError(DisconnectedError):
    """Every known broker was asked, and none has answered; the message has the reason of each."""


class EventLoop(Protocol):
    """The part of `Loop` that is needed here."""

    def call_at(self, when: float, function: Callable[[], object]) -> Any:
        """Run a function at a monotonic time, in seconds."""

    def spawn(self, coroutine: Coroutine[Any, Any, None]) -> None:
        """Start a coroutine."""

    async def sleep(self, seconds: float) -> None:
        """Wait without blocking the loop."""

    def future(self) -> Any:
        """Return an awaitable, which ``success(value)`` or ``failure(exception)`` completes."""


def _keep(_result: object) -> None:
    """Discard nothing."""


class AnyBroker(Generic[_Result]):
    """One request to any broker; `result` begins it.

    The next broker is tried as soon as one has failed, or takes longer than `stagger` (RFC 8305, "Happy
    Eyeballs"). Attempts that take long go on meanwhile. The first result counts.
    """

    def __init__(
        self,
        loop: EventLoop,
        known: KnownBrokers,
        attempt: Callable[[Address], Awaitable[_Result]],
        *,
        connected: Collection[Address] = (),
        discard: Callable[[_Result], object] = _keep,
    ) -> None:
        """Prepare the request.

        Args:
            loop: The network thread's loop.
            known: The brokers; it learns how each attempt went.
            attempt: Asks one broker. It raises `DisconnectedError` if that has no result.
            connected: Addresses to which there are connections.
            discard: Receives the results that come after the first.
        """
        self._loop = loop
        self._known = known
        self._attempt = attempt
        self._discard = discard
        self._waiting = deque(known.order(time.monotonic(), connected))
        self._under_way = self._asked = 0
        self._failures: dict[Address, DisconnectedError] = {}
        self._done = loop.future()

    async def result(self) -> _Result:
        """Return the first result.

        Raises:
            RequestRefusedError: All attempts failed, one of them because the broker refuses this client.
            NoBrokerError: All attempts failed, or there is no broker.
        """
        if not self._waiting:
            raise NoBrokerError("there are no bootstrap.servers")
        self._try_next()
        result: _Result = await self._done
        return result

    def _try_next(self) -> None:
        if self._waiting and not self._done.is_done:
            self._asked += 1
            self._under_way += 1
            asked = self._asked
            self._loop.spawn(self._try(self._waiting.popleft()))
            self._loop.call_at(time.monotonic() + stagger(asked), lambda: self._try_next_after(asked))

    def _try_next_after(self, asked: int) -> None:
        if asked == self._asked:  # else a failure has made the next attempt begin
            self._try_next()

    async def _try(self, address: Address) -> None:
        known = self._known
        known.begins(address, time.monotonic())
        try:
            await self._loop.sleep(known.delay(address, time.monotonic()))
            result = await self._attempt(address)
        except DisconnectedError as error:
            self._under_way -= 1
            self._failures[address] = error
            record_failure(known, address, error)
            self._try_next()
            if not self._under_way and not self._done.is_done:
                self._done.failure(_error_of(self._failures))
        except Exception as error:  # noqa: BLE001 - a defect, which the caller reports
            if not self._done.is_done:
                self._done.failure(error)
        else:
            known.answered(address)
            if self._done.is_done:
                self._discard(result)
            else:
                self._done.success(result)
        finally:
            known.ends(address)


def record_failure(known: KnownBrokers, address: Address, error: DisconnectedError) -> None:
    """Record that a broker could not be asked."""
    timed_out = isinstance(error, RequestTimedOutError)
    known.failed(address, str(error), time.monotonic(), timed_out=timed_out)


def _error_of(failures: Mapping[Address, DisconnectedError]) -> DisconnectedError:
    """Return the error for the failures of all brokers: a refusal if there is one."""
    for error in failures.values():
        if isinstance(error, RequestRefusedError):
            return error
    return NoBrokerError(describe({address: str(error) for address, error in failures.items()}))
