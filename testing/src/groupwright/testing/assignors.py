"""Test kit for assignors: correctness, quality of the assignments, and speed.

Examples:
    >>> from groupwright.assignors import by_name
    >>> report = check(by_name("roundrobin"), random_groups(count=50))
    >>> report.assignor, report.groups
    ('roundrobin', 50)
"""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from groupwright.assignors import Assignment, Assignor, Group, check_assignor, encode_assignments
from groupwright.testing._assignors.groups import UserData, large_group, random_groups
from groupwright.testing._assignors.trial import FaultyAssignorError, Trial
from groupwright.testing._assignors.weights import (
    Weights,
    adversarial_weights,
    drifted,
    skewed_weights,
    uniform_weights,
)

__all__ = [
    "FaultyAssignorError",
    "Report",
    "UserData",
    "Weights",
    "adversarial_weights",
    "check",
    "drifted",
    "large_group",
    "random_groups",
    "skewed_weights",
    "uniform_weights",
]


@dataclass(frozen=True, slots=True)
class Report:
    """Quality and speed of an assignor that passed `check`; `str` returns it as text.

    `groupwright.assignors.AssignmentQuality` defines the best assignment.

    Attributes:
        assignor: The assignor's name.
        groups: The number of groups that it was tested on.
        partitions: The number of their subscribed partitions.
        balanced: The number of groups whose assignment is as balanced as possible.
        worst_imbalance: The largest imbalance in excess of the minimum, in partitions.
        moves: Partitions taken from a member that could have kept them, in all groups.
        min_moves: The same in the best assignments.
        rack_mismatches: Partitions whose owner is in a rack without a replica, in all groups.
        min_rack_mismatches: The same in the best assignments.
        most_rounds: The most rebalances until a cooperative assignor converged; 0 for others.
        seconds: The longest time of one assignment, including the checks of its result.
        seconds_large: The same for the large group; None without one.
        fingerprint: A digest of all assignments, the same in every run and on every machine. Assert it in a
            test to notice every change, including results that depend on the order of a set of strings.
    """

    assignor: str
    groups: int
    partitions: int
    balanced: int
    worst_imbalance: int
    moves: int
    min_moves: int
    rack_mismatches: int
    min_rack_mismatches: int
    most_rounds: int
    seconds: float
    seconds_large: float | None
    fingerprint: str

    def __str__(self) -> str:
        """Return the report as text."""
        cooperation = f"\nCooperation: converges within {self.most_rounds} rebalances." * (
            self.most_rounds > 0
        )
        large = (
            ""
            if self.seconds_large is None
            else f"; the large group takes {self.seconds_large * 1000:.1f} ms"
        )
        return (
            f"Assignor {self.assignor!r} passed on {self.groups} groups with {self.partitions} partitions."
            f"{cooperation}\n"
            f"Balance: optimal in {self.balanced} groups; in the others the imbalance exceeds the minimum by "
            f"up to {self.worst_imbalance} partitions.\n"
            f"Stickiness: {self.moves} moves; the best assignments have {self.min_moves}.\n"
            f"Racks: {self.rack_mismatches} mismatches; "
            f"the best assignments have {self.min_rack_mismatches}.\n"
            f"Speed: {self.seconds * 1000:.1f} ms at most{large}.\n"
            f"Fingerprint: {self.fingerprint}"
        )


def check(
    assignor: Assignor,
    groups: Iterable[Group] | None = None,
    *,
    seed: int = 0,
    allow_unassigned: bool = False,
    rounds: int = 2,
    large: Group | None = None,
) -> Report:
    """Test an assignor on many groups.

    The assignor passes if, for every group,

    - it raises nothing, and does not modify the group;
    - its result is an assignment of the group (see `groupwright.assignors.assign`);
    - every subscribed partition is assigned. A cooperative assignor may withhold a partition that a member
      claims;
    - the result is the same when it is called again, and when members, topics and subscriptions are
      reordered;
    - if it is cooperative (KIP-429), no partition is assigned to a member while another claims it, unless the
      member claims it in a later generation; and it converges: members revoke the partitions that they are no
      longer assigned, and join again, until no partition moves.

    Every member, and so the leader, has its own deep copy of the assignor. As in a group, `on_assignment` is
    called with the member's assignment, and `user_data` before it joins. Members whose user data is part of
    the group keep it. If the assignor is not cooperative, members own nothing when they join.

    Args:
        assignor: The assignor.
        groups: The groups, small ones first; by default `random_groups(seed)`.
        seed: The seed of the random groups.
        allow_unassigned: Whether it may leave partitions unassigned.
        rounds: How many rebalances a cooperative assignor may take to converge.
        large: A group to measure the time with; by default `large_group()`, unless `groups` are given.

    Raises:
        FaultyAssignorError: The assignor fails. The message describes the fault and the group.
        AssignorError: It is not an assignor: its name or protocols are invalid.
    """
    check_assignor(assignor)
    outcomes = [
        Trial(assignor, group, number, allow_unassigned=allow_unassigned).run(rounds)
        for number, group in enumerate(random_groups(seed) if groups is None else groups)
    ]
    if large is None and groups is None:
        large = large_group()
    qualities = [outcome.quality for outcome in outcomes]
    return Report(
        assignor=assignor.name,
        groups=len(outcomes),
        partitions=sum(each.partitions for each in qualities),
        balanced=sum(each.sum_of_squares == each.min_sum_of_squares for each in qualities),
        worst_imbalance=max((each.imbalance - each.min_imbalance for each in qualities), default=0),
        moves=sum(each.moves for each in qualities),
        min_moves=sum(each.min_moves for each in qualities),
        rack_mismatches=sum(each.rack_mismatches for each in qualities),
        min_rack_mismatches=sum(each.min_rack_mismatches for each in qualities),
        most_rounds=max((outcome.rounds for outcome in outcomes), default=0),
        seconds=max((outcome.seconds for outcome in outcomes), default=0.0),
        seconds_large=None if large is None else Trial(assignor, large, len(outcomes)).seconds(),
        fingerprint=_fingerprint(outcome.first for outcome in outcomes),
    )


def _fingerprint(assignments: Iterable[Assignment]) -> str:
    digest = hashlib.sha256()
    for assignment in assignments:
        for id_, data in encode_assignments(assignment).items():
            digest.update(id_.encode())
            digest.update(data)
    return digest.hexdigest()[:16]
