"""Commits: stored offsets, results, exceptions and callbacks."""

import threading
import time
from typing import Any

from confluent_kafka import KafkaError, KafkaException, Message, TopicPartition

from integration_tests.parity.client import Client, record
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario


@scenario()
def a_commit_says_which_partitions_it_was_about(lab: Lab) -> None:
    """A synchronous commit returns all partitions, even without an offset; an empty commit is an error."""
    topic = lab.topic(3)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    consumer.attempt("commit", asynchronous=False)
    consumer.until_assigned(3)
    lab.produce(topic, 5, partition=1)
    consumer.read(5)
    consumer.commit(asynchronous=False)
    consumer.attempt("commit", asynchronous=False)
    consumer.commit(offsets=[TopicPartition(topic, 0, 0), TopicPartition(topic, 1)], asynchronous=False)
    consumer.commit(offsets=[TopicPartition(topic, 0, -2), TopicPartition(topic, 1, 3)], asynchronous=False)
    consumer.attempt("commit", offsets=[], asynchronous=False)
    consumer.attempt("commit", offsets=[TopicPartition(topic, 0)], asynchronous=False)
    consumer.close()


@scenario()
def on_commit_hears_of_every_asynchronous_commit(lab: Lab) -> None:
    """Of those that store nothing, too."""
    topic = lab.topic(2)
    consumer = lab.consumer(enable_auto_commit=False, on_commit=record)
    consumer.subscribe([topic])
    consumer.until_assigned(2)
    lab.produce(topic, 5, partition=1)
    consumer.read(5)
    consumer.commit()
    consumer.idle(0.5)
    consumer.commit()
    consumer.idle(0.5)
    consumer.commit(offsets=[])
    consumer.idle(0.5)
    consumer.commit(offsets=[TopicPartition(topic, 0)])
    consumer.idle(0.5)
    consumer.close()


@scenario()
def on_commit_hears_of_automatic_commits(lab: Lab) -> None:
    """With all partitions that are assigned."""
    topic = lab.topic(2)
    heard = threading.Event()
    consumer = lab.consumer(auto_commit_interval_ms=1000, on_commit=lambda *_: heard.set())
    consumer.subscribe([topic])
    consumer.until_assigned(2)
    lab.produce(topic, 5)
    consumer.read(5)
    consumer.until(heard.is_set, "committed")
    consumer.idle(1.0)
    consumer.close()


@scenario()
def a_commit_of_an_unknown_topic_fails_soon(lab: Lab) -> None:
    """It is retried for a moment, in case that the topic is new."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False, on_commit=record)
    consumer.subscribe([topic])
    consumer.read(5)
    nowhere = TopicPartition(lab.name_topic("nosuch"), 0, 1)
    consumer.attempt("commit", offsets=[nowhere], asynchronous=False)
    consumer.attempt("commit", offsets=[TopicPartition(topic, 77, 1)], asynchronous=False)
    consumer.attempt("commit", offsets=[TopicPartition(topic, 0, 3), nowhere], asynchronous=False)
    consumer.commit(offsets=[nowhere])
    consumer.idle(1.0)
    consumer.close()


@scenario()
def a_commit_that_fails_in_part_tells_on_commit_where(lab: Lab) -> None:
    """Each partition that failed has its error."""
    topic = lab.topic(2)
    consumer = lab.consumer(enable_auto_commit=False, on_commit=record)
    consumer.subscribe([topic])
    consumer.until_assigned(2)
    nowhere = TopicPartition(lab.name_topic("nosuch"), 0, 1)
    consumer.commit(offsets=[TopicPartition(topic, 0, 3), nowhere, TopicPartition(topic, 1)])
    consumer.idle(1.0)
    consumer.close()


@scenario()
def a_deleted_topic_holds_nothing_up(lab: Lab) -> None:
    """Its consumed messages cannot be committed; the other topics continue."""
    keep, doomed = lab.topic(messages=20, name="keep"), lab.topic(messages=20, name="doomed")
    consumer = lab.consumer(
        session_timeout_ms=30000, auto_commit_interval_ms=3600000, topic_metadata_refresh_interval_ms=1000
    )
    consumer.subscribe([keep, doomed], **callbacks())
    consumer.read(40)
    lab.delete(doomed)
    consumer.until(lambda: consumer.revoked and len(consumer.raw.assignment()) == 1, "assigned anew")
    lab.produce(keep, 5)
    consumer.until(lambda: sum(m.topic() == keep for m in consumer.messages) == 25, "the rest")
    consumer.close()


@scenario()
def a_close_after_a_topic_was_deleted_is_quick(lab: Lab) -> None:
    """The last commit fails, and close goes on."""
    keep, doomed = lab.topic(messages=20, name="keep"), lab.topic(messages=20, name="doomed")
    consumer = lab.consumer(auto_commit_interval_ms=3600000)
    consumer.subscribe([keep, doomed])
    consumer.read(40)
    lab.delete(doomed)
    consumer.close()


@scenario()
def close_loses_no_asynchronous_commit(lab: Lab) -> None:
    """With manual assignment, a static and a dynamic member: on_commit is called before close returns."""
    topic = lab.topic(messages=10)
    for kind, static in (("hand", None), ("dynamic", None), ("static", "me")):
        settings = {"group_instance_id": static} if static else {}
        consumer = lab.consumer(
            group_id=f"{lab.group}.{kind}", enable_auto_commit=False, on_commit=record, **settings
        )
        if kind == "hand":
            consumer.assign(partitions(topic, 0))
        else:
            consumer.subscribe([topic])
        consumer.read(5)
        consumer.commit()
        consumer.close()


@scenario()
def close_waits_for_commits_made_in_on_revoke(lab: Lab) -> None:
    """A static member sends no LeaveGroup that would wait for them."""
    topic = lab.topic(messages=10)

    def commit(client: Client, _: list[TopicPartition]) -> None:
        client.commit()

    consumer = lab.consumer(enable_auto_commit=False, group_instance_id="me", on_commit=record)
    consumer.subscribe([topic], on_revoke=commit)
    consumer.read(10)
    consumer.close()


@scenario()
def on_revoke_commits_beside_automatic_commits(lab: Lab) -> None:
    """A commit in on_revoke succeeds even with enable.auto.commit, whose last commit follows the callback."""

    def commit(client: Client, _: list[TopicPartition]) -> None:
        client.attempt("commit", asynchronous=False)

    topic = lab.topic(messages=10)
    for number, way in enumerate(("unsubscribe", "close")):
        consumer = lab.consumer(
            group_id=f"{lab.group}.{number}", auto_commit_interval_ms=60_000, on_commit=record
        )
        consumer.subscribe([topic], on_assign=record, on_revoke=commit)
        consumer.read(5)
        getattr(consumer, way)()
        if way == "unsubscribe":
            consumer.until(lambda: consumer.revoked, "revoked")  # noqa: B023 - called here
            consumer.idle(0.5)
            consumer.close()


@scenario()
def automatic_commits_have_the_last_word_after_on_revoke(lab: Lab) -> None:
    """Offsets that on_revoke commits of its own choice are overwritten with what was consumed."""

    def commit(client: Client, _: list[TopicPartition]) -> None:
        client.attempt("commit", offsets=partitions(topic, 3), asynchronous=False)

    topic = lab.topic(messages=10)
    for number, assignor in enumerate(("range", "cooperative-sticky")):
        consumer = lab.consumer(
            group_id=f"{lab.group}.{number}",
            auto_commit_interval_ms=60_000,
            partition_assignment_strategy=assignor,
        )
        consumer.subscribe([topic], on_assign=record, on_revoke=commit)
        consumer.read(5)
        consumer.close()


@scenario()
def on_commit_of_the_last_automatic_commit_comes_after_on_revoke(lab: Lab) -> None:
    """After unsubscribe, with all partitions that were revoked; by hand it comes after unassign."""
    topic = lab.topic(2)
    lab.produce(topic, 5)
    consumer = lab.consumer(auto_commit_interval_ms=60_000, on_commit=record)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    consumer.unsubscribe()
    consumer.until(lambda: consumer.revoked, "revoked")
    consumer.idle(0.5)
    consumer.close()
    by_hand = lab.consumer(group_id=f"{lab.group}.hand", auto_commit_interval_ms=60_000, on_commit=record)
    by_hand.assign(partitions(topic, 0, 0))
    by_hand.read(5)
    by_hand.unassign()
    by_hand.idle(0.5)
    by_hand.close()


@scenario()
def what_is_committed_already_is_committed_by_the_last_commit(lab: Lab) -> None:
    """On_commit is called for it, too."""
    topic = lab.topic(messages=5)
    consumer = lab.consumer(auto_commit_interval_ms=60_000, on_commit=record)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario()
def the_last_commit_is_of_the_partitions_that_are_assigned(lab: Lab) -> None:
    """The group has given the member two; it has assigned one of them anew by hand."""
    topic = lab.topic(2, messages=5)
    consumer = lab.consumer(auto_commit_interval_ms=60_000, on_commit=record)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    consumer.assign([TopicPartition(topic, 1, 0)])
    consumer.read(5)
    consumer.close()


@scenario()
def a_partition_comes_back_and_is_read_again_from_below(lab: Lab) -> None:
    """A commit of the second reading, up to the offset that the member committed before the rebalance."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False)

    def begin(raw: Any, partitions_: list[TopicPartition]) -> None:
        raw.assign([TopicPartition(each.topic, each.partition, 3) for each in partitions_])

    consumer.subscribe([topic], on_assign=begin)
    consumer.read(7)
    consumer.commit(asynchronous=False)
    consumer.subscribe([topic], on_assign=begin)
    consumer.read(7)
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario()
def what_an_asynchronous_commit_has_stored_is_known_before_the_next_poll(lab: Lab) -> None:
    """A lower offset that is stored afterwards is nothing new to commit."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False, enable_auto_offset_store=False)
    consumer.assign(partitions(topic, 0))
    *_, last = consumer.read(5)
    consumer.commit(message=last)
    lab.wait(lambda: lab.stored(topic) == [5], "the commit is stored")
    consumer.store_offsets(offsets=partitions(topic, 3))
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario()
def a_commit_before_the_first_join(lab: Lab) -> None:
    """A member that was in no generation yet commits as a consumer outside any group does."""
    topic = lab.topic(messages=5)
    for number, asynchronous in enumerate((True, False)):
        group = f"{lab.group}.{number}"
        consumer = lab.consumer(group_id=group, enable_auto_commit=False, on_commit=record)
        consumer.subscribe([topic])
        consumer.attempt("commit", offsets=partitions(topic, 3), asynchronous=asynchronous)
        consumer.read(2)
        consumer.close()


@scenario()
def an_exception_of_on_commit_leaves_close(lab: Lab) -> None:
    """The commit is stored, and the consumer is closed."""

    def fail(*_: object) -> None:
        raise ValueError

    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False, on_commit=fail)
    consumer.assign(partitions(topic, 0))
    consumer.read(5)
    consumer.commit()
    consumer.attempt("close")
    consumer.attempt("commit")


@scenario()
def consumed_before_a_seek_is_committed(lab: Lab) -> None:
    """By a commit, by close, and while the partition is paused."""
    topic = lab.topic(messages=40)
    for target in (40, 2):
        consumer = lab.consumer(group_id=f"{lab.group}.sync.{target}", enable_auto_commit=False)
        consumer.subscribe([topic])
        consumer.read(10)
        consumer.seek(TopicPartition(topic, 0, target))
        consumer.commit(asynchronous=False)
        consumer.attempt("commit", asynchronous=False)
        consumer.close()

        consumer = lab.consumer(group_id=f"{lab.group}.close.{target}", auto_commit_interval_ms=3600000)
        consumer.subscribe([topic])
        consumer.read(10)
        consumer.seek(TopicPartition(topic, 0, target))
        consumer.close()


@scenario()
def consumed_before_a_seek_is_committed_while_paused(lab: Lab) -> None:
    """By the automatic commit, when it is due."""
    topic = lab.topic(messages=40)
    heard = threading.Event()
    consumer = lab.consumer(auto_commit_interval_ms=500, on_commit=lambda *_: heard.set())
    consumer.subscribe([topic])
    consumer.read(10)
    consumer.seek(TopicPartition(topic, 0, 40))
    consumer.pause(partitions(topic, 0))
    consumer.until(heard.is_set, "committed")
    consumer.close()


@scenario()
def consumed_before_two_seeks_is_committed_by_unsubscribing(lab: Lab) -> None:
    """The second seek finds no position, and the first one's is still known."""
    topic = lab.topic(messages=40)
    consumer = lab.consumer(auto_commit_interval_ms=3600000)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    consumer.seek(TopicPartition(topic, 0, 40))
    consumer.seek(TopicPartition(topic, 0, 40))
    consumer.unsubscribe()
    consumer.until(lambda: consumer.revoked, "revoked")
    consumer.close()


@scenario()
def partitions_assigned_again_go_on_where_they_were(lab: Lab) -> None:
    """Automatic commits that are under way count."""
    topic = lab.topic(messages=20)
    one = [TopicPartition(topic, 0)]
    for how in ("assign", "unassign", "incremental"):
        consumer = lab.consumer(group_id=f"{lab.group}.{how}", auto_commit_interval_ms=3600000)
        consumer.assign(one)
        consumer.read(10)
        if how == "incremental":
            consumer.incremental_unassign(one)
            consumer.incremental_assign(one)
        else:
            if how == "unassign":
                consumer.unassign()
            consumer.assign(one)
        consumer.read(10)
        consumer.idle(0.5)
        consumer.close()


@scenario()
def partitions_assigned_again_go_on_at_the_commit_under_way(lab: Lab) -> None:
    """Also at one that the application has made itself."""
    topic = lab.topic(messages=20)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.read(10)
    consumer.commit(offsets=partitions(topic, 7))
    consumer.assign([TopicPartition(topic, 0)])
    consumer.read(13)
    consumer.close()


@scenario()
def partitions_assigned_again_after_a_rejected_commit(lab: Lab) -> None:
    """They begin at what is committed: a group with members takes no commit by hand."""
    topic = lab.topic(messages=20)
    other = lab.other_member()
    other.subscribe([topic])
    other.read(20)
    consumer = lab.consumer(enable_auto_commit=False, on_commit=record)
    consumer.assign([TopicPartition(topic, 0)])
    consumer.read(10)
    consumer.commit(offsets=partitions(topic, 7))
    consumer.assign([TopicPartition(topic, 0)])
    consumer.read(20)
    consumer.close()


@scenario()
def automatic_commits_go_on_while_the_application_is_busy(lab: Lab) -> None:
    """Commits succeed while the consumer is a member, even without polling."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(auto_commit_interval_ms=300)
    consumer.subscribe([topic])
    consumer.read(5)
    lab.wait(lambda: lab.stored(topic) == [5], "the commit")
    lab.note("committed")
    consumer.close()


@scenario()
def a_commit_of_something_else_is_a_type_error(lab: Lab) -> None:
    """Before anything is sent."""
    topic = lab.topic()
    consumer = lab.consumer()
    consumer.assign(partitions(topic, 0))
    consumer.attempt("commit", offsets=[(topic, 0, 1)])
    consumer.attempt("commit", offsets=topic)
    consumer.attempt("commit", offsets=(TopicPartition(topic, 0, 1),))
    consumer.attempt("commit", message="x")
    consumer.attempt("commit", message="x", offsets=[])
    consumer.attempt("store_offsets", message="x")
    consumer.attempt("store_offsets", offsets=[1])
    consumer.attempt("store_offsets")
    consumer.close()


@scenario()
def a_message_that_is_an_error_cannot_be_committed(lab: Lab) -> None:
    """It has no offset of its own."""
    topic = lab.topic()
    consumer = lab.consumer(enable_partition_eof=True)
    consumer.assign(partitions(topic, 0))
    ends: list[Message] = []
    while not ends:
        ends += [message for message in [consumer.poll(0.1)] if message is not None]
    consumer.attempt("commit", message=ends[0], asynchronous=False)
    consumer.close()


@scenario()
def the_codes_of_commits_in_on_revoke(lab: Lab) -> None:
    """They are accepted, as the old generation's."""

    def commit(client: Client, _: list[TopicPartition]) -> None:
        client.attempt("commit", asynchronous=False)
        client.attempt("commit", offsets=partitions(topic, 4), asynchronous=False)
        client.attempt("commit")

    topic = lab.topic(messages=10)
    for strategy in ("range", "cooperative-sticky"):
        consumer = lab.consumer(
            group_id=f"{lab.group}.{strategy}",
            enable_auto_commit=False,
            on_commit=record,
            partition_assignment_strategy=strategy,
        )
        consumer.subscribe([topic], on_revoke=commit)
        consumer.read(10)
        consumer.close()


@scenario()
def the_codes_of_commits_after_max_poll_interval(lab: Lab) -> None:
    """A commit without arguments says that the assignment is lost, until the application knows."""

    def commit(client: Client, _: list[TopicPartition]) -> None:
        client.attempt("commit", asynchronous=False)
        client.attempt("commit", offsets=partitions(topic, 4), asynchronous=False)
        client.attempt("commit")

    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False, max_poll_interval_ms=6000, on_commit=record)
    consumer.subscribe([topic], on_revoke=record, on_lost=commit)
    consumer.read(10)
    lab.wait(lambda: lab.members() == 0, "the end of the membership")
    time.sleep(0.5)
    consumer.attempt("commit", asynchronous=False)
    consumer.attempt("commit", offsets=partitions(topic, 3), asynchronous=False)
    consumer.until(lambda: consumer.revoked, "lost")
    consumer.read(10)
    consumer.close()


@scenario()
def the_codes_of_commits_of_a_fenced_member(lab: Lab) -> None:
    """Nothing can be committed any more."""
    topic = lab.topic(messages=10)
    consumer = lab.consumer(enable_auto_commit=False, group_instance_id="me", on_commit=record)
    consumer.subscribe([topic])
    consumer.read(10)
    other = lab.other_member(group_instance_id="me")
    other.subscribe([topic])
    other.until_assigned(1)

    def fenced() -> bool:
        try:
            consumer.raw.commit(asynchronous=False)
        except KafkaException as error:
            return bool(error.args[0].code() == KafkaError._FATAL)
        return False

    lab.wait(fenced, "the heartbeat that says so")
    consumer.attempt("commit", asynchronous=False)
    consumer.attempt("commit", offsets=partitions(topic, 3), asynchronous=False)
    consumer.close()
    other.close()


@scenario()
def on_commit_has_run_before_a_later_commit_returns(lab: Lab) -> None:
    """Callbacks come in the order of the commits."""
    consumer = lab.consumer(enable_auto_commit=False, on_commit=record)
    topic = lab.topic()
    consumer.assign(partitions(topic, 0))
    consumer.commit(offsets=partitions(topic, 4))
    consumer.commit(offsets=partitions(topic, 5), asynchronous=False)
    consumer.idle(0.5)
    consumer.close()


@scenario()
def going_back_is_committed_at_the_end_alone(lab: Lab) -> None:
    """After a seek back, commit() stores nothing up to the committed offset; close stores the position."""
    topic = lab.topic(messages=20)
    for auto in (False, True):
        consumer = lab.consumer(
            group_id=f"{lab.group}.{auto}", enable_auto_commit=auto, auto_commit_interval_ms=3600000
        )
        consumer.subscribe([topic])
        consumer.read(10)
        consumer.commit(asynchronous=False)
        consumer.seek(TopicPartition(topic, 0, 2))
        consumer.poll(10)
        consumer.attempt("commit", asynchronous=False)
        lab.note(f"stored {lab.stored(topic, f'{lab.group}.{auto}')}")
        consumer.close()


@scenario()
def beginning_before_the_committed_offset_is_committed(lab: Lab) -> None:
    """An application that chooses an earlier offset in on_assign commits from there."""
    topic = lab.topic(messages=20)
    first = lab.consumer(enable_auto_commit=False)
    first.subscribe([topic])
    first.read(10)
    first.commit(asynchronous=False)
    first.close()

    def rewind(client: Client, assigned: list[TopicPartition]) -> None:
        client.assign([TopicPartition(p.topic, p.partition, 2) for p in assigned])

    second = lab.consumer(enable_auto_commit=False)
    second.subscribe([topic], on_assign=rewind)
    while second.poll(0.1) is None:
        pass
    second.attempt("commit", asynchronous=False)
    lab.note(f"stored {lab.stored(topic)}")
    second.close()


@scenario()
def nothing_is_committed_of_partitions_that_were_not_consumed(lab: Lab) -> None:
    """Also where their messages have been prefetched."""
    topic = lab.topic(4, messages=50)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic])
    # Which partition comes first is chance: none of that is in the trace.
    seen: set[int | None] = set()
    for _ in range(6):
        message = consumer.raw.poll(10)
        seen.add(message and message.partition())
    stored = consumer.raw.commit(asynchronous=False)
    lab.note(f"of the consumed alone: {({p.partition for p in stored if p.offset >= 0}) == seen}")
    consumer.commit(offsets=partitions(topic, 0, 0, 0, 0), asynchronous=False)
    consumer.close()
