"""Exceptions of the assignors."""

from __future__ import annotations

from groupwright.core import GroupwrightError

__all__ = ["AssignorError", "GroupwrightError", "InvalidInputError", "MalformedBytesError"]


class InvalidInputError(GroupwrightError, ValueError):
    """An argument is invalid: a member, a topic, a partition or a subscription."""


class AssignorError(GroupwrightError):
    """An assignor is not usable, or its result is not an assignment of its group.

    The message names the member, topic or partition at fault.
    """


class MalformedBytesError(GroupwrightError, ValueError):
    """Bytes cannot be decoded.

    Attributes:
        what: The kind of data, such as `subscription`.
        offset: The offset of the first byte that could not be decoded.
        expected: The expected content at this offset.
        found: The actual content.
    """

    def __init__(self, what: str, offset: int, expected: str, found: str) -> None:
        """Store the offset and the reason separately, for callers that build their own message."""
        super().__init__(what, offset, expected, found)
        self.what = what
        self.offset = offset
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        """Return the message."""
        return f"malformed {self.what}: at byte {self.offset}, expected {self.expected}, found {self.found}"
