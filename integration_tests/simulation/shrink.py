"""Makes the scenario of a violation small, so that its story can be read."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from simulation.scenario import Commits, MemberPlan, Scenario

Breaks = Callable[[Scenario], bool]
"""Whether a scenario still breaks the promise."""


def shrink(scenario: Scenario, breaks: Breaks, tries: int = 400) -> Scenario:
    """Return a smaller scenario for which `breaks` holds, after at most so many calls of it."""
    left, smaller = tries, True
    while smaller and left > 0:
        smaller = False
        for candidate in _candidates(scenario):
            if left <= 0:
                break
            left -= 1
            if breaks(candidate):
                scenario, smaller = candidate, True
                break
    return scenario


def _candidates(scenario: Scenario) -> Iterator[Scenario]:
    """Yield smaller scenarios: with fewer troubles and members, fewer partitions, simpler applications."""
    troubles = scenario.troubles
    size = len(troubles)
    while size:
        for start in range(0, len(troubles), size):
            yield replace(scenario, troubles=troubles[:start] + troubles[start + size :])
        size //= 2
    for index in range(len(scenario.members)):
        if len(scenario.members) > 1:
            yield replace(scenario, members=scenario.members[:index] + scenario.members[index + 1 :])
    for index, (name, partitions) in enumerate(scenario.topics):
        rest = scenario.topics[:index] + scenario.topics[index + 1 :]
        if rest:
            yield replace(scenario, topics=rest)
        if partitions > 1:
            fewer = (name, partitions // 2)
            yield replace(scenario, topics=(*scenario.topics[:index], fewer, *scenario.topics[index + 1 :]))
    if scenario.brokers > 1:
        yield replace(scenario, brokers=1)
    for index, plan in enumerate(scenario.members):
        for simpler in _simpler(plan):
            members = (*scenario.members[:index], simpler, *scenario.members[index + 1 :])
            yield replace(scenario, members=members)
    for index, trouble in enumerate(troubles):
        for simpler in () if trouble.plan is None else _simpler(trouble.plan):
            changed = (*troubles[:index], replace(trouble, plan=simpler), *troubles[index + 1 :])
            yield replace(scenario, troubles=changed)


def _simpler(plan: MemberPlan) -> Iterator[MemberPlan]:
    plain = MemberPlan(plan.name, plan.client, plan.strategy, plan.topics)
    if plan != plain:
        yield plain
    simplest: dict[str, object] = {
        "static": False,
        "commits": Commits.AUTO,
        "batch": 0,
        "callback": 0,
        "raises": 0.0,
        "seeks": 0.0,
        "pauses": 0.0,
        "assigns": False,
        "commits_in_revoke": False,
    }
    for name, value in simplest.items():
        if getattr(plan, name) != value:
            yield replace(plan, **{name: value})  # type: ignore[arg-type] # one field
