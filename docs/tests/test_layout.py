"""The layout's rules, which no type checker sees."""

import ast
from pathlib import Path

import pytest

import file_map

ROOT = Path(__file__).parents[2]
PARTS = file_map.PARTS

# What the design lets each part import of the others.
ALLOWED = {
    "assignors": set[str](),
    "consumer": {"assignors"},
    "instrumentation": set[str](),
    "testing": {"assignors"},
    "pipeline": {"assignors"},
    "cli": set(PARTS),
}


def modules(part: str) -> list[Path]:
    return sorted((ROOT / part / "src" / "groupwright" / part).rglob("*.py"))


def imports(module: Path) -> set[str]:
    """The names of all modules that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            found.add(node.module)
    return found


def test_the_namespace_root_has_no_init() -> None:
    """An `__init__.py` there would hide all other parts from Python."""
    assert list(ROOT.glob("*/src/groupwright/__init__.py")) == []


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_a_room_with_everything_in_it(part: str) -> None:
    assert (ROOT / part / "README.md").is_file()
    assert (ROOT / part / "src" / "groupwright" / part / "py.typed").is_file()
    assert list((ROOT / part / "tests").glob("test_*.py"))


@pytest.mark.parametrize("part", PARTS)
def test_each_part_imports_only_what_the_design_lets_it(part: str) -> None:
    used = {
        name.split(".")[1]
        for module in modules(part)
        for name in imports(module)
        if name.startswith("groupwright.")
    }

    assert used - {part} <= ALLOWED[part]


def test_one_module_imports_kafka_python() -> None:
    """Its inner layers may change; a change must have one place to be met."""
    touching = {
        module.relative_to(ROOT).as_posix()
        for part in PARTS
        for module in modules(part)
        if any(name.split(".")[0] == "kafka" for name in imports(module))
    }

    assert touching == {"consumer/src/groupwright/consumer/_network/library.py"}


def test_the_map_of_files_is_up_to_date() -> None:
    """A newcomer finds the room for a change from the map; `make docs` makes it anew."""
    design = (ROOT / "docs" / "design.md").read_text()

    assert file_map.mapped(design) == design
