"""Titles of the report's sections, which state each section's main result, and reasons for empty sections."""

from groupwright.pipeline._report.drawing import count, legible, seconds
from groupwright.pipeline._report.facts import Churn, Facts, Lag, LagSeries, Ownership, Timeline, Totals
from groupwright.pipeline._what_if.summary import sentence

_EVEN = 1


def summary(totals: Totals) -> str:
    """Return the page's title: totals over all rebalances."""
    avoidable = totals.moved - totals.fewest
    if totals.moved == 0:
        return f"{totals.rebalances:,} rebalances moved no partitions"
    share = max(0, avoidable) / totals.moved
    moves = f"{totals.rebalances:,} rebalances moved {totals.moved:,} partitions"
    return f"{moves}; {share:.0%} of the moves were avoidable"


def offenders(facts: Facts) -> str:
    """Return the share of avoidable moves of the group with the most."""
    first = facts.offenders[0]
    avoidable = sum(one.avoidable for one in facts.offenders)
    name = _name(first.group)
    if not avoidable:
        return "No group moved more partitions than necessary"
    if len(facts.offenders) == 1:
        return f"{name} made {_plural(first.avoidable, 'avoidable move')}"
    return f"{name} made {first.avoidable / avoidable:.0%} of the avoidable moves"


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


def ownership(found: Ownership) -> str:
    """Return the balance of the last generation."""
    name = _name(found.group)
    fewest, most = found.last[0], found.last[-1]
    if len(found.last) == 1:
        return f"{name} has a single member, with {_plural(most, 'partition')}"
    if most - fewest <= _EVEN:
        return f"{name} is balanced: {len(found.last)} members with {_range(fewest, most)} partitions each"
    return f"{name} is unbalanced: members have between {fewest} and {most} partitions"


def lag(found: Lag) -> str:
    """Return the group with the largest lag."""
    worst = found.series[0]
    if worst.peak == 0:
        return "No group had any lag"
    waited = "" if worst.seconds is None else f" and up to {seconds(worst.seconds)}"
    return f"{_name(worst.group)} lagged by up to {count(worst.peak)} messages{waited}"


def lag_of(series: LagSeries) -> str:
    """Return the caption of one group's chart."""
    late = "" if series.seconds is None else f" · up to {seconds(series.seconds)}"
    return f"peak {count(series.peak)}, now {count(series.last)}{late}"


def churn(found: Churn) -> str:
    """Return the number of rebalance storms, or the group with the most rebalances."""
    storms = sum(len(places) for places in found.storms.values())
    if storms:
        stormy = sum(1 for places in found.storms.values() if places)
        return f"{_plural(storms, 'storm')} in {_plural(stormy, 'group')}: 5 rebalances within 10 minutes"
    group, row = next(iter(found.rows.items()))
    return f"No storms; {_name(group)} rebalanced most, {_times(sum(row))}"


def alternatives(facts: Facts) -> str:
    """Return the moves with the best assignor."""
    others = [one for one in facts.alternatives if not one.actual and not one.errors]
    if not others:
        return "No assignor has a result for the whole history"
    best = others[0]
    said = sentence(
        _name(best.assignor), "these", best.rebalances, best.moved, best.moved_actual, best.errors
    )
    return said[0].upper() + said[1:]


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
        "The table rebalances is empty: no group entered a new generation in the period read.",
        "The table rebalances is missing: run the batch or the streaming job first.",
    )
    found = {
        "summary": "" if facts.totals else no_rebalances,
        "offenders": "" if facts.offenders else no_rebalances,
        "timeline": "" if facts.timeline else no_rebalances,
        "ownership": ""
        if facts.ownership
        else why(
            "group_members",
            "The table group_members has no members of this group: KIP-848 members have records of "
            "their own.",
            "The table group_members is missing: run the batch or the streaming job first.",
        ),
        "lag": ""
        if facts.lag and facts.lag.series
        else why(
            "lag",
            "The table lag is empty: there are no samples of log-end offsets, or no committed offsets.",
            "The table lag is missing: run a job with end_offsets_seconds above 0 first.",
        ),
        "churn": ""
        if facts.churn and facts.churn.rows
        else why(
            "churn",
            "The table churn is empty: there were no rebalances.",
            "The table churn is missing: run the batch or the streaming job first.",
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
    if facts.timeline and not any(one.events for one in facts.timeline.rebalances):
        found["phases"] = why(
            "client_events",
            "The phases are unknown: there are no client events for these rebalances. Members send events if "
            "they use groupwright.instrumentation with to_kafka.",
            "The phases are unknown: the table client_events is missing. Members send events if they use "
            "groupwright.instrumentation with to_kafka.",
        )
    return {section: reason for section, reason in found.items() if reason}


def _name(text: str) -> str:
    text = legible(text)
    return text if len(text) <= 48 else f"{text[:47]}…"  # noqa: PLR2004 - the width of a title


def _plural(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _range(fewest: int, most: int) -> str:
    return str(most) if fewest == most else f"{fewest} or {most}"
