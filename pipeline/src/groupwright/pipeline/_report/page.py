"""Rendering of the facts as one HTML page."""

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

    The page is self-contained: inline style, SVG charts, no scripts. Values from the tables are escaped, and
    the page's Content-Security-Policy forbids everything but its own style.

    Args:
        facts: The facts to show.
        limits: The limits that were applied; the page states what they left out.
        given: The names of the tables given.
        made_at: Time of creation, shown in the footer.
        source: Location of the tables, shown in the footer.
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
    """Remove illegible characters from values, but not from the template's own markup."""
    return legible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _phases(facts: Facts) -> Sequence[str]:
    """Return the phases that occur in the events."""
    events = [event for one in (facts.timeline.rebalances if facts.timeline else ()) for event in one.events]
    return [phase for phase in PHASES if any(phase in event.phases for event in events)]


def _best(facts: Facts) -> Any:
    return next((one for one in facts.alternatives if not one.actual and not one.errors), None)
