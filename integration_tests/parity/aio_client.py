"""A recording asyncio consumer: its calls, callbacks and messages go to a trace."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, Self

from confluent_kafka import KafkaException, Message

from integration_tests.parity.client import PATIENCE, Client


class AIOClient(Client):
    """A `Client` with coroutines for methods and callbacks."""

    def __getattr__(self, method: str) -> Callable[..., Any]:
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await self._awaited(method, *args, **kwargs)

        getattr(self.raw, method)
        return call

    async def _awaited(self, method: str, *args: Any, **kwargs: Any) -> Any:
        with self._written(method, args, kwargs) as results:
            results.append(await getattr(self.raw, method)(*args, **kwargs))
        return results[0]

    async def attempt(self, method: str, *args: Any, **kwargs: Any) -> Any:
        """Call a method that may raise: the trace says what, and the scenario goes on."""
        try:
            return await getattr(self, method)(*args, **kwargs)
        except Exception:  # noqa: BLE001 - it is in the trace
            return None

    async def subscribe(self, topics: list[str], **given: Any) -> None:  # type: ignore[override] # a coroutine
        """Subscribe; callbacks are coroutines, and written down."""
        wrapped = {name: self._recorded(name, callback) for name, callback in given.items()}
        await self._awaited("subscribe", topics, **wrapped)

    def _recorded(self, name: str, callback: Callable[..., Awaitable[object]]) -> Any:
        recorded = super()._recorded(name, lambda *args: awaitables.append(callback(*args)))
        awaitables: list[Awaitable[object]] = []

        async def call(*args: Any) -> None:
            recorded(*args)
            await awaitables.pop()

        return call

    async def close(self, *args: Any, **kwargs: Any) -> Any:
        """Close."""
        return await self._awaited("close", *args, **kwargs)

    async def __aenter__(self) -> Self:
        await self.raw.__aenter__()
        return self

    async def __aexit__(self, *given: object) -> None:
        with self._written("__aexit__", (), {}) as results:
            results.append(await self.raw.__aexit__(*given))

    async def poll(self, *args: Any, **kwargs: Any) -> Message | None:  # type: ignore[override] # a coroutine
        """Poll; a message is written down, none is not."""
        with self._taking("poll") as taken:
            message: Message | None = await self.raw.poll(*args, **kwargs)
            taken.append(message)
        return message

    async def consume(self, *args: Any, **kwargs: Any) -> list[Message]:  # type: ignore[override] # a coroutine
        """Consume; messages are written down, an empty list is not."""
        with self._taking("consume") as taken:
            messages: list[Message] = await self.raw.consume(*args, **kwargs)
            taken.extend(messages)
        return messages

    async def read(self, count: int, *, timeout: float = PATIENCE, batch: int = 0) -> list[Message]:  # type: ignore[override] # a coroutine
        """Poll, or consume batches, until so many messages have come since the last read."""
        await self._poll_until(lambda: self._unread >= count, f"read {count}", timeout, batch)
        return self._next(count)

    async def until(self, condition: Callable[[], object], what: str, *, timeout: float = PATIENCE) -> bool:  # type: ignore[override] # a coroutine
        """Poll until a condition holds; the trace says how long that took, by class."""
        return await self._poll_until(condition, f"until {what}", timeout)

    async def _poll_until(
        self, condition: Callable[[], object], what: str, timeout: float, batch: int = 0
    ) -> bool:
        began = time.monotonic()
        while not condition():
            if time.monotonic() - began > timeout:
                self._line(f"{what} = not within {timeout:.0f} s")
                return False
            try:
                if batch:
                    await self.consume(batch, 0.1)
                else:
                    await self.poll(0.1)
            except KafkaException:
                await asyncio.sleep(0.05)  # as in `Client`
        self._line(f"{what} = done", time.monotonic() - began)
        return True

    @property
    def _timeline(self) -> str:
        task = asyncio.current_task()
        name = "" if task is None else task.get_name()
        return self.name if not name or name.startswith("Task-") else f"{self.name}@{name}"
