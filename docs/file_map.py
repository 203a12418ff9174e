"""Writes the map of all source files into docs/design.md, from the first lines of their docstrings.

Run by ``make docs``; a test holds the map up to date.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DESIGN = ROOT / "docs" / "design.md"
PARTS = ("core", "assignors", "consumer", "instrumentation", "pipeline", "testing", "cli")

_BEGIN = "<!-- The map below is made by `make docs`. -->\n"


def modules(part: str) -> list[Path]:
    """Return a part's modules, without those that only export or start others."""
    found = (ROOT / part / "src" / "groupwright" / part).rglob("*.py")
    return sorted(module for module in found if module.name not in {"__init__.py", "__main__.py"})


def file_map() -> str:
    """Return the map in Markdown: a table a part, a line a module."""
    return "\n".join(line for part in PARTS for line in _table(part))


def mapped(design: str) -> str:
    """Return the design's text with the present map."""
    before, _, _ = design.partition(_BEGIN)
    return before + _BEGIN + "\n" + file_map() + "\n"


def _table(part: str) -> Iterator[str]:
    root = ROOT / part / "src" / "groupwright" / part
    yield f"### {part}/\n"
    yield "| module | what lives there |"
    yield "|---|---|"
    for module in modules(part):
        yield f"| `{module.relative_to(root).as_posix()}` | {_first_sentence(module)} |"
    yield ""


def _first_sentence(module: Path) -> str:
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    paragraph = docstring.partition("\n\n")[0]
    return re.sub(r"\s+", " ", paragraph).replace("|", r"\|")


if __name__ == "__main__":
    text = DESIGN.read_text(encoding="utf-8")
    DESIGN.write_text(mapped(text), encoding="utf-8")
    sys.stdout.write(f"{DESIGN.relative_to(ROOT)} is up to date\n")
