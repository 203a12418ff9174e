"""The page docs/parallel.md shows the code of the example that `integration_tests/parallel` runs."""

import re
from pathlib import Path
from textwrap import indent

ROOT = Path(__file__).parents[2]


def test_the_code_of_the_page_is_that_of_the_example() -> None:
    page = (ROOT / "docs" / "parallel.md").read_text(encoding="utf-8")
    program = (ROOT / "examples" / "parallel_service.py").read_text(encoding="utf-8")
    (block,) = re.findall(r"```python\n(.*?)```", page, re.DOTALL)

    lines = [line for line in program.splitlines() if line]
    shown = [line for line in indent(block, "    ").splitlines() if line]
    assert any(shown == lines[begin : begin + len(shown)] for begin in range(len(lines)))
    assert len(shown) <= 35
