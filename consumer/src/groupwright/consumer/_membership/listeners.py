"""Listeners of one consumer, which receive the record of each rebalance."""

from __future__ import annotations

import logging

from groupwright.core import RebalanceListener


class Listeners(list[RebalanceListener]):
    """A consumer's listeners. Their exceptions are logged, and have no other effect."""

    def __init__(self, log: logging.LoggerAdapter[logging.Logger]) -> None:
        """Start without listeners."""
        super().__init__()
        self._log = log

    def append(self, listener: RebalanceListener) -> None:
        """Add a listener.

        Raises:
            TypeError: It is no `RebalanceListener`.
        """
        if not isinstance(listener, RebalanceListener):
            raise TypeError(
                f"a listener is a groupwright.consumer.RebalanceListener, not {type(listener).__name__}: "
                "derive the class from it"
            )
        super().append(listener)

    def notify(self, method: str, *arguments: object) -> None:
        """Call a method of all listeners."""
        for listener in tuple(self):  # one may remove itself
            try:
                getattr(listener, method)(*arguments)
            except Exception:  # noqa: BLE001 - a listener's failure is not the consumer's
                self._log.exception("the listener %r raised; the consumer continues", listener)
