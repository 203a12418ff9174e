"""Arithmetic of the weights that sources return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from groupwright.assignors._model.arrays import Int64Array
from groupwright.assignors._model.group import Topic, Weights
from groupwright.assignors.errors import InvalidInputError

FloatArray = npt.NDArray[np.float64]


def rates(former: Mapping[str, FloatArray], now: Mapping[str, FloatArray], seconds: float) -> Weights:
    """Return the growth per second from former offsets to present ones; 0 where they fell."""
    return {topic: np.maximum(now[topic] - former[topic], 0.0) / seconds for topic in now if topic in former}


def total(one: Weights, other: Weights) -> Weights:
    """Return the sums, of topics that both have."""
    return {topic: np.add(one[topic], other[topic]) for topic in one if topic in other}


def multiple(weights: Weights, factor: float) -> Weights:
    """Return the products with a factor."""
    return {topic: np.multiply(of_topic, factor) for topic, of_topic in weights.items()}


def work(topics: Mapping[str, Topic], seconds: Mapping[str, FloatArray], messages: Weights) -> Weights:
    """Return the seconds of work per second, from seconds per message and messages per second.

    Unknown seconds are the median of their topic, else that of all topics, else 1.
    """
    found = [seconds.get(name, np.full(topic.partitions, np.nan)) for name, topic in topics.items()]
    starts = np.cumsum([0, *(of_topic.size for of_topic in found)])
    each = fill_unknown(np.concatenate(found) if found else np.zeros(0), starts)
    return {
        name: np.multiply(each[start : start + topic.partitions], messages[name])
        for (name, topic), start in zip(topics.items(), starts.tolist(), strict=False)
        if name in messages
    }


def with_weights(topics: Mapping[str, Topic], weights: Weights) -> dict[str, Topic]:
    """Return topics with these weights. An unknown partition has the median of its topic.

    Args:
        topics: The topics.
        weights: What a source returned. Topics that it lacks, or of which it knows nothing, are without
            weights.

    Raises:
        InvalidInputError: Weights are negative or infinite, no numbers, or not one for each partition; the
            message names the topic.
    """
    return {name: _with_weights(name, topic, weights.get(name)) for name, topic in topics.items()}


def smooth_weights(
    former: Mapping[str, Topic], topics: Mapping[str, Topic], share: float
) -> dict[str, Topic]:
    """Return topics whose weights are between the former ones and those given.

    Weights are noisy, and a group that followed each reading would move partitions back and forth.

    Args:
        former: Topics with the weights before. Topics that have other numbers of partitions now, or no
            weights, are not smoothed.
        topics: Topics with the latest weights.
        share: The share of the latest weights, from 0 to 1.
    """
    return {name: _smoothed(former.get(name), topic, share) for name, topic in topics.items()}


def _smoothed(former: Topic | None, topic: Topic, share: float) -> Topic:
    before = None if former is None or former.partitions != topic.partitions else former.weights
    if topic.weights is None or before is None:
        return topic
    return Topic(topic.partitions, topic.racks, before + share * (topic.weights - before))


def fill_unknown(weights: FloatArray, starts: Sequence[int] | Int64Array) -> FloatArray:
    """Return weights in which medians replace `UNKNOWN`.

    An unknown weight is the median of its topic's known weights; that of all known weights if the whole topic
    is unknown; and 1 if nothing is known.

    Args:
        weights: `(partitions,) float64`: the weights.
        starts: `(topics + 1,)` integers: the first partition of each topic, and the number of all partitions.
    """
    is_unknown = np.isnan(weights)
    if not is_unknown.any():
        return weights
    filled = weights.copy()
    known = weights[~is_unknown]
    median = float(np.median(known)) if known.size else 1.0
    unknown_before = np.concatenate([[0], np.cumsum(is_unknown)])
    starts = np.asarray(starts)
    unknown = unknown_before[starts[1:]] - unknown_before[starts[:-1]]
    filled[is_unknown] = median
    for number in np.flatnonzero((unknown > 0) & (unknown < np.diff(starts))).tolist():
        of_topic = slice(starts[number], starts[number + 1])
        is_missing = is_unknown[of_topic]
        filled[of_topic][is_missing] = np.median(weights[of_topic][~is_missing])
    return filled


def _with_weights(name: str, topic: Topic, weights: object) -> Topic:
    try:
        array = np.asarray(() if weights is None else weights, np.float64)
        if not np.isnan(array).all():
            array = fill_unknown(array, [0, array.size])
            return Topic(topic.partitions, topic.racks, array)
    except (InvalidInputError, TypeError, ValueError) as error:
        raise InvalidInputError(f"topic {name!r}: {error}") from error
    return Topic(topic.partitions, topic.racks)
