"""The examples in the documentation run."""

import doctest
import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import groupwright.assignors

README = Path(__file__).parent.parent / "README.md"
BLOCKS = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
MODULES = [
    "groupwright.assignors",
    *(
        f"groupwright.assignors.{module.name}"
        for module in pkgutil.iter_modules(groupwright.assignors.__path__)
    ),
]


@pytest.mark.parametrize("block", BLOCKS, ids=range(len(BLOCKS)))
def test_the_readmes_programs_run(block: str) -> None:
    exec(compile(block, str(README), "exec"), {})  # noqa: S102 - that is what a reader will do


def test_the_readmes_assignor_is_as_short_as_promised() -> None:
    (source,) = re.findall(
        r"^class LeastLoadedAssignor.*?return plan$",
        README.read_text(encoding="utf-8"),
        re.DOTALL | re.MULTILINE,
    )
    assert len([line for line in source.splitlines() if line]) <= 15


def test_the_readme_knows_every_module() -> None:
    for module in MODULES[1:]:
        assert f"`{module.removeprefix('groupwright.assignors.')}`" in README.read_text(encoding="utf-8")


def test_the_docstrings_examples_run() -> None:
    results = [doctest.testmod(importlib.import_module(module)) for module in MODULES]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) >= 5
