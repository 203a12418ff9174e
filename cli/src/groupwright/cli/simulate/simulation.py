"""Simulations of a group with several assignors. Pure."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from groupwright.assignors import (
    Assignment,
    AssignmentQuality,
    Assignor,
    BrokerAssignor,
    Group,
    LoadAwareAssignor,
    LoadReport,
    Member,
    SimulatedEvent,
    evaluate,
    evaluate_load,
    simulate,
)
from groupwright.cli._cluster.model import Partitions
from groupwright.cli._study.model import StudiedGroup, capacity_data, has_weights
from groupwright.cli._study.steps import Scenario

START = "the group as it is"
"""Label of the first step: the assignor's assignment before any event."""


@dataclass(frozen=True, slots=True)
class SimulatedStep:
    """An event, and the settled group after it.

    Attributes:
        label: The event, in words.
        quality: The quality of the assignment, and its moves beside the fewest.
        load: The members' loads; None if no weight is known.
        revoked: Partitions that a member revoked.
        rebalances: Rebalances until the group settled.
        assigned: By member id, the assigned partitions.
    """

    label: str
    quality: AssignmentQuality
    load: LoadReport | None
    revoked: int
    rebalances: int
    assigned: Mapping[str, Partitions]


@dataclass(frozen=True, slots=True)
class Candidate:
    """An assignor to simulate.

    Attributes:
        name: The name or import path that the user wrote.
        assignor: The assignor.
    """

    name: str
    assignor: Assignor


@dataclass(frozen=True, slots=True)
class Simulation:
    """A simulation with one assignor.

    Attributes:
        scenario: The steps that were simulated.
        candidate: The assignor.
        is_own: Whether the group uses it.
        steps: The group as it is, and each event; none if the assignor failed.
        error: Why it failed; empty if it did not.
    """

    scenario: Scenario
    candidate: Candidate
    is_own: bool
    steps: tuple[SimulatedStep, ...]
    error: str = ""


def simulate_scenario(scenario: Scenario, candidate: Candidate) -> Simulation:
    """Simulate the steps of a scenario with an assignor.

    An exception of the assignor is a result: the other assignors are simulated all the same.
    """
    study, assignor = scenario.study, candidate.assignor
    is_own = assignor.name == study.studied_assignor
    group = study.as_group({member.id: study.present(member) for member in study.members})
    if is_own and ":" in candidate.name and not isinstance(assignor, BrokerAssignor):
        group = _with_user_data(group, study)
    try:
        events = simulate(
            group,
            _of_member(assignor, scenario),
            [step.change for step in scenario.steps if step.change is not None],
        )
        steps = tuple(_steps(scenario, events))
    except Exception as error:  # noqa: BLE001 - of the user's assignor
        reason = str(error) or type(error).__name__
        return Simulation(scenario, candidate, is_own, (), reason)
    return Simulation(scenario, candidate, is_own, steps)


def _of_member(assignor: Assignor, scenario: Scenario) -> Assignor | Callable[[Member], Assignor]:
    """Return the assignor; for `load-aware`, a function from a member to its assignor with its capacity."""
    if type(assignor) is not LoadAwareAssignor or not scenario.capacities:
        return assignor
    return lambda member: LoadAwareAssignor(capacity=scenario.capacities.get(member.id, 1.0))


def _with_user_data(group: Group, study: StudiedGroup) -> Group:
    """Return the group with the user data that members of a custom assignor sent when they joined."""
    sent = {member.id: member.user_data for member in study.members}
    return Group([replace(member, user_data=sent[member.id]) for member in group.members], group.topics)


def _steps(scenario: Scenario, events: list[SimulatedEvent]) -> Iterator[SimulatedStep]:
    simulated = iter(events)
    last = next(simulated)
    yield _step(START, last, scenario.capacities)
    for step in scenario.steps:
        if step.change is None:
            yield _unchanged(step.label, last, scenario.capacities)
        else:
            last = next(simulated)
            yield _step(step.label, last, scenario.capacities)


def _step(label: str, event: SimulatedEvent, capacities: Mapping[str, float]) -> SimulatedStep:
    assigned = {id_: share.as_tuples() for id_, share in event.assignment.items()}
    return SimulatedStep(
        label,
        evaluate(event.before, event.assignment),
        _load(event.before, event.assignment, capacities),
        event.revoked.count,
        len(event.rebalances),
        assigned,
    )


def _unchanged(label: str, last: SimulatedEvent, capacities: Mapping[str, float]) -> SimulatedStep:
    """Return the step of an event after which everything is as before, without a rebalance."""
    unchanged = SimulatedEvent(last.group, last.rebalances, last.group)
    return replace(_step(label, unchanged, capacities), revoked=0, rebalances=0)


def _load(group: Group, assignment: Assignment, capacities: Mapping[str, float]) -> LoadReport | None:
    if not has_weights(group.topics, group.members):
        return None
    members = [replace(each, user_data=capacity_data(capacities.get(each.id))) for each in group.members]
    return evaluate_load(Group(members, group.topics), assignment)
