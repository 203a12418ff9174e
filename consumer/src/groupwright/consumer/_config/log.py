"""Logging: records name the client and its group; records of kafka-python are at DEBUG, without secrets."""

import logging
import threading
from collections.abc import MutableMapping
from typing import Any

KAFKA_PYTHON_LOGGERS = (
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
"""kafka-python's loggers that write on the network thread."""


class GroupLog(logging.LoggerAdapter[logging.Logger]):
    """Prefixes every message with the client and the group, and adds both as extra fields."""

    def __init__(self, logger: logging.Logger, client_id: str, group_id: str) -> None:
        """Write to `logger`."""
        super().__init__(logger, {"client_id": client_id, "group": group_id})
        self._prefix = f"[{client_id} in {group_id}] "

    def process(self, msg: Any, kwargs: MutableMapping[str, Any]) -> tuple[Any, MutableMapping[str, Any]]:
        """Add the prefix."""
        msg, kwargs = super().process(msg, kwargs)
        return self._prefix + str(msg), kwargs


class Redacted(bytes):
    """Bytes whose `repr` does not show them."""

    __slots__ = ()

    def __repr__(self) -> str:
        """Return the number of bytes."""
        return f"<{len(self)} bytes, not shown>"


class _Demotion(logging.Filter):
    """Lowers kafka-python's records on network threads to DEBUG, and hides what SASL exchanges.

    A broker's responses of SCRAM have the salt and a signature, from which a password can be guessed offline.

    The membership logs the same events itself, in terms of its own configuration. Records on other threads,
    where the application may use kafka-python, are unchanged; so is the traceback of a defect in the event
    loop.
    """

    def __init__(self) -> None:
        super().__init__()
        self.threads = threading.local()

    def filter(self, record: logging.LogRecord) -> bool:
        if not getattr(self.threads, "demoted", False):
            return True
        for argument in record.args if isinstance(record.args, tuple) else ():
            if isinstance(getattr(argument, "auth_bytes", None), bytes):
                argument.auth_bytes = Redacted(argument.auth_bytes)  # type: ignore[attr-defined] # it has them
        defect = record.name == "kafka.net.selector" and record.exc_info is not None
        if record.levelno <= logging.DEBUG or defect:
            return True
        record.levelno, record.levelname = logging.DEBUG, logging.getLevelName(logging.DEBUG)
        return logging.getLogger(record.name).isEnabledFor(logging.DEBUG)


_demotion = _Demotion()


def demote_kafka_python() -> None:
    """Lower kafka-python's records on the calling thread to DEBUG from now on, and hide secrets in them."""
    _demotion.threads.demoted = True
    for name in KAFKA_PYTHON_LOGGERS:
        logging.getLogger(name).addFilter(_demotion)
