"""Users and ACLs: denied topics and groups, changing rights, wrong and changed passwords."""

import math
import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # as documented
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    ResourcePatternType,
    ResourceType,
)

from integration_tests.parity.client import Client, record
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario

_USER = "User:limited"


def _acl(kind: ResourceType, name: str, operation: AclOperation, user: str = _USER) -> AclBinding:
    return AclBinding(kind, name, ResourcePatternType.LITERAL, user, "*", operation, AclPermissionType.ALLOW)


def _allow(lab: Lab, *bindings: AclBinding) -> None:
    for future in lab.admin.create_acls([*bindings]).values():
        future.result(30)


def _forbid(lab: Lab, kind: ResourceType, name: str, user: str = _USER) -> None:
    """Take away all rights of the user. The controller answers before the broker has heard of it."""
    found = AclBindingFilter(
        kind, name, ResourcePatternType.LITERAL, user, "*", AclOperation.ANY, AclPermissionType.ANY
    )
    for future in lab.admin.delete_acls([found]).values():
        future.result(30)
    lab.wait(lambda: not lab.admin.describe_acls(found).result(30), f"the broker knows no rights of {user}")


def _reading(topic: str) -> AclBinding:
    return _acl(ResourceType.TOPIC, topic, AclOperation.READ)


def _group(lab: Lab) -> AclBinding:
    return _acl(ResourceType.GROUP, lab.group, AclOperation.READ)


def _closed_topic(lab: Lab, messages: int = 5) -> str:
    """Make a topic whose only reader is somebody else."""
    topic = lab.topic(messages=messages)
    _allow(lab, _acl(ResourceType.TOPIC, topic, AclOperation.READ, "User:somebody"))
    return topic


def _close_group(lab: Lab) -> None:
    _allow(lab, _acl(ResourceType.GROUP, lab.group, AclOperation.READ, "User:somebody"))


def _limited(lab: Lab, **settings: Any) -> Client:
    config = {
        **lab.secured("limited"),
        "enable_auto_commit": False,
        "topic_metadata_refresh_interval_ms": 500,
    }
    return lab.consumer(**{**config, **settings})


def _first(consumer: Client, condition: Callable[[], object] | None = None) -> None:
    """Poll until the first error is handed out, or raised."""
    deadline = time.monotonic() + 10
    while not consumer.errors and time.monotonic() < deadline:
        try:
            consumer.poll(0.1)
        except KafkaException:  # it is in the trace
            return
        if condition is not None and condition():
            return


@scenario()
def a_user_with_rights(lab: Lab) -> None:
    """A user with READ on topic and group reads and commits."""
    topic = _closed_topic(lab)
    _close_group(lab)
    _allow(lab, _reading(topic), _group(lab))
    consumer = _limited(lab)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario()
def a_user_without_rights_to_the_topic(lab: Lab) -> None:
    """The application gets the error."""
    topic = _closed_topic(lab)
    consumer = _limited(lab)
    consumer.subscribe([topic], **callbacks())
    _first(consumer)
    consumer.close()


@scenario()
def a_user_without_rights_to_one_of_two_topics(lab: Lab) -> None:
    """The other topic is read all the same."""
    open_, closed = lab.topic(messages=5), _closed_topic(lab)
    consumer = _limited(lab)
    consumer.subscribe([open_, closed])
    consumer.until(lambda: len(consumer.messages) == 5, "the open topic is read", timeout=3)
    lab.note(f"errors {sorted({error.name() for error in consumer.errors})}")
    consumer.close()


@scenario()
def a_user_without_rights_to_the_group(lab: Lab) -> None:
    """The application gets the error."""
    topic = lab.topic(messages=5)
    _close_group(lab)
    consumer = _limited(lab)
    consumer.subscribe([topic], **callbacks())
    _first(consumer)
    consumer.close()


@scenario()
def rights_to_the_topic_come_later(lab: Lab) -> None:
    """The topic is read once it may be."""
    topic = _closed_topic(lab)
    consumer = _limited(lab)
    consumer.subscribe([topic])
    _first(consumer)
    _allow(lab, _reading(topic))
    consumer.until(lambda: len(consumer.messages) == 5, "it is read")
    consumer.close()


@scenario()
def rights_to_the_group_come_later(lab: Lab) -> None:
    """The member joins once it may."""
    topic = lab.topic(messages=5)
    _close_group(lab)
    consumer = _limited(lab)
    consumer.subscribe([topic])
    _first(consumer)
    _allow(lab, _group(lab))
    consumer.until(lambda: len(consumer.messages) == 5, "it is read")
    consumer.close()


@scenario()
def rights_to_the_topic_are_taken_away(lab: Lab) -> None:
    """A topic that may no longer be read, while it is."""
    topic = _closed_topic(lab)
    _allow(lab, _reading(topic))
    consumer = _limited(lab, topic_metadata_refresh_interval_ms=60000)
    consumer.subscribe([topic], on_assign=record)
    consumer.read(5)
    consumer.commit(asynchronous=False)
    _forbid(lab, ResourceType.TOPIC, topic)
    lab.produce(topic, 2)
    _first(consumer)
    consumer.attempt("commit", offsets=partitions(topic, 1), asynchronous=False)
    consumer.close()


@scenario()
def rights_to_the_group_are_taken_away(lab: Lab) -> None:
    """A member that may no longer be one."""
    topic = lab.topic(messages=5)
    _close_group(lab)
    _allow(lab, _group(lab))
    consumer = _limited(lab)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    consumer.commit(asynchronous=False)
    _forbid(lab, ResourceType.GROUP, lab.group)
    consumer.attempt("commit", offsets=partitions(topic, 1), asynchronous=False)
    _first(consumer, lambda: consumer.revoked)
    consumer.close()


@scenario()
def a_user_without_rights_assigns_by_hand(lab: Lab) -> None:
    """Fetching is refused; so is a commit."""
    topic = _closed_topic(lab)
    _close_group(lab)
    consumer = _limited(lab)
    consumer.assign(partitions(topic, 0))
    _first(consumer)
    consumer.attempt("commit", offsets=partitions(topic, 1), asynchronous=False)
    consumer.attempt("committed", partitions(topic, -1001), timeout=2)
    consumer.close()


@scenario()
def a_user_without_rights_to_the_group_reads_by_hand(lab: Lab) -> None:
    """Fetching from given offsets needs no group."""
    topic = lab.topic()
    _close_group(lab)
    consumer = _limited(lab)
    consumer.assign(partitions(topic, 0))
    _first(consumer)
    lab.produce(topic, 5)
    consumer.read(5)
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario()
def a_user_without_rights_asks(lab: Lab) -> None:
    """Each question is answered by an error."""
    topic = _closed_topic(lab)
    _close_group(lab)
    consumer = _limited(lab)
    consumer.attempt("committed", partitions(topic, -1001), timeout=5)
    consumer.attempt("get_watermark_offsets", partitions(topic, -1001)[0], timeout=5)
    consumer.attempt("offsets_for_times", partitions(topic, 1), timeout=5)
    found = consumer.raw.list_topics(topic, timeout=10)
    lab.note(f"{found.topics[topic].error.name()}")
    consumer.close()


@scenario()
def a_regular_expression_finds_what_may_be_seen(lab: Lab) -> None:
    """Topics that may not be seen do not match."""
    open_, _ = lab.topic(messages=3), _closed_topic(lab)
    consumer = _limited(lab)
    consumer.subscribe([lab.pattern("t")], **callbacks())
    consumer.read(3)
    consumer.idle(0.3)
    lab.note(f"{[p.topic == open_ for p in consumer.raw.assignment()]}")
    consumer.close()


@scenario()
def two_members_of_whom_one_may_not_read_a_topic(lab: Lab) -> None:
    """A topic that the leader may not see does not stop the others."""
    open_, closed = lab.topic(2), _closed_topic(lab)
    strategy = {"partition_assignment_strategy": "range"}
    good = _limited(lab, client_id="a", **strategy)
    good.subscribe([open_])
    good.until_assigned(2)
    bad = _limited(lab, client_id="b", **strategy)
    bad.subscribe([open_, closed])
    lab.together(
        good,
        bad,
        until=lambda: len(good.raw.assignment()) == len(bad.raw.assignment()) == 1,
        what="one and one are assigned",
    )
    lab.produce(open_, 3, 0)
    good.read(3)
    good.close()
    bad.close()


@scenario()
def a_topic_that_one_of_two_members_may_not_see(lab: Lab) -> None:
    """The other member is assigned all of it."""
    open_, closed = lab.topic(2), _closed_topic(lab, messages=0)
    strategy = {"partition_assignment_strategy": "range"}
    good = lab.other_member(client_id="b", **strategy)
    good.subscribe([open_, closed], **callbacks())
    good.until_assigned(3)
    bad = _limited(lab, client_id="a", **strategy)
    bad.subscribe([open_, closed], **callbacks())
    lab.together(
        bad,
        good,
        until=lambda: [len(each.raw.assignment()) for each in (bad, good)] == [1, 2],
        what="one has one partition, the other two",
    )
    bad.until_assigned(1)
    bad.close()
    good.close()


@scenario()
def rights_to_a_topic_that_no_other_member_has_come_later(lab: Lab) -> None:
    """Another member leads the group, and does not subscribe to the topic; it is read once it may be."""
    open_, closed = lab.topic(2), _closed_topic(lab)
    strategy = {"partition_assignment_strategy": "range"}
    leader = lab.other_member(client_id="a", **strategy)
    leader.subscribe([open_])
    leader.until_assigned(2)
    consumer = _limited(lab, client_id="b", **strategy)
    consumer.subscribe([open_, closed], **callbacks())
    lab.together(leader, consumer, until=lambda: len(consumer.raw.assignment()) == 1, what="one and one")
    _allow(lab, _reading(closed))
    lab.together(leader, consumer, until=lambda: len(consumer.messages) == 5, what="it is read")
    consumer.close()
    leader.close()


@scenario()
def a_topic_that_may_be_seen_and_no_longer_read(lab: Lab) -> None:
    """Fetches and commits are refused; the member keeps the partition, and reads on when it may."""
    topic = _closed_topic(lab)
    seeing = _acl(ResourceType.TOPIC, topic, AclOperation.DESCRIBE)
    _allow(lab, _reading(topic), seeing)
    consumer = _limited(lab)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    consumer.commit(asynchronous=False)
    _forbid(lab, ResourceType.TOPIC, topic)
    _allow(lab, seeing)
    lab.produce(topic, 2)
    _first(consumer)
    consumer.attempt("commit", offsets=partitions(topic, 1), asynchronous=False)
    lab.note(f"{consumer.raw.assignment() == partitions(topic, -1001)}")
    _allow(lab, _reading(topic))
    consumer.until(lambda: len(consumer.messages) == 7, "it is read")
    consumer.close()


@scenario()
def rights_to_the_group_are_given_back(lab: Lab) -> None:
    """A member that may be one again joins anew, and reads on."""
    topic = lab.topic(messages=5)
    _close_group(lab)
    _allow(lab, _group(lab))
    consumer = _limited(lab)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    consumer.commit(asynchronous=False)
    _forbid(lab, ResourceType.GROUP, lab.group)
    _close_group(lab)
    consumer.until(lambda: consumer.revoked and consumer.errors, "revoked, with an error")
    _allow(lab, _group(lab))
    lab.produce(topic, 2)
    consumer.until(lambda: len(consumer.messages) >= 7, "it is read")
    consumer.close()


def _unseen(lab: Lab, strategy: str) -> None:
    """Revoke the right to describe one of two topics, paused so that no fetch is rejected earlier."""
    open_, closed = lab.topic(messages=3), _closed_topic(lab, messages=3)
    _allow(lab, _reading(closed))
    consumer = _limited(lab, partition_assignment_strategy=strategy, enable_auto_commit=True)
    times: list[int] = []
    on_assign = {"on_assign": lambda _, found: times.append(len(found))}
    consumer.subscribe([open_, closed], **{**callbacks(), **on_assign})
    consumer.read(6)
    consumer.pause(partitions(closed, -1001))
    consumer.idle(0.3)
    _forbid(lab, ResourceType.TOPIC, closed)
    consumer.until(lambda: len(times) == 2 and len(consumer.raw.assignment()) == 1, "it is revoked")
    lab.note(f"errors {sorted({error.name() for error in consumer.errors})}")
    consumer.errors.clear()
    consumer.idle(1.5)
    lab.produce(open_, 2)
    consumer.read(2)
    _allow(lab, _reading(closed))
    consumer.until(lambda: len(times) == 3 and len(consumer.raw.assignment()) == 2, "it is assigned again")
    consumer.close()


@scenario()
def a_topic_that_may_no_longer_be_seen(lab: Lab) -> None:
    """It is revoked, and assigned again when it may be seen again."""
    _unseen(lab, "range")


@scenario()
def a_topic_that_may_no_longer_be_seen_in_a_cooperative_group(lab: Lab) -> None:
    """It alone is revoked, and assigned again when it may be seen again."""
    _unseen(lab, "cooperative-sticky")


def _until_refused(lab: Lab, raw: Any, heard: list[str]) -> None:
    """Poll until error_cb has heard that authentication failed; how often poll says so is left out."""
    deadline = time.monotonic() + 10
    raised: set[str] = set()
    heard_at = math.inf
    while time.monotonic() < min(deadline, heard_at + 0.5):  # for a while longer, in which poll may raise
        try:
            raw.poll(0.1)
        except KafkaException as error:
            raised.add(error.args[0].name())
        if "_AUTHENTICATION" in heard:
            heard_at = min(heard_at, time.monotonic())
    lab.note(f"error_cb {'_AUTHENTICATION' in heard}, raised {sorted(raised)}")


def _stranger(lab: Lab, heard: list[str]) -> Any:
    """Make a consumer with a wrong password."""
    config = lab.config(**{**lab.secured("limited"), "sasl_password": "wrong"})
    return lab.consumer_class({**config, "error_cb": lambda error: heard.append(error.name())})


@scenario()
def a_wrong_password_calls_error_cb(lab: Lab) -> None:
    """error_cb is called for failed authentication."""
    topic, heard = lab.topic(messages=5), list[str]()
    raw = _stranger(lab, heard)
    raw.subscribe([topic])
    _until_refused(lab, raw, heard)
    raw.close()


@scenario()
def a_wrong_password_by_hand(lab: Lab) -> None:
    """The same with manual assignment."""
    topic, heard = lab.topic(messages=5), list[str]()
    raw = _stranger(lab, heard)
    raw.assign(partitions(topic, 0))
    _until_refused(lab, raw, heard)
    raw.close()


def _stranger_client(lab: Lab, heard: list[str], **settings: Any) -> Client:
    """Make a consumer with a wrong password, whose calls are written down."""
    config = lab.config(**{**lab.secured("limited"), "sasl_password": "wrong", **settings})
    return lab.adopt(lab.consumer_class({**config, "error_cb": lambda error: heard.append(error.name())}))


@scenario(seconds=90)
def a_commit_with_a_wrong_password(lab: Lab) -> None:
    """A synchronous commit before and after authentication has failed."""
    topic, heard = lab.topic(messages=5), list[str]()
    for before in (True, False):
        consumer = _stranger_client(lab, heard, socket_timeout_ms=3000)
        if before:
            consumer.attempt("commit", offsets=partitions(topic, 1), asynchronous=False)
        else:
            _until_refused(lab, consumer.raw, heard)
        consumer.attempt("commit", offsets=partitions(topic, 1), asynchronous=False)
        consumer.attempt("committed", partitions(topic, -1001), timeout=2)
        heard.clear()
        consumer.close()


@scenario(seconds=90)
def a_commit_with_a_wrong_password_of_what_was_subscribed_to(lab: Lab) -> None:
    """A synchronous commit of a member that could never join."""
    topic, heard = lab.topic(messages=5), list[str]()
    consumer = _stranger_client(lab, heard, socket_timeout_ms=3000)
    consumer.raw.subscribe([topic])
    _until_refused(lab, consumer.raw, heard)
    consumer.attempt("commit", offsets=partitions(topic, 1), asynchronous=False)
    consumer.attempt("commit", asynchronous=False)
    consumer.close()


@scenario()
def a_wrong_password_is_corrected(lab: Lab) -> None:
    """set_sasl_credentials gives the right ones, and the consumer goes on."""
    topic, heard = lab.topic(messages=5), list[str]()
    raw = _stranger(lab, heard)
    raw.assign(partitions(topic, 0))
    _until_refused(lab, raw, heard)
    raw.set_sasl_credentials("limited", lab.secured("limited")["sasl_password"])
    lab.adopt(raw).read(5)


@scenario()
def credentials_are_replaced_by_the_same(lab: Lab) -> None:
    """New credentials change nothing of a connection that stands."""
    topic = lab.topic(messages=5)
    consumer = _limited(lab)
    consumer.subscribe([topic])
    consumer.read(5)
    consumer.attempt("set_sasl_credentials", "limited", lab.secured("limited")["sasl_password"])
    lab.produce(topic, 2)
    consumer.read(2)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario()
def credentials_of_a_connection_without_any(lab: Lab) -> None:
    """set_sasl_credentials on a plain connection; arguments that are none."""
    consumer = lab.consumer()
    consumer.attempt("set_sasl_credentials", "limited", "x")
    consumer.attempt("set_sasl_credentials", None, "x")
    consumer.attempt("set_sasl_credentials", "limited", None)
    consumer.attempt("set_sasl_credentials", "limited")
    consumer.close()
    consumer.attempt("set_sasl_credentials", "limited", "x")
