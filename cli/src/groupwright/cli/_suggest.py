"""Suggestions for misspelt names, and the error of a group that does not exist."""

from collections.abc import Iterable
from difflib import get_close_matches

from groupwright.cli._exit import CommandError, ExitStatus


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'orders'?` with the closest known name, or an empty text if none is close."""
    matches = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f", did you mean {matches[0]!r}?" if matches else ""


def unknown_group(group: str, known: Iterable[str]) -> CommandError:
    """Return the error of a group that does not exist, with a close name or the command that lists groups."""
    advice = ", or these credentials may not describe it. `groupwright groups` lists the groups"
    return CommandError(
        f"there is no group {group!r}{did_you_mean(group, known) or advice}", ExitStatus.NOT_FOUND
    )
