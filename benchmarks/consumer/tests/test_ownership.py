"""A group counts as settled only when every partition has one owner and the loads are even."""

import pytest

from benchmarks.consumer.ownership import Change, Ownership, read_change


def changed(*lines: str) -> Ownership:
    ownership = Ownership(partitions=5)
    for line in lines:
        change = read_change(line)
        assert change is not None
        ownership.apply(change)
    return ownership


def test_a_change_is_read() -> None:
    assert read_change("gave 7 1700 0,12,3") == Change(
        1700, 7, gained=False, partitions=frozenset({0, 3, 12})
    )


@pytest.mark.parametrize("line", ["ready", "subscribed 3 1700", "done", ""])
def test_other_words_are_no_change(line: str) -> None:
    assert read_change(line) is None


def test_even_loads_of_all_partitions_are_settled() -> None:
    ownership = changed("gained 0 1 0,1,2", "gained 1 1 3,4")

    assert ownership.is_settled(2)
    assert ownership.owners() == {0: 0, 1: 0, 2: 0, 3: 1, 4: 1}


@pytest.mark.parametrize(
    ("lines", "what"),
    [
        (("gained 0 1 0,1,2,3", "gained 1 1 4"), "the loads differ by three"),
        (("gained 0 1 0,1,2", "gained 1 1 3"), "the last one has no owner"),
        (("gained 0 1 0,1,2", "gained 1 1 2,3"), "one has two owners"),
        (("gained 0 1 0,1,2,3,4",), "the second member has nothing yet"),
        (("gained 0 1 0,1,2", "gained 1 1 3,4", "gave 1 2 3"), "one was revoked"),
    ],
)
def test_anything_else_is_not(lines: tuple[str, ...], what: str) -> None:
    assert not changed(*lines).is_settled(2), what


def test_a_member_that_gives_all_up_and_gains_anew_is_settled_again() -> None:
    ownership = changed("gained 0 1 0,1,2,3,4", "gave 0 2 0,1,2,3,4", "gained 0 3 0,1,2", "gained 1 3 3,4")

    assert ownership.is_settled(2)


def test_a_dead_member_keeps_no_partitions_and_the_rest_settles_without_it() -> None:
    ownership = changed("gained 0 1 0,1,2", "gained 1 1 3,4")

    ownership.end(0)
    assert ownership.owners() == {3: 1, 4: 1}
    assert not ownership.is_settled(1)

    gained = read_change("gained 1 2 0,1,2")
    assert gained is not None
    ownership.apply(gained)
    assert ownership.is_settled(1)


def test_a_member_that_has_given_all_up_does_not_count() -> None:
    assert changed("gained 0 1 0,1,2,3,4", "gave 0 2 0,1,2,3,4", "gained 1 3 0,1,2,3,4").is_settled(1)
