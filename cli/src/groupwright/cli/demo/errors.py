"""Exceptions that end the demo early."""

from groupwright.assignors import GroupwrightError


class DemoError(GroupwrightError):
    """The demo cannot start or go on; the message is for the user, and complete."""
