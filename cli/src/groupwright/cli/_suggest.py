"""Suggestions for misspelt names."""

from collections.abc import Iterable
from difflib import get_close_matches


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `, did you mean 'orders'?` with the closest known name, or an empty text if none is close."""
    matches = get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f", did you mean {matches[0]!r}?" if matches else ""
