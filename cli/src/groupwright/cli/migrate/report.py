"""The plan, printed."""

from textwrap import fill
from typing import Any

from groupwright.cli._command_line.output import Column, OutputFormat, console, few, print_json, print_rows
from groupwright.cli._study.model import StudiedGroup, headline
from groupwright.cli.migrate.plan import Plan, Verdict, Way

_COLUMNS = (Column("subject", "SUBJECT"), Column("verdict", "VERDICT"), Column("detail", "DETAIL"))
_WIDTH = len("subscriptions")
_ANSWERS = {
    Way.ONLINE: "can go over online, by a rolling restart",
    Way.FULL_STOP: "can go over by a full stop: all members stop, then all start",
    Way.NONE: "cannot go over yet",
    Way.UNDER_WAY: "is on its way",
    Way.DONE: "is a group of KIP-848",
}
_STYLES = {Verdict.FINE: "green", Verdict.HINDERS: "yellow", Verdict.UNKNOWN: "cyan"}


def document(study: StudiedGroup, plan: Plan) -> dict[str, Any]:
    """Return the plan as a document; see `migrate.schema.json`."""
    return {
        "group": study.id,
        "type": study.type.value,
        "state": study.state,
        "way": plan.way.value,
        "gone": list(plan.gone),
        "to_go": list(plan.to_go),
        "checks": _rows(plan),
        "outcomes": [
            {"assignor": each.assignor, "moved": each.moved, "least": each.least, "most": each.most}
            for each in plan.outcomes
        ],
        "changes": list(plan.changes),
        "steps": list(plan.steps),
    }


def print_plan(study: StudiedGroup, plan: Plan, output: OutputFormat) -> None:
    """Print the plan. CSV has the checks alone."""
    match output:
        case OutputFormat.JSON:
            print_json(document(study, plan))
        case OutputFormat.CSV:
            print_rows(_rows(plan), _COLUMNS, output)
        case OutputFormat.TABLE:
            _print_text(study, plan)


def _rows(plan: Plan) -> list[dict[str, Any]]:
    return [
        {"subject": each.subject, "verdict": each.verdict.value, "detail": each.detail}
        for each in plan.checks
    ]


def _print_text(study: StudiedGroup, plan: Plan) -> None:
    from rich.text import Text

    out = console()

    def heading(text: str) -> None:
        out.print()
        out.print(Text(text, "bold"))

    def item(text: str, first: str = "  ") -> None:
        wrapped = fill(
            text,
            out.width,
            initial_indent=first,
            subsequent_indent=" " * len(first),
            break_long_words=False,
            break_on_hyphens=False,
        )
        out.print(wrapped)

    out.print(headline(study))
    heading(f"The group {_ANSWERS[plan.way]}.")
    if plan.gone and plan.to_go:
        item(
            f"{len(plan.gone)} of {len(plan.gone) + len(plan.to_go)} members have gone over: {few(plan.gone)}"
        )
    for check in plan.checks:
        out.print(Text(f"  {check.verdict:<8}", _STYLES[check.verdict]), end="")
        item(check.detail, f"{check.subject:<{_WIDTH}}  ")
    if plan.outcomes or plan.changes:
        heading("What changes")
    for outcome in plan.outcomes:
        shares = f"{outcome.least} to {outcome.most}"
        item(f"By {outcome.assignor}, {outcome.moved} partitions move; members have {shares} then.", "  - ")
    for change in plan.changes:
        item(change, "  - ")
    heading("In this order" if len(plan.steps) > 1 else "What to do")
    for number, step in enumerate(plan.steps, start=1):
        item(f"{step}.", f"  {number}. " if len(plan.steps) > 1 else "  ")
