"""One self-contained HTML page of what the tables say: `write_report`."""

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

    The page needs no network and no script. However large the history is, it shows the worst, the busiest and the last,
    and says what it leaves out: all is counted on Spark, and only that is collected.

    Args:
        tables: The tables that there are, by name: `rebalances`, `group_members`, `client_events`, `lag`, `churn`,
            `what_if`; others are not looked at. A section whose table is missing or empty says why it shows nothing.
        out: The file; its folder is made, and one that is there is written over.
        made_at: When, with a time zone; it stands on the page.
        source: Where the tables come from; it stands on the page.
        group: The group of the timeline and the ownership map; by default the one with the most rebalances.
        limits: How much the page shows at most.
    """
    limits = limits or Limits()
    facts = query_facts(tables, limits, group)
    page = render(facts, limits, given=frozenset(tables), made_at=made_at, source=source)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(page, encoding="utf-8")
    return out
