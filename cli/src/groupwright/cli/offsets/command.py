"""The command `groupwright offsets`: the options, and the order of the steps."""

import datetime as dt
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from groupwright.cli._cluster.completion import GroupName
from groupwright.cli._command_line.connection import (
    BootstrapServers,
    ConfigFile,
    Timeout,
    connection_settings,
)
from groupwright.cli._command_line.exit import CommandError, ExitStatus, errors_reported
from groupwright.cli._command_line.output import (
    Output,
    OutputFormat,
    plural,
    print_json,
    print_notes,
    print_rows,
)
from groupwright.cli._command_line.text import harmless
from groupwright.core.spelling import did_you_mean

if TYPE_CHECKING:
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli._cluster.model import CommittedOffset, DescribedGroup
    from groupwright.cli.offsets.plan import Facts, PlannedPartition
    from groupwright.cli.offsets.selection import Choice
    from groupwright.cli.offsets.target import Target
    from groupwright.cli.offsets.view import Action
    from groupwright.core import TopicPartitionKey


def offsets(
    group: GroupName,
    *,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC[:PARTITIONS]",
            help="Only this topic, or partitions of it, as in orders:0,3-5; repeatable. By default all "
            "partitions with a committed offset, or those in the file.",
        ),
    ] = None,
    reset_to: Annotated[
        str | None,
        typer.Option(
            metavar="TARGET",
            help="Reset to earliest, latest, timestamp:2026-01-31T12:00:00Z (without a zone it is UTC), "
            "duration:PT1H (an hour ago; or duration:1h), offset:123 or file:FILE.",
        ),
    ] = None,
    shift: Annotated[
        int | None, typer.Option(metavar="N", help="Add N to each offset; N may be negative.")
    ] = None,
    delete: Annotated[bool, typer.Option("--delete", help="Delete the committed offsets.")] = False,
    execute: Annotated[
        bool, typer.Option("--execute", help="Write; by default the plan is only shown.")
    ] = False,
    create: Annotated[
        bool, typer.Option("--create", help="Create the group by its reset if it does not exist.")
    ] = False,
    export: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Write the offsets as they are now, before a reset, to a new file: CSV as of Kafka's "
            "kafka-consumer-groups, or JSON if it ends in .json.",
        ),
    ] = None,
    bootstrap_servers: BootstrapServers = None,
    config: ConfigFile = None,
    timeout: Timeout = 10.0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Show, reset, export, import or delete the committed offsets of a group.

    A reset or a deletion is a dry run, which shows the offsets before and after. With --execute it is
    written, and read back from the broker: exit status 0 means that each partition has its planned offset,
    and 7 that some have not, which are named.

    A group with members is not reset (exit status 6), since they would overwrite it: stop them first. Offsets
    outside of a log become its beginning or its end. Partitions whose offset stays are not written.

    LAG counts to the last stable offset, as in the other commands. A file in JSON also has metadata and
    leader epochs, which are written with its offsets.

    Examples:
    - groupwright offsets billing --bootstrap-servers localhost:9092
    - groupwright offsets billing --reset-to duration:1h --topic orders --export before.csv --execute
    - groupwright offsets billing --reset-to file:before.csv --execute
    """
    from groupwright.cli._cluster.client import Cluster
    from groupwright.cli.offsets.selection import parse_choice
    from groupwright.cli.offsets.target import Shift, Timestamp, parse_target
    from groupwright.cli.offsets.view import Action

    with errors_reported("offsets"):
        target: Target | None = None if shift is None else Shift(shift)
        if reset_to is not None:
            target = parse_target(reset_to, group, dt.datetime.now(dt.UTC))
        _check_options(
            actions=[reset_to is not None, shift is not None, delete], execute=execute, create=create
        )
        action = Action.DELETE if delete else Action.SHOW if target is None else Action.RESET
        choices = list(map(parse_choice, topic or []))
        if isinstance(target, Timestamp):
            _say(f"the target is the first message at or after {target}")
        with Cluster(connection_settings(bootstrap_servers, config), timeout=timeout) as cluster:
            described = _find(cluster, group, create=create)
            plan = _plan(cluster, described, action, target, choices)
            if export is not None:
                _export(cluster, export, plan)
            if execute:
                _execute(cluster, described, action, plan, output)
            _print(described, action, plan, output)
        _report(described, action, plan)


def _check_options(*, actions: list[bool], execute: bool, create: bool) -> None:
    if sum(actions) > 1:
        raise CommandError("pass one of --reset-to, --shift and --delete", ExitStatus.USAGE)
    if execute and not any(actions):
        raise CommandError("--execute needs --reset-to, --shift or --delete", ExitStatus.USAGE)
    if create and not actions[0]:
        raise CommandError("--create needs --reset-to", ExitStatus.USAGE)


# --- Queries ----------------------------------------------------------------------------------------


def _find(cluster: "Cluster", group: str, *, create: bool) -> "DescribedGroup":
    from groupwright.cli._cluster.model import GroupType

    described = cluster.describe([group])[group]
    if described.type is GroupType.SHARE:
        raise CommandError(
            f"{group!r} is a share group, which has no committed offsets; use kafka-share-groups",
            ExitStatus.REFUSED,
        )
    if not described.exists and not create:
        listed, _ = cluster.groups()
        hint = did_you_mean(group, [each.id for each in listed])
        advice = ", or these credentials may not describe it. --create with --reset-to creates it"
        raise CommandError(f"there is no group {group!r}{hint or advice}", ExitStatus.NOT_FOUND)
    return described


def _plan(
    cluster: "Cluster",
    group: "DescribedGroup",
    action: "Action",
    target: "Target | None",
    choices: "list[Choice]",
) -> "list[PlannedPartition]":
    from groupwright.cli.offsets.plan import planned_deletion, planned_reset, shown
    from groupwright.cli.offsets.selection import selected
    from groupwright.cli.offsets.target import Offsets
    from groupwright.cli.offsets.view import Action

    committed = cluster.committed([group.id])[group.id]
    candidates = target.offsets if isinstance(target, Offsets) else committed
    existing = cluster.topics() if choices else {}
    counts = {name: each.partitions for name, each in existing.items()}
    chosen = selected(choices, candidates, counts)
    if isinstance(target, Offsets):
        chosen = [key for key in chosen if key in target.offsets]
    if not chosen and action is not Action.SHOW:
        advice = "" if choices else "; name topics with --topic"
        raise CommandError(
            f"no partition of {group.id!r} is chosen: it has no committed offset there{advice}",
            ExitStatus.NOT_FOUND,
        )
    facts = _facts(cluster, committed, chosen, target)
    if action is Action.DELETE:
        return planned_deletion(chosen, facts)
    return shown(chosen, facts) if target is None else planned_reset(chosen, target, facts)


def _facts(
    cluster: "Cluster",
    committed: "dict[TopicPartitionKey, CommittedOffset]",
    chosen: "list[TopicPartitionKey]",
    target: "Target | None",
) -> "Facts":
    from groupwright.cli._cluster.client import EARLIEST, LATEST
    from groupwright.cli.offsets.plan import Facts
    from groupwright.cli.offsets.target import Timestamp

    topics = cluster.topics({name for name, _ in chosen})
    ends, errors = cluster.offsets(chosen, LATEST, topics=topics)
    begins, more_errors = cluster.offsets(chosen, EARLIEST, topics=topics)
    errors |= more_errors
    stable, more_errors = cluster.offsets(chosen, LATEST, topics=topics, read_committed=True)
    errors |= more_errors
    at_time: dict[TopicPartitionKey, int | None] = {}
    if isinstance(target, Timestamp):
        at_time, more_errors = cluster.offsets(chosen, target.milliseconds, topics=topics)
        errors |= more_errors
    ids = {name: each.id for name, each in topics.items()}
    return Facts(committed, begins, ends, at_time, errors, ids, stable)


def _export(cluster: "Cluster", path: Path, plan: "list[PlannedPartition]") -> None:
    from groupwright.cli.offsets.files import write_offsets

    found = {each.key: each.committed for each in plan if each.committed is not None}
    topics = cluster.topics({name for name, _ in found})
    write_offsets(path, found, {name: each.id for name, each in topics.items()})
    _say(f"{path} has the offsets of {plural(len(found), 'partition')}, as they were before")


# --- Execution --------------------------------------------------------------------------------------


def _execute(
    cluster: "Cluster",
    group: "DescribedGroup",
    action: "Action",
    plan: "list[PlannedPartition]",
    output: OutputFormat,
) -> NoReturn:
    from groupwright.cli.offsets import execution, view

    if refusal := _refusal(group, action, plan):
        raise CommandError(f"nothing was written: {refusal}", ExitStatus.REFUSED)
    if errors := [f"{each.name}: {each.error}" for each in plan if each.error]:
        print_notes("offsets", errors)
        raise CommandError(
            f"nothing was written, since {len(errors)} of {len(plan)} partitions have no plan. Choose the "
            "others with --topic",
            ExitStatus.INCOMPLETE,
        )
    try:
        result = execution.execute(cluster, group.id, plan)
    except KeyboardInterrupt:
        _say(f"interrupted: see `groupwright offsets {group.id}` for the offsets that were written")
        raise
    changes = [each for each in plan if each.is_change]
    rows = view.rows(plan, action, is_executed=True, failures=result.failures)
    _print_rows(group, action, rows, output, is_executed=True)
    if not result.failures:
        verb = "deleted" if action is view.Action.DELETE else "written"
        _say(f"{plural(len(changes), 'offset')} {verb} and read back, {len(plan) - len(changes)} unchanged")
        raise typer.Exit
    print_notes(
        "offsets",
        [f"{each.name}: {result.failures[each.key]}" for each in plan if each.key in result.failures],
    )
    current = cluster.describe([group.id])[group.id]  # a member may have joined meanwhile
    is_untouched = all(
        each.key in result.failures and result.held.get(each.key) == each.committed for each in changes
    )
    if is_untouched and (refusal := _refusal(current, action, plan)):
        raise CommandError(f"nothing was written: the broker refused it, since {refusal}", ExitStatus.REFUSED)
    done = len(changes) - len(result.failures)
    raise CommandError(
        f"{len(result.failures)} of {len(changes)} offsets were not written, {done} were",
        ExitStatus.INCOMPLETE,
    )


def _refusal(group: "DescribedGroup", action: "Action", plan: "list[PlannedPartition]") -> str:
    """Return why the state of the group does not allow the plan; empty if it does."""
    from groupwright.cli.offsets import view

    if action is view.Action.DELETE:
        if view.subscribes(group, {each.topic for each in plan}):
            return (
                f"{view.members_sentence(group)}, and offsets of topics that members subscribe to are not "
                f"deleted. Stop them first, or choose other topics with --topic{view.static_note(group)}"
            )
    elif action is view.Action.RESET and view.is_active(group):
        sentence = f"{view.members_sentence(group)}, which would overwrite the offsets. Stop them first"
        return sentence + view.static_note(group)
    return ""


# --- Output -----------------------------------------------------------------------------------------


def _print(
    group: "DescribedGroup", action: "Action", plan: "list[PlannedPartition]", output: OutputFormat
) -> None:
    from groupwright.cli.offsets import view

    _print_rows(group, action, view.rows(plan, action), output, is_executed=False)


def _print_rows(
    group: "DescribedGroup",
    action: "Action",
    rows: list[dict[str, Any]],
    output: OutputFormat,
    *,
    is_executed: bool,
) -> None:
    from groupwright.cli.offsets import view

    if output is OutputFormat.JSON:
        print_json(view.document(group, action, rows, is_executed=is_executed))
    else:
        columns = view.SHOWN_COLUMNS if action is view.Action.SHOW else view.PLAN_COLUMNS
        is_table = output is OutputFormat.TABLE
        print_rows(list(map(view.printable, rows)) if is_table else rows, columns, output)


def _report(group: "DescribedGroup", action: "Action", plan: "list[PlannedPartition]") -> None:
    """Report on the dry run, and exit with the status that an execution would have.

    Raises:
        CommandError: The execution would be refused, or a part of the plan is not known.
    """
    from groupwright.cli.offsets import view

    if action is view.Action.SHOW:
        unknown = [f"{each.name}: {each.note}" for each in plan if each.note]
        if not plan:
            _say(f"the group {group.id!r} has no committed offsets")
        if unknown:
            print_notes("offsets", unknown)
            raise typer.Exit(ExitStatus.INCOMPLETE)
        return
    _say("dry run: nothing was written; --execute writes the plan")
    if refusal := _refusal(group, action, plan):
        raise CommandError(f"--execute would be refused: {refusal}", ExitStatus.REFUSED)
    if errors := [f"{each.name}: {each.error}" for each in plan if each.error]:
        print_notes("offsets", errors)
        raise CommandError(
            f"{len(errors)} of {len(plan)} partitions have no plan; --execute would write nothing",
            ExitStatus.INCOMPLETE,
        )


def _say(sentence: str) -> None:
    typer.echo(f"groupwright offsets: {harmless(sentence)}", err=True)
