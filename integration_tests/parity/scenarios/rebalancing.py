"""Members that join, leave and crash; callbacks that assign, commit, seek, pause, raise and are slow."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from confluent_kafka import TopicPartition

from groupwright.assignors import PartitionsByTopic, Subscription, decode_assignment, encode_subscription
from integration_tests.harness.wire import WireMember
from integration_tests.parity.client import Client, record
from integration_tests.parity.lab import PATIENCE, Lab, callbacks, partitions
from integration_tests.parity.scenarios import scenario

COOPERATIVE = "cooperative-sticky"


def _member(lab: Lab, client_id: str, strategy: str = "range", **settings: Any) -> Client:
    """Make a member under test; its client id decides where it stands in the order of members."""
    return lab.consumer(client_id=client_id, partition_assignment_strategy=strategy, **settings)


def _other(lab: Lab, client_id: str, strategy: str = "range", **settings: Any) -> Client:
    return lab.other_member(client_id=client_id, partition_assignment_strategy=strategy, **settings)


def _own(first: Client, second: Client, one: int, two: int) -> Callable[[], bool]:
    return lambda: (len(first.raw.assignment()), len(second.raw.assignment())) == (one, two)


def _share(lab: Lab, first: Client, second: Client, one: int = 2, two: int = 2) -> None:
    lab.together(first, second, until=_own(first, second, one, two), what=f"{one} and {two} are assigned")


def _come_and_go(lab: Lab, strategy: str) -> None:
    topic = lab.topic(4, messages=5)
    first = _member(lab, "a", strategy)
    first.subscribe([topic], **callbacks())
    first.read(20)
    first.commit(asynchronous=False)
    second = _other(lab, "b", strategy)
    second.subscribe([topic], **callbacks())
    _share(lab, first, second)
    for partition in range(4):
        lab.produce(topic, 3, partition)
    first.read(6)
    second.read(6)
    second.close()
    first.until_assigned(4)
    for partition in range(4):
        lab.produce(topic, 2, partition)
    first.read(8)
    first.close()


@scenario()
def a_second_member_comes_and_goes_with_range(lab: Lab) -> None:
    """Partitions are shared, and come back with the offsets that the second member committed."""
    _come_and_go(lab, "range")


@scenario()
def a_second_member_comes_and_goes_with_roundrobin(lab: Lab) -> None:
    """Partitions are dealt out in turn."""
    _come_and_go(lab, "roundrobin")


@scenario()
def a_second_member_comes_and_goes_with_cooperative_sticky(lab: Lab) -> None:
    """Only what moves is revoked; the rest is consumed all the while."""
    _come_and_go(lab, COOPERATIVE)


@scenario()
def a_member_joins_a_group_of_the_original(lab: Lab) -> None:
    """A member that comes second gets its share; when the first leaves, all."""
    topic = lab.topic(4)
    second = _other(lab, "b")
    second.subscribe([topic], **callbacks())
    second.until_assigned(4)
    first = _member(lab, "a")
    first.subscribe([topic], **callbacks())
    _share(lab, first, second)
    lab.produce(topic, 5, 0)
    lab.produce(topic, 5, 1)
    first.read(10)
    second.close()
    first.until_assigned(4)
    first.close()


@scenario()
def a_member_joins_a_cooperative_group_of_the_original(lab: Lab) -> None:
    """The newcomer's first assignment is empty: what it gains is revoked elsewhere first."""
    topic = lab.topic(4)
    second = _other(lab, "b", COOPERATIVE)
    second.subscribe([topic], **callbacks())
    second.until_assigned(4)
    first = _member(lab, "a", COOPERATIVE)
    first.subscribe([topic], **callbacks())
    _share(lab, first, second)
    second.close()
    first.until_assigned(4)
    first.close()


@scenario()
def more_members_than_partitions(lab: Lab) -> None:
    """A member without partitions gets an empty on_assign, and waits."""
    topic = lab.topic()
    second = _other(lab, "a")
    second.subscribe([topic])
    second.until_assigned()
    first = _member(lab, "b")
    called: list[int] = []
    first.subscribe([topic], on_assign=lambda _, found: called.append(len(found)), on_revoke=record)
    lab.together(first, second, until=lambda: called, what="on_assign was called")
    lab.together(first, second, until=_own(first, second, 0, 1), what="one has all")
    first.idle(0.3)
    second.close()
    first.until_assigned()
    lab.produce(topic, 3)
    first.read(3)
    first.close()


@scenario()
def partitions_move_without_any_callback(lab: Lab) -> None:
    """Without callbacks a rebalance happens all the same, and what was consumed is committed by it."""
    topic = lab.topic(2, messages=5)
    first = _member(lab, "a")
    first.subscribe([topic])
    first.read(10)
    second = _other(lab, "b")
    second.subscribe([topic])
    _share(lab, first, second, 1, 1)
    lab.note(f"stored {lab.stored(topic, partitions=2)}")
    second.close()
    first.until_assigned(2)
    first.close()


@scenario()
def partitions_move_cooperatively_without_any_callback(lab: Lab) -> None:
    """The behaviour is that of an eager group."""
    topic = lab.topic(2, messages=5)
    first = _member(lab, "a", COOPERATIVE)
    first.subscribe([topic])
    first.read(10)
    second = _other(lab, "b", COOPERATIVE)
    second.subscribe([topic])
    _share(lab, first, second, 1, 1)
    second.close()
    first.until_assigned(2)
    first.close()


def _be_expelled(lab: Lab, strategy: str, **given: Callable[..., object]) -> None:
    topic = lab.topic(1, messages=5)
    consumer = _member(lab, "a", strategy, enable_auto_commit=False)
    consumer.subscribe([topic], **given)
    messages = consumer.read(5)
    consumer.commit(message=messages[2], asynchronous=False)
    lab.expel(consumer)
    consumer.read(2)
    consumer.close()


@scenario()
def a_lost_session_calls_on_lost(lab: Lab) -> None:
    """A member that the coordinator no longer knows loses its partitions, and joins anew."""
    _be_expelled(lab, "range", **callbacks())


@scenario()
def a_lost_session_calls_on_lost_in_a_cooperative_group(lab: Lab) -> None:
    """The behaviour is that of an eager group."""
    _be_expelled(lab, COOPERATIVE, **callbacks())


@scenario()
def a_lost_session_calls_on_revoke_without_on_lost(lab: Lab) -> None:
    """Without on_lost, on_revoke is called for lost partitions."""
    _be_expelled(lab, "range", on_assign=record, on_revoke=record)


@scenario()
def a_lost_session_calls_on_revoke_without_on_lost_in_a_cooperative_group(lab: Lab) -> None:
    """The behaviour is that of an eager group."""
    _be_expelled(lab, COOPERATIVE, on_assign=record, on_revoke=record)


@scenario()
def a_lost_session_without_callbacks(lab: Lab) -> None:
    """The member goes on where it committed."""
    _be_expelled(lab, "range")


@scenario()
def a_commit_in_on_lost_is_refused(lab: Lab) -> None:
    """The offsets belong to another member by then."""
    topic = lab.topic(1, messages=5)
    consumer = _member(lab, "a", enable_auto_commit=False)
    lost: list[int] = []

    def on_lost(client: Client, given: list[TopicPartition]) -> None:
        client.attempt("commit", asynchronous=False)
        client.attempt("commit", offsets=[TopicPartition(topic, 0, 4)], asynchronous=False)
        lost.append(len(given))

    consumer.subscribe([topic], on_assign=record, on_revoke=record, on_lost=on_lost)
    consumer.read(5)
    lab.expel(consumer)
    consumer.read(5)
    lab.note(f"lost {lost}")
    consumer.close()


@scenario()
def a_member_expelled_while_it_closes(lab: Lab) -> None:
    """A close is a close, also for a member that the coordinator no longer knows."""
    topic = lab.topic(1, messages=5)
    consumer = _member(lab, "a", enable_auto_commit=False)
    consumer.subscribe([topic])
    consumer.read(5)
    lab.expel(consumer)
    consumer.close()


@scenario(seconds=90)
def a_member_that_does_not_poll_loses_its_partitions(lab: Lab) -> None:
    """After max.poll.interval.ms the member leaves; its next polls say so, and it joins again."""
    topic = lab.topic(1, messages=5)
    consumer = _member(lab, "a", enable_auto_commit=False, max_poll_interval_ms=6000)
    consumer.subscribe([topic], **callbacks())
    messages = consumer.read(5)
    consumer.commit(message=messages[2], asynchronous=False)
    lab.wait(lambda: not lab.members(), "the member has left")
    consumer.read(2)
    consumer.close()


@scenario(seconds=90)
def a_process_stopped_beyond_its_session(lab: Lab) -> None:
    """A process that was stopped until its session ended loses its partitions, and joins again."""
    topic = lab.topic(1, messages=5)
    consumer = _member(lab, "a", enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    messages = consumer.read(5)
    consumer.commit(message=messages[2], asynchronous=False)
    _stop_this_process(8.0)
    consumer.read(2)
    consumer.close()


@scenario(seconds=90)
def a_process_stopped_beyond_its_session_with_messages_at_hand(lab: Lab) -> None:
    """Prefetched messages may belong to another member by now."""
    topic = lab.topic(1, messages=2000)
    consumer = _member(lab, "a", enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    messages = consumer.read(20)
    consumer.commit(message=messages[9], asynchronous=False)
    consumer.read(100)
    _stop_this_process(8.0)
    consumer.until(lambda: consumer.revoked and consumer.messages[-1].offset() == 11, "it reads on")
    consumer.close()


@scenario(seconds=90)
def a_process_stopped_beyond_its_session_with_a_batch_in_hand(lab: Lab) -> None:
    """A batch gathered by `consume` may belong to another member when a stopped process resumes."""
    topic = lab.topic(1, messages=10)
    consumer = _member(lab, "a", enable_auto_commit=False)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    consumer.commit(asynchronous=False)
    with _stopping_this_process(8.0, after=0.5):
        consumer.consume(1000, 12.0)
    consumer.until(lambda: consumer.revoked and consumer.messages[-1].offset() == 9, "it reads on")
    consumer.close()


def _stop_this_process(seconds: float) -> None:
    with _stopping_this_process(seconds) as shell:
        shell.wait()


def _stopping_this_process(seconds: float, *, after: float = 0.0) -> "subprocess.Popen[bytes]":
    pid = os.getpid()
    script = f"sleep {after}; kill -STOP {pid}; sleep {seconds}; kill -CONT {pid}"
    return subprocess.Popen(["/bin/sh", "-c", script])


@scenario(seconds=90)
def another_member_dies(lab: Lab) -> None:
    """The partitions of a member that was killed come when its session has ended."""
    topic = lab.topic(2)
    program = (
        "import sys; from confluent_kafka import Consumer\n"
        f"c = Consumer({lab.config(client_id='b', partition_assignment_strategy='range')!r})\n"
        f"c.subscribe([{topic!r}])\n"
        "while not c.assignment(): c.poll(0.05)\n"
        "print('assigned', flush=True)\n"
        "while True: c.poll(0.05)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as second:
        assert second.stdout is not None
        second.stdout.readline()
        first = _member(lab, "a")
        first.subscribe([topic], **callbacks())
        first.until_assigned(1)
        second.send_signal(signal.SIGKILL)
    first.until_assigned(2)
    first.close()


# --- Callbacks that do something --------------------------------------------------------------------


@scenario()
def on_assign_assigns_other_offsets(lab: Lab) -> None:
    """Delivery starts at the offsets that on_assign assigns, whatever is committed."""
    topic = lab.topic(2, messages=10)
    consumer = _member(lab, "a")

    def on_assign(client: Client, found: list[TopicPartition]) -> None:
        client.assign([TopicPartition(p.topic, p.partition, 7 + p.partition) for p in found])

    consumer.subscribe([topic], on_assign=on_assign, on_revoke=record)
    consumer.read(5)
    consumer.close()


@scenario()
def on_assign_assigns_as_given(lab: Lab) -> None:
    """`assign` with what on_assign was called with starts at the committed offsets."""
    topic = lab.topic(2, messages=10)
    seed = lab.other_member()
    seed.commit(offsets=partitions(topic, 4, 6), asynchronous=False)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], on_assign=lambda client, found: client.assign(found), on_revoke=record)
    consumer.read(10)
    consumer.close()


@scenario()
def on_assign_commits_and_assigns(lab: Lab) -> None:
    """`assign` starts partitions at the offsets that on_assign has committed."""
    topic = lab.topic(2, messages=10)
    consumer = _member(lab, "a")

    def commit_and_assign(client: Client, found: list[TopicPartition]) -> None:
        client.attempt("commit", offsets=partitions(topic, 4, 6), asynchronous=False)
        client.assign(found)

    consumer.subscribe([topic], on_assign=commit_and_assign, on_revoke=record)
    consumer.read(10)
    consumer.close()


@scenario()
def commits_before_the_assignment_is_applied(lab: Lab) -> None:
    """A commit between the rebalance and the poll that calls on_assign determines the start positions."""
    topic = lab.topic(2, messages=10)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], on_assign=record, on_revoke=record)
    lab.wait(lab.group_is_stable, "the group is stable")
    consumer.attempt("commit", offsets=partitions(topic, 4, 6), asynchronous=False)
    consumer.read(10)
    consumer.close()


@scenario()
def on_assign_assigns_logical_offsets(lab: Lab) -> None:
    """The beginning and the end are offsets too."""
    topic = lab.topic(2, messages=10)
    seed = lab.other_member()
    seed.commit(offsets=partitions(topic, 4, 6), asynchronous=False)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], on_assign=lambda client, _: client.assign(partitions(topic, -2, -1)))
    consumer.read(10)
    lab.produce(topic, 2, 1)
    consumer.until(lambda: len(consumer.messages) >= 11, "messages after the end")
    consumer.idle(0.3)
    consumer.close()


@scenario()
def on_assign_assigns_less_than_given(lab: Lab) -> None:
    """Partitions that on_assign leaves out are not consumed."""
    topic = lab.topic(2, messages=5)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], on_assign=lambda client, _: client.assign([TopicPartition(topic, 1)]))
    consumer.read(5)
    consumer.idle(0.5)
    consumer.attempt("assignment")
    consumer.close()


@scenario()
def on_assign_assigns_nothing(lab: Lab) -> None:
    """A member may be assigned partitions and consume none."""
    topic = lab.topic(2, messages=5)
    consumer = _member(lab, "a")
    called: list[int] = []

    def on_assign(client: Client, found: list[TopicPartition]) -> None:
        client.assign([])
        called.append(len(found))

    consumer.subscribe([topic], on_assign=on_assign, on_revoke=record)
    consumer.until(lambda: called, "on_assign was called")
    consumer.idle(0.5)
    consumer.attempt("assignment")
    consumer.close()


@scenario()
def on_assign_adds_offsets_incrementally(lab: Lab) -> None:
    """In a cooperative group on_assign chooses offsets by incremental_assign."""
    topic = lab.topic(2, messages=10)
    consumer = _member(lab, "a", COOPERATIVE)

    def on_assign(client: Client, found: list[TopicPartition]) -> None:
        client.incremental_assign([TopicPartition(p.topic, p.partition, 7 + p.partition) for p in found])

    consumer.subscribe([topic], on_assign=on_assign, on_revoke=record)
    consumer.read(5)
    consumer.close()


@scenario()
def on_revoke_unassigns_incrementally(lab: Lab) -> None:
    """An application may do by itself what would be done after on_revoke."""
    one, two = lab.topic(messages=10), lab.topic(messages=10)
    first = _member(lab, "a", COOPERATIVE)
    first.subscribe(
        [one, two],
        on_assign=lambda client, found: client.incremental_assign(found),
        on_revoke=lambda client, found: client.incremental_unassign(found),
    )
    first.read(20)
    second = _other(lab, "b", COOPERATIVE)
    second.subscribe([two])
    _share(lab, first, second, 1, 1)
    second.close()
    first.until_assigned(2)
    first.close()


@scenario()
def on_revoke_unassigns(lab: Lab) -> None:
    """The same in an eager group."""
    topic = lab.topic(2, messages=10)
    first = _member(lab, "a")
    first.subscribe(
        [topic],
        on_assign=lambda client, found: client.assign(found),
        on_revoke=lambda client, _: client.unassign(),
    )
    first.read(20)
    second = _other(lab, "b")
    second.subscribe([topic])
    _share(lab, first, second, 1, 1)
    second.close()
    first.until_assigned(2)
    first.close()


def _assign_in_on_revoke(lab: Lab, assign: Callable[[Client, list[TopicPartition]], object]) -> None:
    topic = lab.topic(2, messages=10)
    first = _member(lab, "a")
    first.subscribe([topic], on_revoke=assign)
    first.read(20)
    second = _other(lab, "b")
    second.subscribe([topic])
    # The original does not rejoin before its session ends, so the scenario ends here.
    lab.together(
        first, second, until=lambda: lab.stored(topic, partitions=2) == [10, 10], what="all is committed"
    )


@scenario(seconds=20)
def on_revoke_assigns_nothing(lab: Lab) -> None:
    """An application may mean unassign; what was read is committed before."""
    _assign_in_on_revoke(lab, lambda client, _: client.raw.assign([]))


@scenario(seconds=20)
def on_revoke_assigns_the_same(lab: Lab) -> None:
    """The partitions are revoked nevertheless, and what was read is committed before."""
    _assign_in_on_revoke(lab, lambda client, found: client.raw.assign(found))


def _call_in_on_assign(lab: Lab, strategy: str, method: str) -> None:
    topic = lab.topic(1)
    consumer = _member(lab, "a", strategy)
    called: list[int] = []

    def on_assign(client: Client, found: list[TopicPartition]) -> None:
        client.attempt(method, found)
        called.append(len(found))

    consumer.subscribe([topic], on_assign=on_assign, on_revoke=record)
    consumer.until(lambda: called, "on_assign was called")
    lab.produce(topic, 3)
    consumer.idle(0.7)
    consumer.close()


@scenario()
def on_assign_adds_incrementally_in_an_eager_group(lab: Lab) -> None:
    """`incremental_assign` is for cooperative groups."""
    _call_in_on_assign(lab, "range", "incremental_assign")


@scenario()
def on_assign_assigns_in_a_cooperative_group(lab: Lab) -> None:
    """`assign` is for eager groups."""
    _call_in_on_assign(lab, COOPERATIVE, "assign")


@scenario()
def on_assign_seeks_before_it_assigns(lab: Lab) -> None:
    """Nothing is assigned yet when on_assign begins."""
    topic = lab.topic(1, messages=10)
    consumer = _member(lab, "a")

    def on_assign(client: Client, found: list[TopicPartition]) -> None:
        client.attempt("seek", TopicPartition(topic, 0, 6))
        client.assign(found)

    consumer.subscribe([topic], on_assign=on_assign)
    consumer.read(10)
    consumer.close()


@scenario()
def on_assign_seeks_after_it_assigned(lab: Lab) -> None:
    """A seek needs a partition that is being fetched: none is before the next poll."""
    topic = lab.topic(1, messages=10)
    consumer = _member(lab, "a")

    def on_assign(client: Client, found: list[TopicPartition]) -> None:
        client.assign(found)
        client.attempt("seek", TopicPartition(topic, 0, 6))

    consumer.subscribe([topic], on_assign=on_assign)
    consumer.read(10, timeout=3)
    consumer.close()


@scenario()
def on_assign_pauses(lab: Lab) -> None:
    """Partitions that on_assign pauses are not delivered until they are resumed."""
    topic = lab.topic(2, messages=5)
    consumer = _member(lab, "a")

    def on_assign(client: Client, found: list[TopicPartition]) -> None:
        client.assign(found)
        client.attempt("pause", [TopicPartition(topic, 0)])

    consumer.subscribe([topic], on_assign=on_assign)
    consumer.read(5)
    consumer.idle(0.5)
    consumer.resume([TopicPartition(topic, 0)])
    consumer.read(5)
    consumer.close()


@scenario()
def on_assign_pauses_before_anything_is_assigned(lab: Lab) -> None:
    """Nothing is assigned yet when on_assign begins."""
    topic = lab.topic(1, messages=5)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], on_assign=lambda client, found: client.attempt("pause", found))
    consumer.idle(1.0)
    consumer.resume([TopicPartition(topic, 0)])
    consumer.read(5)
    consumer.close()


@scenario()
def on_assign_asks(lab: Lab) -> None:
    """In on_assign the committed offsets can be asked for."""
    topic = lab.topic(2, messages=10)
    seed = lab.other_member()
    seed.commit(offsets=partitions(topic, 4), asynchronous=False)
    consumer = _member(lab, "a")

    def on_assign(client: Client, found: list[TopicPartition]) -> None:
        client.attempt("assignment")
        client.attempt("position", found)
        client.attempt("committed", found, timeout=10)
        client.attempt("get_watermark_offsets", found[0], timeout=10)
        client.attempt("memberid")

    consumer.subscribe([topic], on_assign=on_assign)
    consumer.read(16)
    consumer.close()


@scenario()
def on_revoke_asks(lab: Lab) -> None:
    """In on_revoke the partitions are still assigned, and have positions."""
    topic = lab.topic(2, messages=10)
    consumer = _member(lab, "a")

    def on_revoke(client: Client, found: list[TopicPartition]) -> None:
        client.attempt("assignment")
        client.attempt("position", found)

    consumer.subscribe([topic], on_assign=record, on_revoke=on_revoke)
    consumer.read(20)
    consumer.close()


def _commit_in_on_revoke(lab: Lab, strategy: str, *, asynchronous: bool) -> None:
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    first = _member(lab, "a", strategy, enable_auto_commit=False)
    first.subscribe(
        [one, two],
        on_assign=record,
        on_revoke=lambda client, _: client.attempt("commit", asynchronous=asynchronous),
    )
    first.read(10)
    second = _other(lab, "b", strategy)
    second.subscribe([two])
    _share(lab, first, second, 1, 1)
    lab.produce(one, 2)
    first.read(2)
    first.close()


@scenario()
def on_revoke_commits(lab: Lab) -> None:
    """The next owner starts where on_revoke committed."""
    _commit_in_on_revoke(lab, "range", asynchronous=False)


@scenario()
def on_revoke_commits_in_a_cooperative_group(lab: Lab) -> None:
    """The behaviour is that of an eager group."""
    _commit_in_on_revoke(lab, COOPERATIVE, asynchronous=False)


@scenario()
def on_revoke_commits_asynchronously(lab: Lab) -> None:
    """A commit that on_revoke only starts is stored too."""
    _commit_in_on_revoke(lab, "range", asynchronous=True)


def _raise(_: Client, __: list[TopicPartition]) -> None:
    raise ValueError("a callback's own error")


def _attempt_until(client: Client, condition: Callable[[], object], what: str) -> None:
    def poll() -> bool:
        with suppress(ValueError):  # it is in the trace
            client.poll(0)
        return bool(condition())

    deadline = time.monotonic() + 20
    while not poll() and time.monotonic() < deadline:
        time.sleep(0.02)
    client.until(condition, what)


@scenario()
def on_assign_raises(lab: Lab) -> None:
    """An exception of on_assign propagates from poll; the partitions are assigned all the same."""
    topic = lab.topic(1, messages=3)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], on_assign=_raise, on_revoke=record)
    _attempt_until(consumer, lambda: len(consumer.messages) == 3, "all are read")
    consumer.close()


@scenario()
def on_assign_raises_in_consume(lab: Lab) -> None:
    """The behaviour is that of poll."""
    topic = lab.topic(1)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], on_assign=_raise, on_revoke=record)
    raised = False
    while not raised:
        try:
            consumer.consume(10, 0.2)
        except ValueError:
            raised = True
    lab.produce(topic, 3)
    consumer.read(3, batch=10)
    consumer.close()


@scenario()
def on_revoke_raises(lab: Lab) -> None:
    """An exception of on_revoke propagates from poll; the rebalance continues."""
    topic = lab.topic(2, messages=3)
    first = _member(lab, "a")
    first.subscribe([topic], on_assign=record, on_revoke=_raise)
    first.read(6)
    second = _other(lab, "b")
    second.subscribe([topic])

    def both() -> bool:
        second.poll(0.02)
        return _own(first, second, 1, 1)()

    _attempt_until(first, both, "one and one are assigned")
    first.attempt("close")


def _raising(lab: Lab, topic: str) -> Client:
    """Return a consumer with all messages, whose on_commit and on_revoke raise."""

    def on_commit(*_: object) -> None:
        raise ValueError("on_commit")

    def on_revoke(*_: object) -> None:
        raise ValueError("on_revoke")

    consumer = lab.consumer(enable_auto_commit=False, on_commit=on_commit)
    consumer.subscribe([topic], on_revoke=on_revoke)
    consumer.read(4)
    return consumer


@scenario()
def on_commit_and_on_revoke_raise_in_one_poll(lab: Lab) -> None:
    """Two callbacks are due when the application polls, and both raise: two polls raise."""
    topic = lab.topic(2, messages=2)
    consumer = _raising(lab, topic)
    consumer.commit()
    other = lab.other_member()
    other.raw.subscribe([topic])
    lab.wait(lambda: lab.stored(topic, partitions=2) == [2, 2], "stored")
    lab.wait(lambda: other.raw.poll(0.05) is None and lab.members() == 2, "the other member joins")
    time.sleep(1.0)  # until a heartbeat has said so
    raised: list[object] = []
    deadline = time.monotonic() + PATIENCE
    while len(raised) < 2 and time.monotonic() < deadline:
        try:
            consumer.raw.poll(0.1)
        except ValueError as error:
            raised.append(error.args[0])
        other.raw.poll(0.05)
    lab.note(f"raised {raised}")
    lab.together(consumer, other, until=lambda: len(consumer.raw.assignment()) == 1, what="assigned again")


@scenario()
def on_commit_and_on_revoke_raise_in_close(lab: Lab) -> None:
    """Close raises one of the exceptions, and the member has left."""
    topic = lab.topic(2, messages=2)
    consumer = _raising(lab, topic)
    consumer.commit()
    lab.wait(lambda: lab.stored(topic, partitions=2) == [2, 2], "stored")
    try:
        consumer.raw.close()
    except ValueError as error:
        lab.note(f"raises {error.args[0]}")
    lab.note_members(0)


@scenario()
def on_revoke_raises_in_close(lab: Lab) -> None:
    """An exception of on_revoke propagates from close; the consumer is closed."""
    topic = lab.topic(1, messages=3)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], on_assign=record, on_revoke=_raise)
    consumer.read(3)
    consumer.attempt("close")
    consumer.attempt("poll", 0.1)
    lab.note(f"members {lab.members()}")


@scenario()
def on_revoke_raises_in_unsubscribe(lab: Lab) -> None:
    """What on_revoke raises after unsubscribe leaves poll."""
    topic = lab.topic(1, messages=3)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], on_assign=record, on_revoke=_raise)
    consumer.read(3)
    consumer.attempt("unsubscribe")
    _attempt_until(consumer, lambda: not consumer.raw.assignment(), "nothing is assigned")
    consumer.close()


@scenario()
def on_assign_unsubscribes(lab: Lab) -> None:
    """A member that does not want what it gets leaves again."""
    topic = lab.topic()
    consumer = _member(lab, "a")
    consumer.subscribe([topic], on_assign=lambda client, _: client.unsubscribe(), on_revoke=record)
    consumer.until(lambda: consumer.revoked, "partitions are revoked")
    consumer.until_assigned(0)
    consumer.idle(0.3)
    consumer.close()


@scenario()
def on_revoke_unsubscribes(lab: Lab) -> None:
    """A member that leaves while it is asked to rebalance."""
    topic = lab.topic(2, messages=3)
    first = _member(lab, "a")
    first.subscribe([topic], on_assign=record, on_revoke=lambda client, _: client.unsubscribe())
    first.read(6)
    second = _other(lab, "b")
    second.subscribe([topic])
    _share(lab, first, second, 0, 2)
    first.close()


@scenario()
def a_cooperative_member_subscribes_to_another_topic(lab: Lab) -> None:
    """It leaves the topic whose partition it has."""
    topic, other = lab.topic(messages=3), lab.topic(messages=3)
    consumer = lab.consumer(partition_assignment_strategy="cooperative-sticky")
    consumer.subscribe([topic], **callbacks())
    consumer.read(3)
    consumer.subscribe([other], **callbacks())
    consumer.read(3)
    lab.note(f"stored {lab.stored(topic)}")
    consumer.close()


@scenario()
def on_assign_subscribes_to_another_topic(lab: Lab) -> None:
    """A subscription may be changed from a callback."""
    one, two = lab.topic(), lab.topic(messages=4)
    consumer = _member(lab, "a")

    def on_assign(client: Client, found: list[TopicPartition]) -> None:
        if found and found[0].topic == one:
            client.subscribe([two], on_assign=on_assign, on_revoke=record)

    consumer.subscribe([one], on_assign=on_assign, on_revoke=record)
    consumer.read(4)
    consumer.close()


@scenario()
def on_revoke_is_slow(lab: Lab) -> None:
    """A second member waits for a slow on_revoke, and gets what it has committed."""
    topic = lab.topic(2, messages=5)
    first = _member(lab, "a", enable_auto_commit=False)

    def on_revoke(client: Client, _: list[TopicPartition]) -> None:
        time.sleep(1.0)  # longer than a heartbeat
        client.attempt("commit", asynchronous=False)

    first.subscribe([topic], on_assign=record, on_revoke=on_revoke)
    first.read(10)
    second = _other(lab, "b")
    second.subscribe([topic])
    _share(lab, first, second, 1, 1)
    second.idle(0.3)
    first.close()


@scenario()
def on_assign_is_slow(lab: Lab) -> None:
    """Delivery begins when on_assign has returned."""
    topic = lab.topic(1, messages=5)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], on_assign=lambda _, __: time.sleep(1.0), on_revoke=record)
    consumer.read(5)
    consumer.close()


# --- Pauses, subscriptions, topics ------------------------------------------------------------------


@scenario()
def a_pause_outlives_an_eager_rebalance(lab: Lab) -> None:
    """A partition that is revoked and assigned again stays paused."""
    topic = lab.topic(2, messages=5)
    first = _member(lab, "a")
    first.subscribe([topic], **callbacks())
    first.read(10)
    first.pause(partitions(topic, -1001, -1001))
    second = _other(lab, "b")
    second.subscribe([topic])
    _share(lab, first, second, 1, 1)
    lab.produce(topic, 3, 0)
    first.idle(1.0)
    first.resume(partitions(topic, -1001))
    first.read(3)
    first.close()


def _pause_over_subscriptions(lab: Lab, strategy: str) -> None:
    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False, partition_assignment_strategy=strategy)
    consumer.subscribe([topic], **callbacks())
    consumer.read(5)
    consumer.pause([TopicPartition(topic, 0)])
    consumer.commit(asynchronous=False)
    consumer.unsubscribe()
    consumer.until(lambda: consumer.revoked, "revoked")
    lab.produce(topic, 3)
    consumer.subscribe([topic], **callbacks())
    consumer.until_assigned(1)
    consumer.idle(0.5)
    consumer.resume([TopicPartition(topic, 0)])
    consumer.read(3)
    consumer.close()


@scenario()
def a_pause_over_two_subscriptions(lab: Lab) -> None:
    """A paused partition is revoked by unsubscribe, and assigned again."""
    _pause_over_subscriptions(lab, "range")


@scenario()
def a_pause_over_two_subscriptions_in_a_cooperative_group(lab: Lab) -> None:
    """As above."""
    _pause_over_subscriptions(lab, "cooperative-sticky")


@scenario()
def a_pause_outlives_a_cooperative_rebalance(lab: Lab) -> None:
    """A partition that stays is not touched by a rebalance, and neither is its pause."""
    one, two = lab.topic(messages=5), lab.topic(messages=5)
    first = _member(lab, "a", COOPERATIVE)
    first.subscribe([one, two], **callbacks())
    first.read(10)
    first.pause([TopicPartition(one, 0), TopicPartition(two, 0)])
    second = _other(lab, "b", COOPERATIVE)
    second.subscribe([two])
    _share(lab, first, second, 1, 1)
    lab.produce(one, 3)
    first.idle(0.5)
    first.resume([TopicPartition(one, 0)])
    first.read(3)
    first.close()


def _change_subscription(lab: Lab, strategy: str) -> None:
    one, two = lab.topic(2, messages=3), lab.topic(2, messages=4)
    consumer = _member(lab, "a", strategy)
    consumer.subscribe([one], **callbacks())
    consumer.read(6)
    consumer.subscribe([one, two], **callbacks())
    consumer.read(8)
    consumer.until_assigned(4)
    consumer.subscribe([two], **callbacks())
    consumer.until_assigned(2)
    consumer.idle(0.5)
    lab.produce(one, 2)
    lab.produce(two, 2)
    consumer.read(2)
    consumer.close()


@scenario()
def a_subscription_grows_and_shrinks(lab: Lab) -> None:
    """In an eager group all is revoked at each change."""
    _change_subscription(lab, "range")


@scenario()
def a_subscription_grows_and_shrinks_in_a_cooperative_group(lab: Lab) -> None:
    """In a cooperative group only what is no longer subscribed to is revoked."""
    _change_subscription(lab, COOPERATIVE)


@scenario()
def closed_while_a_cooperative_member_joins_again(lab: Lab) -> None:
    """Close commits the consumed messages, even if the member is rejoining after a revocation."""
    for number in range(4):
        one, two = lab.topic(), lab.topic(messages=3)
        consumer = lab.consumer(partition_assignment_strategy=COOPERATIVE, group_id=f"{lab.group}{number}")
        consumer.subscribe([one, two])
        consumer.read(3)
        consumer.subscribe([two])
        consumer.until_assigned(1)
        lab.produce(two, 2)
        consumer.read(2)
        consumer.close()


@scenario()
def closed_after_another_member_has_left(lab: Lab) -> None:
    """Close commits the consumed messages, whatever the state of the group."""
    for number in range(4):
        one, two = lab.topic(), lab.topic()
        group = f"{lab.group}{number}"
        first = _member(lab, "a", COOPERATIVE, group_id=group)
        second = _other(lab, "b", COOPERATIVE, group_id=group)
        first.subscribe([one, two])
        second.subscribe([two])
        _share(lab, first, second, 1, 1)
        lab.produce(one, 3)
        first.read(3)
        second.close()
        time.sleep(0.2 * number)  # the group rebalances meanwhile, and no member polls
        first.close()


@scenario()
def subscribing_to_the_same_again(lab: Lab) -> None:
    """A second subscribe with the same topics, while partitions are owned."""
    topic = lab.topic(2, messages=3)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], **callbacks())
    consumer.read(6)
    consumer.commit(asynchronous=False)
    consumer.subscribe([topic], **callbacks())
    consumer.idle(1.0)
    lab.produce(topic, 2)
    consumer.read(2)
    consumer.close()


@scenario()
def unsubscribe_then_subscribe(lab: Lab) -> None:
    """Consumed messages are committed when the member leaves, and not delivered again."""
    topic = lab.topic(2, messages=3)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], **callbacks())
    consumer.read(6)
    consumer.unsubscribe()
    consumer.until_assigned(0)
    lab.produce(topic, 2)
    consumer.subscribe([topic], **callbacks())
    consumer.read(2)
    consumer.close()


@scenario()
def nothing_is_delivered_between_unsubscribe_and_on_revoke(lab: Lab) -> None:
    """Not even what was fetched already."""
    topic = lab.topic(messages=1000)
    for number in range(5):
        consumer = lab.consumer(group_id=f"{lab.group}.{number}", enable_auto_commit=False)
        consumer.subscribe([topic], **callbacks())
        consumer.read(1)
        consumer.unsubscribe()
        consumer.until(lambda: consumer.revoked, "revoked")  # noqa: B023 - called here
        consumer.close()


@scenario()
def nothing_is_delivered_between_subscribe_and_on_revoke(lab: Lab) -> None:
    """An eager member that subscribes anew is delivered nothing more before the revocation."""
    topic, other = lab.topic(messages=1000), lab.topic()
    for number in range(5):
        consumer = lab.consumer(group_id=f"{lab.group}.{number}", enable_auto_commit=False)
        consumer.subscribe([topic], **callbacks())
        consumer.read(1)
        consumer.subscribe([other], **callbacks())
        consumer.until(
            lambda: [p.topic for p in consumer.raw.assignment()] == [other],  # noqa: B023 - called here
            "the other topic is assigned",
        )
        consumer.close()


@scenario()
def on_assign_raises_in_a_poll_that_waits_for_messages(lab: Lab) -> None:
    """The exception leaves poll, and the messages come afterwards."""

    def fail(*_: object) -> None:
        raise ValueError

    topic = lab.topic(messages=5)
    consumer = lab.consumer(enable_auto_commit=False)
    consumer.subscribe([topic], on_assign=fail)
    consumer.attempt("poll", 10)
    consumer.idle(1.0)
    consumer.close()


@scenario()
def unsubscribe_and_subscribe_at_once(lab: Lab) -> None:
    """Both without a poll between them."""
    one, two = lab.topic(2, messages=3), lab.topic(2, messages=4)
    consumer = _member(lab, "a")
    consumer.subscribe([one], **callbacks())
    consumer.read(6)
    consumer.unsubscribe()
    consumer.subscribe([two], **callbacks())
    consumer.read(8)
    consumer.until_assigned(2)
    consumer.close()


@scenario()
def a_member_that_unsubscribes_leaves_its_partitions_to_others(lab: Lab) -> None:
    """The group does not wait for its session to end."""
    topic = lab.topic(2, messages=3)
    first = _member(lab, "a")
    first.subscribe([topic], **callbacks())
    first.read(6)
    second = _other(lab, "b")
    second.subscribe([topic])
    _share(lab, first, second, 1, 1)
    first.unsubscribe()
    _share(lab, first, second, 0, 2)
    first.close()


@scenario()
def a_regular_expression_finds_topics_made_later(lab: Lab) -> None:
    """A matching topic is subscribed to from its appearance in metadata until its deletion."""
    topic = lab.topic(1, messages=3)
    consumer = _member(lab, "a", topic_metadata_refresh_interval_ms=500)
    consumer.subscribe([lab.pattern("t")], **callbacks())
    consumer.read(3)
    consumer.commit(asynchronous=False)
    lab.topic(1, messages=4)
    consumer.read(4)
    consumer.until_assigned(2)
    lab.delete(topic)
    consumer.until_assigned(1)
    consumer.close()


@scenario()
def a_regular_expression_that_matches_nothing_yet(lab: Lab) -> None:
    """The member waits for a topic to come."""
    consumer = _member(lab, "a", topic_metadata_refresh_interval_ms=500)
    consumer.subscribe([lab.pattern("t")], **callbacks())
    consumer.idle(1.0)
    lab.topic(1, messages=4)
    consumer.read(4)
    consumer.close()


@scenario()
def a_regular_expression_beside_a_name(lab: Lab) -> None:
    """Names and regular expressions may be mixed; what both mean is assigned once."""
    one, _, __ = lab.topic(messages=2), lab.topic(messages=2), lab.topic(messages=2, name="u")
    consumer = _member(lab, "a")
    consumer.subscribe([one, lab.pattern("t")], **callbacks())
    consumer.read(4)
    consumer.until_assigned(2)
    consumer.close()


@scenario()
def two_consumers_of_a_group_in_one_thread(lab: Lab) -> None:
    """Both are polled in turn; each partition's messages come to one of them."""
    topic = lab.topic(4)
    first, second = _member(lab, "a"), _member(lab, "b")
    first.subscribe([topic], **callbacks())
    first.until_assigned(4)
    second.subscribe([topic], **callbacks())
    _share(lab, first, second)
    for partition in range(4):
        lab.produce(topic, 1, partition)
    lab.together(
        first,
        second,
        until=lambda: (
            {0, 1} <= {m.partition() for m in first.messages if m.offset() == 0}
            and {2, 3} <= {m.partition() for m in second.messages if m.offset() == 0}
        ),
        what="all is read",
    )
    lab.note(f"read {len({(m.partition(), m.offset()) for m in first.messages + second.messages})}")
    first.raw.close()
    second.raw.close()


@scenario()
def two_consumers_join_at_the_same_time(lab: Lab) -> None:
    """They end with a half each, and nothing is delivered twice."""
    topic = lab.topic(4, messages=5)
    first, second = _member(lab, "a", COOPERATIVE), _member(lab, "b", COOPERATIVE)
    first.subscribe([topic])
    second.subscribe([topic])
    read: list[tuple[int | None, int | None]] = []

    def all_read() -> bool:
        read[:] = [(m.partition(), m.offset()) for m in first.messages + second.messages]
        return len(set(read)) == 20 and _own(first, second, 2, 2)()

    lab.trace.timelines.clear()
    first.raw.poll(0)
    deadline = time.monotonic() + 20
    while not all_read() and time.monotonic() < deadline:
        for client in (first, second):
            found = client.raw.poll(0.02)
            if found is not None and found.error() is None:
                client.messages.append(found)
    lab.note(f"read {len(read)}, {len(set(read))} of them different")


def _grow(lab: Lab, strategy: str) -> None:
    topic = lab.topic(1, messages=3)
    consumer = _member(lab, "a", strategy, topic_metadata_refresh_interval_ms=500)
    consumer.subscribe([topic], **callbacks())
    consumer.read(3)
    consumer.commit(asynchronous=False)
    lab.grow(topic, 3)
    consumer.until_assigned(3)
    lab.produce(topic, 2, 0)
    lab.produce(topic, 2, 2)
    consumer.read(4)
    consumer.close()


@scenario()
def a_topic_grows(lab: Lab) -> None:
    """New partitions are assigned when metadata shows them."""
    _grow(lab, "range")


@scenario()
def a_topic_grows_in_a_cooperative_group(lab: Lab) -> None:
    """The partitions that were there stay."""
    _grow(lab, COOPERATIVE)


@scenario()
def members_with_different_topics(lab: Lab) -> None:
    """A member is assigned partitions of its own topics only."""
    one, two = lab.topic(2, messages=3), lab.topic(2, messages=4)
    first = _member(lab, "a")
    first.subscribe([one, two], **callbacks())
    first.read(14)
    second = _other(lab, "b")
    second.subscribe([two])
    _share(lab, first, second, 3, 1)
    second.close()
    first.until_assigned(4)
    first.close()


@scenario()
def members_with_different_strategies(lab: Lab) -> None:
    """The group uses the first strategy that all its members know."""
    topic = lab.topic(4)
    first = _member(lab, "a", "roundrobin,range")
    first.subscribe([topic], **callbacks())
    first.until_assigned(4)
    second = _other(lab, "b", "range")
    second.subscribe([topic])
    _share(lab, first, second)
    second.close()
    first.until_assigned(4)
    first.close()


@scenario()
def a_member_whose_subscription_cannot_be_decoded(lab: Lab) -> None:
    """It is assigned nothing, and the others have all partitions and continue."""
    topic = lab.topic(2, messages=5)
    consumer = _member(lab, "a")
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    claims = encode_subscription(Subscription((topic,), owned=PartitionsByTopic({topic: [0, 1]})), version=1)
    other = WireMember(lab.bootstrap_servers, lab.group, protocols=["range"], subscription=claims[:-3])

    def join() -> None:
        error = other.join()
        other.send_sync()
        lab.note(f"joined {error}, synced {other.synced()}")

    joining = lab.spawn("other", join)
    consumer.until(
        lambda: not joining.is_alive() and len(consumer.raw.assignment()) == 2,
        "both have assignments",
    )
    data = other.assignment  # librdkafka's leader leaves it out, so the coordinator sends no bytes
    lab.note(f"the other's assignment: {dict(decode_assignment(data).partitions) if data else {}}")
    lab.produce(topic, 3)
    consumer.read(3)
    lab.note(f"the other's heartbeat: {other.heartbeat()}")
    other.leave()
    consumer.close()
    other.close()


@scenario()
def members_without_a_strategy_in_common(lab: Lab) -> None:
    """The coordinator refuses a member that has no strategy in common with the group."""
    topic = lab.topic(2)
    second = _other(lab, "b", "range")
    second.subscribe([topic])
    second.until_assigned(2)
    first = _member(lab, "a", "roundrobin", error_cb=record)
    first.subscribe([topic], **callbacks())
    first.attempt("poll", 5)
    first.close()
