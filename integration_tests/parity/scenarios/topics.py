"""Subscriptions to topics that are deleted, re-created, grown, forbidden, missing or invalid."""

from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from integration_tests.parity.client import Client
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario


def _subscribed(lab: Lab, topics: list[str], **settings: Any) -> Client:
    """Subscribe; topics are looked for every 300 ms."""
    consumer = lab.consumer(topic_metadata_refresh_interval_ms=300, **settings)
    consumer.subscribe(topics, **callbacks())
    return consumer


@scenario(seconds=30)
def one_of_two_topics_is_deleted(lab: Lab) -> None:
    """The other topic's messages go on, and auto commit's too."""
    keep, doomed = lab.topic(messages=3), lab.topic(messages=3)
    consumer = _subscribed(lab, [keep, doomed], auto_commit_interval_ms=200)
    consumer.read(6)
    lab.delete(doomed)
    consumer.until(lambda: len(consumer.raw.assignment()) == 1, "one partition left")
    lab.produce(keep, 3)
    consumer.read(3)
    consumer.close()


@scenario(seconds=30)
def one_of_two_topics_is_deleted_with_uncommitted_messages(lab: Lab) -> None:
    """A topic that can no longer be committed does not block the other one."""
    keep, doomed = lab.topic(messages=3), lab.topic(messages=3)
    consumer = _subscribed(lab, [keep, doomed], auto_commit_interval_ms=60_000)
    consumer.read(6)
    lab.delete(doomed)
    consumer.until(lambda: len(consumer.raw.assignment()) == 1, "one partition left")
    consumer.close()


@scenario(seconds=30)
def one_of_two_topics_of_a_cooperative_group_is_deleted(lab: Lab) -> None:
    """The other topic's messages go on."""
    keep, doomed = lab.topic(messages=3), lab.topic(messages=3)
    consumer = _subscribed(
        lab,
        [keep, doomed],
        enable_auto_commit=False,
        partition_assignment_strategy="cooperative-sticky",
    )
    consumer.read(6)
    lab.delete(doomed)
    consumer.until(lambda: len(consumer.raw.assignment()) == 1, "one partition left")
    lab.produce(keep, 3)
    consumer.read(3)
    consumer.close()


@scenario(seconds=30)
def the_only_topic_is_deleted(lab: Lab) -> None:
    """The partitions are revoked, and an error names the topic."""
    doomed = lab.topic(2, messages=3)
    consumer = _subscribed(lab, [doomed], enable_auto_commit=False)
    consumer.read(6)
    lab.delete(doomed)
    consumer.until(lambda: not consumer.raw.assignment(), "nothing left")
    consumer.idle(1)
    consumer.close()


@scenario(seconds=30)
def a_topic_is_made_anew(lab: Lab) -> None:
    """A topic of the same name that is made after the first was revoked is read from its beginning."""
    topic = lab.topic(messages=3)
    consumer = _subscribed(lab, [topic], enable_auto_commit=False)
    consumer.read(3)
    lab.delete(topic)
    consumer.until(lambda: not consumer.raw.assignment(), "nothing left")
    lab.create(topic)
    lab.produce(topic, 5)
    consumer.read(5)
    consumer.close()


@scenario(seconds=30)
def a_topic_that_is_made_later(lab: Lab) -> None:
    """A subscription to a topic that does not exist yet gets it once it does."""
    topic = lab.name_topic()
    consumer = _subscribed(lab, [topic])
    consumer.until(lambda: consumer.errors, "an error", timeout=5)
    lab.create(topic, 2)
    lab.produce(topic, 3)
    consumer.read(3)
    consumer.close()


@scenario(seconds=30)
def a_missing_topic_beside_another(lab: Lab) -> None:
    """The topic that exists is consumed, and an error names the other."""
    topic, missing = lab.topic(messages=3), lab.name_topic("missing")
    consumer = _subscribed(lab, [topic, missing])
    consumer.read(3)
    consumer.until(lambda: consumer.errors, "an error", timeout=5)
    consumer.close()


@scenario(seconds=30)
def a_topic_that_is_made_later_for_a_follower_alone(lab: Lab) -> None:
    """Another member leads the group, and does not subscribe to the topic."""
    topic, missing = lab.topic(2), lab.name_topic("missing")
    leader = lab.other_member(client_id="a", partition_assignment_strategy="range")
    leader.subscribe([topic])
    leader.until_assigned(2)
    consumer = _subscribed(lab, [topic, missing], client_id="b", partition_assignment_strategy="range")
    lab.together(leader, consumer, until=lambda: len(consumer.raw.assignment()) == 1, what="one and one")
    lab.create(missing)
    lab.produce(missing, 3)
    lab.together(leader, consumer, until=lambda: len(consumer.messages) == 3, what="it is read")
    consumer.close()
    leader.close()


@scenario(seconds=30)
def a_topic_that_grows(lab: Lab) -> None:
    """New partitions are assigned and read from their beginning."""
    topic = lab.topic(1, messages=3)
    consumer = _subscribed(lab, [topic])
    consumer.read(3)
    lab.grow(topic, 3)
    consumer.until(lambda: len(consumer.raw.assignment()) == 3, "three partitions")
    lab.produce(topic, 2, 2)
    consumer.read(2)
    consumer.close()


@scenario(seconds=30)
def a_topic_that_grows_under_two_members(lab: Lab) -> None:
    """Both members have new partitions; each message is read."""
    topic = lab.topic(2)
    consumer = lab.consumer(topic_metadata_refresh_interval_ms=300)
    other = lab.other_member(topic_metadata_refresh_interval_ms=300)
    consumer.raw.subscribe([topic])
    other.raw.subscribe([topic])

    def both(count: int) -> bool:
        for member in (consumer, other):
            member.raw.poll(0.05)
        return [len(member.raw.assignment()) for member in (consumer, other)] == [count, count]

    lab.wait(lambda: both(1), "one each")
    lab.grow(topic, 4)
    lab.wait(lambda: both(2), "two each")
    lab.note("both have two")
    other.raw.close()
    other.closed = True
    lab.wait(lambda: consumer.raw.poll(0.05) is None and len(consumer.raw.assignment()) == 4, "all")
    consumer.raw.close()
    consumer.closed = True


@scenario(seconds=30)
def a_pattern_that_matches_later(lab: Lab) -> None:
    """Topics that appear and match are consumed; one that does not match is not."""
    first = lab.topic(messages=2, name="orders")
    consumer = _subscribed(lab, [lab.pattern("orders")])
    consumer.read(2)
    lab.topic(messages=2, name="others")
    lab.topic(messages=4, name="orders")
    consumer.read(4)
    lab.produce(first, 1)
    consumer.read(1)
    consumer.close()


@scenario(seconds=30)
def a_pattern_that_matches_nothing_yet(lab: Lab) -> None:
    """A pattern without any match is no error; a topic that matches later is consumed."""
    consumer = _subscribed(lab, [lab.pattern("orders")])
    consumer.idle(1)
    lab.topic(messages=4, name="orders")
    consumer.read(4)
    consumer.close()


@scenario(seconds=30)
def a_topic_of_a_pattern_is_deleted(lab: Lab) -> None:
    """The others that match go on."""
    doomed, keep = lab.topic(messages=2, name="orders"), lab.topic(messages=2, name="orders")
    consumer = _subscribed(lab, [lab.pattern("orders")], enable_auto_commit=False)
    consumer.read(4)
    consumer.commit(asynchronous=False)
    lab.delete(doomed)
    consumer.until(lambda: len(consumer.raw.assignment()) == 1, "one partition left")
    lab.produce(keep, 2)
    consumer.read(2)
    consumer.close()


@scenario(seconds=30)
def a_name_and_a_pattern(lab: Lab) -> None:
    """Names and patterns together: a topic that both mean is consumed once."""
    one, two = lab.topic(messages=2, name="one"), lab.topic(messages=2, name="two")
    consumer = _subscribed(lab, [one, lab.pattern("one"), lab.pattern("two")])
    consumer.read(4)
    lab.produce(two, 1)
    consumer.read(1)
    consumer.close()


@scenario(seconds=30)
def names_that_cannot_be(lab: Lab) -> None:
    """Topic names that no broker takes: what subscribe says, and what comes of polling."""
    for name in ("", "a b", "x" * 250, "..", "a/b"):
        consumer = lab.consumer(group_id=f"{lab.group}{len(name)}")
        consumer.attempt("subscribe", [name])
        if name:
            consumer.until(consumer.errors.copy, "an error", timeout=2)
        consumer.close()


@scenario(seconds=30)
def a_name_that_cannot_be_beside_a_topic(lab: Lab) -> None:
    """The topic is consumed, and an error has the name."""
    topic = lab.topic(messages=3)
    consumer = _subscribed(lab, [topic, "a b"])
    consumer.until(consumer.errors.copy, "an error", timeout=5)
    consumer.read(3, timeout=3)
    consumer.close()


@scenario(seconds=30)
def a_topic_named_twice(lab: Lab) -> None:
    """A subscription that names a topic twice."""
    topic = lab.topic(messages=3)
    consumer = lab.consumer()
    consumer.attempt("subscribe", [topic, topic])
    consumer.subscribe([topic], **callbacks())
    consumer.read(3)
    consumer.close()


@scenario(seconds=30)
def a_topic_that_is_forbidden_later(lab: Lab) -> None:
    """A topic whose right to be read is taken away: an error names it, and the other topic is consumed."""
    topic, secret = lab.topic(messages=3), lab.topic(messages=3, name="secret")
    consumer = lab.consumer(topic_metadata_refresh_interval_ms=300, **lab.secured("limited"))
    consumer.subscribe([topic, secret], **callbacks())
    consumer.read(6)
    forbidden = AclBinding(
        ResourceType.TOPIC,
        secret,
        ResourcePatternType.LITERAL,
        "User:limited",
        "*",
        AclOperation.ALL,
        AclPermissionType.DENY,
    )
    lab.admin.create_acls([forbidden])[forbidden].result(30)
    consumer.until(lambda: consumer.errors, "an error", timeout=10)
    lab.produce(topic, 2)
    consumer.until(lambda: consumer.messages[-1].offset() == 4, "the last message")
    consumer.raw.close()
    consumer.closed = True


@scenario(seconds=30)
def commits_of_what_does_not_exist(lab: Lab) -> None:
    """Commits of a missing topic or partition, or a deleted topic, fail at once; the others are stored."""
    topic, doomed = lab.topic(messages=3), lab.topic(messages=3)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic, doomed], **callbacks())
    consumer.read(6)
    lab.delete(doomed)
    consumer.attempt("commit", offsets=[TopicPartition(lab.name_topic(), 0, 3)], asynchronous=False)
    consumer.attempt("commit", offsets=[TopicPartition(topic, 77, 3)], asynchronous=False)
    both = [TopicPartition(topic, 0, 2), TopicPartition(doomed, 0, 2)]
    consumer.attempt("commit", offsets=both, asynchronous=False)
    consumer.close()


@scenario(seconds=30)
def questions_about_what_does_not_exist(lab: Lab) -> None:
    """Watermarks, committed offsets, times and metadata of a missing topic."""
    topic = lab.topic(messages=3)
    consumer = _subscribed(lab, [topic])
    consumer.read(3)
    for missing in (TopicPartition(lab.name_topic("missing"), 0), TopicPartition(topic, 77)):
        consumer.attempt("get_watermark_offsets", missing, timeout=5)
        consumer.attempt("committed", [missing], timeout=5)
        consumer.attempt("position", [missing])
        consumer.attempt(
            "offsets_for_times", [TopicPartition(missing.topic, missing.partition, 1)], timeout=5
        )
        consumer.attempt("pause", [missing])
        consumer.attempt("seek", TopicPartition(missing.topic, missing.partition, 1))
    consumer.attempt("list_topics", lab.name_topic(), timeout=5)
    consumer.close()


@scenario(seconds=30)
def a_missing_topic_assigned_by_hand(lab: Lab) -> None:
    """By hand, a partition that does not exist is an error of poll's; the other one is read."""
    topic, missing = lab.topic(messages=3), lab.name_topic("missing")
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.assign([TopicPartition(topic, 0, 0), TopicPartition(missing, 0, 0), TopicPartition(topic, 9, 0)])
    consumer.read(3)
    consumer.until(lambda: len(consumer.errors) >= 2, "two errors", timeout=5)
    consumer.close()


@scenario(seconds=30)
def a_deleted_topic_assigned_by_hand(lab: Lab) -> None:
    """A topic that is deleted while its partition is assigned by hand: poll says so."""
    keep, doomed = lab.topic(messages=3), lab.topic(messages=3)
    consumer = lab.consumer(enable_auto_commit=False, topic_metadata_refresh_interval_ms=300)
    consumer.assign(partitions(keep, 0) + partitions(doomed, 0))
    consumer.read(6)
    lab.delete(doomed)
    consumer.until(lambda: consumer.errors, "an error", timeout=5)
    lab.produce(keep, 2)
    consumer.read(2)
    consumer.close()
