"""The interval of a ratio: what it holds, and what an outlier does to it."""

import numpy as np
import pytest

from benchmarks.cost.interval import interval


def test_the_estimate_is_between_its_limits_and_of_equal_rounds_it_is_exact() -> None:
    found = interval([0.97, 1.02, 0.99, 1.01, 0.98, 1.0])

    assert found.low < found.estimate < found.high
    assert found.estimate == pytest.approx(0.995, abs=0.002)
    same = interval([0.98] * 9)
    assert [same.low, same.high] == pytest.approx([0.98, 0.98])
    assert same.half_width == 0


def test_a_round_while_the_machine_was_busy_hardly_moves_it() -> None:
    rounds = [0.98 + 0.001 * number for number in range(30)]

    disturbed = interval([*rounds[:-1], 0.4])

    assert disturbed.estimate == pytest.approx(interval(rounds).estimate, abs=0.002)


@pytest.mark.parametrize("rounds", [8, 15, 30])
def test_it_holds_the_true_ratio_in_95_of_100_cases(rounds: int) -> None:
    chance = np.random.default_rng(rounds)
    trials = 400
    found = [interval(chance.lognormal(0, 0.05, rounds).tolist()) for _ in range(trials)]

    assert 0.92 * trials <= sum(each.low <= 1 <= each.high for each in found) <= 0.99 * trials
