"""Conditions of a settled group, with stub members; and calls that are rejected."""

from typing import Any

import pytest

from groupwright.testing.groups import (
    Assigned,
    Failed,
    LoadedGroup,
    LoadedGroupError,
    Member,
    Rebalanced,
    ThreadMember,
)

T = "t"


class StubMember(Member):
    """A member without a consumer."""

    ended = False

    @property
    def has_ended(self) -> bool:
        return self.ended

    def request_leave(self) -> None: ...

    def leave(self) -> None: ...

    def _pause_polling(self) -> None: ...

    def _resume_polling(self) -> None: ...


def group_of(**owned: tuple[int, ...]) -> LoadedGroup:
    """Return a group with four partitions, whose members have settled in generation 2."""
    group = LoadedGroup("127.0.0.1:1", {T: 4}, messages_per_second=0, patience=0.1)
    group._has_begun = True  # without a broker
    for name, partitions in owned.items():
        group.members.append(StubMember(name, group.ledger))
        rebalance(group, name, 2, *partitions)
    return group


def rebalance(group: LoadedGroup, name: str, generation: int, *partitions: int) -> None:
    keys = tuple((T, number) for number in partitions)
    group.ledger.record(name, Assigned(1, keys), Rebalanced(1, generation, 0.1, "completed", keys))


def test_one_owner_for_each_partition_in_one_generation_is_settled() -> None:
    group = group_of(a=(0, 1), b=(2, 3), c=())
    assert group.unsettled() == ""
    group.wait_until_settled()


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ((0, 1), (3,), "t [2] is owned by no member"),
        ((0, 1, 2), (2, 3), "t [2] is owned by a and b"),
        ((0, 1), (1, 3), "t [1] is owned by a and b, t [2] is owned by no member"),
    ],
    ids=["no owner", "two owners", "both"],
)
def test_a_partition_with_no_owner_or_two_is_not_settled(
    a: tuple[int, ...], b: tuple[int, ...], words: str
) -> None:
    group = group_of(a=a, b=b)
    assert group.unsettled() == words
    with pytest.raises(LoadedGroupError, match=r"the group has not settled within 0\.1 s: "):
        group.wait_until_settled()


def test_a_time_out_names_the_errors_of_members() -> None:
    group = group_of(a=(0, 1))
    group._all_members.extend(group.members)
    group.ledger.record("a", Failed(2, "the assignor 'mine' failed"))
    with pytest.raises(LoadedGroupError, match=r"no member; members' polls .*: \{'a': .* 'mine' failed"):
        group.wait_until_settled()
    with pytest.raises(LoadedGroupError, match=r"^timed out after 0\.1 s: rain; members' polls .* failed"):
        group.wait_until(lambda: False, "rain")


def test_members_in_two_generations_are_not_settled() -> None:
    """Together they seem to own everything once, but one of them is behind."""
    group = group_of(a=(0, 1), b=(2, 3))
    rebalance(group, "a", 3)
    assert group.unsettled() == "the members' generations are 3 of a, 2 of b"
    rebalance(group, "b", 3)
    assert group.unsettled() == ""


def test_a_member_that_has_not_joined_yet_is_waited_for() -> None:
    group = group_of(a=(0, 1, 2, 3))
    group.members.append(StubMember("b", group.ledger))
    assert group.unsettled() == "on_assign has not been called in b"


def test_members_that_are_paused_or_have_ended_do_not_count() -> None:
    group = group_of(a=(0, 1, 2, 3), b=(0, 1), c=(2,))
    first, second, third = group.members
    assert isinstance(third, StubMember)
    second.pause_polling()
    third.ended = True
    assert group.unsettled() == ""
    first.pause_polling()
    assert group.unsettled() == "no member is active"
    second.resume_polling()
    assert group.unsettled() == "t [2] is owned by no member, t [3] is owned by no member"


def test_a_member_is_active_again_once_all_its_faults_have_ended() -> None:
    (member,) = group_of(a=(0, 1, 2, 3)).members

    member.pause_polling()
    member._fault("suspend", begins=True)
    member.resume_polling()
    member.resume_polling()
    assert not member.is_active

    member._fault("suspend", begins=False)
    assert member.is_active


def test_a_member_that_ends_by_itself_ends_every_wait() -> None:
    group = group_of(a=(0, 1, 2, 3))
    member = group.members[0]
    assert isinstance(member, StubMember)
    member.ended = True
    with pytest.raises(LoadedGroupError, match="a ended by itself"):
        group.wait_until(lambda: True, "anything")


class FailingConsumer:
    """A consumer whose `subscribe` raises."""

    def __init__(self, _: dict[str, Any]) -> None: ...

    def subscribe(self, *_: object, **__: object) -> None:
        raise ValueError("no topics")


def test_calls_outside_of_the_block_are_rejected() -> None:
    group = LoadedGroup("127.0.0.1:1", {T: 4}, messages_per_second=0, patience=0.1)
    for call, name in ((group.start_member, "start_member"), (group.finish, "finish")):
        with pytest.raises(LoadedGroupError, match=rf"has not begun: call {name} in `with LoadedGroup"):
            call()
    group.close()
    with pytest.raises(LoadedGroupError, match="the group's block has ended: call finish in"):
        group.finish()
    with pytest.raises(LoadedGroupError, match="has begun before: create another LoadedGroup"):
        group.__enter__()


def test_a_member_leaves_once() -> None:
    group = group_of(a=(0, 1), b=(2, 3))
    first, second = group.members
    assert isinstance(first, StubMember)
    first.ended = True
    group.leave(first)
    with pytest.raises(LoadedGroupError, match="a has left or was killed before"):
        group.leave(second, first)
    assert group.members == [second]


def test_impossible_members_and_faults_are_rejected() -> None:
    group = group_of(a=(0,))
    with pytest.raises(LoadedGroupError, match="a is a thread, which cannot be killed"):
        group.kill(group.members[0])
    with pytest.raises(LoadedGroupError, match="only members that are processes take a reference"):
        group.start_member(consumer="some:thing")
    with pytest.raises(LoadedGroupError, match="a member's process cannot import"):
        group.start_member(consumer=lambda _: None, process=True)
    with pytest.raises(LoadedGroupError, match="the configuration of member-1 is not serializable as JSON"):
        group.start_member(config={"partition.assignment.strategy": object()}, process=True)
    with pytest.raises(ValueError, match="no topics"):
        ThreadMember(FailingConsumer, {"client.id": "m"}, [T])
    group.close()
