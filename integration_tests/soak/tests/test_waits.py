"""Waiting times of messages, by fault."""

from groupwright.testing._groups.offsets import Span
from groupwright.testing.groups import Consumed, Produced
from integration_tests.soak.waits import longest_between, waits


def produced(time: float, start: int, stop: int, partition: int = 0) -> Produced:
    return Produced(time, (Span("t", partition, start, stop),))


def consumed(time: float, start: int, stop: int, partition: int = 0) -> Consumed:
    return Consumed(time, time, (Span("t", partition, start, stop),))


def test_a_message_waits_from_its_acknowledgement_or_from_the_former_delivery() -> None:
    histories = {"a": [consumed(11.5, 0, 5), consumed(12, 5, 8)], "b": [consumed(20, 8, 10)]}

    found = waits(histories, [produced(10, 0, 6), produced(18, 8, 10), produced(11, 6, 8)])

    assert found == [(11.5, 1.5), (12, 0.5), (20, 2)]


def test_a_redelivery_and_other_partitions_do_not_count() -> None:
    histories = {"a": [consumed(11, 0, 5), consumed(30, 0, 5), consumed(31, 3, 6), consumed(31, 0, 1, 1)]}

    assert waits(histories, [produced(10, 0, 6), produced(31, 0, 1, 1)]) == [(11, 1), (31, 20), (31, 0)]


def test_a_wait_belongs_to_the_fault_after_which_it_ends() -> None:
    assert longest_between([(1, 9), (4, 2), (5, 3), (10, 1)], [2, 6, 8]) == [3, 0, 1]
