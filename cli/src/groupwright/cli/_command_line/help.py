"""Commands whose help shows no type beside a flag or an argument: no value, or one named already."""

from typing import Any

from typer.core import TyperCommand, TyperGroup


class Command(TyperCommand):
    """A command."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; the help of flags and arguments shows no type."""
        return _without_types(super().get_params(ctx))


class CommandGroup(TyperGroup):
    """A command with subcommands."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Return the parameters; the help of flags and arguments shows no type."""
        return _without_types(super().get_params(ctx))


def _without_types(parameters: list[Any]) -> list[Any]:
    for each in parameters:
        if getattr(each, "is_flag", False):
            each.metavar = ""
        elif each.param_type_name == "argument":
            each.display_type_rich = _no_type
    return parameters


def _no_type(**_: Any) -> None:
    return None
