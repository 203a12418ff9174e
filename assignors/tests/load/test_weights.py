"""Sources of weights, and what becomes of the weights that they return."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from groupwright.assignors import (
    Group,
    GroupMeasurements,
    InvalidInputError,
    Lag,
    LoadAwareAssignor,
    Member,
    ProcessingTime,
    Throughput,
    Topic,
    WeightFunction,
    WeightSource,
    assign,
    smooth_weights,
    with_weights,
)

TOPICS = {"orders": Topic(4), "returns": Topic(2)}
UNKNOWN = math.nan


class Offsets:
    """Offsets that brokers returned: messages are written at a steady rate, and consumed up to a point."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.rates = {"orders": np.array([10.0, 1.0, 0.0, UNKNOWN]), "returns": np.array([2.0, 2.0])}

    def log_ends(self) -> Mapping[str, Any]:
        self.asked.append("ends")
        return {topic: 10_000 + 0 * rates for topic, rates in self.rates.items()}

    def at(self, seconds_ago: float) -> Mapping[str, Any]:
        self.asked.append(f"{seconds_ago:g} s ago")
        return {topic: 10_000 - seconds_ago * rates for topic, rates in self.rates.items()}

    def committed(self) -> Mapping[str, Any]:
        self.asked.append("committed")
        return {"orders": np.array([9_400.0, 10_000.0, UNKNOWN, UNKNOWN])}

    def processing_times(self) -> Mapping[str, Any]:
        return {"orders": np.array([0.004, UNKNOWN, 0.001, 0.002]), "returns": np.full(2, UNKNOWN)}


def found(source: WeightSource, offsets: GroupMeasurements | None = None) -> dict[str, list[float]]:
    return {topic: list(of) for topic, of in source.weigh(TOPICS, offsets or Offsets()).items()}


def test_throughput_is_what_the_window_saw() -> None:
    offsets = Offsets()
    weights = found(Throughput(window=120), offsets)
    assert weights["orders"] == pytest.approx([10, 1, 0, UNKNOWN], nan_ok=True)
    assert weights["returns"] == [2, 2]
    assert sorted(offsets.asked) == ["120 s ago", "ends"]


def test_a_log_that_was_deleted_and_begins_again_has_no_throughput_below_zero() -> None:
    class Recreated(Offsets):
        def at(self, seconds_ago: float) -> Mapping[str, Any]:
            return {topic: 20_000 + 0 * seconds_ago * rates for topic, rates in self.rates.items()}

    assert found(Throughput(), Recreated())["returns"] == [0, 0]


def test_lag_weighs_by_the_time_in_which_it_should_be_gone() -> None:
    assert found(Lag(horizon=60)) == {"orders": pytest.approx([10, 0, UNKNOWN, UNKNOWN], nan_ok=True)}
    assert found(Lag(horizon=600))["orders"][0] == 1


def test_work_is_the_processing_time_times_the_rate() -> None:
    weights = found(ProcessingTime())
    # The second partition of orders has the median of its topic, and returns that of all partitions.
    assert weights["orders"] == pytest.approx([0.04, 0.002, 0.0, UNKNOWN], nan_ok=True)
    assert weights["returns"] == pytest.approx([0.004, 0.004])
    of_lag = found(ProcessingTime(rate=Lag(horizon=60)))
    assert of_lag == {"orders": pytest.approx([0.04, 0.0, UNKNOWN, UNKNOWN], nan_ok=True)}


def test_while_no_member_tells_processing_times_the_rate_alone_counts() -> None:

    class Untold(Offsets):
        def processing_times(self) -> Mapping[str, Any]:
            return {topic: np.full(rates.size, UNKNOWN) for topic, rates in self.rates.items()}

    weights = found(ProcessingTime(), Untold())
    assert weights["orders"] == pytest.approx([10, 1, 0, UNKNOWN], nan_ok=True)
    assert weights["returns"] == [2, 2]


def test_members_measure_if_any_part_of_a_source_needs_it() -> None:
    assert (Throughput() + 2 * ProcessingTime()).needs_processing_times
    assert not (Throughput() + 2 * Lag()).needs_processing_times
    assert repr(ProcessingTime()) == "ProcessingTime(rate=Throughput(window=300.0))"


def test_a_function_weighs_each_partition() -> None:
    weights = found(WeightFunction(lambda topic, partition: len(topic) + partition))
    assert weights == {"orders": [6, 7, 8, 9], "returns": [7, 8]}


def test_sources_are_added_and_multiplied() -> None:
    weights = found(Throughput(window=60) + 0.5 * Lag(horizon=60))
    assert weights == {"orders": pytest.approx([15, 1, UNKNOWN, UNKNOWN], nan_ok=True)}
    doubled = found((Throughput() + Throughput()) * 2)
    assert doubled["returns"] == [8, 8]
    assert repr(2 * (Throughput() + Lag())) == "2 * (Throughput(window=300.0) + Lag(horizon=60.0))"


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Throughput(window=0), "window must be a positive number of seconds, not 0"),
        (lambda: Throughput(window=math.nan), "not nan"),
        (lambda: Lag(horizon=-1), "horizon must be a positive number of seconds, not -1"),
        (lambda: Lag(horizon=math.inf), "not inf"),
        (lambda: Lag() * -1, "a factor of weights must be a finite number from 0, not -1"),
    ],
)
def test_a_wrong_argument_is_named(make: Callable[[], WeightSource], message: str) -> None:
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_what_is_unknown_counts_as_the_median_of_its_topic() -> None:
    racks = [{"a"}, {"b"}]
    topics = {"orders": Topic(4), "returns": Topic(2, racks), "new": Topic(3), "silent": Topic(2)}
    weights: dict[str, list[float]] = {
        "orders": [8, UNKNOWN, 1, 2],
        "returns": [1, 3],
        "silent": [UNKNOWN, UNKNOWN],
    }
    given = with_weights(topics, weights)
    assert given == {
        "orders": Topic(4, weights=[8, 2, 1, 2]),
        "returns": Topic(2, racks, [1, 3]),
        "new": Topic(3),
        "silent": Topic(2),
    }


@pytest.mark.parametrize("weights", [[1.0, -1.0], [1.0, math.inf], [1.0], [1.0, 2.0, 3.0], ["much", "more"]])
def test_weights_that_are_none_are_refused_by_the_topics_name(weights: list[Any]) -> None:
    with pytest.raises(InvalidInputError, match="topic 'returns': "):
        with_weights(TOPICS, {"returns": weights})


def test_smoothed_weights_lie_between_the_former_and_the_latest() -> None:
    racks = [{"a"}, {"b"}]
    former = {
        "orders": Topic(2, weights=[4, 8]),
        "grown": Topic(1, weights=[9]),
        "silent": Topic(1, weights=[3]),
    }
    latest = {
        "orders": Topic(2, racks, [8, 0]),
        "grown": Topic(2, weights=[1, 1]),
        "silent": Topic(1),
        "new": Topic(1, weights=[5]),
    }
    assert smooth_weights(former, latest, 0.25) == latest | {"orders": Topic(2, racks, [5, 6])}
    assert smooth_weights(former, latest, 1) == latest


def test_the_assignor_by_load_balances_what_a_source_found() -> None:
    assignor = LoadAwareAssignor(weights=Throughput())
    assert isinstance(assignor.weights, Throughput)
    topics = {"orders": TOPICS["orders"]}
    topics = with_weights(topics, assignor.weights.weigh(topics, Offsets()))
    shares = assign(assignor, Group([Member("a", ["orders"]), Member("b", ["orders"])], topics))
    # Partition 2 weighs nothing, so it goes where there are fewer partitions.
    assert sorted(share["orders"].tolist() for share in shares.values()) == [[0, 2], [1, 3]]
