"""The page of conformance: whatever it says that Groupwright has, a test shows."""

import re
from pathlib import Path

PAGE = Path(__file__).parents[1] / "conformance.md"
_ROW = re.compile(r"^\| (\d+) \| ([^|]+) \| ([^|]+) \| ([^|]*)\|$", re.MULTILINE)


def test_each_proposal_has_a_row_and_what_is_had_is_shown_by_a_test() -> None:
    rows = _ROW.findall(PAGE.read_text(encoding="utf-8"))
    numbers = [int(number) for number, *_ in rows]

    assert numbers == sorted(set(numbers))
    assert {62, 345, 394, 429, 447, 511, 568, 792, 800, 814, 848, 881, 932, 1092, 1274} <= set(numbers)
    shown = {number: test for number, _, state, test in rows if re.match(r"has\b(?! not)|partly", state)}
    files = {number: re.findall(r"\]\((.*?\.py)\)", test) for number, test in shown.items()}
    assert [number for number, found in files.items() if not found] == []
    assert [name for found in files.values() for name in found if not (PAGE.parent / name).is_file()] == []
