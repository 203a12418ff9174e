"""Writes the tables of values into the chart's README.md, from the comments in values.yaml.

Run by ``make docs``; a test holds the page up to date. A comment that begins with ``# -- `` describes the key
below it, with all that the key holds; ``# --- Title ---`` begins a table. Every value must be described.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import yaml

CHART = Path(__file__).parents[1] / "groupwright"
_BEGIN = "<!-- The tables below are made by `make docs`. -->\n"
_TITLE = re.compile(r"# --- (?P<title>.+?) -+$")


class Value(NamedTuple):
    """One row: a key, its default and its meaning."""

    line: int
    key: str
    default: str
    meaning: str


def page(readme: str, values: str) -> str:
    """Return the README's text with up-to-date tables.

    Raises:
        ValueError: if a value has no description.
    """
    before, _, _ = readme.partition(_BEGIN)
    return before + _BEGIN + "\n" + "\n".join(_tables(values))


def described(values: str) -> list[Value]:
    """Return every described value of a values.yaml, in file order.

    Raises:
        TypeError: if it holds no mapping.
        ValueError: if a value has no description.
    """
    root = yaml.compose(values, Loader=yaml.SafeLoader)
    if not isinstance(root, yaml.MappingNode):
        raise TypeError("values.yaml holds no mapping")
    return list(_walk(root, values.splitlines(), ""))


def _tables(values: str) -> Iterator[str]:
    titles = [
        (number, found["title"])
        for number, line in enumerate(values.splitlines())
        if (found := _TITLE.match(line))
    ]
    title = "General"
    head: str | None = None
    for value in described(values):
        title = next((text for number, text in reversed(titles) if number < value.line), title)
        if title != head:
            if head is not None:
                yield ""
            head = title
            yield f"### {title}\n"
            yield "| key | default | meaning |"
            yield "|---|---|---|"
        yield f"| `{value.key}` | {value.default} | {value.meaning} |"
    yield ""


def _walk(node: yaml.MappingNode, lines: list[str], prefix: str) -> Iterator[Value]:
    for key, value in node.value:
        name = f"{prefix}{key.value}"
        meaning = _comment(lines, key.start_mark.line)
        if meaning is not None:
            yield Value(key.start_mark.line, name, _default(value), meaning.replace("|", r"\|"))
        elif isinstance(value, yaml.MappingNode) and value.value:
            yield from _walk(value, lines, f"{name}.")
        else:
            raise ValueError(
                f"values.yaml, line {key.start_mark.line + 1}: {name} has no description (`# -- …`)"
            )


def _comment(lines: list[str], line: int) -> str | None:
    block: list[str] = []
    while line > 0 and (text := lines[line - 1].strip()).startswith("#"):
        block.insert(0, text.removeprefix("#").removeprefix(" "))
        if text.startswith("# -- "):
            return " ".join(block).removeprefix("-- ")
        line -= 1
    return None


def _default(node: yaml.Node) -> str:
    value = yaml.safe_load(yaml.serialize(node))
    return f"`{json.dumps(value, ensure_ascii=False)}`".replace("|", r"\|")


if __name__ == "__main__":
    readme = CHART / "README.md"
    text = page(readme.read_text(encoding="utf-8"), (CHART / "values.yaml").read_text(encoding="utf-8"))
    readme.write_text(text, encoding="utf-8")
    sys.stdout.write(f"{readme.relative_to(Path.cwd())} is up to date\n")
