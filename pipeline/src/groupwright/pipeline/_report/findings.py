"""What each section found, as its title, and why a section is empty."""

from groupwright.pipeline._report.drawing import count, legible, seconds
from groupwright.pipeline._report.facts import Churn, Facts, Lag, LagSeries, Ownership, Timeline, Totals
from groupwright.pipeline._what_if.summary import sentence

_EVEN = 1


def summary(totals: Totals) -> str:
    """Return what all rebalances came to."""
    needless = totals.moved - totals.fewest
    if totals.moved == 0:
        return f"{totals.rebalances:,} rebalances, and no partition was moved"
    share = max(0, needless) / totals.moved
    return f"{totals.rebalances:,} rebalances moved {totals.moved:,} partitions; {share:.0%} of that was needless"


def offenders(facts: Facts) -> str:
    """Return who is to blame."""
    first = facts.offenders[0]
    needless = sum(one.needless for one in facts.offenders)
    name = _name(first.group)
    if not needless:
        return "No group moved more partitions than it had to"
    if len(facts.offenders) == 1:
        return f"{name} moved {first.needless:,} partitions needlessly"
    return f"{name} made {first.needless / needless:.0%} of the needless moves"


def timeline(found: Timeline) -> str:
    """Return how long the shown rebalances took, and in what."""
    times = [one.duration for one in found.rebalances if one.duration is not None]
    name = _name(found.group)
    if not times:
        return f"{name} rebalanced {_times(found.total)}; nothing shows how long that took"
    spent: dict[str, float] = {}
    for rebalance in found.rebalances:
        for event in rebalance.events:
            for phase, length in event.phases.items():
                spent[phase] = spent.get(phase, 0.0) + length
    longest = (
        f"The longest of {name}\u2019s last {len(found.rebalances)} rebalances took {seconds(max(times))}"
    )
    if not sum(spent.values()):
        return longest
    phase = max(spent, key=lambda one: (spent[one], one))
    share = spent[phase] / sum(spent.values())
    return f"{longest}; {share:.0%} of members\u2019 time went into {phase.replace('_', ' ')}"


def ownership(found: Ownership) -> str:
    """Return how even the last generation was."""
    name = _name(found.group)
    fewest, most = found.last[0], found.last[-1]
    if len(found.last) == 1:
        return f"{name} has a single member, with {_plural(most, 'partition')}"
    if most - fewest <= _EVEN:
        return f"{name} is even now: {_range(fewest, most)} partitions for each of {len(found.last)} members"
    return f"{name} is uneven: one member has {most} partitions, another {fewest}"


def lag(found: Lag) -> str:
    """Return who was the furthest behind."""
    worst = found.series[0]
    if worst.peak == 0:
        return "No group was behind"
    waited = "" if worst.seconds is None else f", up to {seconds(worst.seconds)} late"
    return f"{_name(worst.group)} was {count(worst.peak)} messages behind{waited}"


def lag_of(series: LagSeries) -> str:
    """Return what one group's chart shows."""
    late = "" if series.seconds is None else f" · up to {seconds(series.seconds)} late"
    return f"peak {count(series.peak)}, now {count(series.last)}{late}"


def churn(found: Churn) -> str:
    """Return who rebalanced when."""
    storms = sum(len(places) for places in found.storms.values())
    if storms:
        stormy = sum(1 for places in found.storms.values() if places)
        return f"{_plural(storms, 'storm')} in {_plural(stormy, 'group')}: 5 rebalances within 10 minutes"
    group, row = next(iter(found.rows.items()))
    return f"No storms; {_name(group)} rebalanced most, {_times(sum(row))}"


def alternatives(facts: Facts) -> str:
    """Return what the best assignor would have saved."""
    others = [one for one in facts.alternatives if not one.actual and not one.errors]
    if not others:
        return "None of the assignors could play the whole history"
    best = others[0]
    said = sentence(
        _name(best.assignor), "these", best.rebalances, best.moved, best.moved_actual, best.errors
    )
    return said[0].upper() + said[1:]


def reasons(facts: Facts, given: frozenset[str]) -> dict[str, str]:
    """Return, by section, why it shows nothing.

    Args:
        facts: What was found.
        given: The tables that were there.
    """

    def why(table: str, empty: str, missing: str) -> str:
        return empty if table in given else missing

    no_rebalances = why(
        "rebalances",
        "The table rebalances is empty: in the time that was read, no group came into a new generation.",
        "There is no table rebalances: run the batch or the streaming job first.",
    )
    found = {
        "summary": "" if facts.totals else no_rebalances,
        "offenders": "" if facts.offenders else no_rebalances,
        "timeline": "" if facts.timeline else no_rebalances,
        "ownership": ""
        if facts.ownership
        else why(
            "group_members",
            "The table group_members has no members of this group: with KIP-848 they have records of their own.",
            "There is no table group_members: run the batch or the streaming job first.",
        ),
        "lag": ""
        if facts.lag and facts.lag.series
        else why(
            "lag",
            "The table lag is empty: the job has sampled no end offsets, or no group has committed any.",
            "There is no table lag: it needs a job that can ask the brokers for end offsets.",
        ),
        "churn": ""
        if facts.churn and facts.churn.rows
        else why(
            "churn",
            "The table churn is empty: no hour has a rebalance.",
            "There is no table churn: run the batch or the streaming job first.",
        ),
        "what-if": ""
        if facts.alternatives
        else why(
            "what_if",
            "The table what_if is empty: there was no generation with members to play.",
            "No other assignor has been tried yet: groupwright pipeline what-if plays this history with any.",
        ),
    }
    if facts.timeline and not any(one.events for one in facts.timeline.rebalances):
        found["phases"] = why(
            "client_events",
            "No client event tells of these rebalances, so their phases are not known: the members do not run "
            "groupwright.instrumentation, or its events have not been read.",
            "There is no table client_events, so phases are not known. Members send them with groupwright.instrumentation.",
        )
    return {section: reason for section, reason in found.items() if reason}


def _name(text: str) -> str:
    text = legible(text)
    return text if len(text) <= 48 else f"{text[:47]}…"  # noqa: PLR2004 - what a title can bear


def _plural(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number:,} times"


def _range(fewest: int, most: int) -> str:
    return str(most) if fewest == most else f"{fewest} or {most}"
