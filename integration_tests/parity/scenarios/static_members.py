"""Static members (`group.instance.id`): restarts, duplicates, and their remains."""

from typing import Any

from confluent_kafka import TopicPartition

from integration_tests.parity.client import Client, record
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario

COOPERATIVE = "cooperative-sticky"


def _static(lab: Lab, instance: str, **settings: Any) -> Client:
    return lab.consumer(group_instance_id=f"{lab.id}.{instance}", **settings)


def _restart(lab: Lab, strategy: str) -> None:
    topic = lab.topic(2)
    settings = {"partition_assignment_strategy": strategy}
    other = lab.other_member(group_instance_id=f"{lab.id}.b", **settings)
    first = _static(lab, "a", **settings)
    first.subscribe([topic], **callbacks())
    first.until_assigned(2)
    other.subscribe([topic], **callbacks())
    lab.together(
        first,
        other,
        until=lambda: len(first.raw.assignment()) == len(other.raw.assignment()) == 1,
        what="one and one are assigned",
    )
    before = [(p.topic, p.partition) for p in first.raw.assignment()]
    first.close()
    lab.note(f"members {lab.members()}")
    second = _static(lab, "a", **settings)
    second.subscribe([topic], **callbacks())
    lab.together(second, other, until=second.raw.assignment, what="it is back")
    lab.note(f"the same: {before == [(p.topic, p.partition) for p in second.raw.assignment()]}")
    lab.produce(topic, 2, before[0][1])
    second.read(2)
    second.close()


@scenario()
def a_static_member_restarts(lab: Lab) -> None:
    """It gets the same partitions, and the group does not rebalance."""
    _restart(lab, "range")


@scenario()
def a_static_member_restarts_alone(lab: Lab) -> None:
    """A group of one: the member comes back to what it had."""
    topic = lab.topic(2, messages=5)
    for round_ in range(3):
        consumer = _static(lab, "a")
        consumer.subscribe([topic], **callbacks())
        consumer.read(10 if not round_ else 2)
        consumer.close()
        lab.note(f"members {lab.members()}")
        lab.produce(topic, 2, 1)


@scenario()
def a_cooperative_static_member_restarts_alone(lab: Lab) -> None:
    """As above."""
    topic = lab.topic(2, messages=5)
    for round_ in range(3):
        consumer = _static(lab, "a", partition_assignment_strategy=COOPERATIVE)
        consumer.subscribe([topic], **callbacks())
        consumer.read(10 if not round_ else 2)
        consumer.close()
        lab.note(f"members {lab.members()}")
        lab.produce(topic, 2, 1)


@scenario()
def a_static_member_unsubscribes(lab: Lab) -> None:
    """It leaves the group, and comes back as a new member."""
    topic = lab.topic(2, messages=5)
    consumer = _static(lab, "a")
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    consumer.unsubscribe()
    consumer.until_assigned(0)
    lab.note_members(0)
    consumer.subscribe([topic], **callbacks())
    lab.produce(topic, 2)
    consumer.read(2)
    consumer.close()


@scenario()
def a_static_member_subscribes_to_other_topics(lab: Lab) -> None:
    """A changed subscription makes the group rebalance."""
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    consumer = _static(lab, "a")
    consumer.subscribe([one], **callbacks())
    consumer.read(5)
    consumer.subscribe([one, two], **callbacks())
    consumer.read(5)
    consumer.close()


@scenario()
def a_static_member_is_back_with_other_topics(lab: Lab) -> None:
    """A member that restarts with another subscription is assigned what it subscribes to."""
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    consumer = _static(lab, "a")
    consumer.subscribe([one], **callbacks())
    consumer.read(5)
    consumer.close()
    consumer = _static(lab, "a")
    consumer.subscribe([two], **callbacks())
    consumer.until(lambda: len(consumer.messages) == 5, "the other topic is read", timeout=3)
    consumer.close()


@scenario()
def a_second_static_member_of_the_same_id(lab: Lab) -> None:
    """The first one is fenced and gets an error, and the second goes on."""
    topic = lab.topic(1, messages=5)
    first = _static(lab, "a", enable_auto_commit=False)
    first.subscribe([topic], **callbacks())
    first.read(5)
    first.commit(asynchronous=False)
    second = lab.other_member(group_instance_id=f"{lab.id}.a", enable_auto_commit=False)
    second.subscribe([topic])
    second.until_assigned(1)
    first.until(lambda: first.errors or first.revoked, "it is fenced")
    first.attempt("commit", offsets=partitions(topic, 1), asynchronous=False)
    first.close()
    lab.produce(topic, 2)
    second.read(2)


@scenario()
def a_fenced_static_member_has_error_cb(lab: Lab) -> None:
    """A fatal error goes to error_cb too."""
    topic = lab.topic(1, messages=5)
    first = _static(lab, "a", enable_auto_commit=False, error_cb=record)
    first.subscribe([topic], **callbacks())
    first.read(5)
    second = lab.other_member(group_instance_id=f"{lab.id}.a", enable_auto_commit=False)
    second.subscribe([topic])
    second.until_assigned(1)
    first.until(lambda: first.errors or first.revoked, "it is fenced")
    first.close()


@scenario()
def a_static_member_s_commit_in_on_revoke(lab: Lab) -> None:
    """close waits for it, though no leave is sent."""
    topic = lab.topic(1, messages=5)
    for _ in range(3):
        consumer = _static(lab, "a", enable_auto_commit=False)
        consumer.subscribe([topic], on_assign=record, on_revoke=lambda client, _: client.commit())
        consumer.read(5)
        consumer.close()
        lab.note(f"stored {lab.stored(topic)}")
        lab.produce(topic, 5)


@scenario()
def a_static_member_commits_while_it_is_away(lab: Lab) -> None:
    """Offsets of a group with a static member that is away can be asked for, and read on by hand."""
    topic = lab.topic(1, messages=5)
    consumer = _static(lab, "a")
    consumer.subscribe([topic])
    consumer.read(5)
    consumer.close()
    by_hand = lab.consumer(enable_auto_commit=False)
    by_hand.attempt("committed", partitions(topic, -1001), timeout=10)
    by_hand.assign([TopicPartition(topic, 0, 2)])
    by_hand.read(3)
    by_hand.attempt("commit", asynchronous=False)
    by_hand.close()


@scenario(seconds=90)
def a_static_member_does_not_come_back(lab: Lab) -> None:
    """Its partitions go to others when its session has ended."""
    topic = lab.topic(2)
    settings = {"partition_assignment_strategy": "range"}
    gone = lab.other_member(group_instance_id=f"{lab.id}.b", **settings)
    gone.subscribe([topic])
    gone.until_assigned(2)
    consumer = _static(lab, "a", **settings)
    consumer.subscribe([topic], **callbacks())
    lab.together(
        consumer,
        gone,
        until=lambda: len(consumer.raw.assignment()) == len(gone.raw.assignment()) == 1,
        what="one and one are assigned",
    )
    gone.close()
    consumer.until_assigned(2)
    consumer.close()


@scenario()
def a_static_member_is_expelled(lab: Lab) -> None:
    """A static member that the coordinator no longer knows joins anew."""
    topic = lab.topic(1, messages=5)
    consumer = _static(lab, "a", enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    lab.expel(consumer)
    consumer.read(5)
    consumer.close()
