"""Subscriptions, unavailable topics, rejections by the group, and permitted calls of assign."""

from collections.abc import Callable
from typing import Any

from confluent_kafka import TopicPartition
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from integration_tests.parity.client import Client
from integration_tests.parity.lab import Lab, callbacks
from integration_tests.parity.scenarios import scenario


def _is_revoked(lab: Lab, change: Callable[[Client], object], *, assigned: int = 0, **settings: Any) -> None:
    """Change the subscription while messages are pending; poll until the assignment has changed."""
    topic = lab.topic(messages=2000)
    consumer = lab.consumer(**settings)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    change(consumer)
    consumer.until(lambda: consumer.revoked and len(consumer.raw.assignment()) == assigned, "revoked")
    consumer.close()


@scenario()
def nothing_comes_after_unsubscribe(lab: Lab) -> None:
    """No message is returned between `unsubscribe` and `on_revoke`."""
    _is_revoked(lab, lambda consumer: consumer.unsubscribe())


@scenario()
def nothing_comes_after_unsubscribe_in_a_cooperative_group(lab: Lab) -> None:
    """As above."""
    _is_revoked(
        lab, lambda consumer: consumer.unsubscribe(), partition_assignment_strategy="cooperative-sticky"
    )


@scenario()
def nothing_comes_after_another_subscription(lab: Lab) -> None:
    """No message is returned between an eager member's `subscribe` and `on_revoke`."""
    other = lab.topic()
    _is_revoked(lab, lambda consumer: consumer.subscribe([other], **callbacks()), assigned=1)


REFRESH = 500
"""Milliseconds between two looks at topics, where a scenario waits for one."""


def allow(lab: Lab, kind: ResourceType, name: str, user: str) -> None:
    binding = AclBinding(
        kind,
        name,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    lab.admin.create_acls([binding])[binding].result(30)


def got_error(client: Client, count: int = 1) -> Callable[[], bool]:
    """Return whether so many errors were returned."""
    return lambda: len(client.errors) >= count


# --- Topics that are not available ----------------------------------------------------------------------


@scenario()
def a_missing_topic_beside_an_existing_one_is_an_error_once(lab: Lab) -> None:
    """A message with the error UNKNOWN_TOPIC_OR_PART comes once; the other topic is consumed."""
    topic = lab.topic(messages=3)
    consumer = lab.consumer(topic_metadata_refresh_interval_ms=REFRESH)
    consumer.subscribe([topic, lab.name_topic("missing")])
    consumer.until(got_error(consumer), "an error")
    consumer.read(3)
    consumer.idle(2.0)
    consumer.close()


@scenario()
def a_missing_topic_in_two_different_subscriptions_is_an_error_twice(lab: Lab) -> None:
    """The error comes again once a subscription without the topic lay in between."""
    topic, missing = lab.topic(), lab.name_topic("missing")
    consumer = lab.consumer()
    consumer.subscribe([topic, missing])
    consumer.until(got_error(consumer), "an error")
    consumer.until_assigned()
    for topics in ([topic, missing], [topic]):
        consumer.subscribe(topics)
        consumer.idle(1.0)
    consumer.subscribe([topic, missing])
    consumer.until(got_error(consumer, 2), "another error")
    consumer.until_assigned()
    consumer.close()


@scenario()
def a_missing_topic_is_consumed_once_it_is_there(lab: Lab) -> None:
    """Its error comes once, then its messages."""
    other, late = lab.topic(), lab.name_topic("late")
    consumer = lab.consumer(topic_metadata_refresh_interval_ms=REFRESH)
    consumer.subscribe([other, late])
    consumer.until(got_error(consumer), "an error")
    consumer.until_assigned()
    lab.create(late)
    lab.produce(late, 3)
    consumer.read(3)
    consumer.close()


@scenario()
def a_deleted_topic_is_an_error_and_its_partitions_are_revoked(lab: Lab) -> None:
    """A message with UNKNOWN_TOPIC_OR_PART names the topic."""
    stays, deleted = lab.topic(), lab.topic()
    consumer = lab.consumer(topic_metadata_refresh_interval_ms=200, enable_auto_commit=False)
    consumer.subscribe([stays, deleted], **callbacks())
    consumer.until_assigned(2)
    lab.delete(deleted)
    # The original detects the deletion by its fetches; ours needs two metadata responses, a second apart.
    while not consumer.errors or not consumer.revoked:
        consumer.poll(0.1)
    consumer.until_assigned(1)
    consumer.close()


@scenario()
def an_expression_that_matches_nothing_is_an_error_by_its_text(lab: Lab) -> None:
    """Matching topics are consumed."""
    topic = lab.topic(messages=3)
    consumer = lab.consumer()
    consumer.subscribe([topic, "^nowhere-at-all.*"])
    consumer.until(got_error(consumer), "an error")
    consumer.read(3)
    consumer.close()


@scenario()
def consume_returns_the_error_of_a_missing_topic(lab: Lab) -> None:
    """It is one of its messages."""
    topic = lab.topic(messages=3)
    consumer = lab.consumer()
    consumer.subscribe([topic, lab.name_topic("missing")])
    while not consumer.errors:
        consumer.consume(10, 0.5)
    consumer.read(3, batch=10)
    consumer.close()


@scenario()
def a_topic_without_rights_is_an_error_of_the_member_that_wants_it(lab: Lab) -> None:
    """The group goes on with the other topic, with any leader."""
    topic, secret = lab.topic(partitions=2, messages=3), lab.topic(messages=3)
    allow(lab, ResourceType.TOPIC, topic, "limited")
    allow(lab, ResourceType.GROUP, lab.group, "limited")
    config = lab.secured("limited")
    modest, curious = lab.consumer(**config), lab.consumer(**config)
    modest.subscribe([topic])
    modest.read(6)
    curious.subscribe([topic, secret])

    def shared() -> bool:
        curious.poll(0.05)
        return len(modest.raw.assignment()) == len(curious.raw.assignment()) == 1

    modest.until(shared, "both have one partition")
    curious.until(got_error(curious), "an error")
    lab.note(f"errors: {len(modest.errors)} and {len(curious.errors)}")
    modest.close()
    curious.close()


@scenario()
def a_subscription_of_which_nothing_exists(lab: Lab) -> None:
    """Its error comes once."""
    consumer = lab.consumer()
    consumer.subscribe([lab.name_topic("missing")], **callbacks())
    consumer.until(got_error(consumer), "an error")
    consumer.idle(1.0)
    lab.note(f"members: {lab.members()}")
    consumer.close()


# --- What the group refuses -----------------------------------------------------------------------------


@scenario()
def a_session_timeout_that_the_broker_refuses_is_an_error_message(lab: Lab) -> None:
    """INVALID_SESSION_TIMEOUT comes from poll again and again."""
    consumer = lab.consumer(session_timeout_ms=1_900_000, max_poll_interval_ms=2_000_000)
    consumer.subscribe([lab.topic()])
    consumer.until(got_error(consumer), "an error")
    lab.note(f"with {consumer.errors[0].name()}")
    consumer.close()


@scenario()
def no_assignor_in_common_is_an_error_message(lab: Lab) -> None:
    """INCONSISTENT_GROUP_PROTOCOL comes from poll; the others are not disturbed."""
    topic = lab.topic()
    other = lab.other_member(partition_assignment_strategy="roundrobin")
    other.subscribe([topic])
    other.until_assigned()
    consumer = lab.consumer(partition_assignment_strategy="range")
    consumer.subscribe([topic])
    consumer.until(got_error(consumer), "an error")
    consumer.close()
    other.close()


@scenario()
def a_fenced_static_member_says_so_once(lab: Lab) -> None:
    """A message with _FATAL; then nothing, and it may not subscribe or unsubscribe."""
    topic = lab.topic()
    first = lab.consumer(group_instance_id="one")
    first.subscribe([topic])
    first.until_assigned()
    second = lab.other_member(group_instance_id="one")
    second.subscribe([topic])
    second.until_assigned()
    first.until(got_error(first), "an error")
    first.idle(1.0)
    first.attempt("subscribe", [topic])
    first.attempt("unsubscribe")
    first.attempt("assign", [TopicPartition(topic, 0)])
    first.attempt("assignment")
    first.close()
    second.close()


@scenario()
def a_fenced_static_member_has_lost_its_partitions(lab: Lab) -> None:
    """Nothing is assigned to it any more."""
    topic = lab.topic()
    first = lab.consumer(group_instance_id="one")
    first.subscribe([topic], **callbacks())
    first.until_assigned()
    second = lab.other_member(group_instance_id="one")
    second.subscribe([topic])
    second.until_assigned()
    first.until(got_error(first), "an error")
    first.idle(0.5)
    first.assignment()
    first.close()
    second.close()


# --- Subscribing ----------------------------------------------------------------------------------------


@scenario()
def subscribing_to_the_same_topics_again_rebalances_an_eager_member(lab: Lab) -> None:
    """on_revoke, then on_assign."""
    topic = lab.topic()
    consumer = lab.consumer(partition_assignment_strategy="range")
    consumer.subscribe([topic], **callbacks())
    consumer.until_assigned()
    consumer.subscribe([topic], **callbacks())
    consumer.until(lambda: consumer.revoked, "revoked")
    consumer.until_assigned()
    consumer.close()


@scenario()
def subscribing_to_the_same_topics_again_changes_nothing_for_a_cooperative_member(lab: Lab) -> None:
    """No callback is called."""
    topic = lab.topic()
    consumer = lab.consumer(partition_assignment_strategy="cooperative-sticky")
    consumer.subscribe([topic], **callbacks())
    consumer.until_assigned()
    consumer.subscribe([topic], **callbacks())
    consumer.idle(1.0)
    consumer.close()


@scenario()
def subscriptions_that_cannot_be(lab: Lab) -> None:
    """Each is refused by the same exception."""
    consumer = lab.consumer()
    wrong: list[Any] = [[], ("a",), {"a"}, "a", None, [""], ["^["], ["a", "a"]]
    for topics in wrong:
        consumer.attempt("subscribe", topics)
    for name in ("on_assign", "on_revoke", "on_lost"):
        consumer.attempt("subscribe", ["a"], **{name: 5})
    consumer.close()


# --- Which calls may assign -----------------------------------------------------------------------------


def _calls(topic: str, other: str) -> list[tuple[str, list[list[TopicPartition]]]]:
    mine, foreign = [TopicPartition(topic, 0)], [TopicPartition(other, 0)]
    return [
        ("incremental_assign", [mine]),
        ("incremental_assign", [foreign]),
        ("incremental_unassign", [foreign]),
        ("incremental_unassign", [[TopicPartition(other, 1)]]),
        ("unassign", []),
        ("assign", [foreign]),
        ("assign", [mine]),
    ]


def _try_all(consumer: Client, topic: str, other: str) -> None:
    for name, arguments in _calls(topic, other):
        consumer.attempt(name, *arguments)
        consumer.assignment()


def _assign_calls(lab: Lab, strategy: str) -> None:
    topic, other = lab.topic(), lab.topic(2)
    consumer = lab.consumer(partition_assignment_strategy=strategy, enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    consumer.until_assigned()
    _try_all(consumer, topic, other)
    consumer.unsubscribe()
    consumer.until(lambda: consumer.revoked, "revoked")
    consumer.idle(0.5)
    _try_all(consumer, topic, other)
    consumer.close()


@scenario()
def which_calls_assign_in_an_eager_group(lab: Lab) -> None:
    """Only those that replace the whole assignment, also after the group was left."""
    _assign_calls(lab, "range")


@scenario()
def which_calls_assign_in_a_cooperative_group(lab: Lab) -> None:
    """Only those that change a part of the assignment, also after the group was left."""
    _assign_calls(lab, "cooperative-sticky")


@scenario()
def which_calls_assign_outside_of_a_group(lab: Lab) -> None:
    """All of them."""
    topic, other = lab.topic(), lab.topic(2)
    consumer = lab.consumer(enable_auto_commit=False)
    _try_all(consumer, topic, other)
    consumer.close()


def _in_callback(lab: Lab, strategy: str, callback: str, calls: list[str]) -> None:
    topic = lab.topic(2)

    def call(consumer: Client, partitions: list[TopicPartition]) -> None:
        for name in calls:
            consumer.attempt(name, *([] if name == "unassign" else [partitions]))

    consumer = lab.consumer(partition_assignment_strategy=strategy, enable_auto_commit=False)
    consumer.subscribe([topic], **{**callbacks(), callback: call})
    consumer.until_assigned(2)
    consumer.close()


@scenario()
def which_calls_assign_in_an_eager_on_assign(lab: Lab) -> None:
    """assign; the incremental ones are refused."""
    _in_callback(lab, "range", "on_assign", ["incremental_assign", "incremental_unassign", "assign"])


@scenario()
def which_calls_assign_in_a_cooperative_on_assign(lab: Lab) -> None:
    """incremental_assign; those for the whole assignment are refused."""
    _in_callback(lab, "cooperative-sticky", "on_assign", ["assign", "unassign", "incremental_assign"])


@scenario()
def while_the_consumer_closes_any_call_unassigns(lab: Lab) -> None:
    """None is refused in on_revoke."""
    for strategy in ("range", "cooperative-sticky"):
        _in_callback(lab, strategy, "on_revoke", ["assign", "incremental_assign", "unassign"])


@scenario()
def unassigning_in_an_eager_on_assign(lab: Lab) -> None:
    """Nothing is assigned then."""
    topic = lab.topic()
    consumer = lab.consumer(enable_auto_commit=False)
    seen: list[object] = []

    def unassign(client: Client, partitions: list[TopicPartition]) -> None:
        seen.append(partitions)
        client.unassign()

    consumer.subscribe([topic], **{**callbacks(), "on_assign": unassign})
    consumer.until(lambda: seen, "on_assign")
    consumer.idle(0.5)
    consumer.assignment()
    consumer.close()


def _refused_call(lab: Lab, strategy: str, call: str) -> None:
    topic = lab.topic()
    consumer = lab.consumer(partition_assignment_strategy=strategy, enable_auto_commit=False)
    seen: list[object] = []

    def wrong(client: Client, partitions: list[TopicPartition]) -> None:
        seen.append(partitions)
        client.attempt(call, partitions)

    consumer.subscribe([topic], **{**callbacks(), "on_assign": wrong})
    consumer.until(lambda: seen, "on_assign")
    consumer.idle(0.5)
    lab.note("assigned t1[0]" if consumer.raw.assignment() else "assigned nothing")
    consumer.close()


@scenario()
def a_refused_call_in_on_assign_of_an_eager_group(lab: Lab) -> None:
    """It may be noticed by its exception."""
    _refused_call(lab, "range", "incremental_assign")


@scenario()
def a_refused_call_in_on_assign_of_a_cooperative_group(lab: Lab) -> None:
    """It may be noticed by its exception."""
    _refused_call(lab, "cooperative-sticky", "assign")
