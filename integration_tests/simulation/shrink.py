"""Makes the scenario of a violation small, so that its story can be read."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import TypeVar

from integration_tests.simulation.scenario import Commits, MemberPlan, Scenario

_T = TypeVar("_T")

Breaks = Callable[[Scenario], bool]
"""True if a scenario still breaks the guarantee."""


def shrink(scenario: Scenario, breaks: Breaks, is_over: Callable[[], bool]) -> Scenario:
    """Return a smaller scenario for which `breaks` holds, the smallest that is found until `is_over`."""
    smaller = True
    while smaller and not is_over():
        smaller = False
        for candidate in _candidates(scenario):
            if is_over():
                break
            if breaks(candidate):
                scenario, smaller = candidate, True
                break
    return scenario


def _candidates(scenario: Scenario) -> Iterator[Scenario]:
    """Yield smaller scenarios: with fewer faults and members, fewer partitions, simpler applications."""
    size = len(scenario.faults)
    while size:
        for start in range(0, len(scenario.faults), size):
            rest = scenario.faults[:start] + scenario.faults[start + size :]
            yield replace(scenario, faults=rest)
        size //= 2
    if len(scenario.members) > 1:
        for index in range(len(scenario.members)):
            yield replace(scenario, members=_without(scenario.members, index))
    if scenario.by_hand:
        yield replace(scenario, by_hand=())
    yield from _smaller_clusters(scenario)
    yield from _simpler_applications(scenario)


def _simpler_applications(scenario: Scenario) -> Iterator[Scenario]:
    for index, plan in enumerate(scenario.members):
        for simpler in _simpler(plan):
            yield replace(scenario, members=_with(scenario.members, index, simpler))
    for index, plan in enumerate(scenario.by_hand):
        for simpler in _simpler(plan):
            yield replace(scenario, by_hand=_with(scenario.by_hand, index, simpler))
    for index, fault in enumerate(scenario.faults):
        for simpler in () if fault.plan is None else _simpler(fault.plan):
            yield replace(scenario, faults=_with(scenario.faults, index, replace(fault, plan=simpler)))


def _smaller_clusters(scenario: Scenario) -> Iterator[Scenario]:
    for index, (name, partitions) in enumerate(scenario.topics):
        if len(scenario.topics) > 1:
            yield replace(scenario, topics=_without(scenario.topics, index))
        if partitions > 1:
            yield replace(scenario, topics=_with(scenario.topics, index, (name, partitions // 2)))
    if scenario.brokers > 1:
        yield replace(scenario, brokers=1)


def _without(values: tuple[_T, ...], index: int) -> tuple[_T, ...]:
    return values[:index] + values[index + 1 :]


def _with(values: tuple[_T, ...], index: int, value: _T) -> tuple[_T, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _simpler(plan: MemberPlan) -> Iterator[MemberPlan]:
    plain = MemberPlan(plan.name, plan.client, plan.strategy, plan.topics, reassigns=plan.reassigns)
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
        "seeks_at_start": False,
        "assigns": False,
        "commits_in_revoke": False,
        "own_store": False,
        "commits_unknown": False,
        "ends": False,
        "listens": False,
        "close_timeout": None,
        "changes_wrongly": False,
    }
    for name, value in simplest.items():
        if getattr(plan, name) != value:
            yield replace(plan, **{name: value})  # type: ignore[arg-type] # one field
