"""Suggestions for misspelt names, and the error of a group that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

from groupwright.cli._exit import CommandError, ExitStatus

CLOSE, SPELLING = 0.6, 0.9
"""Similarity of names that may be meant, and of names that differ by a slip of the keyboard."""


def did_you_mean(name: str, known: Iterable[str], similarity: float = CLOSE) -> str:
    """Return `, did you mean 'orders'?` with the closest known name, or an empty text if none is close.

    Args:
        name: The name that is not known.
        known: Names.
        similarity: The lowest similarity of a close name, from 0 to 1.
    """
    matches = get_close_matches(name, list(known), n=1, cutoff=similarity)
    return f", did you mean {matches[0]!r}?" if matches else ""


def unknown_group(group: str, known: Iterable[str]) -> CommandError:
    """Return the error of a group that does not exist, with a close name or the command that lists groups."""
    advice = ", or these credentials may not describe it. `groupwright groups` lists the groups"
    return CommandError(
        f"there is no group {group!r}{did_you_mean(group, known) or advice}", ExitStatus.NOT_FOUND
    )
