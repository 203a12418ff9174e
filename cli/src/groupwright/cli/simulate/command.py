"""The command `groupwright simulate`: what assignors would do with a group, and with events in it."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from groupwright.assignors import AssignorError, BrokerAssignor
from groupwright.cli._cluster.model import GroupType
from groupwright.cli._command_line.assignors import STUDY_NAMES, load_assignor
from groupwright.cli._command_line.connection import BootstrapServers, ConfigFile, Timeout
from groupwright.cli._command_line.exit import CommandError, ExitStatus, errors_reported
from groupwright.cli._command_line.output import Output, OutputFormat, few, print_json, print_rows
from groupwright.cli._study.options import GroupFile, GroupName, SaveFile, Weights, opened, warn
from groupwright.cli._study.weights_option import WeightsOption
from groupwright.core.assignor_traits import BROKERS, KAFKAS

if TYPE_CHECKING:
    from groupwright.cli._study.events import Event
    from groupwright.cli._study.model import StudiedGroup
    from groupwright.cli._study.steps import Scenario
    from groupwright.cli.simulate.simulation import Candidate, Simulation


def simulate(
    group: GroupName = None,
    *,
    file: GroupFile = None,
    assignor: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME|MODULE:CLASS",
            help=f"An assignor: {', '.join(sorted(STUDY_NAMES))}, or the import path of your own; "
            "repeatable. By default those of Kafka's clients, the broker's default, and the group's own.",
        ),
    ] = None,
    join: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N|CLIENT-ID[:RACK]",
            help="N members join at once, or one with this client id; repeatable, one after the other.",
        ),
    ] = None,
    leave: Annotated[
        list[str] | None,
        typer.Option(metavar="MEMBER", help="A member leaves, by name, client or instance id; repeatable."),
    ] = None,
    add_partitions: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC=TOTAL",
            help="A topic grows to TOTAL partitions, or by N with TOPIC=+N; repeatable.",
        ),
    ] = None,
    restart: Annotated[
        list[str] | None,
        typer.Option(
            metavar="rolling|MEMBER",
            help="Each member, or this one, leaves and joins again. Static members are also simulated as "
            "dynamic ones.",
        ),
    ] = None,
    weights: Weights = WeightsOption.THROUGHPUT,
    every_step: Annotated[
        bool, typer.Option("--steps", help="A table for each event, not for their sum alone.")
    ] = False,
    every_member: Annotated[
        bool, typer.Option("--all-members", help="List all members, however many they are.")
    ] = False,
    save: SaveFile = None,
    bootstrap_servers: BootstrapServers = None,
    config: ConfigFile = None,
    timeout: Timeout = 10.0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Simulate what assignors would do with a group, side by side, until it settles. Nothing is changed.

    The group is one of a cluster, or in a file (--file), which --save writes. First it is assigned as it is;
    then events are simulated in this order: the file's, joins, leaves, new partitions, restarts.

    IMBALANCE is the largest number of partitions of a member minus the smallest; LOAD the busiest member's
    load over the least possible; MOVED counts partitions taken from a member that could have kept them, and
    MIN MOVED how many have to; REVOKED those that a member revoked; RACKS those without a replica in their
    member's rack; SPREAD is the largest imbalance within a topic; ROUNDS are rebalances.

    Examples:
    - groupwright simulate billing --join 2 --bootstrap-servers localhost:9092
    - groupwright simulate billing --assignor sticky --assignor my.module:MyAssignor --save billing.json
    - groupwright simulate --file billing.json --leave worker-3 --add-partitions orders=24 --restart rolling
    """
    from groupwright.cli._study.events import Restart, events_of
    from groupwright.cli._study.steps import make_scenario
    from groupwright.cli.simulate.report import COLUMNS, document, print_tables, rows
    from groupwright.cli.simulate.simulation import simulate_scenario

    with errors_reported("simulate"):
        events = events_of(join or [], leave or [], add_partitions or [], restart or [])
        candidates = _candidates(assignor or [])
        live = opened(group, file, bootstrap_servers, config, timeout=timeout, weights=weights, save=save)
        study = live.study
        candidates = candidates or _candidates(_default_names(study))
        events = (*study.events, *events)
        _check_members(study, events)
        scenarios = [make_scenario(study, events)]
        if any(isinstance(each, Restart) for each in events) and any(m.instance_id for m in study.members):
            scenarios.append(make_scenario(study, events, as_dynamic=True))
        results = [
            simulate_scenario(scenario, candidate) for scenario in scenarios for candidate in candidates
        ]
        notes = _notes(study, scenarios, results)
        match output:
            case OutputFormat.JSON:
                print_json(document(study, results, notes))
            case OutputFormat.CSV:
                print_rows(rows(results), COLUMNS, output)
            case OutputFormat.TABLE:
                print_tables(study, results, notes, every_step=every_step, every_member=every_member)
    failed = dict.fromkeys((result.candidate.name, result.error) for result in results if result.error)
    failures = [(f"assignor {name!r} failed: {error}", ExitStatus.INCOMPLETE) for name, error in failed]
    raise typer.Exit(warn("simulate", [*live.warnings, *failures]))


def _candidates(names: Sequence[str]) -> "list[Candidate]":
    from groupwright.cli.simulate.simulation import Candidate

    try:
        return [Candidate(name, load_assignor(name)) for name in dict.fromkeys(names)]
    except AssignorError as error:
        raise CommandError(str(error), ExitStatus.USAGE) from None


def _default_names(study: "StudiedGroup") -> list[str]:
    own = study.studied_assignor
    return [*KAFKAS, BROKERS[0], *([own] if own in STUDY_NAMES else [])]


def _check_members(study: "StudiedGroup", events: "Sequence[Event]") -> None:
    from groupwright.cli._study.events import Join

    if not study.members and not any(isinstance(event, Join) for event in events):
        raise CommandError(
            f"the group {study.id!r} has no members, so there is nothing to assign; add some with --join",
            ExitStatus.REFUSED,
        )
    if not study.members and not study.topics:
        raise CommandError(
            f"the group {study.id!r} has neither members nor committed offsets, so the topics of new members "
            "are not known; write a file with its topics",
            ExitStatus.REFUSED,
        )


def _notes(
    study: "StudiedGroup", scenarios: "Sequence[Scenario]", results: "Sequence[Simulation]"
) -> list[str]:
    notes = []
    own = [result for result in results if result.is_own]
    if own:
        notes.append(f"* the group's assignor, {own[0].candidate.name}.")
    elif study.assignor and study.type is GroupType.CONSUMER and study.studied_assignor not in STUDY_NAMES:
        notes.append(
            f"The brokers assign this group, with their assignor {study.assignor!r}, which is not simulated."
        )
    elif study.assignor:
        notes.append(
            f"The group's assignor {study.studied_assignor!r} is not among these: pass --assignor "
            f"{study.studied_assignor if study.studied_assignor in STUDY_NAMES else 'module:Class'}."
        )
    if any(isinstance(result.candidate.assignor, BrokerAssignor) for result in results):
        notes.append(
            "broker:… assigns in the broker (group.protocol=consumer, KIP-848), where members do not join "
            "again in rounds: ROUNDS counts target assignments. From its revocation, a partition that moves "
            "waits for the next heartbeat of its new owner, 5 s at most by default "
            "(group.consumer.heartbeat.interval.ms)."
        )
    if any(scenario.has_generated_ids for scenario in scenarios):
        notes.append(
            "Coordinators generate the ids of members that join: with other ids, range and roundrobin may "
            "move other partitions, since they sort members by id, and broker:uniform chooses others of "
            "equally loaded members."
        )
    if any(step.change is None for scenario in scenarios for step in scenario.steps):
        notes.append(
            "A static member that returns within its session.timeout.ms causes no rebalance; its partitions "
            "wait meanwhile."
        )
    if study.missing:
        notes.append(
            f"Members subscribe to {few(study.missing)}, which do not exist or may not be seen: nothing of "
            "them is assigned."
        )
    if not study.members:
        notes.append(
            "The group has no members: those that join subscribe to the topics with committed offsets."
        )
    return notes
