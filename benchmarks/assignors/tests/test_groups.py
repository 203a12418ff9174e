"""The generator's groups: what members own before an event is a fair start for everybody."""

import struct
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.assignors.cases import LOAD_AWARE, Case, Event, Subscriptions, full_matrix
from benchmarks.assignors.groups import RACKS, UNASSIGNED, make_group
from benchmarks.assignors.subscriptions import make_inputs
from groupwright.assignors import decode_subscription

CASE = Case(
    assignor="cooperative-sticky",
    subscriptions=Subscriptions.EQUAL,
    event=Event.STABLE,
    partitions=1_000,
    members=60,
    topics=40,
)


@pytest.mark.parametrize("subscriptions", Subscriptions)
@pytest.mark.parametrize("skewed", [False, True])
def test_loads_are_as_equal_as_the_subscriptions_allow(subscriptions: Subscriptions, skewed: bool) -> None:  # noqa: FBT001 - a parameter
    group = make_group(replace(CASE, subscriptions=subscriptions, skewed=skewed))
    topic = np.repeat(np.arange(group.sizes.size), group.sizes)
    loads = np.bincount(group.owners, minlength=CASE.members)

    assert group.sizes.sum() == CASE.partitions
    assert group.wants[group.owners, topic].all()
    for giver in range(CASE.members):
        given = np.unique(topic[group.owners == giver])
        takers = group.wants[:, given].any(axis=1)
        assert loads[giver] <= loads[takers].min() + 1


@pytest.mark.parametrize(
    ("event", "members", "owned", "partitions"),
    [
        (Event.FULL, 60, 0, 1_000),
        (Event.STABLE, 60, 1_000, 1_000),
        (Event.JOIN_ONE, 61, 1_000, 1_000),
        (Event.LEAVE_ONE, 59, 983, 1_000),
        (Event.LEAVE_MANY, 45, 750, 1_000),
        (Event.PARTITIONS_ADDED, 60, 1_000, 1_120),
    ],
)
def test_events_leave_what_they_say(event: Event, members: int, owned: int, partitions: int) -> None:
    group = make_group(replace(CASE, event=event))

    assert len(group.members) == members
    assert abs(int((group.owners != UNASSIGNED).sum()) - owned) <= 1
    assert abs(int(group.sizes.sum()) - partitions) <= CASE.topics


def test_members_say_what_they_own_in_bytes_that_can_be_read() -> None:
    group = make_group(replace(CASE, racks=True))
    inputs = make_inputs(group)
    read = {member.id: decode_subscription(member.data) for member in inputs.members}

    starts = np.cumsum(group.sizes) - group.sizes
    for number, member in enumerate(group.members):
        owned = [starts[group.topics.index(name)] + array for name, array in read[member].owned.items()]
        assert np.array_equal(np.concatenate(owned), np.flatnonzero(group.owners == number))
        assert read[member].rack == RACKS[number % len(RACKS)]
        assert read[member].generation > 0


def test_members_of_a_load_aware_group_send_what_they_own_and_their_capacity() -> None:
    group = make_group(replace(CASE, assignor=LOAD_AWARE))
    inputs = make_inputs(group)
    read = [decode_subscription(member.data) for member in inputs.members]

    assert sum(len(array) for each in read for array in each.owned.values()) == CASE.partitions
    assert {each.user_data for each in read} == {struct.pack(">hid", 1, 7, 1.0)}
    assert inputs.weights is not None
    assert [len(of_topic) for of_topic in inputs.weights] == group.sizes.tolist()


def test_every_cell_has_a_name_of_its_own() -> None:
    matrix = full_matrix()

    assert len({case.name for case in matrix}) == len(matrix)
