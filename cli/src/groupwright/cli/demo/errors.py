"""What ends the demo before its time."""

from groupwright.assignors import GroupwrightError


class DemoError(GroupwrightError):
    """The demo cannot start or go on; the message is for the user, and complete."""
