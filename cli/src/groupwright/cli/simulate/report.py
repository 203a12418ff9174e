"""Results of simulations as rows, tables and a document."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from groupwright.cli._cluster.model import Partitions
from groupwright.cli._command_line.output import Column, compact, console, table
from groupwright.cli._study.files import document_of, lists
from groupwright.cli._study.model import StudiedGroup, count, headline, in_ranges
from groupwright.cli.simulate.simulation import START, SimulatedStep, Simulation

if TYPE_CHECKING:
    from rich.console import Console

_MOST_MEMBERS = 30

COLUMNS = (
    Column("step", "STEP", is_number=True),
    Column("event", "EVENT"),
    Column("assignor", "ASSIGNOR"),
    Column("own", "OWN"),
    Column("as_dynamic", "AS DYNAMIC"),
    Column("imbalance", "IMBALANCE", is_number=True),
    Column("min_imbalance", "MIN IMBALANCE", is_number=True),
    Column("peak_over_average", "PEAK", is_number=True),
    Column("peak_over_bound", "LOAD", is_number=True),
    Column("moved", "MOVED", is_number=True),
    Column("min_moves", "MIN MOVED", is_number=True),
    Column("revoked", "REVOKED", is_number=True),
    Column("rack_mismatches", "RACKS", is_number=True),
    Column("min_rack_mismatches", "MIN RACKS", is_number=True),
    Column("spread", "SPREAD", is_number=True),
    Column("unassigned", "UNASSIGNED", is_number=True),
    Column("rebalances", "REBALANCES", is_number=True),
    Column("error", "ERROR"),
)
"""Columns of the CSV: a row for each assignor and step."""

_SHOWN = (
    Column("name", "ASSIGNOR"),
    Column("imbalance", "IMBALANCE", is_number=True),
    Column("load", "LOAD", is_number=True),
    Column("moved", "MOVED", is_number=True),
    Column("min_moves", "MIN MOVED", is_number=True),
    Column("revoked", "REVOKED", is_number=True),
    Column("rack_mismatches", "RACKS", is_number=True),
    Column("spread", "SPREAD", is_number=True),
    Column("rebalances", "ROUNDS", is_number=True),
)


def rows(results: Iterable[Simulation]) -> list[dict[str, Any]]:
    """Return a row for each assignor and step; one with the error for an assignor that failed."""
    found: list[dict[str, Any]] = []
    for result in results:
        common = {
            "assignor": result.candidate.name,
            "own": result.is_own,
            "as_dynamic": result.scenario.as_dynamic,
            "error": result.error or None,
        }
        found += [
            {**common, "step": number, "event": step.label, **_exact(_numbers(step))}
            for number, step in enumerate(result.steps)
        ] or [common]
    return found


def _exact(numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Return numbers for CSV, which would round a ratio to one decimal."""
    return {key: str(each) if isinstance(each, float) else each for key, each in numbers.items()}


def _numbers(step: SimulatedStep) -> dict[str, Any]:
    quality, load = step.quality, step.load
    return {
        "imbalance": quality.imbalance,
        "min_imbalance": quality.min_imbalance,
        "peak_over_average": None if load is None else round(load.peak_over_average, 4),
        "peak_over_bound": None if load is None else round(load.peak_over_bound, 4),
        "moved": quality.moves,
        "min_moves": quality.min_moves,
        "revoked": step.revoked,
        "rack_mismatches": quality.rack_mismatches,
        "min_rack_mismatches": quality.min_rack_mismatches,
        "spread": quality.max_spread,
        "unassigned": quality.unassigned,
        "rebalances": step.rebalances,
    }


_SUMS = ("moved", "min_moves", "revoked", "rebalances")


def total(steps: Sequence[SimulatedStep]) -> dict[str, Any]:
    """Return the numbers of the last step, with the sums of `_SUMS` over all steps."""
    numbers = list(map(_numbers, steps))
    return {**numbers[-1], **{key: sum(each[key] for each in numbers) for key in _SUMS}}


# --- JSON -------------------------------------------------------------------------------------------


def document(study: StudiedGroup, results: Sequence[Simulation], notes: Sequence[str]) -> dict[str, Any]:
    """Return the document of `_schemas/simulate.schema.json`."""
    return {
        "group": document_of(study),
        "events": [step.label for step in results[0].scenario.steps],
        "names": {id_: name for result in results for id_, name in result.scenario.names.items()},
        "results": [_result(result) for result in results],
        "notes": list(notes),
    }


def _result(result: Simulation) -> dict[str, Any]:
    return {
        "assignor": result.candidate.name,
        "own": result.is_own,
        "as_dynamic": result.scenario.as_dynamic,
        "error": result.error or None,
        "total": total(result.steps[1:]) if len(result.steps) > 1 else None,
        "steps": [
            {
                "event": step.label,
                **_numbers(step),
                "loads": None if step.load is None else dict(step.load.loads),
                "assigned": {id_: lists(share) for id_, share in step.assigned.items()},
            }
            for step in result.steps
        ],
    }


# --- Tables -----------------------------------------------------------------------------------------


def print_tables(
    study: StudiedGroup,
    results: Sequence[Simulation],
    notes: Sequence[str],
    *,
    every_step: bool,
    every_member: bool,
) -> None:
    """Print the tables for people.

    Args:
        study: The group.
        results: The simulations: those of the group as it is, then those with dynamic members alone.
        notes: Sentences to print below.
        every_step: Whether each event has a table of its own.
        every_member: Whether all members are listed, however many they are.
    """
    out = console()
    out.print(headline(study))
    for as_dynamic in (False, True):
        simulations = [
            result for result in results if result.steps and result.scenario.as_dynamic == as_dynamic
        ]
        if simulations:
            _print_steps(out, simulations, every_step=every_step)
            if not as_dynamic:
                _print_assignments(out, simulations, every_member=every_member)
    if notes:
        out.print()
    for note in notes:
        out.print(note, style="dim")


def _print_steps(out: "Console", simulations: Sequence[Simulation], *, every_step: bool) -> None:
    scenario = simulations[0].scenario
    events, suffix = len(scenario.steps), ", if no member were static" if scenario.as_dynamic else ""
    if every_step:
        for number, step in enumerate(simulations[0].steps):
            numbers = {_name(each): _numbers(each.steps[number]) for each in simulations}
            _print_step(out, step.label + suffix, numbers)
    elif not scenario.as_dynamic:
        _print_step(out, START, {_name(each): _numbers(each.steps[0]) for each in simulations})
    if events and not (every_step and events == 1):
        title = scenario.steps[0].label if events == 1 else f"after {events} events, with their sums"
        _print_step(out, title + suffix, {_name(each): total(each.steps[1:]) for each in simulations})


def _print_step(out: "Console", title: str, numbers: Mapping[str, Mapping[str, Any]]) -> None:
    made = [{"name": name, **row, "load": _ratio(row["peak_over_bound"])} for name, row in numbers.items()]
    hidden = set()
    if not any(row["rack_mismatches"] or row["min_rack_mismatches"] for row in made):
        hidden.add("rack_mismatches")
    if all(row["load"] is None for row in made):
        hidden.add("load")
    out.print()
    out.print(title, style="bold")
    out.print(table(made, [column for column in _SHOWN if column.key not in hidden], out.width), crop=False)


def _ratio(number: float | None) -> str | None:
    return None if number is None else f"{number:.2f}"


def _print_assignments(out: "Console", simulations: Sequence[Simulation], *, every_member: bool) -> None:
    by_name = [
        {each.scenario.names[id_]: share for id_, share in each.steps[-1].assigned.items()}
        for each in simulations
    ]
    names = sorted(by_name[0])
    if not names:
        return
    shown = names if every_member else names[:_MOST_MEMBERS]
    columns = [
        Column("member", "MEMBER", is_name=True),
        *(Column(_name(each), _name(each)) for each in simulations),
    ]
    topics = {topic for of_members in by_name for share in of_members.values() for topic in share}
    made = [
        {
            "member": name,
            **{
                _name(each): _share(of_members[name], one_topic=len(topics) == 1)
                for each, of_members in zip(simulations, by_name, strict=True)
            },
        }
        for name in shown
    ]
    out.print()
    out.print("assigned in the end", style="bold")
    out.print(table(made, columns, out.width), crop=False)
    if len(shown) < len(names):
        out.print(f"and {len(names) - len(shown)} more members: pass --all-members, or --output json")


def _share(partitions: Partitions, *, one_topic: bool) -> str:
    """Return partitions with their number; without the topic's name if no other topic is assigned."""
    if not partitions:
        return "-"
    shown = compact(next(iter(partitions.values()))) if one_topic else in_ranges(partitions)
    return f"{count(partitions)}: {shown}"


def _name(result: Simulation) -> str:
    return f"{result.candidate.name}*" if result.is_own else result.candidate.name
