"""Writes the diagrams of a membership's states into docs/membership-states.md, from the table of transitions.

Run by ``make docs``; a test checks that the page is up to date.
"""

import sys
from pathlib import Path

from groupwright.consumer._protocol.transitions import diagram

PAGE = Path(__file__).parent / "membership-states.md"

_BEGIN = "<!-- The diagrams below are made by `make docs`. -->\n"


def drawn(page: str) -> str:
    """Return the page's text with the present diagrams."""
    before, _, _ = page.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{diagram()}"


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} is up to date\n")
