"""Commands whose help is plain text: its paragraphs are wrapped, and example command lines are not."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from typer.core import TyperCommand, TyperGroup

MOST_COLUMNS = 110
"""Width of the help on a wider terminal."""
_EXAMPLES = ("- ", "groupwright ")
"""Beginnings of lines that are not wrapped."""
_NOT_WRAPPED = "\b\n"
"""Mark of a paragraph that the formatter does not wrap."""
_HYPHEN = "\N{NON-BREAKING HYPHEN}"


class _PlainHelp:
    help: str | None

    def format_help_text(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as click calls it
        """Write the description."""
        formatter.write_paragraph()
        with formatter.indentation():
            formatter.write_text("\n\n".join(map(_marked, _paragraphs(self.help))))

    def get_short_help_str(self, limit: int = 0) -> str:  # noqa: ARG002 - as click calls it
        """Return the summary for the list of commands, which is never cut."""
        return summary(self.help)


class Command(_PlainHelp, TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as the help shows them."""
        return _plain(super().get_params(ctx))

    def get_help(self, ctx: Any) -> str:
        """Return the help."""
        return super().get_help(ctx).replace(_HYPHEN, "-")


class CommandGroup(_PlainHelp, TyperGroup):
    """A command with subcommands."""

    def summaries(self) -> Mapping[str, str]:
        """Return the summaries of the subcommands, by their names."""
        return {name: summary(command.help) for name, command in self.commands.items()}

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as click calls it
        """Write the list of the subcommands."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, _unbroken(text)) for name, text in self.summaries().items()])

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters as the help shows them."""
        return _plain(super().get_params(ctx))

    def get_help(self, ctx: Any) -> str:
        """Return the help."""
        return super().get_help(ctx).replace(_HYPHEN, "-")


def summary(text: str | None) -> str:
    """Return the first paragraph of a docstring, on one line."""
    return " ".join(_paragraphs(text)[0].splitlines())


def _unbroken(text: str) -> str:
    """Return a text in which no line ends within a name such as `load-aware`, until the help is whole."""
    return text.replace("-", _HYPHEN)


def _paragraphs(text: str | None) -> list[str]:
    return inspect.cleandoc(text or "").split("\n\n")


def _marked(paragraph: str) -> str:
    if any(line.startswith(_EXAMPLES) for line in paragraph.splitlines()):
        return _NOT_WRAPPED + paragraph.replace("\n- ", "\n  ")
    return _unbroken(paragraph)


def _plain(parameters: list[Any]) -> list[Any]:
    """Return parameters of which arguments show no type, and whose texts are not broken at hyphens."""
    for each in parameters:
        if each.param_type_name == "argument":
            each.display_type_rich = _no_type
        each.get_help_record = _with_unbroken_text(type(each).get_help_record.__get__(each))
    return parameters


def _with_unbroken_text(record: Callable[..., Any]) -> Callable[..., Any]:
    def get_help_record(ctx: Any) -> Any:
        found = record(ctx)
        return None if found is None else (found[0], _unbroken(found[1]))

    return get_help_record


def _no_type(**_: Any) -> None:
    return None
