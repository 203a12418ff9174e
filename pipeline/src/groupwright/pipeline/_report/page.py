"""Rendering of the facts as one HTML page."""

from base64 import b64encode
from collections.abc import Sequence
from datetime import datetime
from hashlib import sha256
from importlib.resources import files
from typing import TypeVar

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from groupwright.pipeline._report import charts, findings
from groupwright.pipeline._report.causes import chain
from groupwright.pipeline._report.drawing import count, day, legible, seconds, short
from groupwright.pipeline._report.facts import Facts, Limits
from groupwright.pipeline._report.group_facts import PHASES
from groupwright.pipeline._what_if.cost import ASSUMPTIONS

_Value = TypeVar("_Value")


def render(facts: Facts, limits: Limits, *, given: frozenset[str], made_at: datetime, source: str) -> str:
    """Return the page.

    The page is self-contained: inline style, SVG charts, and one inline script, which searches and sorts the
    index. Values from the tables are escaped, and the page's Content-Security-Policy forbids everything but
    its own style and this script, which it knows by its hash.

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
    environment.filters |= {
        "count": count,
        "seconds": seconds,
        "short": short,
        "day": day,
    }
    style, script = (Markup(_read(name)) for name in ("page.css", "page.js"))  # noqa: S704 - files of this package
    sections = {detail.timeline.group: f"group-{number}" for number, detail in enumerate(facts.details)}
    return environment.from_string(_read("page.html.j2")).render(
        facts=facts,
        limits=limits,
        made_at=made_at,
        source=source,
        given=given,
        reasons=findings.reasons(facts, given),
        findings=findings,
        charts=charts,
        chain=chain,
        assumptions=ASSUMPTIONS,
        sections=sections,
        series={series.group: series for series in facts.lag.series} if facts.lag else {},
        phases=_phases(facts),
        best=findings.best(facts.alternatives),
        style=style,
        script=script,
        script_hash=b64encode(sha256(script.encode()).digest()).decode(),
    )


def _read(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def _clean(value: _Value) -> _Value | str:
    """Remove illegible characters from values, but not from the template's own markup."""
    return legible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _phases(facts: Facts) -> Sequence[str]:
    """Return the phases that occur in the events."""
    events = [
        event
        for detail in facts.details
        for rebalance in detail.timeline.rebalances
        for event in rebalance.events
    ]
    return [phase for phase in PHASES if any(phase in event.phases for event in events)]
