"""Writes docs/file-map.md, a map of all source files, from the first sentences of their docstrings.

Run by ``make docs``; a test checks that the page is up to date.
"""

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "file-map.md"
PARTS = ("core", "assignors", "consumer", "instrumentation", "pipeline", "testing", "cli")

_HEAD = """\
# Map of files

Every module with the first sentence of its docstring, by part. A folder that begins with an underscore is
private to its part. [design.md](design.md) describes the parts and the order of their rooms.

`make docs` makes this page.
"""


def modules(part: str) -> list[Path]:
    """Return a part's modules, without those that only export or start others."""
    found = (ROOT / part / "src" / "groupwright" / part).rglob("*.py")
    return sorted(module for module in found if module.name not in {"__init__.py", "__main__.py"})


def file_map() -> str:
    """Return the page in Markdown: one table per part, one row per module."""
    return "\n".join([_HEAD, *(line for part in PARTS for line in _table(part))])


def _table(part: str) -> Iterator[str]:
    root = ROOT / part / "src" / "groupwright" / part
    yield f"## {part}/\n"
    yield "| module | content |"
    yield "|---|---|"
    for module in modules(part):
        yield f"| `{module.relative_to(root).as_posix()}` | {_first_sentence(module)} |"
    yield ""


def _first_sentence(module: Path) -> str:
    docstring = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    paragraph = docstring.partition("\n\n")[0]
    return re.sub(r"\s+", " ", paragraph).replace("|", r"\|")


if __name__ == "__main__":
    PAGE.write_text(file_map(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is up to date\n")
