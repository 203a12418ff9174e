"""Logging: lines name the client and its group; kafka-python's on the network thread are at DEBUG."""

import logging
import threading
from collections.abc import MutableMapping
from typing import Any

LIBRARY = (
    "kafka.cluster",
    "kafka.net.connection",
    "kafka.net.inet",
    "kafka.net.manager",
    "kafka.net.sasl.oauth",
    "kafka.net.sasl.plain",
    "kafka.net.sasl.scram",
    "kafka.net.selector",
    "kafka.net.transport",
    "kafka.protocol",
    "kafka.protocol.parser",
)
"""kafka-python's loggers with lines on a membership's thread."""


class GroupLog(logging.LoggerAdapter[logging.Logger]):
    """Begins every line with the client and the group, and carries both as extra fields."""

    def __init__(self, logger: logging.Logger, client_id: str, group_id: str) -> None:
        """Write to `logger`."""
        super().__init__(logger, {"client_id": client_id, "group": group_id})
        self._prefix = f"[{client_id} in {group_id}] "

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the prefix."""
        msg, kwargs = super().process(msg, kwargs)
        return self._prefix + str(msg), kwargs


class _Demotion(logging.Filter):
    """Lowers what kafka-python logs on a membership's thread to DEBUG.

    The membership logs the same facts itself, in the words of its configuration. An application's own use of
    kafka-python runs on other threads, and stays as it is; so does the traceback of a defect in the event
    loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self.threads = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        defect = record.name == "kafka.net.selector" and record.exc_info is not None
        if record.levelno <= logging.DEBUG or defect or not getattr(self.threads, "demoted", False):
            return True
        record.levelno, record.levelname = logging.DEBUG, logging.getLevelName(logging.DEBUG)
        return logging.getLogger(record.name).isEnabledFor(logging.DEBUG)


_demotion = _Demotion()


def demote_library() -> None:
    """Log at DEBUG, from now on, what kafka-python logs at a higher level on the calling thread."""
    _demotion.threads.demoted = True
    for name in LIBRARY:
        logging.getLogger(name).addFilter(_demotion)
