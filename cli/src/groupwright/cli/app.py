"""The Typer app: global options, and the commands, each from the package of its name.

A command is imported when it runs, and imports what it needs then: `groupwright --help` stays fast, and a
missing extra concerns only the commands that need it.
"""

from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.completion import get_completion_inspect_parameters

from groupwright.cli._command_line.help import MOST_COLUMNS, Command, CommandGroup

SUMMARIES = {
    "groups": "List the groups of a cluster: state, assignor, members and lag.",
    "describe": "Describe a group: its findings first, then its coordinator, its members, and the lag of "
    "each partition.",
    "watch": "Watch a group live: its state, members, partitions, lag, and each rebalance as it happens.",
    "lag": "Show how far groups are behind, in messages and in seconds, the largest lag first.",
    "locate": "Find the partition of `__consumer_offsets` that holds a group, and its coordinator.",
    "offsets": "Show, reset, export, import or delete the committed offsets of a group.",
    "simulate": "Simulate what assignors would do with a group, side by side, until it settles. Nothing is "
    "changed.",
    "explain": "Explain a group's assignment in sentences: why each member has what it has, and why "
    "partitions moved.",
    "doctor": "Find causes of rebalances in a consumer's setup, each with evidence, consequence and remedy.",
    "migrate": "Say how a group goes over to the protocol of KIP-848 (group.protocol=consumer), and back.",
    "exporter": "Serve metrics of every group of a cluster to Prometheus, without instrumented clients.",
    "demo": "Watch a consumer group rebalance on a real Kafka (about a minute, without setup).",
    "pipeline": "Tables of every consumer group's rebalances, lag and churn, on Spark.",
    "completion": "Print a script that completes commands, options, their values, and the names of groups.",
}
"""The commands with the summaries of their docstrings, which the help lists without an import."""


class _Commands(Mapping[str, Any]):
    """The commands by name. Each is imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        """Return a command."""
        if name not in SUMMARIES:
            raise KeyError(name)
        return _command(name)

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in the order of the help."""
        return iter(SUMMARIES)

    def __len__(self) -> int:
        """Return the number of commands."""
        return len(SUMMARIES)


@cache
def _command(name: str) -> Any:
    found = getattr(import_module(f"groupwright.cli.{name}.command"), name)
    if not isinstance(found, typer.Typer):
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        alone.command(name, cls=Command)(found)
        found = alone
    return typer.main.get_command(found)


class _Groupwright(CommandGroup):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands: Any = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002 - as click calls it
        return list(self.commands)

    def summaries(self) -> Mapping[str, str]:
        return SUMMARIES


app = typer.Typer(
    cls=_Groupwright,
    add_completion=False,  # the command `completion` names the shell
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # rich takes longer to import than all else, and drops asterisks as Markdown
    context_settings={"max_content_width": MOST_COLUMNS},
)


def _print_version(wanted: bool) -> None:  # noqa: FBT001 - an option's callback
    if wanted:
        from importlib import metadata

        typer.echo(f"groupwright {metadata.version('groupwright')}")
        raise typer.Exit


@app.callback()
def groupwright(
    *,
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version and exit."),
    ] = False,
) -> None:
    """See, explain and repair the consumer groups of a Kafka cluster.

    Commands on a cluster take its address and security from --bootstrap-servers or --config, or else from the
    environment variables GROUPWRIGHT_BOOTSTRAP_SERVERS and GROUPWRIGHT_CONFIG.

    Exit status: 0 success; 1 warnings or a failed check; 2 wrong arguments or configuration; 3 no broker
    responds; 4 no such group or topic; 5 not allowed; 6 refused by the state of the group; 7 done or known in
    part; 8 the output cannot be written; 130 Ctrl-C; 141 the reader of the output closed the pipe.
    """


# The command answers the requests of the scripts that `completion` prints. Typer itself lets it do so only
# with the options `--install-completion` and `--show-completion`, which guess the shell.
get_completion_inspect_parameters()
