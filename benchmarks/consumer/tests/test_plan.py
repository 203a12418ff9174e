"""Names of cells, and the members that a change needs."""

import pytest

from benchmarks.consumer.plan import FULL, JAVA, JOINERS, MEMBERSHIPS, Cell, MemberChange


@pytest.mark.parametrize(
    ("cell", "kind", "size_after", "members"),
    [
        ("join/10", Cell.JOIN, 11, 11),
        ("leave/10", Cell.LEAVE, 9, 10),
        ("kill/10", Cell.KILL, 9, 10),
        ("deploy/10", Cell.DEPLOY, 10, 20),
    ],
)
def test_a_change_is_named_by_its_kind_and_the_size_of_the_group(
    cell: str, kind: Cell, size_after: int, members: int
) -> None:
    change = MemberChange.of(cell)

    assert (change, change.cell) == (MemberChange(kind, 10), cell)
    assert (change.size_after, change.members) == (size_after, members)
    assert cell in FULL.cells


def test_java_is_joined_only_as_its_members_share_a_process() -> None:
    assert JAVA in {each.client for each in MemberChange(Cell.JOIN, 3).contestants}
    assert JAVA not in {each.client for each in MemberChange(Cell.KILL, 3).contestants}
    assert set(MEMBERSHIPS) < set(JOINERS)
