"""The similarity of a slip of the keyboard, and the error of a group that does not exist."""

from collections.abc import Iterable

from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.core.spelling import did_you_mean

SPELLING = 0.9
"""Similarity of names that differ by a slip of the keyboard."""


def unknown_group(group: str, known: Iterable[str]) -> CommandError:
    """Return the error of a group that does not exist, with a close name or the command that lists groups."""
    advice = ", or these credentials may not describe it. `groupwright groups` lists the groups"
    return CommandError(
        f"there is no group {group!r}{did_you_mean(group, known) or advice}", ExitStatus.NOT_FOUND
    )
