"""Offsets: storing, committing in every form and place, querying, and start positions."""

import threading
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import TopicPartition

from integration_tests.harness.wire import OK, WireMember
from integration_tests.parity.client import Client, record
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario


def _subscribed(lab: Lab, *topics: str, **settings: Any) -> Client:
    consumer = lab.consumer(**{"enable_auto_commit": False, **settings})
    consumer.subscribe([*topics])
    return consumer


def _wait_stored(lab: Lab, consumer: Client, topic: str, offset: int) -> None:
    """Poll until the coordinator has this offset."""
    begun = time.monotonic()
    while lab.stored(topic) != [offset]:
        consumer.poll(0)
        if time.monotonic() - begun > 10:
            lab.note(f"not stored: {offset}; there is {lab.stored(topic)}")
            return
        time.sleep(0.05)
    lab.note(f"stored {offset}")


# --- Storing ----------------------------------------------------------------------------------------


@scenario()
def offsets_are_stored_by_hand(lab: Lab) -> None:
    """With enable.auto.offset.store=false only what is stored is committed."""
    topic = lab.topic(messages=10)
    consumer = _subscribed(lab, topic, enable_auto_offset_store=False)
    messages = consumer.read(10)
    consumer.attempt("commit", asynchronous=False)
    consumer.store_offsets(messages[3])
    consumer.attempt("commit", asynchronous=False)
    consumer.store_offsets(message=messages[5])
    consumer.attempt("commit", asynchronous=False)
    consumer.store_offsets(offsets=[TopicPartition(topic, 0, 8)])
    consumer.attempt("commit", asynchronous=False)
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario()
def stored_offsets_are_committed_by_close(lab: Lab) -> None:
    """Auto commit commits what was stored, not what was delivered."""
    topic = lab.topic(messages=10)
    consumer = _subscribed(lab, topic, enable_auto_commit=True, enable_auto_offset_store=False)
    messages = consumer.read(10)
    consumer.store_offsets(messages[3])
    consumer.close()


@scenario()
def nothing_stored_nothing_committed_by_close(lab: Lab) -> None:
    """A service that stores nothing commits nothing."""
    topic = lab.topic(messages=10)
    consumer = _subscribed(lab, topic, enable_auto_commit=True, enable_auto_offset_store=False)
    consumer.read(10)
    consumer.close()


@scenario()
def stored_offsets_go_backwards(lab: Lab) -> None:
    """The last stored offset counts, also if it is smaller than the one before."""
    topic = lab.topic(messages=10)
    consumer = _subscribed(lab, topic, enable_auto_offset_store=False)
    messages = consumer.read(10)
    consumer.store_offsets(messages[8])
    consumer.store_offsets(messages[2])
    consumer.attempt("commit", asynchronous=False)
    consumer.store_offsets(messages[1])
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario()
def offsets_stored_before_a_seek(lab: Lab) -> None:
    """A seek does not take back what was stored."""
    topic = lab.topic(messages=10)
    consumer = _subscribed(lab, topic, enable_auto_offset_store=False)
    messages = consumer.read(10)
    consumer.store_offsets(messages[5])
    consumer.seek(TopicPartition(topic, 0, 8))
    consumer.attempt("commit", asynchronous=False)
    consumer.read(2)
    consumer.close()


@scenario()
def offsets_are_stored_for_several_partitions(lab: Lab) -> None:
    """Each partition has its own stored offset; those without are not committed."""
    topic = lab.topic(3, messages=5)
    consumer = _subscribed(lab, topic, enable_auto_offset_store=False)
    consumer.read(15)
    consumer.store_offsets(offsets=[TopicPartition(topic, 2, 4), TopicPartition(topic, 0, 3)])
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario()
def storing_in_on_revoke(lab: Lab) -> None:
    """Offsets stored in on_revoke are committed with the others."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_offset_store=False)
    consumer.subscribe(
        [topic],
        on_assign=record,
        on_revoke=lambda client, _: client.attempt("store_offsets", offsets=partitions(topic, 4)),
    )
    consumer.read(5)
    consumer.close()


@scenario()
def storing_in_on_revoke_before_unassign(lab: Lab) -> None:
    """on_revoke may store, and then give the partitions up by itself."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_offset_store=False)

    def on_revoke(client: Client, _owned: list[TopicPartition]) -> None:
        client.attempt("store_offsets", offsets=partitions(topic, 4))
        client.attempt("unassign")

    consumer.subscribe([topic], on_assign=record, on_revoke=on_revoke)
    consumer.read(5)
    consumer.close()


@scenario()
def storing_what_is_not_assigned(lab: Lab) -> None:
    """Offsets are stored for assigned partitions alone."""
    topic = lab.topic(2, messages=5)
    consumer = lab.consumer(enable_auto_offset_store=False, enable_auto_commit=False)
    consumer.attempt("store_offsets", offsets=partitions(topic, 4))
    consumer.assign([TopicPartition(topic, 0)])
    consumer.read(5)
    consumer.attempt("store_offsets", offsets=[TopicPartition(topic, 1, 4)])
    consumer.attempt("store_offsets", offsets=partitions(topic, 3, 4))
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario()
def storing_what_only_its_position_was_read_of(lab: Lab) -> None:
    """`position` makes librdkafka know a topic: the error of storing is another one, and a pause stays."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_offset_store=False, enable_auto_commit=False)
    consumer.attempt("store_offsets", offsets=partitions(topic, 4))
    consumer.attempt("position", [TopicPartition(topic, 0)])
    consumer.attempt("store_offsets", offsets=partitions(topic, 4))
    consumer.attempt("pause", [TopicPartition(topic, 0)])
    consumer.assign([TopicPartition(topic, 0, 0)])
    consumer.read(1, timeout=1.5)
    consumer.resume([TopicPartition(topic, 0)])
    consumer.read(5)
    consumer.close()


@scenario()
def storing_beside_automatic_storing(lab: Lab) -> None:
    """`store_offsets` needs enable.auto.offset.store=false."""
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic)
    messages = consumer.read(5)
    consumer.attempt("store_offsets", messages[2])
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


# --- Committing -------------------------------------------------------------------------------------


@scenario()
def a_commit_of_what_was_read(lab: Lab) -> None:
    """A commit is of the messages that were returned, again and again."""
    topic = lab.topic(2, messages=10)
    consumer = _subscribed(lab, topic, max_poll_interval_ms=30000)
    consumer.attempt("commit", asynchronous=False)
    consumer.read(20)
    consumer.attempt("commit", asynchronous=False)
    consumer.attempt("commit", asynchronous=False)
    lab.produce(topic, 2, 1)
    consumer.read(2)
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario()
def a_commit_after_every_message(lab: Lab) -> None:
    """The committed offset is the next message's, whatever was prefetched."""
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic)
    for _ in range(5):
        consumer.read(1)
        consumer.commit(asynchronous=False)
    consumer.close()


@scenario()
def a_commit_in_the_middle_of_a_batch(lab: Lab) -> None:
    """consume(3) of 10 commits 3."""
    topic = lab.topic(messages=10)
    consumer = _subscribed(lab, topic)
    consumer.consume(3, 10)
    consumer.commit(asynchronous=False)
    consumer.consume(4, 10)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario()
def a_message_is_committed(lab: Lab) -> None:
    """A message's commit is its offset + 1, in whatever order."""
    topic = lab.topic(messages=10)
    consumer = _subscribed(lab, topic)
    messages = consumer.read(10)
    consumer.attempt("commit", message=messages[6], asynchronous=False)
    consumer.attempt("commit", messages[2], asynchronous=False)
    consumer.attempt("commit", messages[4], None, False)  # noqa: FBT003 - by position
    consumer.close()


@scenario()
def offsets_are_committed(lab: Lab) -> None:
    """Any offsets can be committed: beyond the end, of the beginning, of no assigned partition."""
    topic = lab.topic(2, messages=3)
    consumer = _subscribed(lab, topic)
    consumer.read(6)
    consumer.attempt("commit", offsets=partitions(topic, 1, 2), asynchronous=False)
    consumer.attempt("commit", offsets=partitions(topic, 1000), asynchronous=False)
    consumer.attempt("commit", offsets=partitions(topic, 0, 0), asynchronous=False)
    consumer.attempt("commit", offsets=[], asynchronous=False)
    consumer.close()


@scenario()
def logical_offsets_are_committed(lab: Lab) -> None:
    """Negative offsets are no offsets."""
    topic = lab.topic(2, messages=3)
    consumer = _subscribed(lab, topic)
    consumer.read(6)
    for offset in (-1001, -2, -1, -1000, -5):
        consumer.attempt("commit", offsets=partitions(topic, offset), asynchronous=False)
        consumer.attempt("commit", offsets=partitions(topic, 2, offset), asynchronous=False)
    consumer.close()


@scenario()
def metadata_is_committed(lab: Lab) -> None:
    """An offset's metadata and leader epoch are stored with it."""
    topic = lab.topic(messages=3)
    consumer = _subscribed(lab, topic)
    consumer.read(3)
    given = TopicPartition(topic, 0, 2, metadata="a note", leader_epoch=0)
    (found,) = consumer.commit(offsets=[given], asynchronous=False)
    lab.note(f"returned {found.metadata!r} {found.leader_epoch}")
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=10)
    lab.note(f"committed {found.metadata!r} {found.leader_epoch}")
    consumer.commit(asynchronous=False)
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=10)
    lab.note(f"committed {found.metadata!r} {found.leader_epoch}")
    consumer.close()


@scenario()
def stored_metadata_is_committed(lab: Lab) -> None:
    """Metadata that was stored with an offset is committed with it."""
    topic = lab.topic(messages=3)
    consumer = _subscribed(lab, topic, enable_auto_offset_store=False)
    consumer.read(3)
    consumer.store_offsets(offsets=[TopicPartition(topic, 0, 2, metadata="a note")])
    consumer.commit(asynchronous=False)
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=10)
    lab.note(f"committed {found.metadata!r}")
    consumer.close()


@scenario()
def a_message_s_leader_epoch_is_committed(lab: Lab) -> None:
    """The epoch of the last message's leader goes with its offset, so that a truncation is found."""
    topic = lab.topic(messages=3)
    consumer = _subscribed(lab, topic)
    messages = consumer.read(3)
    lab.note(f"the message's {messages[0].leader_epoch()}")
    consumer.commit(asynchronous=False)
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=10)
    lab.note(f"committed {found.leader_epoch}")
    consumer.commit(message=messages[1], asynchronous=False)
    (found,) = consumer.committed([TopicPartition(topic, 0)], timeout=10)
    lab.note(f"committed {found.leader_epoch}")
    consumer.close()


def _asynchronous(lab: Lab, *, wanted: int, commit: Callable[[Client, str], object]) -> None:
    topic = lab.topic(messages=5)
    called: list[object] = []
    consumer = _subscribed(lab, topic, on_commit=lambda *given: called.append(given))
    consumer.read(5)
    commit(consumer, topic)
    consumer.until(lambda: len(called) == wanted, "on_commit was called")
    consumer.close()


@scenario()
def an_asynchronous_commit_of_what_was_read(lab: Lab) -> None:
    """on_commit is called by a later poll."""
    _asynchronous(lab, wanted=1, commit=lambda consumer, _: consumer.commit())


@scenario()
def an_asynchronous_commit_of_offsets(lab: Lab) -> None:
    """on_commit is called with the offsets."""
    _asynchronous(lab, wanted=1, commit=lambda consumer, topic: consumer.commit(offsets=partitions(topic, 3)))


@scenario()
def an_asynchronous_commit_of_a_message(lab: Lab) -> None:
    """on_commit is called with the offset after the message."""
    _asynchronous(lab, wanted=1, commit=lambda consumer, _: consumer.commit(consumer.messages[1]))


@scenario()
def an_asynchronous_commit_of_nothing(lab: Lab) -> None:
    """on_commit is called for a commit that had nothing to do."""
    _asynchronous(lab, wanted=2, commit=lambda consumer, _: (consumer.commit(), consumer.commit()))


@scenario()
def an_asynchronous_commit_of_an_unknown_partition(lab: Lab) -> None:
    """on_commit is called with an error for each partition."""
    topic = lab.topic(messages=5)
    called: list[object] = []
    consumer = _subscribed(lab, topic, on_commit=lambda *given: called.append(given))
    consumer.read(5)
    consumer.commit(offsets=[TopicPartition(topic, 7, 1)])
    consumer.until(lambda: called, "on_commit was called")
    consumer.close()


@scenario()
def a_synchronous_commit_calls_on_commit(lab: Lab) -> None:
    """on_commit beside a synchronous commit."""
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic, on_commit=record)
    consumer.read(5)
    consumer.commit(asynchronous=False)
    consumer.idle(0.3)
    consumer.close()


@scenario()
def an_asynchronous_commit_before_close(lab: Lab) -> None:
    """close waits for it, and calls on_commit."""
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic, on_commit=record)
    consumer.read(5)
    consumer.commit()
    consumer.close()


@scenario()
def a_commit_by_hand_before_close(lab: Lab) -> None:
    """The same without a group, with manual assignment."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, 0, 0)])
    for message in consumer.read(5):
        consumer.commit(message)
    consumer.close()


@scenario()
def a_commit_before_any_assignment(lab: Lab) -> None:
    """Offsets can be committed by a consumer that has no partitions."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.attempt("commit", asynchronous=False)
    consumer.attempt("commit", offsets=partitions(topic, 3), asynchronous=False)
    consumer.subscribe([topic])
    consumer.read(2)
    consumer.close()


@scenario()
def a_commit_between_subscribe_and_the_first_poll(lab: Lab) -> None:
    """Nothing is owned yet."""
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic)
    consumer.attempt("commit", asynchronous=False)
    consumer.read(5)
    consumer.close()


@scenario()
def a_commit_after_unsubscribe(lab: Lab) -> None:
    """After unsubscribe there is nothing to commit but what is named."""
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic)
    messages = consumer.read(5)
    consumer.unsubscribe()
    consumer.until_assigned(0)
    lab.wait(lambda: not lab.members(), "the member has left")
    consumer.attempt("commit", asynchronous=False)
    consumer.attempt("commit", message=messages[1], asynchronous=False)
    consumer.close()


def _by_hand_after_unsubscribe(lab: Lab, strategy: str) -> None:
    topic, other = lab.topic(messages=5), lab.topic(messages=5)
    consumer = _subscribed(lab, topic, partition_assignment_strategy=strategy)
    consumer.read(5)
    consumer.unsubscribe()
    consumer.until_assigned(0)
    lab.wait(lambda: not lab.members(), "the member has left")
    method = "assign" if strategy == "range" else "incremental_assign"
    consumer.attempt(method, [TopicPartition(other, 0, 0)])
    consumer.until(lambda: len(consumer.messages) == 10, "all messages")
    consumer.attempt("commit", offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.attempt("commit", offsets=[TopicPartition(other, 0, 3)], asynchronous=False)
    consumer.attempt("commit", message=consumer.messages[-1], asynchronous=False)
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario()
def a_commit_by_hand_after_unsubscribe(lab: Lab) -> None:
    """Manual assignments after the member has left are committed outside of any generation."""
    _by_hand_after_unsubscribe(lab, "range")


@scenario()
def a_commit_by_hand_after_unsubscribe_of_a_cooperative_member(lab: Lab) -> None:
    """As above."""
    _by_hand_after_unsubscribe(lab, "cooperative-sticky")


@scenario()
def a_commit_of_what_does_not_exist_after_unsubscribe(lab: Lab) -> None:
    """The broker looks first whether the partition exists, and then who commits."""
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic)
    consumer.read(5)
    consumer.unsubscribe()
    consumer.until_assigned(0)
    lab.wait(lambda: not lab.members(), "the member has left")
    consumer.attempt("commit", offsets=[TopicPartition(topic, 1, 3)], asynchronous=False)
    consumer.attempt("commit", offsets=[TopicPartition(topic, 0, 3)], asynchronous=False)
    consumer.close()


@scenario()
def a_commit_after_unsubscribe_of_one_that_never_joined(lab: Lab) -> None:
    """It belongs to no generation, and commits as before it subscribed."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    consumer.unsubscribe()
    consumer.attempt("commit", offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.close()


@scenario(seconds=25)
def a_commit_during_a_join(lab: Lab) -> None:
    """While JoinGroup waits for another member."""
    topic = lab.topic(2, messages=5)
    consumer = lab.consumer(client_id="a", partition_assignment_strategy="range", enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    other = lab.other_member(client_id="b", partition_assignment_strategy="range")
    other.subscribe([topic])
    lab.together(
        consumer,
        other,
        until=lambda: [len(each.raw.assignment()) for each in (consumer, other)] == [1, 1],
        what="one and one",
    )
    third = lab.other_member(client_id="c", partition_assignment_strategy="range")
    third.subscribe([topic])
    before = len(consumer.revoked)

    def revoked() -> bool:
        third.raw.poll(0)
        return len(consumer.revoked) > before

    consumer.until(revoked, "revoked")
    consumer.idle(0.5)  # JoinGroup is sent; `other` does not poll, so that it is not answered
    consumer.attempt("commit", offsets=[TopicPartition(topic, 0, 2)], asynchronous=False)
    consumer.attempt("commit", message=consumer.messages[0], asynchronous=False)
    consumer.attempt("commit", asynchronous=False)
    other.close()
    third.close()
    consumer.until_assigned(2)
    consumer.close()


@scenario(seconds=25)
def a_commit_during_a_cooperative_join(lab: Lab) -> None:
    """While JoinGroup waits for another member, for two seconds; the member keeps its partitions."""
    topic = lab.topic(2, messages=5)
    strategy = "cooperative-sticky"
    called: list[int] = []
    consumer = lab.consumer(partition_assignment_strategy=strategy, enable_auto_commit=False)
    consumer.subscribe([topic], on_assign=lambda _, found: called.append(len(found)), on_revoke=record)
    consumer.read(10)
    holder, third = (
        WireMember(lab.bootstrap_servers, lab.group, name, topics=["other"], protocols=[strategy])
        for name in ("holder", "third")
    )

    def join(member: WireMember) -> None:
        assert member.join() == OK
        member.send_sync()
        member.synced()

    joins = lab.spawn("holder", lambda: join(holder))
    consumer.until(lambda: not joins.is_alive() and len(called) == 2, "the holder has joined")
    joins = lab.spawn("third", lambda: join(third))
    lab.wait(lambda: holder.heartbeat() == "REBALANCE_IN_PROGRESS", "the third joins")
    consumer.idle(1.5)  # JoinGroup is sent; the holder does not join, so that it is not answered
    timer = threading.Timer(2.0, join, [holder])
    timer.start()
    consumer.attempt("commit", offsets=partitions(topic, 2, 3), asynchronous=False)
    consumer.until(lambda: not joins.is_alive() and len(called) == 3, "both have joined")
    consumer.commit(offsets=partitions(topic, 4, 5), asynchronous=False)
    consumer.close()
    holder.close()
    third.close()


@scenario()
def a_commit_after_close(lab: Lab) -> None:
    """A closed consumer says so."""
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic)
    messages = consumer.read(5)
    consumer.close()
    consumer.attempt("commit")
    consumer.attempt("commit", messages[0], asynchronous=False)
    consumer.attempt("store_offsets", messages[0])


@scenario()
def a_commit_of_another_group_s_member(lab: Lab) -> None:
    """Offsets of a group that has members are committed by its members alone."""
    topic = lab.topic(messages=5)
    member = lab.other_member(enable_auto_commit=False)
    member.subscribe([topic])
    member.read(5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.attempt("commit", offsets=partitions(topic, 3), asynchronous=False)
    consumer.assign(partitions(topic, 0))
    consumer.read(5)
    consumer.attempt("commit", asynchronous=False)
    member.close()
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario()
def a_commit_of_a_topic_that_does_not_exist(lab: Lab) -> None:
    """The broker's error comes at once."""
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic)
    consumer.read(5)
    consumer.attempt("commit", offsets=partitions(lab.name_topic(), 3), asynchronous=False)
    consumer.attempt("commit", offsets=[TopicPartition(topic, 9, 3)], asynchronous=False)
    consumer.attempt(
        "commit", offsets=[TopicPartition(topic, 0, 3), TopicPartition(topic, 9, 3)], asynchronous=False
    )
    consumer.close()


@scenario()
def on_commit_raises(lab: Lab) -> None:
    """An exception of on_commit propagates from poll."""
    topic = lab.topic(messages=5)

    def on_commit(*_: object) -> None:
        raise ValueError("a callback's own error")

    consumer = _subscribed(lab, topic, on_commit=on_commit)
    consumer.read(5)
    consumer.commit()
    deadline = time.monotonic() + 10
    raised = False
    while not raised and time.monotonic() < deadline:
        try:
            consumer.poll(0.1)
        except ValueError:
            raised = True
    consumer.close()


@scenario()
def on_commit_commits_again(lab: Lab) -> None:
    """on_commit may commit."""
    topic = lab.topic(messages=5)
    held: list[Client] = []

    def on_commit(_: object, given: list[TopicPartition]) -> None:
        if given[0].offset < 4:
            held[0].commit(offsets=[TopicPartition(topic, 0, given[0].offset + 1)])

    held.append(_subscribed(lab, topic, on_commit=on_commit))
    held[0].read(5)
    held[0].commit(offsets=partitions(topic, 2))
    _wait_stored(lab, held[0], topic, 4)
    held[0].close()


# --- Automatic commits ------------------------------------------------------------------------------


@scenario()
def offsets_are_committed_at_intervals(lab: Lab) -> None:
    """Returned messages are committed within auto.commit.interval.ms."""
    topic = lab.topic(messages=5)
    called: list[object] = []
    consumer = _subscribed(
        lab,
        topic,
        enable_auto_commit=True,
        auto_commit_interval_ms=200,
        on_commit=lambda *given: called.append(given),
    )
    consumer.read(5)
    consumer.until(lambda: called, "on_commit was called")
    lab.produce(topic, 2)
    consumer.read(2)
    consumer.until(lambda: len(called) > 1, "on_commit was called again")
    consumer.idle(0.5)
    consumer.close()


@scenario()
def offsets_are_committed_by_unsubscribe(lab: Lab) -> None:
    """With auto commit, what was returned is committed when the member leaves."""
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic, enable_auto_commit=True)
    consumer.read(5)
    consumer.unsubscribe()
    consumer.until_assigned(0)
    _wait_stored(lab, consumer, topic, 5)
    consumer.close()


@scenario()
def offsets_are_committed_before_on_revoke_returns(lab: Lab) -> None:
    """With auto commit, what was returned is committed by close, and on_commit is called."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(on_commit=record)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    consumer.close()


@scenario()
def only_what_was_returned_is_committed_by_close(lab: Lab) -> None:
    """Messages that were prefetched are delivered to the next consumer."""
    topic = lab.topic(messages=1000)
    for wanted in (1, 10, 100):
        consumer = lab.consumer()
        consumer.subscribe([topic])
        for _ in range(wanted):
            consumer.read(1)
        consumer.close()


@scenario()
def only_what_was_consumed_is_committed_by_close(lab: Lab) -> None:
    """The same with consume."""
    topic = lab.topic(messages=1000)
    for wanted in (1, 10, 100):
        consumer = lab.consumer()
        consumer.subscribe([topic])
        consumer.consume(wanted, 10)
        consumer.close()


@scenario()
def by_hand_offsets_are_committed_by_close(lab: Lab) -> None:
    """Auto commit works without a group too."""
    topic = lab.topic(2, messages=5)
    consumer = lab.consumer()
    consumer.assign(partitions(topic, 0, 2))
    consumer.read(8)
    consumer.close()


@scenario()
def a_consumer_that_skipped_ahead_is_closed(lab: Lab) -> None:
    """Messages read before a seek are committed."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    consumer.read(5)
    consumer.seek(TopicPartition(topic, 0, 8))
    consumer.close()


# --- Where a partition starts -----------------------------------------------------------------------


def _start(lab: Lab, reset: str, *, committed: int | None = None) -> None:
    topic = lab.topic(messages=10)
    if committed is not None:
        lab.other_member().commit(offsets=partitions(topic, committed), asynchronous=False)
    consumer = lab.consumer(auto_offset_reset=reset)
    consumer.subscribe([topic])
    consumer.until_assigned()
    consumer.idle(0.7)
    lab.produce(topic, 2)
    consumer.until(lambda: consumer.messages and consumer.messages[-1].offset() == 11, "the last message")
    consumer.close()


@scenario()
def a_new_group_starts_at_the_beginning(lab: Lab) -> None:
    """auto.offset.reset=earliest."""
    _start(lab, "earliest")


@scenario()
def a_new_group_starts_at_the_end(lab: Lab) -> None:
    """auto.offset.reset=latest."""
    _start(lab, "latest")


@scenario()
def a_group_s_offset_is_beyond_the_end_and_reset_to_the_beginning(lab: Lab) -> None:
    """An offset out of range is reset as auto.offset.reset says."""
    _start(lab, "earliest", committed=1000)


@scenario()
def a_group_s_offset_is_beyond_the_end_and_reset_to_the_end(lab: Lab) -> None:
    """As above."""
    _start(lab, "latest", committed=1000)


def _start_in_error(lab: Lab, *, committed: int | None) -> None:
    topic = lab.topic(messages=10)
    if committed is not None:
        lab.other_member().commit(offsets=partitions(topic, committed), asynchronous=False)
    consumer = lab.consumer(auto_offset_reset="error")
    consumer.subscribe([topic])
    consumer.until(lambda: consumer.errors, "an error")
    consumer.idle(0.5)
    consumer.attempt("seek", TopicPartition(topic, 0, 7))
    consumer.assign([TopicPartition(topic, 0, 7)])
    consumer.read(3)
    consumer.close()


@scenario()
def a_new_group_starts_with_an_error(lab: Lab) -> None:
    """auto.offset.reset=error: the application gets one error; it cannot seek, but can assign an offset."""
    _start_in_error(lab, committed=None)


@scenario()
def a_group_s_offset_is_beyond_the_end_and_an_error(lab: Lab) -> None:
    """As above."""
    _start_in_error(lab, committed=1000)


# --- Questions --------------------------------------------------------------------------------------


@scenario()
def committed_offsets_are_asked_for(lab: Lab) -> None:
    """Offsets of the group, also of partitions that are not assigned or do not exist."""
    topic = lab.topic(2, messages=5)
    consumer = _subscribed(lab, topic)
    consumer.attempt("committed", partitions(topic, -1001, -1001), timeout=10)
    consumer.read(10)
    consumer.commit(offsets=partitions(topic, 3), asynchronous=False)
    consumer.attempt("committed", partitions(topic, -1001, -1001), timeout=10)
    consumer.attempt("committed", [TopicPartition(topic, 7)], timeout=10)
    consumer.attempt("committed", [TopicPartition(lab.name_topic(), 0)], timeout=10)
    consumer.attempt("committed", [], timeout=10)
    consumer.close()
    consumer.attempt("committed", partitions(topic, -1001), timeout=10)


@scenario()
def positions_are_asked_for(lab: Lab) -> None:
    """The position is the offset after the last message that was returned."""
    topic = lab.topic(2, messages=5)
    both = partitions(topic, -1001, -1001)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.attempt("position", both)
    consumer.subscribe([topic])
    consumer.attempt("position", both)
    consumer.until_assigned(2)
    consumer.read(10)
    consumer.attempt("position", both)
    consumer.seek(TopicPartition(topic, 0, 2))
    consumer.read(3)
    consumer.attempt("position", both)
    consumer.attempt("position", [TopicPartition(topic, 7)])
    consumer.attempt("position", [])
    consumer.unsubscribe()
    consumer.until_assigned(0)
    consumer.attempt("position", both)
    consumer.close()
    consumer.attempt("position", both)


@scenario()
def the_position_follows_each_message(lab: Lab) -> None:
    """Whatever was prefetched."""
    topic = lab.topic(messages=4)
    consumer = _subscribed(lab, topic)
    for _ in range(4):
        consumer.read(1)
        consumer.position(partitions(topic, -1001))
    consumer.close()


@scenario()
def watermarks_are_asked_for(lab: Lab) -> None:
    """The first and the last offset, from the broker or as last seen."""
    topic = lab.topic(2, messages=5)
    consumer = _subscribed(lab, topic)
    first = TopicPartition(topic, 0)
    consumer.attempt("get_watermark_offsets", first, timeout=10)
    consumer.attempt("get_watermark_offsets", TopicPartition(topic, 7), timeout=3)
    consumer.read(10)
    consumer.attempt("get_watermark_offsets", first, cached=True)
    lab.produce(topic, 3)
    consumer.read(3)
    consumer.attempt("get_watermark_offsets", first, cached=True)
    consumer.attempt("get_watermark_offsets", first, timeout=10)
    consumer.close()
    consumer.attempt("get_watermark_offsets", first, timeout=10)


@scenario()
def watermarks_without_a_subscription(lab: Lab) -> None:
    """A consumer without partitions may ask for any partition's."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer()
    consumer.attempt("get_watermark_offsets", TopicPartition(topic, 0), timeout=10)
    consumer.attempt("get_watermark_offsets", TopicPartition(topic, 0), cached=True)
    consumer.close()


@scenario()
def offsets_are_found_by_time(lab: Lab) -> None:
    """The first message at or after a time; the end if there is none."""
    topic = lab.topic(2)
    for number in range(5):
        lab.producer.produce(topic, b"x", partition=0, timestamp=1_700_000_000_000 + number * 1000)
    lab.producer.flush(10)
    consumer = _subscribed(lab, topic)
    consumer.read(5)
    for moment in (0, 1_700_000_002_000, 1_700_000_002_001, 1_800_000_000_000):
        consumer.attempt("offsets_for_times", [TopicPartition(topic, 0, moment)], timeout=10)
    consumer.attempt("offsets_for_times", partitions(topic, 0, 0), timeout=10)
    consumer.attempt("offsets_for_times", [TopicPartition(topic, 7, 0)], timeout=3)
    consumer.close()


@scenario()
def topics_are_listed(lab: Lab) -> None:
    """Metadata of one topic, of one that does not exist, and of all."""
    topic, missing = lab.topic(3), lab.name_topic()
    consumer = lab.consumer()
    found = consumer.raw.list_topics(topic, timeout=10)
    lab.note(
        f"{list(found.topics) == [topic]} "
        f"{sorted(found.topics[topic].partitions)} {found.topics[topic].error}"
    )
    found = consumer.raw.list_topics(missing, timeout=10)
    lab.note(f"{list(found.topics) == [missing]} {found.topics[missing].error.name()}")
    lab.note(f"{topic in consumer.raw.list_topics(timeout=10).topics}")
    consumer.close()
    consumer.attempt("list_topics", timeout=1)
