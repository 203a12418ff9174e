"""Rules of the layout that no type checker sees: imports between parts and rooms."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from integration_tests.harness.patience import PATIENCE

ROOT = Path(__file__).parents[2]
TOOLS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
PARTS = [Path(package).parts[0] for package in TOOLS["hatch"]["build"]["targets"]["wheel"]["packages"]]

# Parts that each part may import, by docs/design.md.
ALLOWED = {
    "core": set[str](),
    "assignors": {"core"},
    "consumer": {"core", "assignors"},
    "instrumentation": {"core"},
    "testing": {"core", "assignors"},
    "pipeline": {"core", "assignors", "testing"},
    "cli": set(PARTS),
}


# The rooms of each part, lowest first: a module imports its own room and those below. "" is the top level.
ROOMS = {
    "assignors": ("_model", "_wire", "_algorithms", ""),
    "consumer": ("_protocol", "_config", "_network", "_coordinator", "_membership", "_parallel", ""),
    "instrumentation": ("_librdkafka", "_metrics", "_tracking", ""),
    "testing": ("_java", "_kafka", "_assignors", "_groups", "_simulation", ""),
    "pipeline": ("_decoding", "_tables", "_transforms", "_what_if", "_report", "_jobs", ""),
    "cli": ("_command_line", "_cluster", "_study", ""),
}
# Modules at the top level that every room may import. They import no room.
LEAVES = {
    "assignors": {"errors"},
    "consumer": {"errors", "interceptors"},
    "instrumentation": {"events"},
    "testing": {"errors"},
    "pipeline": {"_side_by_side", "errors", "record_schemas", "schemas"},
    "cli": set(),
}


# Every module by its name: those of the parts, and those of the packages beside them.
MODULES = {
    ".".join(file.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): file
    for root, folders in (
        *((ROOT / part / "src", ["groupwright"]) for part in PARTS),
        (ROOT, ["integration_tests", "benchmarks", "charts", "tools"]),
    )
    for folder in folders
    for file in (root / folder).rglob("*.py")
}


def modules(part: str) -> list[Path]:
    return sorted((ROOT / part / "src" / "groupwright" / part).rglob("*.py"))


@cache
def imports(module: Path) -> set[str]:
    """Return the names of all modules that a module imports, with `from package import module` resolved."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(module.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                found.add(inner if inner in MODULES else node.module)
    return found


def test_every_list_of_the_parts_is_that_of_the_wheels_packages() -> None:
    sources = sorted(f"{part}/src" for part in PARTS)
    dry_run = ["make", "--dry-run", "test-wheel"]
    recipe = subprocess.run(
        dry_run, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=True
    ).stdout

    assert sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob("*/src")) == sources
    assert sorted(TOOLS["hatch"]["build"]["dev-mode-dirs"]) == sources
    assert sorted(TOOLS["mypy"]["mypy_path"].split(":")) == sources
    assert set(PARTS) <= set(TOOLS["pytest"]["ini_options"]["testpaths"])
    assert set(PARTS) == ALLOWED.keys() == ROOMS.keys() | {"core"}
    assert f" {' '.join(PARTS)} " in recipe


def test_the_namespace_root_has_no_init() -> None:
    """An `__init__.py` in it would hide the other parts from Python."""
    assert list(ROOT.glob("*/src/groupwright/__init__.py")) == []


@pytest.mark.parametrize("part", PARTS)
def test_each_part_is_a_room_with_everything_in_it(part: str) -> None:
    assert (ROOT / part / "README.md").is_file()
    assert (ROOT / part / "src" / "groupwright" / part / "py.typed").is_file()
    assert list((ROOT / part / "tests").glob("test_*.py"))


@pytest.mark.parametrize("part", PARTS)
def test_every_public_name_of_a_part_is_there(part: str) -> None:
    """Some parts import a name on first use, from the module that a table has beside `__all__`."""
    package = import_module(f"groupwright.{part}")

    assert [name for name in package.__all__ if not hasattr(package, name)] == []
    assert set(vars(package).get("_MODULES", {})) <= set(package.__all__)


@pytest.mark.medium
@pytest.mark.parametrize("part", PARTS)
def test_each_part_imports_only_the_parts_in_the_design(part: str) -> None:
    used = {
        name.split(".")[1]
        for module in modules(part)
        for name in imports(module)
        if name.startswith("groupwright.")
    }

    assert used - {part} <= ALLOWED[part]


def room_of(part: str, name: str) -> str | None:
    """Return the room of an imported module of this part, or None for leaves and other parts."""
    inside = name.removeprefix(f"groupwright.{part}").removeprefix(".").split(".")
    if not name.startswith(f"groupwright.{part}") or inside[0] in LEAVES[part]:
        return None
    return inside[0] if inside[0].startswith("_") else ""


def own_room(root: Path, module: Path) -> str:
    """Return the room that contains a module."""
    first, *inner = module.relative_to(root).parts
    return first if inner and first.startswith("_") else ""


@pytest.mark.parametrize("part", ROOMS)
def test_every_room_has_its_place(part: str) -> None:
    root = ROOT / part / "src" / "groupwright" / part

    assert {folder.name for folder in root.glob("_*/") if list(folder.glob("*.py"))} == set(ROOMS[part]) - {
        ""
    }


@pytest.mark.medium
@pytest.mark.parametrize("part", ROOMS)
def test_no_room_imports_one_above_it(part: str) -> None:
    order = ROOMS[part]
    root = ROOT / part / "src" / "groupwright" / part
    upwards = {
        (module.relative_to(root).as_posix(), name)
        for module in modules(part)
        for name in imports(module)
        if (used := room_of(part, name)) is not None
        and order.index(used) > order.index(own_room(root, module))
    }

    assert upwards == set()


@pytest.mark.parametrize("part", ROOMS)
def test_leaves_import_no_room(part: str) -> None:
    root = ROOT / part / "src" / "groupwright" / part

    assert [
        (leaf, name) for leaf in LEAVES[part] for name in imports(root / f"{leaf}.py") if room_of(part, name)
    ] == []


@pytest.mark.medium
def test_no_module_imports_itself_through_others() -> None:
    """Imports for types, and those inside functions, count too."""
    graph = {name: imports(file) & MODULES.keys() - {name} for name, file in MODULES.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" is imported by ".join(error.args[1]))


def test_the_changes_file_by_file_name_what_exists() -> None:
    """Paths of modules leave out `src/groupwright/<part>/`; programs are those of `make docs`."""
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    section = page.split("## Five changes, file by file\n")[1].split("\n## ")[0]
    paths = set(re.findall(r"`([\w.-]+/[\w./-]*)`", section))
    places = {path: [ROOT / path, ROOT / path.split("/")[0] / "src" / "groupwright" / path] for path in paths}
    programs = set(re.findall(r"`(python [^`]+)`", section))
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")

    assert section.count("\n- **") == 5
    assert {path for path, found in places.items() if not any(place.exists() for place in found)} == set()
    assert {program for program in programs if f"\t$(BIN)/{program}\n" not in makefile} == set()


def test_the_core_needs_the_standard_library_alone() -> None:
    foreign = {
        (module.name, name)
        for module in modules("core")
        for name in imports(module)
        if name.split(".")[0] not in sys.stdlib_module_names and not name.startswith("groupwright.core")
    }

    assert foreign == set()


def test_the_consumers_protocol_is_pure() -> None:
    """No network, no librdkafka, no clock: the simulation and the property tests rely on it."""
    room = ROOT / "consumer/src/groupwright/consumer/_protocol"
    foreign = {
        (module.name, name)
        for module in room.glob("*.py")
        for name in imports(module)
        if name.split(".")[0] not in sys.stdlib_module_names
        and not name.startswith(
            ("groupwright.assignors", "groupwright.core", "groupwright.consumer._protocol")
        )
    }

    assert foreign == set()


def test_the_simulation_is_pure() -> None:
    """No network, no clock, no threads: the same seed gives the same outputs.

    Random numbers come from the scheduler alone, which derives them from the seed.
    """
    room = ROOT / "testing/src/groupwright/testing/_simulation"
    used = {module.name: imports(module) for module in room.glob("*.py")}
    own = (
        "groupwright.testing._simulation",
        "groupwright.testing.errors",
        "groupwright.assignors",
        "groupwright.core",
    )
    foreign = {(module, name) for module, names in used.items() for name in names if not name.startswith(own)}
    forbidden = {"asyncio", "random", "secrets", "threading", "time", "uuid"}

    assert {name.split(".")[0] for _, name in foreign} <= set(sys.stdlib_module_names)
    assert {each for each in foreign if each[1].split(".")[0] in forbidden} == {("scheduler.py", "random")}


def test_no_part_imports_another_parts_private_modules() -> None:
    foreign = {
        (module.relative_to(ROOT).as_posix(), name)
        for part in PARTS
        for module in modules(part)
        for name in imports(module)
        if name.startswith("groupwright.") and not name.startswith(f"groupwright.{part}.") and "._" in name
    }

    assert foreign == set()


def test_no_part_needs_another_client_of_kafka_than_confluent_kafka() -> None:
    others = {
        (module.relative_to(ROOT).as_posix(), name)
        for part in PARTS
        for module in modules(part)
        for name in imports(module)
        if name.split(".")[0] in {"kafka", "aiokafka", "kio"}
    }

    assert others == set()


def test_what_needs_no_socket_is_pure() -> None:
    """Messages, SASL and requests in flight: bytes in, bytes out."""
    network = "consumer/src/groupwright/consumer/_network"
    pure = ("core/src/groupwright/core/wire_format.py", "core/src/groupwright/core/kafka_apis.py")
    forbidden = {"asyncio", "os", "selectors", "socket", "ssl", "threading", "time"}
    used = {
        (path, name)
        for path in (*pure, *(f"{network}/{name}.py" for name in ("handshake", "pipeline", "sasl")))
        for name in imports(ROOT / path)
        if name.split(".")[0] in forbidden or name.endswith((".event_loop", ".stream"))
    }

    assert used == set()


def test_one_module_calls_librdkafka() -> None:
    """Others use its interface, so that another client can fetch.

    `Consumer` and `Polling` have it as their base, and a configuration is checked by creating a handle.
    """
    named = {
        module.name
        for module in modules("consumer")
        for node in ast.walk(ast.parse(module.read_text()))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "confluent_kafka.Consumer"
    }

    assert named == {"handle.py", "consumer.py", "polling.py", "configuration.py"}


@pytest.mark.parametrize("part", ["core", "assignors", "consumer", "instrumentation"])
def test_no_annotation_of_what_a_member_imports_is_evaluated(part: str) -> None:
    """Each is an object or more that every full garbage collection of the application visits."""
    for module in modules(part):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        annotated = any(
            isinstance(node, ast.AnnAssign) or getattr(node, "returns", None) for node in ast.walk(tree)
        )
        assert not annotated or "__future__" in imports(module), module
