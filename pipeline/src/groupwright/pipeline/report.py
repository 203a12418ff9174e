"""A self-contained HTML report of the tables: `write_report`."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame

from groupwright.pipeline._report.facts import DeployCost, DeployStudy, Limits
from groupwright.pipeline._report.page import render
from groupwright.pipeline._report.queries import query_facts
from groupwright.pipeline._report.ranges import Compared, TimeRange
from groupwright.pipeline._report.rebalance_events import rebalance_events
from groupwright.pipeline.errors import SettingsError

__all__ = [
    "Compared",
    "DeployCost",
    "DeployStudy",
    "Limits",
    "TimeRange",
    "rebalance_events",
    "write_report",
]


def write_report(
    tables: Mapping[str, DataFrame],
    out: Path,
    *,
    made_at: datetime,
    source: str = "",
    groups: Sequence[str] = (),
    shown: TimeRange | None = None,
    compared: Compared | None = None,
    deploys: DeployStudy | None = None,
    what_if: Callable[[], DataFrame] | None = None,
    limits: Limits | None = None,
) -> Path:
    """Write the page, and return its path.

    The page is one file, which can be attached and archived, and needs no network; one inline script searches
    and sorts the index of groups. Its size does not depend on the history's: it has an index of all groups,
    sections of some, and the latest rebalances, and states what it leaves out. Spark aggregates before rows
    are collected.

    Args:
        tables: Tables by name: `rebalances`, `group_epochs`, `group_generations`, `group_members`,
            `client_events`, `lag`, `churn`, `what_if`; others are ignored. A section without data states the
            reason.
        out: The file to write; its folder is created if needed, and an existing file is overwritten.
        made_at: Time of creation, with a time zone, shown on the page.
        source: Location of the tables, shown on the page.
        groups: Groups with a section of their own; by default those with the most rebalances.
        shown: The range of time to show; by default all. `what_if` is shown as it is given.
        compared: Two ranges to compare, which need not be in `shown`.
        deploys: Simulated deploys of a group.
        what_if: Returns the table `what_if`; called in another thread, beside the queries of the tables.
        limits: Limits of the page's size.

    Raises:
        PipelineError: `out` is a folder, or below a file.
    """
    _require_writable(out)
    limits = limits or Limits()
    facts = query_facts(tables, limits, groups, shown or TimeRange(), compared, deploys, what_if)
    given = frozenset(tables) | ({"what_if"} if what_if else set())
    page = render(facts, limits, given=given, made_at=made_at, source=source)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")
    return out


def _require_writable(out: Path) -> None:
    """Raise a `SettingsError` before the queries if `out` cannot be a file."""
    if out.is_dir():
        raise SettingsError(f"{out} is a folder: write the report to a file in it, such as {out}/report.html")
    above = next((each for each in out.parents if each.exists()), None)
    if above is not None and not above.is_dir():
        raise SettingsError(f"{out} cannot be written, because {above} is not a folder: choose another file")
