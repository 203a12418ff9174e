"""Close in every state: its commits, leaving the group, and consumers that are never closed."""

import gc
import time
from typing import Any

from confluent_kafka import Consumer, TopicPartition

from integration_tests.parity.client import Client, record
from integration_tests.parity.lab import Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario


def _subscribed(lab: Lab, topic: str, **settings: Any) -> Client:
    consumer = lab.consumer(**settings)
    consumer.subscribe([topic], **callbacks())
    return consumer


@scenario()
def close_before_subscribe(lab: Lab) -> None:
    """A consumer that was never subscribed closes at once."""
    lab.consumer().close()


@scenario()
def close_right_after_subscribe(lab: Lab) -> None:
    """A consumer closes before it has polled: no callback is called, and no member stays."""
    topic = lab.topic()
    for _ in range(5):
        _subscribed(lab, topic).close()
    consumer = _subscribed(lab, topic)
    consumer.until_assigned(1)
    lab.note_members(1)


@scenario()
def close_while_the_join_waits_for_another_member(lab: Lab) -> None:
    """A member that closes while its join waits for another is gone, and the other goes on alone."""
    topic = lab.topic(2, messages=3)
    other = lab.other_member()
    other.subscribe([topic], **callbacks())
    other.until_assigned(2)
    joining = _subscribed(lab, topic)
    joining.idle(1.0)
    joining.close()
    other.idle(1.0)
    other.until_assigned(2)
    lab.note_members(1)


@scenario()
def close_calls_on_revoke_and_leaves(lab: Lab) -> None:
    """Close calls on_revoke with what is assigned, and the group is empty afterwards."""
    topic = lab.topic(3)
    consumer = _subscribed(lab, topic)
    consumer.until_assigned(3)
    consumer.close()
    lab.note_members(0)


@scenario()
def close_without_callbacks_commits(lab: Lab) -> None:
    """Auto commit's last commit needs no callback."""
    topic = lab.topic(2, messages=4)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    consumer.read(8)
    consumer.close()
    lab.note_members(0)


@scenario()
def close_commits_what_was_returned_and_not_what_was_fetched(lab: Lab) -> None:
    """Of a thousand fetched messages ten were returned: ten are committed."""
    topic = lab.topic(messages=1000)
    consumer = _subscribed(lab, topic)
    consumer.read(10)
    consumer.close()


@scenario()
def close_commits_what_consume_returned(lab: Lab) -> None:
    """All that consume has returned counts as consumed."""
    topic = lab.topic(messages=1000)
    consumer = _subscribed(lab, topic)
    consumer.read(100, batch=100)
    consumer.close()


@scenario()
def close_without_auto_commit_commits_nothing(lab: Lab) -> None:
    """Without auto commit, close stores nothing that was not committed."""
    topic = lab.topic(messages=5)
    consumer = _subscribed(lab, topic, enable_auto_commit=False)
    consumer.read(5)
    consumer.close()


@scenario()
def close_commits_stored_offsets(lab: Lab) -> None:
    """With enable.auto.offset.store=false, close commits what was stored."""
    topic = lab.topic(messages=9)
    consumer = _subscribed(lab, topic, enable_auto_offset_store=False)
    messages = consumer.read(9)
    consumer.store_offsets(message=messages[3])
    consumer.close()


@scenario()
def close_commits_nothing_that_was_not_stored(lab: Lab) -> None:
    """With enable.auto.offset.store=false and nothing stored, close commits nothing."""
    topic = lab.topic(messages=9)
    consumer = _subscribed(lab, topic, enable_auto_offset_store=False)
    consumer.read(9)
    consumer.close()


@scenario()
def close_twice(lab: Lab) -> None:
    """A second close does nothing."""
    topic = lab.topic(messages=1)
    consumer = _subscribed(lab, topic)
    consumer.read(1)
    consumer.close()
    consumer.attempt("close")


@scenario()
def close_after_unsubscribe(lab: Lab) -> None:
    """Close after unsubscribe, with and without a poll between: callbacks run once, and the member leaves."""
    topic = lab.topic(messages=4)
    consumer = _subscribed(lab, topic)
    consumer.read(4)
    consumer.unsubscribe()
    consumer.until(lambda: consumer.revoked, "revoked")
    consumer.close()
    lab.note_members(0)


@scenario()
def close_before_a_poll_has_brought_the_assignment(lab: Lab) -> None:
    """The member has joined in the background, and leaves."""
    topic = lab.topic(messages=3)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    lab.wait(lab.group_is_stable, "the member has joined")
    consumer.close()
    lab.note_members(0)


@scenario()
def close_right_after_unsubscribe(lab: Lab) -> None:
    """Close while unsubscribe's revocation is still to come."""
    topic = lab.topic(messages=4)
    consumer = _subscribed(lab, topic)
    consumer.read(4)
    consumer.unsubscribe()
    consumer.close()
    lab.note_members(0)


@scenario()
def close_after_unassign_in_a_group(lab: Lab) -> None:
    """Close of a subscribed consumer that has given its partitions up itself."""
    topic = lab.topic(messages=4)
    consumer = _subscribed(lab, topic)
    consumer.read(4)
    consumer.unassign()
    consumer.close()
    lab.note_members(0)


@scenario()
def close_of_partitions_assigned_by_hand_commits(lab: Lab) -> None:
    """Auto commit's last commit is for partitions assigned by hand too; no callback is called."""
    topic = lab.topic(2, messages=4)
    consumer = lab.consumer()
    consumer.assign(partitions(topic, 0, 2))
    consumer.read(6)
    consumer.close()


@scenario()
def close_after_unassign_by_hand(lab: Lab) -> None:
    """Messages consumed before unassign are committed."""
    topic = lab.topic(messages=4)
    consumer = lab.consumer()
    consumer.assign(partitions(topic, 0))
    consumer.read(4)
    consumer.unassign()
    consumer.close()


@scenario()
def close_waits_for_asynchronous_commits(lab: Lab) -> None:
    """An asynchronous commit made right before close is stored."""
    topic = lab.topic(messages=20)
    for _ in range(3):
        consumer = lab.consumer(enable_auto_commit=False)
        consumer.subscribe([topic])
        for message in consumer.read(5):
            consumer.commit(message=message)
        consumer.close()
        lab.note(f"stored {lab.stored(topic)}")


@scenario()
def close_waits_for_asynchronous_commits_of_partitions_assigned_by_hand(lab: Lab) -> None:
    """An asynchronous commit made right before close is stored, without any membership."""
    topic = lab.topic(messages=20)
    for start in (0, 5, 10):
        consumer = lab.consumer(enable_auto_commit=False)
        consumer.assign(partitions(topic, start))
        for message in consumer.read(5):
            consumer.commit(message=message)
        consumer.close()
        lab.note(f"stored {lab.stored(topic)}")


@scenario()
def close_of_a_static_member(lab: Lab) -> None:
    """A static member's close commits and calls on_revoke, and its place in the group is kept."""
    topic = lab.topic(messages=4)
    consumer = _subscribed(lab, topic, group_instance_id="one")
    consumer.read(4)
    consumer.close()
    lab.note_members(1)


@scenario()
def close_of_a_static_member_with_a_commit_in_on_revoke(lab: Lab) -> None:
    """A commit in on_revoke is stored, also by close, also of a static member."""
    topic = lab.topic(messages=12)
    for _ in range(3):
        consumer = lab.consumer(enable_auto_commit=False, group_instance_id="one")
        on_revoke = _commits_async
        consumer.subscribe([topic], on_revoke=on_revoke)
        consumer.read(4)
        consumer.close()
        lab.note(f"stored {lab.stored(topic)}")


def _commits_async(consumer: Client, _owned: list[TopicPartition]) -> None:
    consumer.commit()


@scenario()
def close_with_a_synchronous_commit_in_on_revoke(lab: Lab) -> None:
    """A synchronous commit in on_revoke works while the consumer closes."""
    topic = lab.topic(messages=4)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic], on_revoke=_commits_sync)
    consumer.read(4)
    consumer.close()


def _commits_sync(consumer: Client, _owned: list[TopicPartition]) -> None:
    consumer.attempt("commit", asynchronous=False)


@scenario()
def close_with_offsets_stored_in_on_revoke(lab: Lab) -> None:
    """Close commits the offsets stored in on_revoke."""
    topic = lab.topic(messages=4)
    consumer = lab.consumer(enable_auto_offset_store=False)

    def on_revoke(client: Client, _owned: list[TopicPartition]) -> None:
        client.attempt("store_offsets", offsets=[TopicPartition(topic, 0, 3)])

    consumer.subscribe([topic], on_revoke=on_revoke)
    consumer.read(4)
    consumer.close()


@scenario()
def close_with_a_failing_on_revoke(lab: Lab) -> None:
    """An exception in on_revoke leaves close, and the consumer is closed nevertheless."""
    topic = lab.topic(messages=4)
    consumer = lab.consumer()

    def on_revoke(_client: Client, _owned: list[TopicPartition]) -> None:
        raise ValueError("on purpose")

    consumer.subscribe([topic], on_revoke=on_revoke)
    consumer.read(4)
    consumer.attempt("close")
    consumer.attempt("poll", 0)
    lab.note_members(0)


@scenario()
def close_reports_its_commit_to_on_commit(lab: Lab) -> None:
    """on_commit is called for the last automatic commit."""
    topic = lab.topic(messages=4)
    consumer = _subscribed(lab, topic, on_commit=lambda *_: None)
    consumer.read(4)
    consumer.close()


@scenario()
def close_calls_on_commit_before_on_revoke(lab: Lab) -> None:
    """on_commit is called for a commit that has ended before close, before on_revoke is."""
    topic = lab.topic(messages=4)
    consumer = _subscribed(lab, topic, enable_auto_commit=False, on_commit=record)
    consumer.read(4)
    consumer.commit(offsets=partitions(topic, 3))
    lab.wait(lambda: lab.stored(topic) == [3], "stored")
    consumer.close()


@scenario()
def close_with_callbacks_that_take_longer_than_it_waits(lab: Lab) -> None:
    """On_revoke drains for 11 s: its commit is stored and reported as such, and the member leaves."""
    topic = lab.topic(messages=4)
    consumer = lab.consumer(enable_auto_commit=False, session_timeout_ms=45_000, on_commit=record)

    def on_revoke(client: Client, _owned: list[TopicPartition]) -> None:
        time.sleep(11)
        client.commit()

    consumer.subscribe([topic], on_revoke=on_revoke)
    consumer.read(4)
    consumer.close()
    lab.note_members(0)


@scenario()
def close_in_with_whose_callback_exits(lab: Lab) -> None:
    """`sys.exit` in on_revoke: the member leaves, and the exit goes on."""
    topic = lab.topic(messages=4)
    consumer = lab.consumer()

    def on_revoke(*_: object) -> None:
        raise SystemExit

    consumer.subscribe([topic], on_revoke=on_revoke)
    consumer.read(4)
    try:
        with consumer:
            pass
    except SystemExit:
        lab.note("exits")
    lab.note_members(0)


@scenario()
def on_commit_is_called_before_a_later_on_revoke(lab: Lab) -> None:
    """on_commit is called for a commit that has ended before a rebalance, before the callbacks of that."""
    topic = lab.topic(2, messages=4)
    called: list[str] = []
    consumer = lab.consumer(enable_auto_commit=False, on_commit=lambda *_: called.append("on_commit"))
    consumer.raw.subscribe([topic], on_revoke=lambda *_: called.append("on_revoke"))
    consumer.read(8)
    consumer.raw.commit(offsets=partitions(topic, 3))
    lab.wait(lambda: lab.stored(topic) == [3], "stored")
    other = lab.other_member(enable_auto_commit=False)
    other.raw.subscribe([topic])
    lab.wait(lambda: other.raw.poll(0.1) is None and lab.members() == 2, "another member joins")
    other.raw.poll(1)
    lab.wait(lambda: consumer.raw.poll(0.1) is not None or "on_revoke" in called, "revoked")
    lab.note(f"called {called[:2]}")


@scenario()
def close_with_a_paused_partition(lab: Lab) -> None:
    """A paused partition is committed and revoked as the other one."""
    topic = lab.topic(2, messages=4)
    consumer = _subscribed(lab, topic)
    consumer.read(8)
    consumer.pause(partitions(topic, -1001)[:1])
    consumer.idle(0.3)
    consumer.close()
    lab.note_members(0)


@scenario()
def close_after_its_topic_was_deleted(lab: Lab) -> None:
    """Close does not wait for a commit of what no longer exists."""
    keep, doomed = lab.topic(messages=3), lab.topic(messages=3)
    consumer = lab.consumer()
    consumer.subscribe([keep, doomed], **callbacks())
    consumer.read(6)
    lab.delete(doomed)
    consumer.close()
    lab.note_members(0)


@scenario()
def close_hands_over_to_another_member_at_once(lab: Lab) -> None:
    """The partitions of a closing member are reassigned without a session timeout, and nothing is lost."""
    topic = lab.topic(2, messages=4)
    consumer = _subscribed(lab, topic)
    consumer.read(8)
    consumer.close()
    lab.produce(topic, 2, 0)
    other = lab.other_member()
    other.subscribe([topic], **callbacks())
    other.read(2)


@scenario(seconds=8)
def close_in_on_assign(lab: Lab) -> None:
    """Close called in on_assign."""
    _close_in_a_callback(lab, "on_assign")


@scenario(seconds=8)
def close_in_on_revoke(lab: Lab) -> None:
    """Close called in on_revoke, which unsubscribe has caused."""
    _close_in_a_callback(lab, "on_revoke")


def _close_in_a_callback(lab: Lab, name: str) -> None:
    topic = lab.topic(messages=4)
    consumer = lab.consumer()
    called: list[object] = []

    def closes(client: Client, _owned: list[TopicPartition]) -> None:
        called.append(client.attempt("close"))

    consumer.subscribe([topic], **{name: closes})
    if name == "on_revoke":
        consumer.read(4)
        consumer.unsubscribe()
    for _ in range(20):
        if called:
            break
        consumer.attempt("poll", 0.5)
    consumer.attempt("poll", 0.5)
    consumer.attempt("close")
    lab.note_members(0)


@scenario(seconds=8)
def close_in_on_commit(lab: Lab) -> None:
    """Close called in on_commit."""
    topic = lab.topic(messages=4)
    called: list[object] = []

    def closes(_error: object, _partitions: object) -> None:
        if not called:
            called.append(True)
            consumer.attempt("close")

    consumer = lab.consumer(enable_auto_commit=False, on_commit=closes)
    consumer.subscribe([topic])
    consumer.read(4)
    consumer.commit()
    consumer.until(lambda: called, "called", timeout=5)
    consumer.attempt("close")
    lab.note_members(0)


@scenario()
def methods_after_close(lab: Lab) -> None:
    """Every method of a closed consumer says that it is closed."""
    topic = lab.topic(messages=1)
    consumer = _subscribed(lab, topic)
    message = consumer.read(1)[0]
    consumer.close()
    partition = [TopicPartition(topic, 0, 0)]
    for method, *args in (
        ("poll", 0.1),
        ("consume", 1, 0.1),
        ("subscribe", [topic]),
        ("unsubscribe",),
        ("commit",),
        ("commit", message),
        ("store_offsets", message),
        ("assign", partition),
        ("unassign",),
        ("incremental_assign", partition),
        ("incremental_unassign", partition),
        ("pause", partition),
        ("resume", partition),
        ("seek", partition[0]),
        ("position", partition),
        ("committed", partition),
        ("assignment",),
        ("memberid",),
        ("consumer_group_metadata",),
        ("list_topics",),
        ("get_watermark_offsets", partition[0]),
        ("offsets_for_times", partition),
        ("set_sasl_credentials", "user", "word"),
    ):
        consumer.attempt(method, *args)
    lab.attempt("with", lambda: consumer.raw.__enter__() and "entered")


@scenario()
def with_closes(lab: Lab) -> None:
    """At the end of `with` the consumer is closed as by close."""
    topic = lab.topic(messages=4)
    with _subscribed(lab, topic) as consumer:
        consumer.read(4)
    consumer.attempt("poll", 0)
    lab.note_members(0)


@scenario()
def with_closes_after_an_exception(lab: Lab) -> None:
    """An exception inside `with` goes on after the consumer is closed; what was returned is committed."""
    topic = lab.topic(messages=4)
    consumer = _subscribed(lab, topic)
    try:
        with consumer:
            consumer.read(3)
            raise ValueError("on purpose")  # noqa: TRY301 - this is the scenario
    except ValueError:
        lab.note("the exception goes on")
    consumer.attempt("poll", 0)
    lab.note_members(0)


@scenario()
def with_and_close_inside(lab: Lab) -> None:
    """A consumer closed inside `with` is not closed again."""
    topic = lab.topic(messages=4)
    with _subscribed(lab, topic) as consumer:
        consumer.read(4)
        consumer.close()
    lab.note_members(0)


@scenario()
def a_consumer_dropped_without_close(lab: Lab) -> None:
    """A consumer that is dropped without close commits nothing and calls nothing."""
    topic = lab.topic(messages=4)
    raw: Consumer | None = lab.consumer_class(lab.config())
    assert raw is not None
    raw.subscribe([topic], on_revoke=lambda *_: lab.note("on_revoke"), on_lost=lambda *_: lab.note("on_lost"))
    count = 0
    while count < 4:
        count += raw.poll(1) is not None
    raw = None
    gc.collect()
    lab.note_members(0)


@scenario()
def a_finalizer_that_closes_a_consumer_in_a_cycle(lab: Lab) -> None:
    """An object that is one of its consumer's callbacks closes it in __del__: what was read is committed."""
    topic = lab.topic(messages=4)

    class Service:
        def __init__(self) -> None:
            self.consumer = lab.consumer_class(lab.config())
            self.consumer.subscribe([topic], on_revoke=self.on_revoke)

        def on_revoke(self, *_: object) -> None:
            lab.note("on_revoke")

        def __del__(self) -> None:
            lab.attempt("close", self.consumer.close)

    service: Service | None = Service()
    assert service is not None
    count = 0
    while count < 4:
        count += service.consumer.poll(1) is not None
    service = None
    gc.collect()
    lab.note_members(0)


@scenario()
def a_consumer_dropped_before_it_was_used(lab: Lab) -> None:
    """Consumers that are made and dropped leave nothing behind."""
    for _ in range(5):
        lab.consumer_class(lab.config())
    gc.collect()
    lab.attempt("a new one", lambda: lab.consumer().close())


@scenario(breaks_kafka=True)
def close_with_a_broker_that_is_down(lab: Lab) -> None:
    """Close ends although nothing can be committed and no broker gets LeaveGroup."""
    kafka = lab.kafka
    topic = lab.topic(messages=4)
    consumer = _subscribed(lab, topic)
    consumer.read(4)
    kafka.kill()
    consumer.attempt("close")
    kafka.start()


@scenario(seconds=20, breaks_kafka=True)
def close_with_a_broker_that_is_silent(lab: Lab) -> None:
    """Close ends although no request is answered."""
    link = lab.link
    topic = lab.topic(messages=4)
    consumer = _subscribed(lab, topic, socket_timeout_ms=3000)
    consumer.read(4)
    link.silence()
    consumer.attempt("close")
    link.restore()


@scenario(seconds=20, breaks_kafka=True)
def close_with_nothing_to_commit_and_a_silent_broker(lab: Lab) -> None:
    """Close ends although no broker answers LeaveGroup."""
    link = lab.link
    topic = lab.topic(messages=4)
    consumer = _subscribed(lab, topic, enable_auto_commit=False, socket_timeout_ms=3000)
    consumer.read(4)
    link.silence()
    consumer.attempt("close")
    link.restore()


@scenario(breaks_kafka=True)
def close_of_a_consumer_that_never_had_a_broker(lab: Lab) -> None:
    """Close of a consumer whose broker was never reached takes no time."""
    link = lab.link
    topic = lab.topic(messages=1)
    link.cut()
    consumer = _subscribed(lab, topic)
    consumer.idle(1.0)
    consumer.close()
    link.restore()
