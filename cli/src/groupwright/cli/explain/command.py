"""The command `groupwright explain`: why each member has its partitions, and why partitions moved."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from groupwright.cli._command_line.connection import BootstrapServers, ConfigFile, Timeout
from groupwright.cli._command_line.exit import CommandError, ExitStatus, errors_reported
from groupwright.cli._command_line.output import Column, Output, OutputFormat, console, print_json, print_rows
from groupwright.cli._study.options import GroupFile, GroupName, SaveFile, Weights, opened, warn
from groupwright.cli._study.weights_option import WeightsOption

if TYPE_CHECKING:
    from groupwright.cli._study.model import StudiedGroup
    from groupwright.cli.explain.explanation import Explanation
    from groupwright.cli.explain.situation import Situation
    from groupwright.core import TopicPartitionKey

COLUMNS = (Column("about", "ABOUT"), Column("name", "NAME"), Column("sentence", "SENTENCE"))
"""Columns of the CSV: a row for each sentence."""

_MOST_MOVES = 20


def explain(
    group: GroupName = None,
    *,
    file: GroupFile = None,
    before: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The group earlier, as --save wrote it, to explain what moved.",
            show_default=False,
        ),
    ] = None,
    partition: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TOPIC-N", help="Explain this partition, as in orders-3, not the members; repeatable."
        ),
    ] = None,
    member: Annotated[
        list[str] | None,
        typer.Option(
            metavar="MEMBER", help="Explain this member alone, by name, client or instance id; repeatable."
        ),
    ] = None,
    weights: Weights = WeightsOption.THROUGHPUT,
    save: SaveFile = None,
    bootstrap_servers: BootstrapServers = None,
    config: ConfigFile = None,
    timeout: Timeout = 10.0,
    output: Output = OutputFormat.TABLE,
) -> None:
    """Explain a group's assignment in sentences: why each member has what it has, and why partitions moved.

    The group is one of a cluster, or in a file (--file), which --save writes. What members had before is in
    the file of --before; otherwise it is what they claimed when they joined, if their assignor is sticky. A
    reason that cannot be known is not made up.

    Examples:
    - groupwright explain billing --bootstrap-servers localhost:9092
    - groupwright explain billing --save before.json
    - groupwright explain billing --before before.json --partition orders-3
    """
    from groupwright.cli._study.files import read_study
    from groupwright.cli._study.model import find_member
    from groupwright.cli.explain.explanation import explain as explained  # needs numpy
    from groupwright.cli.explain.situation import situation_of

    with errors_reported("explain"):
        earlier = None if before is None else read_study(before)
        opened_group = opened(
            group, file, bootstrap_servers, config, timeout=timeout, weights=weights, save=save
        )
        situation = _situation(opened_group.study, earlier, situation_of)
        keys = None if partition is None else [_partition(each, situation.study) for each in partition]
        ids = None
        if member is not None:
            ids = [find_member(situation.study.members, situation.names, each) for each in member]
        elif keys is not None:
            ids = []
        found = explained(situation, ids, [] if keys is None and ids is not None else keys)
        match output:
            case OutputFormat.JSON:
                print_json(document(found))
            case OutputFormat.CSV:
                print_rows(rows(found), COLUMNS, output)
            case OutputFormat.TABLE:
                _print(found)
    raise typer.Exit(warn("explain", opened_group.warnings))


def _situation(study: "StudiedGroup", earlier: "StudiedGroup | None", situation_of: Any) -> "Situation":
    from groupwright.assignors import AssignorError

    if earlier is not None and earlier.id != study.id:
        raise CommandError(
            f"the file of --before has the group {earlier.id!r}, not {study.id!r}", ExitStatus.USAGE
        )
    if earlier is not None and earlier.is_assignment_unknown:
        raise CommandError(
            "the file of --before has neither assigned nor owned partitions, so what members had is not "
            "known; write assigned for each member, or pass a file that --save wrote",
            ExitStatus.USAGE,
        )
    try:
        found: Situation = situation_of(study, earlier)
    except AssignorError as error:
        raise CommandError(f"the assignment cannot be computed: {error}", ExitStatus.USAGE) from None
    return found


def _partition(text: str, study: "StudiedGroup") -> "TopicPartitionKey":
    from groupwright.cli._study.events import MOST_DIGITS
    from groupwright.cli._study.model import find_topic

    topic, dash, number = text.rpartition("-")
    if not (topic and dash and number.isdecimal() and number.isascii()):
        raise CommandError(
            f"--partition {text!r} is not understood: write TOPIC-N, as in orders-3", ExitStatus.USAGE
        )
    found = find_topic(study.topics, topic)
    partitions = study.topics[found].partitions
    if len(number) > MOST_DIGITS or int(number) >= partitions:
        raise CommandError(
            f"there is no partition {text}: {found} has {partitions} partitions, from 0", ExitStatus.NOT_FOUND
        )
    return found, int(number)


def document(found: "Explanation") -> dict[str, Any]:
    """Return the document of `_schemas/explain.schema.json`."""
    from groupwright.cli._study.files import lists

    study = found.situation.study
    return {
        "group": study.id,
        "type": study.type.value,
        "state": study.state,
        "assignor": study.assignor,
        "is_computed": found.situation.is_computed,
        "has_before": found.situation.before is not None,
        "summary": list(found.summary),
        "members": [
            {
                "id": each.member.id,
                "name": each.name,
                "instance_id": each.member.instance_id,
                "assigned": lists(each.member.assigned),
                "sentences": list(each.sentences),
            }
            for each in found.members
        ],
        "partitions": [
            {
                "topic": each.key[0],
                "partition": each.key[1],
                "before": each.previous_owner,
                "member": each.owner,
                "moved": each.has_moved,
                "sentence": each.sentence,
            }
            for each in found.partitions
        ],
    }


def rows(found: "Explanation") -> list[dict[str, Any]]:
    """Return a row for each sentence."""
    return [
        *({"about": "group", "name": found.situation.study.id, "sentence": each} for each in found.summary),
        *(
            {"about": "member", "name": each.name, "sentence": sentence}
            for each in found.members
            for sentence in each.sentences
        ),
        *(
            {"about": "partition", "name": f"{each.key[0]}-{each.key[1]}", "sentence": each.sentence}
            for each in found.partitions
        ),
    ]


def _print(found: "Explanation") -> None:
    from groupwright.cli._study.model import count, headline, in_ranges

    out = console()
    study = found.situation.study
    out.print(headline(study), style="bold")
    _print_sentences(found.summary)
    for each in found.members:
        assigned = each.member.assigned
        has = f"{count(assigned)}: {in_ranges(assigned)}" if assigned else "nothing"
        out.print()
        out.print(f"{each.name} has {has}" if study.has_assignment else each.name, style="bold")
        _print_sentences(each.sentences)
    if found.partitions:
        out.print()
        out.print("partitions", style="bold")
        shown = [each.sentence for each in found.partitions]
        _print_sentences(shown[:_MOST_MOVES])
        if len(shown) > _MOST_MOVES:
            out.print(f"and {len(shown) - _MOST_MOVES} more: pass --partition TOPIC-N, or --output json")


def _print_sentences(sentences: Sequence[str]) -> None:
    from rich.padding import Padding

    out = console()
    for sentence in sentences:
        out.print(Padding(sentence, (0, 0, 0, 2), expand=False))
