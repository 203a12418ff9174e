"""A test kit for one's own assignor: is it sound, how good are its assignments, and how fast does it make them?

Example:
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

__all__ = ["FaultyAssignorError", "Report", "UserData", "check", "large_group", "random_groups"]


@dataclass(frozen=True, slots=True)
class Report:
    """How good and how fast an assignor is that has been found sound; `str` puts it in sentences.

    What "best" means is said at `groupwright.assignors.AssignmentQuality`.

    Attributes:
        assignor: Its name.
        groups: How many groups it was tried on.
        partitions: How many partitions they had for it to give.
        balanced: In how many groups its assignment is as even as one can be.
        worst_imbalance: How many more partitions than in the best assignment were between the members with the
            most and the fewest, where it is the least even.
        moved: How many partitions left a member that could have kept them, in all groups.
        best_moved: How many had to, in the best assignments.
        far: How many partitions have an owner in a rack where they have no replica, in all groups.
        best_far: How many have in the best assignments.
        most_rounds: In how many rebalances a cooperative assignor came to the end, at most; of others, 0.
        seconds: How long the longest assignment took, with the checks of its result.
        seconds_large: The same for the large group, None if there was none.
        fingerprint: A digest of all assignments: the same in every run, on every machine. Pin it in a test, and
            you hear of every change, even of one between two runs of the same code (a set of strings, say, has
            another order in each process).
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
        """Say all of it."""
        cooperation = f"\nCooperation: it settles in {self.most_rounds} rounds at most." * (
            self.most_rounds > 0
        )
        large = (
            ""
            if self.seconds_large is None
            else f"; the large group takes {self.seconds_large * 1000:.1f} ms"
        )
        return (
            f"Assignor {self.assignor!r} is sound in {self.groups} groups, with {self.partitions} partitions to give."
            f"{cooperation}\n"
            f"Balance: as even as can be in {self.balanced} groups; in the others members are at most "
            f"{self.worst_imbalance} partitions further apart than they had to be.\n"
            f"Stickiness: {self.moves} partitions moved; in the best assignments {self.min_moves} do.\n"
            f"Racks: {self.rack_mismatches} partitions have an owner far away; in the best assignments {self.min_rack_mismatches} have.\n"
            f"Speed: {self.seconds * 1000:.1f} ms at most{large}.\n"
            f"Fingerprint: {self.fingerprint}"
        )


def check(
    assignor: Assignor,
    groups: Iterable[Group] | None = None,
    *,
    seed: int = 0,
    may_leave_out: bool = False,
    rounds: int = 2,
    large: Group | None = None,
) -> Report:
    """Try an assignor on many groups, and raise an error if it is not sound.

    Sound means, for every group:

    - it raises nothing, and leaves the group as it is;
    - what it returns is an assignment of the group: see `groupwright.assignors.assign`;
    - every partition that somebody subscribes to has an owner. A cooperative assignor may withhold one that
      somebody claims;
    - the result is the same when it is asked again, and when members, topics and subscriptions come in another
      order;
    - if it is cooperative (KIP-429): no partition goes to a member while another claims it, except one that it
      has claimed in a later generation; and when all have given up what they are no longer given, and have
      joined again, and so on, it comes to an end.

    Every member has an assignor of its own, a deep copy, which hears of the member's share by `on_assignment`
    and is asked for its `user_data`, as in a group. Members whose user data is in the group already keep it. If
    the assignor is not cooperative, members own nothing when they join.

    Args:
        assignor: The assignor.
        groups: The groups, small ones first; by default `random_groups(seed)`.
        seed: Which random groups.
        may_leave_out: Whether it may give a partition to nobody.
        rounds: How many rebalances a cooperative assignor may take.
        large: A group to measure the time with; by default `large_group()`, unless `groups` are given.

    Raises:
        FaultyAssignorError: It is not sound. The message says what it does to which group.
        AssignorError: It is not an assignor, since a name or protocols are wrong.
    """
    check_assignor(assignor)
    outcomes = [
        Trial(assignor, group, number, may_leave_out=may_leave_out).run(rounds)
        for number, group in enumerate(random_groups(seed) if groups is None else groups)
    ]
    if large is None and groups is None:
        large = large_group()
    measures = [outcome.measures for outcome in outcomes]
    return Report(
        assignor=assignor.name,
        groups=len(outcomes),
        partitions=sum(each.partitions for each in measures),
        balanced=sum(each.sum_of_squares == each.min_sum_of_squares for each in measures),
        worst_imbalance=max((each.imbalance - each.min_imbalance for each in measures), default=0),
        moves=sum(each.moves for each in measures),
        min_moves=sum(each.min_moves for each in measures),
        rack_mismatches=sum(each.rack_mismatches for each in measures),
        min_rack_mismatches=sum(each.min_rack_mismatches for each in measures),
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
