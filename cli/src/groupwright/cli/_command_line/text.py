"""Text for terminals."""

import re

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Characters that control a terminal or turn the direction of text, but for tabs and line breaks."""


def harmless(text: str) -> str:
    """Return a text for a terminal, with U+FFFD for each character that controls it.

    Names of groups and clients may be any text, and come from anyone who may use the cluster.
    """
    return _CONTROLS.sub("\N{REPLACEMENT CHARACTER}", text)
