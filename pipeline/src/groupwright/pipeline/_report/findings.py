"""Titles of the report's sections, which state each section's main result, and reasons for empty sections."""

from collections.abc import Sequence

from groupwright.core.assignor_traits import BROKER_PREFIX
from groupwright.pipeline._report.drawing import count, legible, seconds
from groupwright.pipeline._report.facts import (
    Alternative,
    Churn,
    Comparison,
    DeployStudy,
    Facts,
    Lag,
    LagSeries,
    Totals,
)
from groupwright.pipeline._report.group_facts import Detail, Timeline, has_moves
from groupwright.pipeline._what_if.java_assignor import PREFIX as JAVA
from groupwright.pipeline._what_if.summary import sentence

_BALANCED = 1
"""Largest imbalance of an assignment that is called balanced."""


def summary(totals: Totals) -> str:
    """Return the page's title: totals over all rebalances."""
    number = _plural(totals.rebalances, "rebalance")
    if totals.moved is None or totals.avoidable is None:
        return f"{number} moved {'an unknown number of' if totals.rebalances else 'no'} partitions"
    if totals.moved == 0:
        return f"{number} moved no partitions"
    share = totals.avoidable / totals.moved
    return f"{number} moved {_plural(totals.moved, 'partition')}; {share:.0%} of the moves were avoidable"


def index(facts: Facts) -> str:
    """Return the group with the most avoidable moves, and its share."""
    first = facts.index[0]
    if not any(one.has_moves for one in facts.index):
        return _plural(len(facts.index), "share or streams group")
    known = [one.avoidable for one in facts.index if one.avoidable is not None]
    avoidable = sum(known)
    name = _name(first.group)
    if not known:
        return "The number of avoidable moves is unknown"
    if first.avoidable is None or not avoidable:
        return "No group moved more partitions than necessary"
    if len(facts.index) == 1:
        return f"{name} made {_plural(first.avoidable, 'avoidable move')}"
    return f"{name} made {first.avoidable / avoidable:.0%} of the avoidable moves"


def comparison(found: Comparison) -> str:
    """Return the change of the number of rebalances per hour."""
    before, after = (
        each.rebalances / each.hours if each.hours else None for each in (found.before, found.after)
    )
    event = "after the deploy" if found.deploy else "in the second range"
    if before is None or after is None:
        return f"{found.after.rebalances:,} rebalances {event}, {found.before.rebalances:,} before"
    if not before and not after:
        return "No rebalances in either range"
    return f"{_rate(after)} rebalances per hour {event}, {_rate(before)} before"


def _rate(number: float) -> str:
    return f"{number:,.0f}" if number >= 20 else f"{number:.2g}"  # noqa: PLR2004 - two digits suffice


def deploys(found: DeployStudy) -> str:
    """Return the settings that cost least in the first scenario."""
    first = [one for one in found.costs if one.scenario == found.costs[0].scenario]
    best = min(first, key=lambda one: one.partition_seconds[1])
    now = next((one for one in first if one.is_present), first[0])
    if best is now:
        return f"{_name(found.group)}: no other settings would make {now.scenario} cheaper"
    return (
        f"{_name(found.group)}: {best.settings} would lower the cost of {now.scenario} from "
        f"{count(now.partition_seconds[1])} to {count(best.partition_seconds[1])} partition-seconds"
    )


def timeline(found: Timeline) -> str:
    """Return the longest of the shown rebalances, and the phase that took the most time."""
    times = [one.duration for one in found.rebalances if one.duration is not None]
    name = _name(found.group)
    if not times:
        return f"{name} rebalanced {_times(found.total)}; the durations are unknown"
    spent: dict[str, float] = {}
    for rebalance in found.rebalances:
        for event in rebalance.events:
            for phase, length in event.phases.items():
                spent[phase] = spent.get(phase, 0.0) + length
    longest = (
        f"The longest of the last {len(found.rebalances)} rebalances of {name} took {seconds(max(times))}"
    )
    if not sum(spent.values()):
        return longest
    phase = max(spent, key=lambda one: (spent[one], one))
    share = spent[phase] / sum(spent.values())
    return f"{longest}; {share:.0%} of the members\u2019 time was spent in {phase.replace('_', ' ')}"


def ownership(detail: Detail) -> str:
    """Return the balance of the last generation."""
    found = detail.ownership
    if found is None:
        return "The members are unknown"
    fewest, most = found.last[0], found.last[-1]
    if detail.members == 0:
        last = _plural(len(found.last), "member")
        return f"No members now; the last {last} had {_range(fewest, most)} {detail.unit}s"
    if len(found.last) == 1:
        return f"A single member, with {_plural(most, detail.unit)}"
    if detail.group_type == "share":
        return f"{len(found.last)} members share partitions, {_range(fewest, most)} each"
    if most - fewest <= _BALANCED:
        return f"Balanced: {len(found.last)} members with {_range(fewest, most)} {detail.unit}s each"
    return f"Unbalanced: members have between {fewest} and {most} {detail.unit}s"


def lag(found: Lag) -> str:
    """Return the group with the largest lag."""
    worst = found.series[0]
    if worst.peak == 0:
        return "No group had any lag"
    return f"{_name(worst.group)} lagged by up to {count(worst.peak)} messages{_age(worst, ' and ')}"


def lag_of(series: LagSeries) -> str:
    """Return the caption of one group's chart; the lag is the sum over the group's partitions."""
    last = "unknown" if series.last is None else count(series.last)
    return f"peak {count(series.peak)}, at the last sample {last}{_age(series, ' · ')}"


def _age(series: LagSeries, separator: str) -> str:
    """Return the age of the oldest uncommitted message; an unknown age is stated, and not shown as 0 s."""
    if not series.peak:
        return ""
    if series.seconds is None:
        return f"{separator}of unknown age"
    return f"{separator}{'at least' if series.is_age_partial else 'up to'} {seconds(series.seconds)}"


def churn(found: Churn) -> str:
    """Return the number of rebalance storms, or the group with the most rebalances."""
    # Adjacent intervals have the same storm.
    storms = sum(place - 1 not in places for places in found.storms.values() for place in places)
    if storms:
        stormy = sum(1 for places in found.storms.values() if places)
        return f"{_plural(storms, 'storm')} in {_plural(stormy, 'group')}: 5 rebalances within 10 minutes"
    group, row = next(iter(found.rows.items()))
    return f"No storms; {_name(group)} rebalanced most, {_times(sum(row))}"


def best(found: Sequence[Alternative]) -> Alternative | None:
    """Return the first result for the whole history; Java's and the broker's only if there is no other.

    Args:
        found: Results, the cheapest first.
    """
    others = [one for one in found if not one.actual and not one.numbers["errors"]]
    return min(others, key=lambda one: one.assignor.startswith((JAVA, BROKER_PREFIX)), default=None)


def alternatives(best: Alternative | None) -> str:
    """Return the cost with the assignor that costs least."""
    if best is None:
        return "No assignor has a result for the whole history"
    text = sentence(_name(best.assignor), "these", best.numbers)
    return text[0].upper() + text[1:]


def reasons(facts: Facts, given: frozenset[str]) -> dict[str, str]:
    """Return the reasons for empty sections, by section.

    Args:
        facts: The facts to show.
        given: The names of the tables given.
    """

    def why(table: str, empty: str, missing: str) -> str:
        return empty if table in given else missing

    no_rebalances = why(
        "rebalances",
        "The table rebalances is empty, or has no rebalance in this range: no group entered a new "
        "generation.",
        "The table rebalances is missing: run the batch or the streaming job first.",
    )
    has_lag = facts.lag and facts.lag.series
    found = {
        "summary": "" if facts.totals else no_rebalances,
        "groups": "" if facts.index else no_rebalances,
        "churn": "" if facts.churn and facts.churn.rows else no_rebalances,
        "lag": ""
        if has_lag
        else why(
            "lag",
            "The table lag is empty: there are no samples of log-end offsets, or no committed offsets.",
            "The table lag is missing: run a job with end_offsets_seconds above 0 first.",
        ),
        "what-if": ""
        if facts.alternatives
        else why(
            "what_if",
            "The table what_if is empty: no generation had members.",
            "No other assignor has been tried yet: groupwright pipeline what-if replays this history "
            "with any.",
        ),
    }
    return {section: reason for section, reason in found.items() if reason}


def phases(detail: Detail, given: frozenset[str]) -> str:
    """Return why the phases of these rebalances are unknown; empty if they are known."""
    if any(one.events for one in detail.timeline.rebalances):
        return ""
    if not has_moves(detail.group_type):
        return f"Members of {detail.group_type} groups report no phases."
    why = (
        "there are no client events for these rebalances"
        if "client_events" in given
        else "the table client_events is missing"
    )
    return (
        f"The phases are unknown: {why}. Members send events if they use groupwright.instrumentation with "
        "to_kafka."
    )


def _name(text: str) -> str:
    text = legible(text)
    return text if len(text) <= 48 else f"{text[:47]}…"  # noqa: PLR2004 - the width of a title


def _plural(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _range(fewest: int, most: int) -> str:
    return (
        str(most)
        if fewest == most
        else f"{fewest} or {most}"
        if most - fewest == 1
        else f"{fewest} to {most}"
    )
