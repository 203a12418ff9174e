"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable

CLOSE = 0.6
"""Similarity of names that may be meant, from 0 to 1."""


def did_you_mean(name: str, known: Iterable[str], similarity: float = CLOSE) -> str:
    """Return `, did you mean 'orders'?` with the closest known name, or an empty text if none is close.

    Args:
        name: The name that is not known.
        known: Names.
        similarity: The lowest similarity of a close name, from 0 to 1.
    """
    from difflib import get_close_matches  # rarely needed

    matches = get_close_matches(name, list(known), n=1, cutoff=similarity)
    return f", did you mean {matches[0]!r}?" if matches else ""
