"""A self-contained HTML report of the tables: `write_report`."""

from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pyspark.sql import DataFrame

from groupwright.pipeline._report.facts import Limits
from groupwright.pipeline._report.page import render
from groupwright.pipeline._report.queries import query_facts

__all__ = ["Limits", "write_report"]


def write_report(
    tables: Mapping[str, DataFrame],
    out: Path,
    *,
    made_at: datetime,
    source: str = "",
    group: str | None = None,
    limits: Limits | None = None,
) -> Path:
    """Write the page, and return its path.

    The page needs no network and no scripts. Its size does not depend on the history's: it shows the groups
    with the highest numbers and the latest rebalances, and states what it leaves out. Spark aggregates before
    rows are collected.

    Args:
        tables: Tables by name: `rebalances`, `group_members`, `client_events`, `lag`, `churn`, `what_if`;
            others are ignored. A section without data states the reason.
        out: The file to write; its folder is created if needed, and an existing file is overwritten.
        made_at: Time of creation, with a time zone, shown on the page.
        source: Location of the tables, shown on the page.
        group: The group of the timeline and the ownership map; by default the one with the most rebalances.
        limits: Limits of the page's size.
    """
    limits = limits or Limits()
    facts = query_facts(tables, limits, group)
    page = render(facts, limits, given=frozenset(tables), made_at=made_at, source=source)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")
    return out
