"""The group protocol of KIP-848 (`group.protocol=consumer`): the broker assigns."""

import time
from typing import Any

from confluent_kafka import TopicPartition

from integration_tests.parity.client import Client, record
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario

_PROTOCOL = {"group_protocol": "consumer", "session_timeout_ms": ..., "heartbeat_interval_ms": ...}


def _member(lab: Lab, **settings: Any) -> Client:
    return lab.consumer(**{**_PROTOCOL, "enable_auto_commit": False, **settings})


def _other(lab: Lab, **settings: Any) -> Client:
    return lab.other_member(**{**_PROTOCOL, "enable_auto_commit": False, **settings})


def _share(lab: Lab, first: Client, second: Client, one: int = 1, two: int = 1) -> None:
    lab.together(
        first,
        second,
        until=lambda: (len(first.raw.assignment()), len(second.raw.assignment())) == (one, two),
        what=f"{one} and {two} are assigned",
    )


@scenario()
def kip848_a_member_reads_and_commits(lab: Lab) -> None:
    """Subscribe, read, commit, close."""
    topic = lab.topic(2, messages=5)
    consumer = _member(lab)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    consumer.commit(asynchronous=False)
    lab.note(f"members {lab.members()}")
    consumer.close()
    lab.note(f"members {lab.members()}")


@scenario()
def kip848_offsets_are_committed_by_close(lab: Lab) -> None:
    """Auto commit."""
    topic = lab.topic(messages=5)
    consumer = _member(lab, enable_auto_commit=True, on_commit=record)
    consumer.subscribe([topic])
    consumer.read(5)
    consumer.close()


@scenario()
def kip848_without_callbacks_two_members_share(lab: Lab) -> None:
    """Partitions move without any callback."""
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    first = _member(lab, enable_auto_commit=True)
    first.subscribe([one, two])
    first.read(10)
    second = _other(lab)
    second.subscribe([two])
    _share(lab, first, second)
    lab.produce(one, 2)
    first.read(2)
    second.close()
    first.until_assigned(2)
    first.close()


@scenario()
def kip848_a_second_member_comes_and_goes(lab: Lab) -> None:
    """Moved partitions are revoked, and later assigned again."""
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    first = _member(lab)
    first.subscribe([one, two], **callbacks())
    first.read(10)
    first.commit(asynchronous=False)
    second = _other(lab)
    second.subscribe([two])
    _share(lab, first, second)
    second.close()
    first.until_assigned(2)
    first.close()


@scenario()
def kip848_a_second_member_is_under_test(lab: Lab) -> None:
    """A newcomer gets its share when the first has revoked it."""
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    second = _other(lab)
    second.subscribe([one, two])
    second.read(10)
    second.commit(asynchronous=False)
    first = _member(lab)
    first.subscribe([two], **callbacks())
    _share(lab, first, second)
    lab.produce(two, 2)
    first.read(2)
    first.close()


@scenario()
def kip848_callbacks_assign_by_themselves(lab: Lab) -> None:
    """on_assign chooses offsets by incremental_assign."""
    topic = lab.topic(2, messages=10)
    consumer = _member(lab)

    def on_assign(client: Client, found: list[TopicPartition]) -> None:
        client.incremental_assign([TopicPartition(p.topic, p.partition, 7 + p.partition) for p in found])

    consumer.subscribe(
        [topic], on_assign=on_assign, on_revoke=lambda client, found: client.incremental_unassign(found)
    )
    consumer.read(5)
    consumer.close()


@scenario()
def kip848_on_revoke_commits(lab: Lab) -> None:
    """on_revoke may commit."""
    topic = lab.topic(messages=5)
    consumer = _member(lab)
    consumer.subscribe(
        [topic], on_assign=record, on_revoke=lambda client, _: client.attempt("commit", asynchronous=False)
    )
    consumer.read(5)
    consumer.close()


@scenario()
def kip848_on_assign_raises(lab: Lab) -> None:
    """An exception of on_assign propagates from poll; the partitions are assigned all the same."""
    topic = lab.topic()

    def on_assign(*_: object) -> None:
        raise ValueError("a callback's own error")

    consumer = _member(lab)
    consumer.subscribe([topic], on_assign=on_assign)
    raised = False
    deadline = time.monotonic() + 20
    while not raised and time.monotonic() < deadline:
        try:
            consumer.poll(0.1)
        except ValueError:
            raised = True
    lab.produce(topic, 3)
    consumer.read(3)
    consumer.close()


@scenario()
def kip848_on_revoke_raises_in_close(lab: Lab) -> None:
    """An exception of on_revoke propagates from close; the consumer is closed."""
    topic = lab.topic(messages=3)

    def on_revoke(*_: object) -> None:
        raise ValueError("a callback's own error")

    consumer = _member(lab)
    consumer.subscribe([topic], on_assign=record, on_revoke=on_revoke)
    consumer.read(3)
    consumer.attempt("close")
    consumer.attempt("poll", 0.1)


@scenario()
def kip848_a_subscription_changes(lab: Lab) -> None:
    """Partitions of dropped topics are revoked; the others stay."""
    one, two = lab.topic(messages=3), lab.topic(messages=4)
    consumer = _member(lab)
    consumer.subscribe([one], **callbacks())
    consumer.read(3)
    consumer.subscribe([one, two], **callbacks())
    consumer.read(4)
    consumer.subscribe([two], **callbacks())
    consumer.until_assigned(1)
    consumer.unsubscribe()
    consumer.until_assigned(0)
    consumer.close()


@scenario()
def kip848_seek_pause_and_position(lab: Lab) -> None:
    """The behaviour is that of a classic group."""
    topic = lab.topic(2, messages=5)
    consumer = _member(lab)
    consumer.subscribe([topic])
    consumer.read(10)
    consumer.position(partitions(topic, -1001, -1001))
    consumer.pause([TopicPartition(topic, 1)])
    consumer.seek(TopicPartition(topic, 0, 3))
    consumer.seek(TopicPartition(topic, 1, 3))
    consumer.read(2)
    consumer.idle(0.3)
    consumer.resume([TopicPartition(topic, 1)])
    consumer.read(2)
    consumer.close()


@scenario()
def kip848_offsets_are_stored_by_hand(lab: Lab) -> None:
    """The behaviour is that of a classic group."""
    topic = lab.topic(messages=5)
    consumer = _member(lab, enable_auto_offset_store=False, enable_auto_commit=True)
    consumer.subscribe([topic])
    messages = consumer.read(5)
    consumer.attempt("commit", asynchronous=False)
    consumer.store_offsets(messages[2])
    consumer.attempt("commit", asynchronous=False)
    consumer.store_offsets(offsets=partitions(topic, 4))
    consumer.close()


@scenario()
def kip848_commits_in_every_form(lab: Lab) -> None:
    """The behaviour is that of a classic group."""
    topic = lab.topic(messages=5)
    called: list[object] = []
    consumer = _member(lab, on_commit=lambda *given: called.append(given))
    consumer.attempt("commit", asynchronous=False)
    consumer.subscribe([topic])
    messages = consumer.read(5)
    consumer.attempt("commit", asynchronous=False)
    consumer.attempt("commit", messages[1], asynchronous=False)
    consumer.attempt("commit", offsets=partitions(topic, 4), asynchronous=False)
    consumer.attempt("commit", offsets=[TopicPartition(topic, 9, 4)], asynchronous=False)
    called.clear()
    consumer.commit(message=messages[2])
    consumer.until(lambda: called, "on_commit was called")
    consumer.close()
    consumer.attempt("commit", asynchronous=False)


@scenario()
def kip848_ends_are_told(lab: Lab) -> None:
    """enable.partition.eof."""
    topic = lab.topic(2, messages=3)
    consumer = _member(lab, enable_partition_eof=True)
    consumer.subscribe([topic])
    consumer.until(lambda: len(consumer.errors) == 2, "both ends")
    consumer.seek(TopicPartition(topic, 0, 1))
    consumer.until(lambda: len(consumer.errors) == 3, "the end again")
    consumer.close()


@scenario()
def kip848_a_topic_that_does_not_exist(lab: Lab) -> None:
    """A topic that is made later is read."""
    topic = lab.name_topic()
    consumer = _member(lab, topic_metadata_refresh_interval_ms=500)
    consumer.subscribe([topic], **callbacks())
    consumer.idle(0.5)
    lab.create(topic)
    lab.produce(topic, 3)
    consumer.until(lambda: len(consumer.messages) == 3, "all is read")
    consumer.close()


@scenario()
def kip848_a_regular_expression(lab: Lab) -> None:
    """The broker matches it."""
    lab.topic(messages=3)
    lab.topic(messages=3, name="u")
    consumer = _member(lab)
    consumer.subscribe([lab.pattern("t.*")], **callbacks())
    consumer.read(3)
    consumer.close()


@scenario()
def kip848_a_static_member_restarts(lab: Lab) -> None:
    """It gets the same partitions again."""
    topic = lab.topic(2, messages=5)
    for round_ in range(2):
        consumer = _member(lab, group_instance_id=f"{lab.id}.a", enable_auto_commit=True)
        consumer.subscribe([topic], **callbacks())
        consumer.read(2 if round_ else 10)
        consumer.close()
        lab.note(f"members {lab.members()}")
        lab.produce(topic, 2)


@scenario()
def kip848_a_second_static_member_of_the_same_id(lab: Lab) -> None:
    """The second one is refused while the first is there."""
    topic = lab.topic(1, messages=5)
    first = _other(lab, group_instance_id=f"{lab.id}.a")
    first.subscribe([topic])
    first.read(5)
    second = _member(lab, group_instance_id=f"{lab.id}.a", error_cb=record)
    second.subscribe([topic], **callbacks())
    second.until(lambda: second.errors, "an error")
    second.close()


@scenario()
def kip848_settings_of_the_classic_protocol(lab: Lab) -> None:
    """Settings that the broker has are refused."""
    lab.attempt("session.timeout.ms", lambda: _member(lab, session_timeout_ms=6000).close())
    lab.attempt("heartbeat.interval.ms", lambda: _member(lab, heartbeat_interval_ms=500).close())
    lab.attempt("group.remote.assignor", lambda: _member(lab, group_remote_assignor="range").close())


@scenario()
def kip848_an_assignor_that_the_broker_does_not_have(lab: Lab) -> None:
    """The application gets the error."""
    topic = lab.topic(messages=5)
    consumer = _member(lab, group_remote_assignor="no-such-assignor", error_cb=record)
    consumer.subscribe([topic], **callbacks())
    consumer.until(lambda: consumer.errors, "an error", timeout=5)
    consumer.close()


@scenario()
def kip848_by_hand(lab: Lab) -> None:
    """Partitions may be assigned by hand, and offsets committed for the group."""
    topic = lab.topic(messages=5)
    consumer = _member(lab)
    consumer.assign(partitions(topic, 2))
    consumer.read(3)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario()
def kip848_on_commit_raises(lab: Lab) -> None:
    """An exception of on_commit propagates from poll."""
    topic = lab.topic(messages=5)

    def on_commit(*_: object) -> None:
        raise ValueError("a callback's own error")

    consumer = _member(lab, on_commit=on_commit)
    consumer.subscribe([topic])
    consumer.read(5)
    consumer.commit()
    raised = False
    deadline = time.monotonic() + 10
    while not raised and time.monotonic() < deadline:
        try:
            consumer.poll(0.1)
        except ValueError:
            raised = True
    consumer.close()
