"""What goes wrong with tables."""

from groupwright.assignors import GroupwrightError


class TablesError(GroupwrightError):
    """Tables cannot be opened or written; the message says which, and what to do."""
