"""The quality check's own decoder agrees with Groupwright's, and rejects known faults."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks.assignors.cases import LOAD_AWARE, Case, Event, Subscriptions
from benchmarks.assignors.groups import Group, make_group
from benchmarks.assignors.inputs import MemberBytes, read_answer, read_inputs, write_answer, write_inputs
from benchmarks.assignors.quality import measure
from benchmarks.assignors.subscriptions import make_inputs
from groupwright.assignors import (
    JoinedMember,
    by_name,
    decode_assignment,
    encode_assignment,
    perform_assignment,
)

CASE = Case(
    assignor="range",
    subscriptions=Subscriptions.HALF,
    event=Event.LEAVE_ONE,
    partitions=400,
    members=12,
    topics=16,
)


def answer_of(group: Group) -> list[MemberBytes]:
    inputs = make_inputs(group)
    joined = [JoinedMember(member.id, None, member.data) for member in inputs.members]
    topics = {topic.name: len(topic.replicas) for topic in inputs.topics}
    return [
        MemberBytes(*assigned) for assigned in perform_assignment(by_name("range"), joined, topics).items()
    ]


def test_it_counts_what_the_decoder_finds() -> None:
    group = make_group(CASE)
    answer = answer_of(group)
    read = {member.id: decode_assignment(member.data).partitions for member in answer}
    starts = group.sizes.cumsum() - group.sizes
    kept = sum(
        int((group.owners[starts[group.topics.index(topic)] + array] == number).sum())
        for number, member in enumerate(group.members)
        for topic, array in read[member].items()
    )

    quality = measure(group, answer)

    assert quality.fault == ""
    assert quality.squares == sum(share.count**2 for share in read.values())
    assert quality.moved == (group.owners >= 0).sum() - kept


def test_equal_assignments_have_one_fingerprint_however_they_are_written() -> None:
    group = make_group(CASE)
    answer = answer_of(group)
    older = [MemberBytes(one.id, b"\0\1" + one.data[2:]) for one in reversed(answer)]

    assert measure(group, answer) == measure(group, older)


def without_a_member(answer: list[MemberBytes]) -> list[MemberBytes]:
    return answer[1:]


def with_a_stranger(answer: list[MemberBytes]) -> list[MemberBytes]:
    return [replace(answer[0], id="stranger"), *answer[1:]]


def with_one_twice(answer: list[MemberBytes]) -> list[MemberBytes]:
    return [replace(answer[0], data=answer[1].data), *answer[1:]]


def cut_off(answer: list[MemberBytes]) -> list[MemberBytes]:
    return [*answer[:-1], replace(answer[-1], data=answer[-1].data[:9])]


def beyond_the_end(answer: list[MemberBytes]) -> list[MemberBytes]:
    share = encode_assignment({"topic-000001": [400]})
    return [replace(answer[0], data=share), *answer[1:]]


@pytest.mark.parametrize(
    ("damage", "fault"),
    [
        (without_a_member, "without an owner"),
        (with_a_stranger, "strange members"),
        (with_one_twice, "two owners"),
        (cut_off, "cannot be read"),
        (beyond_the_end, "do not exist"),
    ],
)
def test_what_is_no_assignment_is_told(
    damage: Callable[[list[MemberBytes]], list[MemberBytes]], fault: str
) -> None:
    group = make_group(CASE)

    assert fault in measure(group, damage(answer_of(group))).fault


def test_the_busiest_member_is_compared_with_the_average() -> None:
    case = replace(CASE, assignor=LOAD_AWARE, subscriptions=Subscriptions.EQUAL, event=Event.FULL)
    group = make_group(case)
    heavy = replace(group, weights=np.where(np.arange(group.sizes.sum()) == 0, 10.0, 1.0))
    answer = answer_of(heavy)
    owner_of_first = decode_assignment(answer[0].data).partitions

    quality = measure(heavy, answer)

    assert 0 in owner_of_first[group.topics[0]]
    total = int(group.sizes.sum()) + 9
    assert quality.peak == pytest.approx((owner_of_first.count + 9) * len(group.members) / total)


def test_weights_survive_their_file(tmp_path: Path) -> None:
    inputs = make_inputs(make_group(replace(CASE, assignor=LOAD_AWARE)))
    write_inputs(tmp_path / "inputs", inputs)

    read = read_inputs(tmp_path / "inputs")

    assert inputs.weights is not None
    assert read.weights is not None
    assert [array.tolist() for array in read.weights] == [array.tolist() for array in inputs.weights]


def test_inputs_and_answers_survive_their_files(tmp_path: Path) -> None:
    inputs = make_inputs(make_group(replace(CASE, racks=True)))
    write_inputs(tmp_path / "inputs", inputs)
    write_answer(tmp_path / "answer", [(member.id, member.data) for member in inputs.members])

    read = read_inputs(tmp_path / "inputs")

    assert (read.assignor, read.racks, read.members) == (inputs.assignor, inputs.racks, inputs.members)
    assert [(topic.name, topic.replicas.tolist()) for topic in read.topics] == [
        (topic.name, topic.replicas.tolist()) for topic in inputs.topics
    ]
    assert read_answer(tmp_path / "answer") == inputs.members
