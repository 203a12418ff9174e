"""The root of Groupwright's exceptions."""


class GroupwrightError(Exception):
    """The root of every exception that Groupwright raises on purpose."""
