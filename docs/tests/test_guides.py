"""The guides' programs run: those of each guide in order, then the tests that they define."""

import logging
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

DOCS = Path(__file__).parents[1]
# Two need a Kafka, which `test_start` and `test_incident` have; those of the others are parts of an example.
ELSEWHERE = {"start.md", "incident.md", "exactly-once.md", "parallel.md"}
GUIDES = [
    guide
    for guide in sorted(DOCS.glob("*.md"))
    if guide.name not in ELSEWHERE and "```python\n" in guide.read_text(encoding="utf-8")
]


@pytest.fixture(autouse=True)
def loggers_as_before() -> Iterator[None]:
    """Undo what a guide does to loggers."""
    loggers = [logging.getLogger(name) for name in ("groupwright", "groupwright.consumer", "librdkafka")]
    before = [(logger, logger.level, list(logger.handlers)) for logger in loggers]
    yield
    for logger, level, handlers in before:
        logger.setLevel(level)
        logger.handlers[:] = handlers


@pytest.mark.slow
@pytest.mark.parametrize("guide", GUIDES, ids=lambda guide: guide.stem)
def test_the_programs_of_a_guide_run(guide: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Their output is in the guide too, except for measured speeds."""
    text = guide.read_text(encoding="utf-8")
    programs = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    names: dict[str, Any] = {}
    for number, program in enumerate(programs):
        exec(compile(program, f"{guide.name}, program {number}", "exec"), names)  # noqa: S102 - that is what a reader will do
    for name, test in list(names.items()):
        if name.startswith("test_"):
            test()
    printed = [line for line in capsys.readouterr().out.splitlines() if not line.startswith("Speed")]
    assert [line for line in printed if f"    {line}\n" not in text] == []
