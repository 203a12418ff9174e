"""Logging: records name the client and its group."""

from __future__ import annotations

import logging
from collections.abc import MutableMapping
from typing import Any


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
