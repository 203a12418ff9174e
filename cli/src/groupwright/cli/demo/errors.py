"""Exception of the demo."""

from groupwright.assignors import GroupwrightError


class DemoError(GroupwrightError):
    """The demo cannot start or continue. The message names the reason and the remedy."""
