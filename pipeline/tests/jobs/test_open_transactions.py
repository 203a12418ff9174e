"""Warnings of records behind open transactions. Pure."""

from groupwright.pipeline._jobs.open_transactions import (
    HeldPartition,
    TransactionMonitor,
    held_partitions,
    warning,
)

HELD = HeldPartition("__consumer_offsets", 3, 44, 122)


def test_a_partition_is_held_if_its_last_stable_offset_is_below_its_end() -> None:
    stable = {"__consumer_offsets": {3: 44, 4: 7, 5: 9}}
    assert held_partitions(stable, {"__consumer_offsets": {3: 166, 4: 7}}) == [HELD]


def test_the_warning_counts_the_records_and_names_the_partition() -> None:
    text = warning([HELD, HeldPartition("events", 0, 5, 1)])
    assert text.startswith("123 records are behind open transactions")
    assert "(__consumer_offsets-3: 122 from offset 44, events-0: 1 from offset 5)" in text


def test_a_stream_warns_of_what_does_not_advance_for_a_minute_and_every_ten() -> None:
    monitor = TransactionMonitor()
    advancing = HeldPartition("events", 0, 5, 1)
    assert list(monitor.update([HELD, advancing], 0)) == []
    assert list(monitor.update([HELD, HeldPartition("events", 0, 6, 1)], 61)) == [warning([HELD])]
    assert list(monitor.update([HELD], 600)) == []
    assert list(monitor.update([HELD], 661)) == [warning([HELD])]
    assert list(monitor.update([], 662)) == []
    assert list(monitor.update([HELD], 663)) == []
    assert list(monitor.update([HELD], 723)) == [warning([HELD])]
