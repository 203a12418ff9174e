"""The command `groupwright demo`."""

from typing import Annotated

import typer

from groupwright.assignors import GroupwrightError, builtin_assignors

_ASSIGNORS = sorted(assignor.name for assignor in builtin_assignors())


def _known(assignor: str) -> str:
    if assignor not in _ASSIGNORS:
        raise typer.BadParameter(f"no assignor is named {assignor!r}; there are: {', '.join(_ASSIGNORS)}")
    return assignor


def demo(
    *,
    assignor: Annotated[
        str,
        typer.Option(
            callback=_known, metavar="NAME", help=f"The members' assignor: {', '.join(_ASSIGNORS)}."
        ),
    ] = "range",
    bootstrap_servers: Annotated[
        str | None,
        typer.Option(
            metavar="HOST:PORT,...",
            help="Your own Kafka instead of a local one. The demo's topic is deleted afterwards.",
            show_default=False,
        ),
    ] = None,
    messages_per_second: Annotated[
        int, typer.Option(min=1, max=20_000, metavar="N", help="Messages per second, over all partitions.")
    ] = 300,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep running after the last step, until Ctrl-C.")
    ] = False,
    pause: Annotated[float, typer.Option(hidden=True, min=0)] = 9.0,
) -> None:
    """Watch a consumer group rebalance on a real Kafka (about a minute, without setup).

    Three consumers share the 12 partitions of a topic, while messages are produced to it. A fourth consumer
    joins, one is killed, one leaves. After each change, every partition must have exactly one owner. No
    message may be lost, and only messages that the killed member had not committed may be consumed twice.
    Otherwise the exit status is 1.

    Kafka runs on this machine, without containers or an installed Java. The first run downloads it (50 MB).
    Each consumer serves its metrics on 127.0.0.1.
    """
    from rich.console import Console  # noqa: PLC0415 - `groupwright --help` needs none of these

    from groupwright.cli.demo.interrupts import InterruptedDemo, Interrupts  # noqa: PLC0415 - as above
    from groupwright.cli.demo.runner import Options, run  # noqa: PLC0415 - as above
    from groupwright.cli.demo.view import view_for  # noqa: PLC0415 - as above

    options = Options(
        assignor=assignor,
        bootstrap_servers=bootstrap_servers,
        messages_per_second=messages_per_second,
        keep=keep,
        pause=pause,
    )
    view = view_for(Console(highlight=False))
    try:
        with Interrupts() as interrupts, view:
            summary = run(options, view, interrupts)
    except InterruptedDemo as interrupt:
        typer.echo("groupwright demo: stopped; nothing is left running", err=True)
        raise typer.Exit(interrupt.exit_status) from None
    except GroupwrightError as error:
        typer.echo(f"groupwright demo: {error}", err=True)
        raise typer.Exit(1) from None
    view.conclude(summary)
    raise typer.Exit(0 if summary.passed else 1)
