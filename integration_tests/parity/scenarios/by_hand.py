"""Manual assignment, in every form, with and without a group."""

import time
from typing import Any

from confluent_kafka import TopicPartition

from integration_tests.parity.client import Client, record
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario


def _consumer(lab: Lab, **settings: Any) -> Client:
    return lab.consumer(**{"enable_auto_commit": False, **settings})


def _commit(lab: Lab, topic: str, *offsets: int) -> None:
    """Commit offsets for the scenario's group."""
    lab.other_member().commit(offsets=partitions(topic, *offsets), asynchronous=False)


@scenario()
def by_hand_at_every_kind_of_offset(lab: Lab) -> None:
    """A partition starts at a number, the beginning, the end, or where the group committed."""
    topic = lab.topic(5, messages=5)
    _commit(lab, topic, 1, 1, 1, 1, 1)
    consumer = _consumer(lab)
    consumer.assign(partitions(topic, 3, -2, -1, -1000, -1001))
    consumer.read(2 + 5 + 4 + 4)
    lab.produce(topic, 1, 2)
    consumer.until(lambda: len(consumer.messages) > 15, "a message after the end")
    consumer.close()


@scenario()
def by_hand_without_a_committed_offset(lab: Lab) -> None:
    """The stored offset is that of auto.offset.reset where none was committed."""
    topic = lab.topic(2, messages=5)
    consumer = _consumer(lab)
    consumer.assign(partitions(topic, -1000, -1001))
    consumer.read(10)
    consumer.close()


@scenario()
def by_hand_out_of_range(lab: Lab) -> None:
    """An offset beyond the end is reset as auto.offset.reset says."""
    topic = lab.topic(messages=5)
    consumer = _consumer(lab)
    consumer.assign(partitions(topic, 1000))
    consumer.read(5)
    consumer.close()


@scenario()
def by_hand_out_of_range_and_an_error(lab: Lab) -> None:
    """With auto.offset.reset=error the application gets an error."""
    topic = lab.topic(messages=5)
    consumer = _consumer(lab, auto_offset_reset="error")
    consumer.assign(partitions(topic, 1000))
    consumer.until(lambda: consumer.errors, "an error")
    consumer.idle(0.5)
    consumer.close()


@scenario()
def by_hand_without_group_id(lab: Lab) -> None:
    """A consumer needs a group.id."""
    lab.attempt("make a consumer", lambda: lab.consumer(group_id=...).close())


@scenario()
def by_hand_replaces_what_was_assigned(lab: Lab) -> None:
    """`assign` says what is assigned from then on."""
    topic = lab.topic(3, messages=5)
    consumer = _consumer(lab)
    consumer.assign(partitions(topic, 0, 0))
    consumer.read(10)
    consumer.assign([TopicPartition(topic, 1, 3), TopicPartition(topic, 2, 3)])
    consumer.read(4)
    consumer.idle(0.3)
    consumer.assign([])
    consumer.attempt("assignment")
    consumer.idle(0.3)
    consumer.assign(partitions(topic, 4))
    consumer.read(1)
    consumer.unassign()
    consumer.attempt("assignment")
    consumer.attempt("position", partitions(topic, -1001))
    consumer.unassign()
    consumer.close()


@scenario()
def by_hand_one_by_one(lab: Lab) -> None:
    """Partitions are added and taken out."""
    topic = lab.topic(3, messages=5)
    consumer = _consumer(lab)
    consumer.attempt("incremental_assign", partitions(topic, 0))
    consumer.read(5)
    consumer.attempt("incremental_assign", [TopicPartition(topic, 1, 2), TopicPartition(topic, 2, 4)])
    consumer.read(4)
    consumer.attempt("incremental_unassign", [TopicPartition(topic, 0), TopicPartition(topic, 2)])
    lab.produce(topic, 2, 0)
    lab.produce(topic, 2, 1)
    consumer.read(2)
    consumer.idle(0.3)
    consumer.attempt("incremental_assign", [])
    consumer.attempt("incremental_unassign", [])
    consumer.close()


@scenario()
def by_hand_twice_the_same(lab: Lab) -> None:
    """A partition that is named twice, or is assigned already."""
    topic = lab.topic(2, messages=5)
    consumer = _consumer(lab)
    consumer.attempt("assign", [TopicPartition(topic, 0, 1), TopicPartition(topic, 0, 3)])
    consumer.attempt("assign", partitions(topic, 0))
    consumer.read(5)
    consumer.attempt("incremental_assign", partitions(topic, 2))
    consumer.attempt("incremental_assign", [TopicPartition(topic, 1, 3), TopicPartition(topic, 1, 3)])
    consumer.attempt("incremental_unassign", [TopicPartition(topic, 1)])
    consumer.idle(0.3)
    consumer.close()


@scenario()
def by_hand_a_topic_that_does_not_exist(lab: Lab) -> None:
    """The application gets the error, and the other partitions are read."""
    topic = lab.topic(messages=5)
    consumer = _consumer(lab)
    consumer.assign([TopicPartition(topic, 0, 0), TopicPartition(lab.name_topic(), 0, 0)])
    consumer.read(5)
    consumer.until(lambda: consumer.errors, "an error")
    consumer.close()


@scenario()
def by_hand_a_partition_that_does_not_exist(lab: Lab) -> None:
    """As above."""
    topic = lab.topic(messages=5)
    consumer = _consumer(lab)
    consumer.assign([TopicPartition(topic, 0, 0), TopicPartition(topic, 9, 0)])
    consumer.read(5)
    consumer.until(lambda: consumer.errors, "an error")
    consumer.close()


@scenario()
def by_hand_a_negative_partition(lab: Lab) -> None:
    """A partition's number is not negative."""
    topic = lab.topic(messages=5)
    consumer = _consumer(lab)
    consumer.attempt("assign", [TopicPartition(topic, -1)])
    consumer.attempt("assign", [TopicPartition(topic, -7, 0)])
    consumer.close()


@scenario()
def by_hand_and_committed(lab: Lab) -> None:
    """Offsets can be committed for the group without being its member."""
    topic = lab.topic(2, messages=5)
    consumer = _consumer(lab)
    consumer.assign(partitions(topic, 0, 0))
    consumer.read(10)
    consumer.commit(asynchronous=False)
    consumer.attempt("committed", partitions(topic, -1001, -1001), timeout=10)
    consumer.close()
    again = _consumer(lab)
    again.assign(partitions(topic, -1001, -1000))
    lab.produce(topic, 2, 1)
    again.read(2)
    again.close()


@scenario()
def by_hand_assigned_again(lab: Lab) -> None:
    """With auto commit, a partition that is assigned again goes on where it was."""
    topic = lab.topic(messages=20)
    consumer = lab.consumer()
    consumer.assign([TopicPartition(topic, 0)])
    consumer.read(10)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.read(10)
    consumer.idle(0.3)
    consumer.close()


@scenario()
def by_hand_unassigned_and_assigned_again(lab: Lab) -> None:
    """As above."""
    topic = lab.topic(messages=20)
    consumer = lab.consumer()
    consumer.assign([TopicPartition(topic, 0)])
    consumer.read(10)
    consumer.unassign()
    consumer.assign([TopicPartition(topic, 0)])
    consumer.read(10)
    consumer.idle(0.3)
    consumer.close()


@scenario()
def by_hand_taken_out_and_added_again(lab: Lab) -> None:
    """As above."""
    topic = lab.topic(messages=20)
    consumer = lab.consumer()
    consumer.incremental_assign([TopicPartition(topic, 0)])
    consumer.read(10)
    consumer.incremental_unassign([TopicPartition(topic, 0)])
    consumer.incremental_assign([TopicPartition(topic, 0)])
    consumer.read(10)
    consumer.idle(0.3)
    consumer.close()


@scenario()
def by_hand_a_pause_before_and_over_assignments(lab: Lab) -> None:
    """A pause of a partition that is not assigned, and one over `unassign` and `assign`."""
    topic, other = lab.topic(messages=6), lab.topic(messages=6)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.attempt("pause", [TopicPartition(topic, 0)])
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.read(6)
    consumer.unassign()
    consumer.attempt("pause", [TopicPartition(topic, 0)])
    consumer.assign([TopicPartition(topic, 0, 3), TopicPartition(other, 0, 0)])
    consumer.read(6)
    consumer.idle(0.5)
    consumer.unassign()
    consumer.assign([TopicPartition(topic, 0, 4)])
    consumer.idle(0.5)
    consumer.resume([TopicPartition(topic, 0)])
    consumer.read(2)
    consumer.close()


@scenario()
def by_hand_pause_and_seek(lab: Lab) -> None:
    """Both work as in a group."""
    topic = lab.topic(2, messages=5)
    consumer = _consumer(lab)
    consumer.assign(partitions(topic, 0, 0))
    consumer.read(10)
    consumer.pause([TopicPartition(topic, 0)])
    consumer.seek(TopicPartition(topic, 0, 3))
    consumer.seek(TopicPartition(topic, 1, 3))
    consumer.read(2)
    consumer.idle(0.3)
    consumer.resume([TopicPartition(topic, 0)])
    consumer.read(2)
    consumer.close()


@scenario()
def by_hand_then_subscribed(lab: Lab) -> None:
    """A subscription takes the place of what was assigned by hand."""
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    consumer = _consumer(lab)
    consumer.assign(partitions(one, 0))
    consumer.read(5)
    consumer.subscribe([two], **callbacks())
    consumer.until(lambda: any(m.topic() == two for m in consumer.messages), "the subscribed topic is read")
    consumer.until_assigned(1)
    consumer.close()


@scenario()
def by_hand_committed_and_then_assigned_by_the_group(lab: Lab) -> None:
    """The last commit of what the group replaces contains what is committed already."""
    topic = lab.topic(messages=20)
    consumer = lab.consumer(
        enable_auto_commit=True, auto_commit_interval_ms=60_000, on_commit=lambda *_: None
    )
    consumer.assign([TopicPartition(topic, 0, 5)])
    consumer.read(15)
    assigned: list[TopicPartition] = []
    consumer.commit(asynchronous=False)
    consumer.subscribe([topic], on_assign=lambda _, given: assigned.extend(given))
    consumer.until(lambda: bool(assigned), "the group has assigned it")
    consumer.close()


@scenario()
def by_hand_and_then_assigned_in_on_assign(lab: Lab) -> None:
    """What on_assign replaces by its own `assign` is committed once."""
    topic = lab.topic(messages=20)
    consumer = lab.consumer(
        enable_auto_commit=True, auto_commit_interval_ms=60_000, on_commit=lambda *_: None
    )
    consumer.assign([TopicPartition(topic, 0, 5)])
    consumer.read(15)
    assigned: list[TopicPartition] = []

    def on_assign(_: object, given: list[TopicPartition]) -> None:
        consumer.assign(given)
        assigned.extend(given)

    consumer.subscribe([topic], on_assign=on_assign)
    consumer.until(lambda: bool(assigned), "the group has assigned it")
    consumer.close()


@scenario()
def subscribed_then_by_hand(lab: Lab) -> None:
    """After unsubscribe, partitions can be assigned by hand."""
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    consumer = _consumer(lab)
    consumer.subscribe([one], **callbacks())
    consumer.read(5)
    consumer.unsubscribe()
    consumer.until_assigned(0)
    consumer.assign(partitions(two, 2))
    consumer.read(3)
    consumer.close()


@scenario()
def by_hand_committed_after_leaving(lab: Lab) -> None:
    """After unsubscribe, offsets of partitions that were assigned by hand can be committed."""
    topic = lab.topic(1, messages=20)
    consumer = lab.consumer(enable_auto_commit=False, partition_assignment_strategy="range")
    consumer.subscribe([topic])
    consumer.read(5)
    consumer.unsubscribe()
    consumer.idle(0.3)
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.read(10)
    consumer.attempt("commit", asynchronous=False)
    consumer.attempt("commit", offsets=[TopicPartition(topic, 1, 3)], asynchronous=False)
    lab.note(f"stored {lab.stored(topic)}")
    consumer.close()


@scenario()
def by_hand_after_unsubscribe_before_a_poll_has_brought_the_assignment(lab: Lab) -> None:
    """The group has assigned in the background, and the application unsubscribes."""
    topic = lab.topic(1, messages=20)
    consumer = lab.consumer(enable_auto_commit=False, partition_assignment_strategy="range")
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.read(10)
    consumer.subscribe([topic], **callbacks())
    lab.wait(lab.group_is_stable, "the member has joined")
    consumer.unsubscribe()
    consumer.idle(0.5)
    consumer.attempt("assignment")
    consumer.attempt("commit", offsets=[TopicPartition(topic, 0, 10)], asynchronous=False)
    lab.note(f"stored {lab.stored(topic)}")
    consumer.close()


@scenario()
def by_hand_while_subscribed(lab: Lab) -> None:
    """In an eager group `assign` outside a callback replaces what the group assigned."""
    topic = lab.topic(2, messages=5)
    consumer = _consumer(lab, partition_assignment_strategy="range")
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    consumer.attempt("assign", [TopicPartition(topic, 1, 3)])
    consumer.read(2)
    consumer.attempt("assignment")
    consumer.close()


@scenario()
def what_was_read_by_hand_is_committed_when_the_group_assigns(lab: Lab) -> None:
    """The group assigns the same partition, which continues after what was read."""
    topic = lab.topic(messages=5)
    committed: list[int] = []
    consumer = lab.consumer(
        auto_commit_interval_ms=60_000,
        partition_assignment_strategy="range",
        on_commit=lambda _, found: committed.append(len(found)),
    )
    consumer.assign(partitions(topic, 2))
    consumer.read(3)
    assigned: list[int] = []
    consumer.subscribe([topic], on_assign=lambda _, found: assigned.append(len(found)), on_revoke=record)
    consumer.until(lambda: assigned and committed, "assigned and committed")
    lab.produce(topic, 2)
    consumer.read(2)
    lab.note(f"stored {lab.stored(topic)}")
    consumer.close()


@scenario()
def by_hand_and_a_commit_under_way_when_the_group_assigns(lab: Lab) -> None:
    """The group assigns the same partition, which continues where that commit says."""
    topic = lab.topic(messages=5)
    _commit(lab, topic, 1)
    consumer = _consumer(lab, partition_assignment_strategy="range")
    consumer.assign(partitions(topic, 0))
    consumer.read(5)
    consumer.subscribe([topic])
    lab.wait(lab.group_is_stable, "the group is stable")
    lab.produce(topic, 2)
    time.sleep(0.3)  # the member gets its assignment
    consumer.commit(asynchronous=True)
    consumer.read(2)
    consumer.close()


@scenario()
def a_commit_of_nothing_names_what_the_group_has_assigned(lab: Lab) -> None:
    """It replaces what was assigned by hand, which a commit without an offset named as well."""
    topic, other = lab.topic(messages=5), lab.topic(messages=5)
    consumer = lab.consumer(
        enable_auto_commit=False,
        enable_auto_offset_store=False,
        partition_assignment_strategy="range",
        on_commit=record,
    )
    consumer.assign(partitions(other, 0))
    consumer.read(5)
    consumer.subscribe(
        [topic], on_assign=record, on_revoke=lambda client, _: client.attempt("commit", asynchronous=True)
    )
    consumer.read(5)
    consumer.attempt("assignment")
    consumer.close()


@scenario()
def what_was_read_by_hand_is_committed_when_a_member_closes(lab: Lab) -> None:
    """A member that has assigned a partition of another topic closes."""
    _close_after_reading_by_hand(lab, "range", "assign")


@scenario()
def what_was_read_by_hand_is_committed_when_a_cooperative_member_closes(lab: Lab) -> None:
    """It has added a partition that the group did not assign to it."""
    _close_after_reading_by_hand(lab, "cooperative-sticky", "incremental_assign")


def _close_after_reading_by_hand(lab: Lab, strategy: str, assign: str) -> None:
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    consumer = lab.consumer(
        auto_commit_interval_ms=60_000, partition_assignment_strategy=strategy, on_commit=record
    )
    consumer.subscribe([one], **callbacks())
    consumer.read(5)
    getattr(consumer, assign)(partitions(two, 1))
    consumer.read(4)
    consumer.close()
    lab.note(f"stored {lab.stored(one)} {lab.stored(two)}")


@scenario()
def an_eager_revocation_ends_what_was_assigned_by_hand(lab: Lab) -> None:
    """A second member joins, and the first reads its share alone from then on."""
    one, two = lab.topic(2, messages=5), lab.topic(messages=5)
    consumer = lab.consumer(
        auto_commit_interval_ms=60_000, partition_assignment_strategy="range", client_id="a", on_commit=record
    )
    assigned: list[int] = []
    consumer.subscribe([one], on_assign=lambda _, found: assigned.append(len(found)), on_revoke=record)
    consumer.read(10)
    consumer.assign(partitions(two, 1))
    consumer.read(4)
    other = lab.consumer(partition_assignment_strategy="range", client_id="b")
    other.subscribe([one])
    lab.together(consumer, other, until=lambda: assigned == [2, 1], what="the partitions are shared")
    lab.produce(two, 2)
    lab.produce(one, 1)
    consumer.read(1)
    consumer.attempt("assignment")
    consumer.close()
    other.close()
    lab.note(f"stored {lab.stored(one, partitions=2)} {lab.stored(two)}")


@scenario()
def by_hand_unassigned_while_subscribed(lab: Lab) -> None:
    """In an eager group `unassign` outside a callback stops delivery."""
    topic = lab.topic(2, messages=5)
    consumer = _consumer(lab, partition_assignment_strategy="range")
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    consumer.attempt("unassign")
    lab.produce(topic, 2)
    consumer.idle(0.5)
    consumer.close()


@scenario()
def by_hand_while_subscribed_in_a_cooperative_group(lab: Lab) -> None:
    """In a cooperative group `assign` is refused."""
    topic = lab.topic(2, messages=5)
    consumer = _consumer(lab, partition_assignment_strategy="cooperative-sticky")
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    consumer.attempt("assign", [TopicPartition(topic, 1, 3)])
    consumer.attempt("unassign")
    lab.produce(topic, 2)
    consumer.read(2)
    consumer.attempt("assignment")
    consumer.close()


@scenario()
def incremental_calls_while_subscribed_in_an_eager_group(lab: Lab) -> None:
    """In an eager group the incremental calls are refused."""
    topic = lab.topic(2, messages=5)
    consumer = _consumer(lab, partition_assignment_strategy="range")
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    consumer.attempt("incremental_unassign", [TopicPartition(topic, 1)])
    consumer.attempt("incremental_assign", [TopicPartition(topic, 1, 3)])
    lab.produce(topic, 2)
    consumer.read(2)
    consumer.attempt("assignment")
    consumer.close()


@scenario()
def incremental_calls_while_subscribed_in_a_cooperative_group(lab: Lab) -> None:
    """In a cooperative group partitions may be taken out and added outside a callback."""
    topic = lab.topic(2, messages=5)
    consumer = _consumer(lab, partition_assignment_strategy="cooperative-sticky")
    consumer.subscribe([topic], on_assign=record, on_revoke=record)
    consumer.read(10)
    consumer.attempt("incremental_unassign", [TopicPartition(topic, 1)])
    consumer.attempt("incremental_assign", [TopicPartition(topic, 1, 3)])
    consumer.read(2)
    consumer.close()


@scenario()
def a_refused_incremental_unassign_commits_nothing(lab: Lab) -> None:
    """One of the partitions is not assigned, so all stay assigned."""
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    consumer = _consumer(lab, enable_auto_commit=True, auto_commit_interval_ms=60_000, on_commit=record)
    consumer.incremental_assign(partitions(one, 0))
    consumer.read(5)
    consumer.attempt("incremental_unassign", [TopicPartition(one, 0), TopicPartition(two, 0)])
    consumer.idle(0.5)
    consumer.attempt("incremental_unassign", partitions(one, -1001))
    consumer.idle(0.5)
    consumer.close()


@scenario()
def a_cooperative_revocation_of_what_the_application_has_unassigned(lab: Lab) -> None:
    """A member has unassigned a partition, and the group gives that partition to another member."""
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    consumer = _consumer(lab, partition_assignment_strategy="cooperative-sticky")
    consumer.subscribe([one, two], **callbacks())
    consumer.read(10)
    consumer.incremental_unassign(partitions(two, -1001))
    other = lab.other_member(partition_assignment_strategy="cooperative-sticky")
    other.subscribe([two])
    lab.together(consumer, other, until=lambda: consumer.revoked, what="a revocation")
    lab.produce(one, 2)
    consumer.idle(1.0)
    lab.note(f"{len(consumer.messages)} messages")


@scenario()
def a_cooperative_assignment_of_what_the_application_has_assigned(lab: Lab) -> None:
    """A member has assigned a partition itself, and then subscribes to its topic."""
    one, two = lab.topic(messages=5), lab.topic()
    consumer = _consumer(lab, partition_assignment_strategy="cooperative-sticky")
    consumer.subscribe([one], **callbacks())
    consumer.read(5)
    consumer.incremental_assign(partitions(two, 0))
    consumer.subscribe([one, two], **callbacks())
    consumer.idle(2.0)
    lab.produce(one, 2)
    consumer.idle(1.0)
    lab.note(f"{len(consumer.messages)} messages")


@scenario()
def by_hand_beside_a_member(lab: Lab) -> None:
    """Manual assignments are read whatever the group does; an active group rejects their commits."""
    topic = lab.topic(2, messages=5)
    member = lab.other_member(enable_auto_commit=False)
    member.subscribe([topic])
    member.read(10)
    consumer = _consumer(lab)
    consumer.assign(partitions(topic, 0, 3))
    consumer.read(7)
    consumer.attempt("commit", asynchronous=False)
    consumer.close()
    member.commit(asynchronous=False)


@scenario()
def by_hand_an_offset_before_the_log_s_start(lab: Lab) -> None:
    """Records that were deleted are passed over."""
    topic = lab.topic(messages=10)
    lab.delete_records(topic, before=6)
    consumer = _consumer(lab)
    consumer.assign(partitions(topic, 2))
    consumer.read(4)
    consumer.close()


@scenario()
def by_hand_a_topic_grows(lab: Lab) -> None:
    """A new partition can be assigned at once."""
    topic = lab.topic(1, messages=5)
    consumer = _consumer(lab, topic_metadata_refresh_interval_ms=500)
    consumer.assign(partitions(topic, 0))
    consumer.read(5)
    lab.grow(topic, 2)
    lab.produce(topic, 3, 1)
    consumer.incremental_assign([TopicPartition(topic, 1, 0)])
    consumer.until(lambda: len(consumer.messages) == 8, "the new partition is read")
    consumer.close()
