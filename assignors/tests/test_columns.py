"""The partitions of many members in columns equal their lists."""

import pickle
import random
from collections.abc import Callable

import numpy as np

from groupwright.assignors import PartitionsByTopic
from groupwright.assignors._model.columns import PartitionColumns
from groupwright.assignors._model.partitions import NO_PARTITIONS


def random_lists(rng: random.Random, count: int) -> list[PartitionsByTopic]:
    return [
        PartitionsByTopic(
            {
                name: rng.sample(range(20), rng.randint(0, 4))
                for name in rng.sample("abcdefg\uffee\U0001f600", rng.randint(0, 5))
            }
        )
        for _ in range(count)
    ]


def test_columns_split_into_the_lists_they_were_made_of(seeded: Callable[[int], random.Random]) -> None:
    rng = seeded(1)
    for count in (0, 1, 2, 30):
        lists = random_lists(rng, count)
        columns = PartitionColumns.of(lists)
        assert len(columns) == count
        assert columns.split() == lists
        assert columns.counts.tolist() == [listed.count for listed in lists]


def test_lists_of_one_group_in_their_order_are_its_columns(seeded: Callable[[int], random.Random]) -> None:
    columns = PartitionColumns.of([*random_lists(seeded(2), 30), NO_PARTITIONS])
    assert PartitionColumns.of(columns.split()) is columns


def test_lists_of_several_origins_are_joined_in_any_order(seeded: Callable[[int], random.Random]) -> None:
    """A group's members may come from JoinGroup's bytes, or be made by hand, or both."""
    rng = seeded(3)
    for _ in range(50):
        lists = [
            *PartitionColumns.of(random_lists(rng, 9)).split(),
            *random_lists(rng, 9),
            *PartitionColumns.of(random_lists(rng, 9)).split(),
            NO_PARTITIONS,
        ]
        chosen = rng.choices(lists, k=25)
        assert PartitionColumns.of(chosen).split() == chosen


def test_a_partition_is_a_number_by_topic_if_the_topic_is_asked_for() -> None:
    columns = PartitionColumns.of(
        [PartitionsByTopic({"a": [-1, 3], "b": [2]}), PartitionsByTopic({"c": [0, 7]})]
    )
    assert columns.keys(["c", "a"]).tolist() == [2**32 + 3, 0, 7]


def test_what_is_cut_out_leaves_the_others_behind_when_it_is_pickled() -> None:
    lists = [PartitionsByTopic({"a": range(9)}), PartitionsByTopic({"b": range(100_000)})]
    small, _ = PartitionColumns.of(lists).split()
    pickled = pickle.dumps(small)
    assert len(pickled) < 2_000
    assert pickle.loads(pickled) == lists[0]  # noqa: S301 - made above
    assert not hasattr(small, "no_such_attribute")


def test_columns_cannot_be_written_to() -> None:
    columns = PartitionColumns.of([PartitionsByTopic({"a": [1]})])
    assert not any(
        column.flags.writeable
        for column in (columns.list_starts, columns.run_topics, columns.run_starts, columns.partitions)
    )
    assert columns.take(np.array([1, 0])).split() == [NO_PARTITIONS, PartitionsByTopic({"a": [1]})]
