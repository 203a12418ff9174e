"""The page docs/exactly-once.md shows the code of the example that `integration_tests/exactly_once` runs."""

import re
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).parents[2]


def test_the_code_of_the_page_is_that_of_the_example() -> None:
    page = (ROOT / "docs" / "exactly-once.md").read_text(encoding="utf-8")
    program = (ROOT / "examples" / "exactly_once.py").read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)

    assert len(blocks) == 3
    for block in blocks:
        assert any(indent(block, " " * depth) in program for depth in (4, 8)), block
