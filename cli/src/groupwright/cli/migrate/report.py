"""The plan, printed."""

from textwrap import fill
from typing import TYPE_CHECKING, Any

from groupwright.cli._command_line.output import Column, OutputFormat, console, few, print_json, print_rows
from groupwright.cli._study.model import StudiedGroup, headline
from groupwright.cli.migrate.plan import Outcome, Plan, Verdict, Way

if TYPE_CHECKING:
    from rich.console import Console

_COLUMNS = (Column("subject", "SUBJECT"), Column("verdict", "VERDICT"), Column("detail", "DETAIL"))
_WIDTH = len("subscriptions")
_ANSWERS = {
    Way.ONLINE: "can go over online, by a rolling restart",
    Way.FULL_STOP: "can go over by a full stop: all members stop, then all start",
    Way.NONE: "cannot go over yet",
    Way.UNDER_WAY: "is on its way",
    Way.DONE: "is a group of KIP-848",
    Way.HALF_BACK: "has only classic members, but the broker assigns until all stop, and may leave one out",
    Way.EMPTY: "has no members: the next one decides its protocol",
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
        "back": list(plan.back),
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
    out.print(headline(study))
    _heading(out, f"The group {_ANSWERS[plan.way]}.")
    if plan.gone and plan.to_go:
        number = len(plan.gone) + len(plan.to_go)
        _item(out, f"{len(plan.gone)} of {number} members have gone over: {few(plan.gone)}", "  ")
    for check in plan.checks:
        wrapped = Text(_wrapped(out, check.detail, f"  {check.verdict:<8}{check.subject:<{_WIDTH}}  "))
        wrapped.stylize(_STYLES[check.verdict], end=10)
        out.print(wrapped)
    if plan.outcomes or plan.changes:
        _heading(out, "What changes")
    for sentence in (*map(_outcome, plan.outcomes), *plan.changes):
        _item(out, sentence, "  - ")
    for title, steps in (("To go over", plan.steps), ("To go back", plan.back)):
        if steps:
            _heading(out, title)
        for number, step in enumerate(steps, start=1):
            _item(out, f"{step}.", f"  {number}. " if len(steps) > 1 else "  ")


def _outcome(outcome: Outcome) -> str:
    shares = f"members have {outcome.least} to {outcome.most} partitions"
    if outcome.moved is None:
        return f"By {outcome.assignor}, {shares} then; the broker assigns all anew."
    moved = f"{outcome.moved} would move if all members changed at once"
    return f"By {outcome.assignor}, {shares} then; {moved}, and each restart on the way moves more."


def _heading(out: "Console", text: str) -> None:
    from rich.text import Text

    out.print()
    out.print(Text(text, "bold"))


def _item(out: "Console", text: str, first: str) -> None:
    out.print(_wrapped(out, text, first))


def _wrapped(out: "Console", text: str, first: str) -> str:
    return fill(
        text,
        out.width,
        initial_indent=first,
        subsequent_indent=" " * len(first),
        break_long_words=False,
        break_on_hyphens=False,
    )
