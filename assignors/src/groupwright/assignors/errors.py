"""The assignors' exceptions."""

from groupwright.core import GroupwrightError

__all__ = ["AssignorError", "GroupwrightError", "InvalidInputError", "MalformedBytesError"]


class InvalidInputError(GroupwrightError, ValueError):
    """A value handed to Groupwright cannot be: a member, a topic, a partition, a subscription."""


class AssignorError(GroupwrightError):
    """An assignor is not usable, or its result is not an assignment of its group.

    The message names the member, topic or partition at fault.
    """


class MalformedBytesError(GroupwrightError, ValueError):
    """Bytes do not follow the format that they should.

    Attributes:
        what: What was being read, such as `subscription`.
        offset: Where the reader stood: the bytes before it are in order.
        expected: What should stand there.
        found: What stands there instead.
    """

    def __init__(self, what: str, offset: int, expected: str, found: str) -> None:
        """Keep the place and the reason apart, for a caller that adds whose bytes they were."""
        super().__init__(what, offset, expected, found)
        self.what = what
        self.offset = offset
        self.expected = expected
        self.found = found

    def __str__(self) -> str:
        """Say what was read, where, what was expected, and what is there."""
        return f"malformed {self.what}: at byte {self.offset}, expected {self.expected}, found {self.found}"
