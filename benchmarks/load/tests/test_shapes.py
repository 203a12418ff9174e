"""The traffic is the same in each run, and as uneven as it says."""

import numpy as np
import pytest

from benchmarks.load.analysis import load_report
from benchmarks.load.plan import MEMBERS, PARTITIONS, UNEVEN
from benchmarks.load.shapes import Shape, drifted, shares, split


@pytest.mark.parametrize("shape", Shape)
def test_shares_add_up_and_never_change(shape: Shape) -> None:
    made = shares(shape, PARTITIONS)

    assert made.sum() == pytest.approx(1)
    assert made.min() > 0
    assert np.array_equal(made, shares(shape, PARTITIONS))


def test_counts_leave_one_member_with_the_neighbours() -> None:
    each = PARTITIONS // MEMBERS
    by_counts = {partition: partition // each for partition in range(PARTITIONS)}

    report = load_report(by_counts, shares(Shape.NEIGHBOURS, PARTITIONS).tolist(), MEMBERS)

    assert report.peak_over_bound == pytest.approx(1.8)
    assert report.peak_over_bound > UNEVEN


def test_a_drift_exchanges_shares() -> None:
    before = shares(Shape.POWER_LAW, PARTITIONS)

    after = drifted(before, 1)

    assert sorted(after) == sorted(before)
    assert 0 < np.count_nonzero(after != before) <= PARTITIONS / 2
    assert np.array_equal(after, drifted(before, 1))
    assert not np.array_equal(after, drifted(before, 2))


def test_all_messages_are_split() -> None:
    numbers = split(1_000, shares(Shape.HOT, PARTITIONS))

    assert sum(numbers) == 1_000
    assert len(numbers) == PARTITIONS
