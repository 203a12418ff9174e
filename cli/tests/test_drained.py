"""Partitions without a message to read: when they are read, and what is remembered."""

from collections.abc import Collection

from groupwright.cli._cluster.drained import DrainedPartitions
from groupwright.cli._cluster.first_messages import FirstMessages, RecordKey
from groupwright.cli._cluster.lag import GroupLag
from groupwright.cli._cluster.model import GroupType
from integration_tests.harness.described_groups import group, lag_of, partition


class Log:
    """Offsets of partition 0 of `orders` that have a message, and what was read of it."""

    def __init__(self, *messages: int) -> None:
        self.messages = messages
        self.responds = True
        self.reads: list[int] = []
        self.drained = DrainedPartitions(self.read)

    def read(self, offsets: Collection[RecordKey], timeout: float) -> FirstMessages:
        assert timeout > 0
        self.reads += sorted(offset for _, _, offset in offsets)
        found = FirstMessages()
        for key in offsets if self.responds else ():
            if any(message >= key[2] for message in self.messages):
                found.times[key] = 1.0
            else:
                found.absent.add(key)
        return found

    def lags(self, *snapshots: tuple[int, int]) -> list[int | None]:
        """Return the lag of snapshots with a committed and a last stable offset."""
        return [self.mark(committed, stable).total for committed, stable in snapshots]

    def mark(self, committed: int, stable: int, type_: GroupType = GroupType.CLASSIC) -> GroupLag:
        of = lag_of(group(type_=type_), partition(committed=committed, stable=stable, end=stable))
        return self.drained.mark({"billing": of})["billing"]


def test_each_uncommitted_offset_is_read_once() -> None:
    log = Log(12)

    assert log.lags((10, 20), (10, 20), (10, 30), (10, 30)) == [10, 10, 20, 20]
    assert log.reads == [10]


def test_a_tail_without_messages_is_no_lag_and_read_further_as_it_grows() -> None:
    log = Log()

    assert log.lags((10, 20), (10, 20), (10, 30)) == [0, 0, 0]
    assert log.reads == [10, 20]
    log.messages = (35,)
    assert log.lags((10, 40), (10, 50)) == [30, 40]
    assert log.reads == [10, 20, 30]


def test_a_group_that_progresses_is_read_only_at_first() -> None:
    log = Log(100)

    assert log.lags((10, 20), (15, 25), (20, 30), (20, 30)) == [10, 10, 10, 10]
    assert log.reads == [10, 20]


def test_a_partition_that_does_not_respond_counts_and_is_read_again_later() -> None:
    log = Log()
    log.responds = False

    assert log.lags(*[(10, 20)] * 10) == [10] * 10
    assert log.reads == [10]
    log.responds = True
    assert log.lags(*[(10, 20)] * 2) == [0, 0]
    assert log.reads == [10, 10]


def test_the_least_lag_is_read_first_and_no_more_than_a_thousand_partitions() -> None:
    reads: list[set[RecordKey]] = []

    def read(offsets: Collection[RecordKey], timeout: float) -> FirstMessages:
        assert timeout > 0
        reads.append(set(offsets))
        return FirstMessages(absent=set(offsets))

    rows = [partition("orders", number, committed=number, end=1500, stable=1500) for number in range(1500)]
    drained = DrainedPartitions(read)
    for _ in range(3):
        marked = drained.mark({"billing": lag_of(group(), *rows)})["billing"]

    assert [len(each) for each in reads] == [1000, 500, 0]
    assert min(offset for _, _, offset in reads[0]) == 500
    assert marked.total == 0


def test_share_groups_have_no_committed_offset_and_are_not_read() -> None:
    log = Log()

    assert log.mark(10, 20, GroupType.SHARE).total == 10
    assert log.reads == []
