"""Writes the references of the command line and of the events, from the code's definitions and the schemas.

Run by ``make docs``; a test checks that the pages are up to date.
"""

import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import Any, get_args

import typer.main

from groupwright import instrumentation
from groupwright.cli.app import app

COMMANDS = Path(__file__).parents[1] / "docs" / "commands.md"
EVENTS = COMMANDS.with_name("events.md")

_Rows = dict[str, tuple[str, str]]
"""The names and the meaning of each argument and option of a command, by its short name."""

_SCHEMAS = Path(instrumentation.__file__).parent
_COMMANDS_INTRODUCTION = """# Commands and options

Every command of `groupwright`, made from the code by `make docs`. [The command line](../cli/README.md)
explains them, with their output and exit statuses.
"""
_HEADING = ("argument or option", "meaning")
_EVENTS_INTRODUCTION = """# Fields of the events

The fields of each event, made from the schemas by `make docs`.
[Instrumentation](../instrumentation/README.md#events) explains how to receive them, and
[stability](stability.md) what may change.
"""


def commands() -> str:
    """Return the page of all commands."""
    families: dict[str, dict[str, Any]] = {}
    for name, command in _commands(typer.main.get_command(app), "groupwright"):
        families.setdefault(name.rpartition(" ")[0], {})[name] = command
    shared = {parent: _shared(list(family.values())) for parent, family in families.items()}
    return "\n".join(
        [
            _COMMANDS_INTRODUCTION,
            *(_shared_section(parent, shared[parent], family) for parent, family in families.items()),
            *(
                _section(name, command, shared[parent])
                for parent, family in families.items()
                for name, command in family.items()
            ),
        ]
    )


def events() -> str:
    """Return the page of all events."""
    return "\n".join(
        [
            _EVENTS_INTRODUCTION,
            *_event("Rebalances", "rebalance-event.schema.json"),
            *_event("Load checks", "load-check-event.schema.json"),
        ]
    )


def _commands(command: Any, name: str) -> Iterator[tuple[str, Any]]:
    """Yield each command with its whole name."""
    subcommands = getattr(command, "commands", {})
    for key, subcommand in subcommands.items():
        if not subcommand.hidden:
            yield from _commands(subcommand, f"{name} {key}")
    if not subcommands:
        yield name, command


def _shared(commands: Sequence[Any]) -> _Rows:
    """Return the options that most of the commands have with the same meaning and default."""
    uses = Counter(item for command in commands for item in _rows(command).items())
    return {name: row for (name, row), count in uses.items() if count > len(commands) / 2}


def _shared_section(parent: str, shared: _Rows, family: dict[str, Any]) -> str:
    """Return the section of the shared options, each with the commands that have another or none."""
    rows = []
    for short, (names, meaning) in shared.items():
        without = [name for name, command in family.items() if _rows(command).get(short) != shared[short]]
        rows.append((names, f"{meaning} Not so in: {', '.join(f'`{name}`' for name in without)}."))
    return f"## Options of most commands of {parent}\n\n{_table(_HEADING, rows)}"


def _section(title: str, command: Any, shared: _Rows) -> str:
    summary = (command.help or "").partition("\n\n")[0].replace("\n", " ")
    own = [row for name, row in _rows(command).items() if shared.get(name) != row]
    table = f"\n{_table(_HEADING, own)}" if own else ""
    return f"## {title}\n\n{summary}\n{table}"


def _rows(command: Any) -> _Rows:
    parameters = [
        each for each in command.params if not getattr(each, "hidden", False) and each.name != "help"
    ]
    return {_short(each): (_names(each), _meaning(each)) for each in parameters}


def _short(parameter: Any) -> str:
    """Return an argument's metavar, or an option's first name."""
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or parameter.name.upper())
    return str(parameter.opts[0])


def _names(parameter: Any) -> str:
    if parameter.param_type_name == "argument":
        return f"`{_short(parameter)}`"
    metavar = f" {value}" if (value := _metavar(parameter)) else ""
    names = "/".join([*parameter.opts, *parameter.secondary_opts])
    variable = f" (environment: `{parameter.envvar}`)" if parameter.envvar else ""
    return f"`{names}{metavar}`{variable}"


def _metavar(parameter: Any) -> str:
    """Return the name or the choices of an option's value; empty for a flag."""
    if parameter.metavar:
        return str(parameter.metavar)
    annotation = parameter.type_descriptor.annotation
    for kind in (annotation, *get_args(annotation)):
        if isinstance(kind, type) and issubclass(kind, Enum):
            return "|".join(str(each.value) for each in kind)
    return "" if annotation is bool else str(getattr(annotation, "__name__", annotation)).upper()


def _meaning(parameter: Any) -> str:
    text = " ".join((getattr(parameter, "help", None) or "").split())
    default = _default(parameter)
    return f"{text} Default: {default}." if default else text


def _default(parameter: Any) -> str:
    default = getattr(parameter.default, "value", parameter.default)
    shown = getattr(parameter, "show_default", True)
    if default is False or default in (None, (), []) or shown is False or callable(default):
        return ""
    return f"`{default}`"


def _event(title: str, schema: str) -> Iterator[str]:
    definition = json.loads((_SCHEMAS / schema).read_text(encoding="utf-8"))
    names: dict[tuple[str, str], list[str]] = {}  # fields that are alike share a row
    for name, kind, meaning in _fields(definition, definition.get("$defs", {})):
        names.setdefault((kind, meaning), []).append(name)
    rows = [(", ".join(alike), *row) for row, alike in names.items()]
    yield f"## {title}\n\n[`{schema}`](../instrumentation/src/groupwright/instrumentation/{schema})\n"
    yield _table(("field", "type", "meaning"), rows)


def _fields(node: dict[str, Any], shared: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str, str]]:
    for name, field in node.get("properties", {}).items():
        resolved = field | shared.get(field.get("$ref", "").rpartition("/")[2], {})
        yield f"`{prefix}{name}`", _type(resolved), resolved.get("description", "")
        yield from _fields(resolved, shared, f"{prefix}{name}.")


def _type(field: dict[str, Any]) -> str:
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    kinds = field.get("type", "")
    names = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join(names) + (f" ({field['format']})" if "format" in field else "")


def _table(heading: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heading, ["---"] * len(heading), *([cell.replace("|", "\\|") for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"


def outputs() -> dict[Path, str]:
    """Return the pages with their present text."""
    return {COMMANDS: commands(), EVENTS: events()}


if __name__ == "__main__":
    for path, text in outputs().items():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.name} is up to date\n")
