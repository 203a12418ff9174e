"""The page: facts in, HTML out."""

from collections.abc import Sequence
from datetime import datetime
from importlib.resources import files
from typing import Any, TypeVar

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from groupwright.pipeline._report import charts, findings
from groupwright.pipeline._report.drawing import count, day, legible, seconds, short
from groupwright.pipeline._report.facts import PHASES, Facts, Limits

_Value = TypeVar("_Value")


def render(facts: Facts, limits: Limits, *, given: frozenset[str], made_at: datetime, source: str) -> str:
    """Return the page.

    It needs nothing but itself: its style stands in it, its charts are SVG, and it has no script. Whatever stands in the
    tables is escaped, and a policy in the page forbids everything that is not its own style.

    Args:
        facts: What it shows.
        limits: What was left out, it says.
        given: The names of the tables that were there.
        made_at: When, as it says at its foot.
        source: Where the tables are, as it says there.
    """
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, finalize=_clean
    )
    environment.filters |= {"count": count, "seconds": seconds, "short": short, "day": day}
    template = environment.from_string(
        files(__package__).joinpath("page.html.j2").read_text(encoding="utf-8")
    )
    return template.render(
        facts=facts,
        limits=limits,
        made_at=made_at,
        source=source,
        reasons=findings.reasons(facts, given),
        findings=findings,
        charts=charts,
        phases=_phases(facts),
        best=_best(facts),
    )


def _clean(value: _Value) -> _Value | str:
    """Return what is written down: of text that is not the template's own, what is legible."""
    return legible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _phases(facts: Facts) -> Sequence[str]:
    """Return the phases that some event has."""
    events = [event for one in (facts.timeline.rebalances if facts.timeline else ()) for event in one.events]
    return [phase for phase in PHASES if any(phase in event.phases for event in events)]


def _best(facts: Facts) -> Any:
    return next((one for one in facts.alternatives if not one.actual and not one.errors), None)
