"""Assigning and revoking partitions on a real handle, whose broker cannot be reached."""

import itertools
import logging
import math
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    OFFSET_END,
    OFFSET_STORED,
    KafkaError,
    KafkaException,
    TopicPartition,
)

from groupwright.consumer import Consumer, Outcome, Phase, Rebalance
from groupwright.consumer._membership import assignment_applier, committer, manual_assignment
from groupwright.consumer._membership.assignment_applier import AssignmentApplier
from groupwright.consumer._membership.callbacks import Failures, guard_native_callbacks
from groupwright.consumer._membership.classic_membership import ClassicMembership
from groupwright.consumer._membership.handle import Native
from groupwright.consumer._protocol.commit_queue import CommitResult, PendingCommit
from groupwright.consumer._protocol.events import Assign, Revoke
from groupwright.consumer._protocol.membership import Membership
from groupwright.consumer._protocol.model import UNREADABLE, MemberIdentity, Offset
from groupwright.consumer._protocol.timeline import Timeline
from groupwright.consumer.errors import ConsumerError
from groupwright.core import ErrorCode, Partitions, RebalanceListener

pytestmark = pytest.mark.usefixtures("no_thread_stays")

ME = MemberIdentity(3, "m-1", "range")


@contextmanager
def polled(consumer: Consumer) -> Iterator[None]:
    """Be the thread inside, as `poll` is."""
    consumer._guard.enter(threading.get_ident(), "poll")
    try:
        yield
    finally:
        consumer._guard.inside.clear()


def _interrupt(*_: object, **__: object) -> None:
    """Raise, as a signal handler does in the middle of a call."""
    raise KeyboardInterrupt


@dataclass
class Stage:
    """A consumer that is in no group, and the events that a membership would bring it."""

    consumer: Consumer
    called: list[tuple[str, list[tuple[str, int]]]] = field(default_factory=list)
    tickets: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def member(self) -> ClassicMembership:
        assert isinstance(self.consumer._member, ClassicMembership)
        return self.consumer._member

    @property
    def applier(self) -> AssignmentApplier:
        return self.member.applier

    def gain(
        self, partitions: Partitions, committed: dict[tuple[str, int], int] | None = None, **fields: Any
    ) -> None:
        offsets = {key: Offset(offset) for key, offset in (committed or {}).items()}
        timeline = fields.pop("timeline", Timeline("why", 0.0))
        with polled(self.consumer):
            owned = fields.pop("owned", partitions)
            event = Assign(next(self.tickets), partitions, owned, offsets, ME, timeline, **fields)
            self.member.applier._committed.on_fetched(offsets)
            self.applier.assign(self.consumer, event, {})

    def revoke(self, partitions: Partitions, *, lost: bool = False, cooperative: bool = False) -> None:
        with polled(self.consumer):
            self.applier.revoke(self.consumer, Revoke(next(self.tickets), partitions, lost, ME, cooperative))

    def assigned(self) -> dict[tuple[str, int], int]:
        """Return librdkafka's start offsets."""
        return {(p.topic, p.partition): p.offset for p in Native.assignment(self.consumer)}

    def notify(self, name: str) -> Callable[[Consumer, list[TopicPartition]], None]:
        def callback(consumer: Consumer, partitions: list[TopicPartition]) -> None:
            assert consumer is self.consumer
            self.called.append((name, [(p.topic, p.partition) for p in partitions]))

        return callback


@pytest.fixture
def new_stage() -> Iterator[Callable[..., Stage]]:
    made: list[Consumer] = []

    def make(**keys: Any) -> Stage:
        config = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "client.id": "c", "log_level": 0}
        made.append(Consumer(config | {key.replace("_", "."): value for key, value in keys.items()}))
        return Stage(made[-1])

    yield make
    for consumer in made:
        consumer.close()


@pytest.fixture
def stage(new_stage: Callable[..., Stage]) -> Stage:
    return new_stage(auto_offset_reset="earliest")


@pytest.mark.parametrize(
    ("reset", "start"),
    [
        ("earliest", OFFSET_BEGINNING),
        ("smallest", OFFSET_BEGINNING),
        ("latest", OFFSET_END),
        ("largest", OFFSET_END),
        # librdkafka then looks by itself, finds nothing, and reports it.
        ("error", OFFSET_STORED),
    ],
)
def test_a_partition_starts_where_the_group_has_committed_or_where_it_is_reset(
    new_stage: Callable[..., Stage], reset: str, start: int
) -> None:
    stage = new_stage(auto_offset_reset=reset)
    stage.gain({"t": (0, 1), "u": (2,)}, {("t", 0): 7, ("t", 1): -1})

    assert stage.assigned() == {("t", 0): 7, ("t", 1): start, ("u", 2): start}


def test_where_an_offset_may_not_be_read_librdkafka_asks_and_returns_the_error(stage: Stage) -> None:
    stage.gain({"t": (0, 1)}, {("t", 0): 7, ("t", 1): UNREADABLE.offset})

    assert stage.assigned() == {("t", 0): 7, ("t", 1): OFFSET_STORED}


def test_a_callback_that_calls_nothing_gets_the_default(stage: Stage) -> None:
    stage.applier.on_assign = stage.notify("assign")
    stage.gain({"t": (0, 1)}, {("t", 0): 7})

    assert stage.called == [("assign", [("t", 0), ("t", 1)])]
    assert stage.assigned() == {("t", 0): 7, ("t", 1): OFFSET_BEGINNING}


def test_a_callback_that_assigns_chooses_the_offsets(stage: Stage) -> None:
    """Those that it leaves open start where the group has committed."""

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        partitions[0].offset = 100
        partitions[1].offset = OFFSET_END
        consumer.assign(partitions)

    stage.applier.on_assign = on_assign
    stage.gain({"t": (0, 1, 2)}, {("t", 0): 7, ("t", 1): 7, ("t", 2): 7})

    assert stage.assigned() == {("t", 0): 100, ("t", 1): OFFSET_END, ("t", 2): 7}


def test_an_assignment_shows_the_offsets_that_the_application_chose(stage: Stage) -> None:
    """As librdkafka does; where each partition really begins is the consumer's business."""

    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        partitions[0].offset = 100
        consumer.assign(partitions)

    stage.gain({"t": (0, 1)}, {("t", 0): 7})
    assert {p.offset for p in stage.consumer.assignment()} == {OFFSET_STORED}
    stage.applier.on_assign = on_assign
    stage.gain({"t": (0, 1)}, {("t", 0): 7})
    assert {p.partition: p.offset for p in stage.consumer.assignment()} == {0: 100, 1: OFFSET_STORED}


def test_a_callback_may_take_less(stage: Stage) -> None:
    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.assign(partitions[:1])

    stage.applier.on_assign = on_assign
    stage.gain({"t": (0, 1)})

    assert stage.assigned() == {("t", 0): OFFSET_BEGINNING}


def test_a_callback_may_take_nothing(stage: Stage) -> None:
    def on_assign(consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        consumer.unassign()

    stage.applier.on_assign = on_assign
    stage.gain({"t": (0, 1)})

    assert stage.assigned() == {}


def test_what_was_assigned_by_hand_is_replaced(stage: Stage) -> None:
    stage.consumer.assign([TopicPartition("t", 0, 5), TopicPartition("mine", 0, 5)])
    stage.gain({"t": (0, 1)})

    assert stage.assigned() == {("t", 0): OFFSET_BEGINNING, ("t", 1): OFFSET_BEGINNING}
    assert stage.consumer._member.failures.take() is None


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
def test_a_callback_that_raises_does_not_stop_the_assignment(stage: Stage, error: BaseException) -> None:
    """And its exception is raised once."""

    def fail(_consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        raise error

    stage.applier.on_assign = stage.applier.on_revoke = fail
    stage.gain({"t": (0,)})
    assert stage.assigned() == {("t", 0): OFFSET_BEGINNING}
    assert stage.consumer._member.failures.take() is error
    assert stage.consumer._member.failures.take() is None

    stage.revoke({"t": (0,)})
    assert stage.assigned() == {}
    assert stage.consumer._member.failures.take() is error


def test_a_callback_that_assigns_wrongly_gets_the_default_and_its_error(stage: Stage) -> None:
    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        consumer.assign([*partitions, *partitions])

    stage.applier.on_assign = on_assign
    stage.gain({"t": (0,)})

    assert stage.assigned() == {("t", 0): OFFSET_BEGINNING}
    assert isinstance(stage.consumer._member.failures.take(), KafkaException)


def test_two_errors_are_kept_in_their_order(stage: Stage) -> None:
    def fail(_consumer: Consumer, partitions: list[TopicPartition]) -> None:
        raise ValueError(len(partitions))

    stage.applier.on_assign = stage.applier.on_revoke = fail
    stage.gain({"t": (0, 1)})
    stage.revoke({"t": (0,)})

    stage.applier.on_revoke = None  # which close calls for the partition that is left
    errors = [stage.consumer._member.failures.take() for _ in range(2)]
    assert [str(error) for error in errors] == ["2", "1"]


def test_a_callback_that_revokes_still_owns_the_revoked_partitions(stage: Stage) -> None:
    seen: list[dict[tuple[str, int], int]] = []
    stage.applier.on_revoke = lambda _consumer, _partitions: seen.append(stage.assigned())
    stage.gain({"t": (0, 1)}, {("t", 0): 7, ("t", 1): 8})
    stage.revoke({"t": (0, 1)})

    assert seen == [{("t", 0): 7, ("t", 1): 8}]
    assert stage.assigned() == {}


@pytest.mark.parametrize("cooperative", [False, True])
def test_a_callback_may_unassign_by_itself(stage: Stage, *, cooperative: bool) -> None:
    def on_revoke(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if cooperative:
            consumer.incremental_unassign(partitions[:1])
        else:
            consumer.unassign()

    stage.applier.on_revoke = on_revoke
    stage.gain({"t": (0, 1)}, cooperative=cooperative)
    stage.revoke({"t": (0, 1)}, cooperative=cooperative)

    assert stage.assigned() == {}
    assert stage.consumer._member.failures.take() is None


@pytest.mark.parametrize("lost", [False, True])
def test_a_commit_comes_after_on_revoke_while_the_partitions_are_assigned(
    stage: Stage, *, lost: bool
) -> None:
    """It includes offsets that on_revoke stores. Lost partitions are not committed."""
    seen: list[object] = []
    stage.applier.on_revoke = lambda _consumer, _partitions: seen.append("revoke")
    stage.gain({"t": (0,)}, {("t", 0): 7})
    with polled(stage.consumer):
        event = Revoke(next(stage.tickets), {"t": (0,)}, lost, ME)
        stage.applier.revoke(stage.consumer, event, lambda _consumer: seen.append(stage.assigned()))

    assert seen == (["revoke"] if lost else ["revoke", {("t", 0): 7}])


# --- Cooperative (KIP-429) ------------------------------------------------------------------------------


def test_a_cooperative_member_gains_and_revokes_beside_kept_partitions(stage: Stage) -> None:
    stage.applier.on_assign, stage.applier.on_revoke = stage.notify("assign"), stage.notify("revoke")
    stage.gain({"t": (0, 1)}, {("t", 0): 7, ("t", 1): 8}, cooperative=True)
    stage.revoke({"t": (1,)}, cooperative=True)
    stage.gain({"u": (3,)}, {("u", 3): 9}, owned={"t": (0,), "u": (3,)}, cooperative=True)
    stage.gain({}, owned={"t": (0,), "u": (3,)}, cooperative=True)

    assert stage.assigned() == {("t", 0): 7, ("u", 3): 9}
    assert stage.called == [
        ("assign", [("t", 0), ("t", 1)]),
        ("revoke", [("t", 1)]),
        ("assign", [("u", 3)]),
        ("assign", []),
    ]


@pytest.mark.parametrize("call", ["assign", "unassign"])
def test_a_cooperative_callback_that_replaces_everything_is_an_error(stage: Stage, call: str) -> None:
    """As in librdkafka (_STATE): it would stop consuming the kept partitions. The default is done instead."""
    stage.gain({"t": (0,)}, cooperative=True)

    def replace(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        if call == "assign":
            consumer.assign(partitions)
        else:
            consumer.unassign()

    stage.applier.on_assign = stage.applier.on_revoke = replace
    stage.gain({"t": (1,)}, owned={"t": (0, 1)}, cooperative=True)
    assert set(stage.assigned()) == {("t", 0), ("t", 1)}
    error = stage.consumer._member.failures.take()
    assert isinstance(error, ConsumerError)
    assert error.code == KafkaError._STATE
    assert f"incremental_{call}(partitions)" in str(error)

    stage.revoke({"t": (1,)}, cooperative=True)
    assert set(stage.assigned()) == {("t", 0)}
    assert isinstance(stage.consumer._member.failures.take(), ConsumerError)


@pytest.mark.parametrize("call", ["incremental_assign", "incremental_unassign"])
def test_an_eager_callback_that_changes_a_part_is_an_error(stage: Stage, call: str) -> None:
    """As in librdkafka (_STATE). The default is done instead."""
    stage.applier.on_assign = lambda consumer, partitions: getattr(consumer, call)(partitions)
    stage.gain({"t": (0, 1)})

    assert set(stage.assigned()) == {("t", 0), ("t", 1)}
    error = stage.consumer._member.failures.take()
    assert isinstance(error, ConsumerError)
    assert error.code == KafkaError._STATE
    assert str(error).startswith(
        "Changes to the current assignment must be made using assign() when rebalance protocol type is EAGER"
    )


@pytest.mark.parametrize("cooperative", [False, True])
def test_calls_by_hand_keep_to_the_groups_protocol_from_its_first_assignment_on(
    stage: Stage, *, cooperative: bool
) -> None:
    mine = [TopicPartition("mine", 0, 5)]
    consumer = stage.consumer
    whole = {"assign": (mine,), "unassign": ()}
    parts = {"incremental_assign": (mine,), "incremental_unassign": (mine,)}

    for name, arguments in [*whole.items(), *parts.items()]:
        getattr(consumer, name)(*arguments)
    stage.gain({"t": (0,)}, cooperative=cooperative)
    refused, allowed = (whole, parts) if cooperative else (parts, whole)
    for name, arguments in refused.items():
        with pytest.raises(ConsumerError) as caught:
            getattr(consumer, name)(*arguments)
        assert caught.value.code == KafkaError._STATE
    assert set(stage.assigned()) == {("t", 0)}
    for name, arguments in allowed.items():
        getattr(consumer, name)(*arguments)


def test_a_cooperative_callback_chooses_the_offsets_incrementally(stage: Stage) -> None:
    def on_assign(consumer: Consumer, partitions: list[TopicPartition]) -> None:
        partitions[0].offset = 100
        consumer.incremental_assign(partitions)

    stage.gain({"t": (0,)}, {("t", 0): 7}, cooperative=True)
    stage.applier.on_assign = on_assign
    stage.gain({"t": (1, 2)}, {("t", 1): 7, ("t", 2): 8}, owned={"t": (0, 1, 2)}, cooperative=True)

    assert stage.assigned() == {("t", 0): 7, ("t", 1): 100, ("t", 2): 8}


def test_a_rebalance_that_goes_on_is_not_reported_as_ended(stage: Stage) -> None:
    listener = Listener()
    stage.consumer.add_listener(listener)
    stage.gain({"t": (0,)}, cooperative=True, timeline=None)
    assert listener.rebalances == []

    stage.gain({"t": (1,)}, owned={"t": (0, 1)}, cooperative=True)
    (rebalance,) = listener.rebalances
    assert rebalance.partitions == {"t": (0, 1)}
    assert listener.recorded == [("assigned", {"t": (0,)}), ("assigned", {"t": (1,)})]


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_an_event_that_ctrl_c_brings_a_second_time_is_applied_once(
    stage: Stage, *, cooperative: bool
) -> None:
    stage.applier.on_assign, stage.applier.on_revoke = stage.notify("assign"), stage.notify("revoke")
    gain = Assign(1, {"t": (0,)}, {"t": (0,)}, {}, ME, None, cooperative)
    loss = Revoke(2, {"t": (0,)}, lost=False, cooperative=cooperative)
    with polled(stage.consumer):
        for _ in range(2):
            stage.applier.assign(stage.consumer, gain, {})
        for _ in range(2):
            stage.applier.revoke(stage.consumer, loss)

    assert stage.called == [("assign", [("t", 0)]), ("revoke", [("t", 0)])]
    assert stage.consumer._member.failures.take() is None


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
@pytest.mark.parametrize("interrupted", ["set_start_offsets", "dropped"])
def test_an_event_that_ctrl_c_interrupts_after_its_callback_calls_it_once(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, interrupted: str, *, cooperative: bool
) -> None:
    """The signal's handler raises after librdkafka has assigned or unassigned; the event is served again."""
    stage.applier.on_assign, stage.applier.on_revoke = stage.notify("assign"), stage.notify("revoke")
    gain = Assign(1, {"t": (0,)}, {"t": (0,)}, {}, ME, None, cooperative)
    loss = Revoke(2, {"t": (0,)}, lost=False, cooperative=cooperative)
    offsets = stage.applier._offsets
    uninterrupted = getattr(offsets, interrupted)

    def interrupt(*_: object) -> None:
        monkeypatch.setattr(offsets, interrupted, uninterrupted)
        raise KeyboardInterrupt

    monkeypatch.setattr(offsets, interrupted, interrupt)
    assigned = []
    with polled(stage.consumer):
        for serve in (
            partial(stage.applier.assign, stage.consumer, gain, {}),
            partial(stage.applier.revoke, stage.consumer, loss),
        ):
            with suppress(KeyboardInterrupt):
                serve()
            serve()
            assigned.append(list(stage.assigned()))

    assert stage.called == [("assign", [("t", 0)]), ("revoke", [("t", 0)])]
    assert assigned == [[("t", 0)], []]


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_an_assignment_that_ctrl_c_interrupts_starts_at_what_was_committed_since(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, cooperative: bool
) -> None:
    """After the exception, an application may commit what it consumed of partitions assigned by hand."""
    fetched = {("t", 0): Offset(3), ("t", 1): Offset(4)}
    gain = Assign(1, {"t": (0, 1)}, {"t": (0, 1)}, fetched, ME, None, cooperative)
    stage.member.applier._committed.on_fetched(gain.offsets)

    def interrupt(*_: object) -> None:
        monkeypatch.undo()
        raise KeyboardInterrupt

    monkeypatch.setattr(stage.applier, "incremental_assign", interrupt)
    with polled(stage.consumer):
        with pytest.raises(KeyboardInterrupt):
            stage.applier.assign(stage.consumer, gain, {})
        stage.applier.assign(stage.consumer, gain, {("t", 0): Offset(7), ("other", 0): Offset(9)})

    assert stage.assigned() == {("t", 0): 7, ("t", 1): 4}


def test_the_session_limits_the_fast_path_from_the_first_message_on(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network thread learns a moment later that on_assign has returned; the fast path is open by then.

    A process that was stopped soon after on_assign, beyond its session, returned messages that others had.
    """
    monkeypatch.setattr(Membership, "identity", ME)
    monkeypatch.setattr(Membership, "session_until", 50.0)
    member = stage.member
    assert member.fast_path_until > 50.0

    stage.gain({"t": (0,)}, {("t", 0): 7})

    assert not member.membership.owned
    assert member.fast_path_until == 50.0
    assert member.session_expired
    monkeypatch.setattr(Membership, "identity", MemberIdentity())
    member.ownership.identity = ME
    assert member.fast_path_until == 0.0


def test_no_message_is_returned_before_a_busy_network_thread_has_revoked(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`unsubscribe` waits for the revocation, but not forever: the next poll returned a message then."""
    member = stage.member
    stage.gain({"t": (0,)}, {("t", 0): 7})
    assert not member.hold(0.0)
    monkeypatch.setattr(member.manual, "subscribed", True)
    monkeypatch.setattr(member.driver, "call_and_wait", lambda *_: None)

    stage.consumer.unsubscribe()

    assert member.hold(0.0)
    assert member.fast_path_until == 0.0
    stage.revoke({"t": (0,)})
    assert not member.hold(0.0)
    assert member.fast_path_until > 0.0


def test_an_assignment_of_an_expired_session_does_not_keep_close_busy(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`close` did not take it, and did not wait while it was there: it used a core until it was withdrawn."""
    monkeypatch.setattr(Membership, "session_until", 0.0)
    member = stage.member
    member.events._inbox.put(Assign(1, {"t": (0,)}, {"t": (0,)}, {}, ME, None))
    with polled(stage.consumer):
        member.serve(stage.consumer)
        assert member.events._inbox
        member.events.closing = True
        member.serve(stage.consumer)

    assert not member.events._inbox
    assert not stage.assigned()
    member.events.closing = False


def test_a_close_revokes_nothing_whose_on_assign_an_exception_has_prevented(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler raised just before on_assign, and the application closed: on_revoke was called alone."""
    stage.applier.on_assign, stage.applier.on_revoke = stage.notify("assign"), stage.notify("revoke")
    member = stage.member
    event = Assign(next(stage.tickets), {"t": (0,)}, {"t": (0,)}, {}, ME, None)

    def interrupt(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patched, polled(stage.consumer), suppress(RuntimeError):
        patched.setattr(assignment_applier, "TopicPartition", interrupt)
        stage.applier.assign(stage.consumer, event, {})
    assert stage.member.ownership
    member.events._inbox.put(event)
    stage.consumer.close()

    assert stage.called == []
    assert not stage.member.ownership


def test_a_close_has_the_membership_revoke_what_on_assign_was_called_for(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler raised just after on_assign: the membership did not know of partitions that were owned."""
    member, replies = stage.member, list[str]()
    monkeypatch.setattr(member.driver, "call", lambda reply, _ticket: replies.append(reply.__name__))
    monkeypatch.setattr(member.events, "closing", True)
    for interrupted in ("assign_in_callback", "_call"):  # what follows on_assign, and what calls it
        event = Assign(next(stage.tickets), {"t": (0,)}, {"t": (0,)}, {}, ME, None)
        with monkeypatch.context() as patched, polled(stage.consumer), suppress(KeyboardInterrupt):
            patched.setattr(stage.applier, interrupted, _interrupt)
            stage.applier.assign(stage.consumer, event, {})
        member.events._inbox.put(event)
        with polled(stage.consumer):
            member.serve(stage.consumer)

    assert replies == ["applied", "withdrawn"]


def test_a_callback_that_an_exception_has_prevented_is_called_by_the_next_poll(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler raised while the callback's arguments were made, and the callback was never called."""
    stage.applier.on_revoke = stage.notify("revoke")
    stage.gain({"t": (0,)}, {("t", 0): 7})
    revocation = Revoke(next(stage.tickets), {"t": (0,)}, lost=False, identity=ME)

    def interrupt(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patched, polled(stage.consumer), suppress(RuntimeError):
        patched.setattr(assignment_applier, "TopicPartition", interrupt)
        stage.applier.revoke(stage.consumer, revocation)
    with polled(stage.consumer):
        stage.applier.revoke(stage.consumer, revocation)

    assert stage.called == [("revoke", [("t", 0)])]
    assert not stage.assigned()


def test_a_look_up_that_an_exception_has_prevented_is_begun_by_the_next_poll(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, interrupted: Callable[..., tuple[int, Any]]
) -> None:
    """A handler raised in the poll that began it; librdkafka then looked up by itself, and undid a seek."""
    stage.applier.on_assign = stage.notify("assign")
    lookup = stage.applier._lookup
    for number in itertools.count(1):
        requests: list[object] = []
        monkeypatch.setattr(lookup, "_source", SimpleNamespace(call_soon=requests.append))
        event = Assign(next(stage.tickets), {"t": (number,)}, {"t": (number,)}, {}, ME, None)
        raised, _ = interrupted(number, partial(stage.applier.prepare, stage.consumer, event))
        if not raised:
            break
        ready = stage.applier.prepare(stage.consumer, event)
        assert requests, f"interrupted at the {number}. place"
        assert lookup._wanted == {(("t", number), OFFSET_BEGINNING), (("t", number), OFFSET_END)}
        assert not ready
    assert number > 10


def test_what_was_read_by_hand_is_committed_once_if_an_exception_interrupts_the_assignment(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The poll after a signal handler's exception committed the target of a seek back, and went on there."""
    member = stage.member
    server = member.events
    committed: list[object] = []
    monkeypatch.setattr(server, "_commit_replaced", lambda _, event: committed.append(event))
    monkeypatch.setattr(Membership, "session_until", property(lambda _: math.inf))
    monkeypatch.setattr(stage.applier, "prepare", lambda *_: True)
    event = Assign(next(stage.tickets), {"t": (0,)}, {"t": (0,)}, {}, ME, None)
    member.events._inbox.put(event)

    with monkeypatch.context() as patched, polled(stage.consumer), suppress(KeyboardInterrupt):
        patched.setattr(stage.applier._offsets, "set_start_offsets", _interrupt)
        server._serve_events(stage.consumer)
    assert member.events._inbox
    with polled(stage.consumer):
        server._serve_events(stage.consumer)
    assert committed == [event]
    assert not member.events._inbox


def test_an_assignment_that_an_exception_interrupts_was_taken(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise max.poll.interval.ms would not begin, if it is the first one."""
    member = stage.member
    server = member.events
    called: list[str] = []
    monkeypatch.setattr(server._driver, "call", lambda method, *_: called.append(method.__name__))

    monkeypatch.setattr(stage.applier._offsets, "set_start_offsets", _interrupt)
    event = Assign(next(stage.tickets), {"t": (0,)}, {"t": (0,)}, {}, ME, None)
    with polled(stage.consumer), pytest.raises(KeyboardInterrupt):
        server._serve_event(stage.consumer, event)
    assert called == ["taken"]


@pytest.mark.parametrize("paused", [False, True])
def test_a_seek_succeeds_while_librdkafka_has_not_begun_to_fetch(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, paused: bool
) -> None:
    """librdkafka refuses a seek while it still ends the fetch of an earlier assignment."""
    stage.gain({"t": (0, 1)}, {("t", 0): 7, ("t", 1): 8})
    if paused:
        stage.consumer.pause([TopicPartition("t", 0)])

    def refuse(_handle: object, _partition: TopicPartition) -> None:
        raise KafkaException(KafkaError(KafkaError._STATE))

    monkeypatch.setattr(
        manual_assignment,
        "Native",
        refusing := SimpleNamespace(
            **{
                name: getattr(Native, name)
                for name in ("assignment", "position", "incremental_assign", "incremental_unassign", "pause")
            }
        ),
    )
    refusing.seek = refuse
    stage.consumer.seek(TopicPartition("t", 0, 3))

    assert stage.assigned() == {("t", 0): 3, ("t", 1): 8}
    assert stage.consumer.paused() == ([TopicPartition("t", 0)] if paused else [])


def test_a_seek_of_what_was_assigned_by_hand_is_refused_as_by_librdkafka(stage: Stage) -> None:
    stage.consumer.assign([TopicPartition("t", 0)])

    with pytest.raises(KafkaException) as refused:
        stage.consumer.seek(TopicPartition("t", 0, 3))
    assert refused.value.args[0].code() == KafkaError._STATE


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_a_seek_between_on_assign_and_the_assignment_that_an_exception_has_delayed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, cooperative: bool
) -> None:
    """A handler raised when on_assign had returned; a seek before the next poll was refused."""
    stage.applier.on_assign = stage.notify("assign")
    committed = {("t", 0): Offset(5), ("t", 1): Offset(7)}
    gain = Assign(1, {"t": (0, 1)}, {"t": (0, 1)}, committed, ME, None, cooperative)
    stage.member.applier._committed.on_fetched(gain.offsets)

    with monkeypatch.context() as patched, polled(stage.consumer), suppress(KeyboardInterrupt):
        patched.setattr(stage.applier, "_with_starts", _interrupt)
        stage.applier.assign(stage.consumer, gain, {})
    assert stage.called == [("assign", [("t", 0), ("t", 1)])]
    assert not stage.assigned()
    stage.consumer.seek(TopicPartition("t", 0, 3))
    with polled(stage.consumer):
        stage.applier.assign(stage.consumer, gain, {})

    assert stage.assigned() == {("t", 0): 3, ("t", 1): 7}
    assert len(stage.called) == 1
    assert {p.offset for p in stage.consumer.assignment()} == {OFFSET_STORED}
    with pytest.raises(KafkaException):
        stage.consumer.seek(TopicPartition("t", 2, 3))


def test_an_assignment_by_hand_replaces_one_that_an_exception_has_delayed(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A handler raised when on_assign had returned; the next poll replaced what was assigned meanwhile."""
    stage.applier.on_assign = stage.notify("assign")
    offsets = {("t", 0): Offset(5), ("t", 1): Offset(7)}
    gain = Assign(next(stage.tickets), {"t": (0, 1)}, {"t": (0, 1)}, offsets, ME, None)
    stage.member.applier._committed.on_fetched(gain.offsets)

    with monkeypatch.context() as patched, polled(stage.consumer), suppress(KeyboardInterrupt):
        patched.setattr(stage.applier, "_with_starts", _interrupt)
        stage.applier.assign(stage.consumer, gain, {})
    stage.consumer.assign([TopicPartition("t", 1, 3)])
    with polled(stage.consumer):
        stage.applier.assign(stage.consumer, gain, {})

    assert stage.assigned() == {("t", 1): 3}
    assert stage.applier._offsets.keys == [("t", 1)]  # which a commit without arguments returns
    assert len(stage.called) == 1
    stage.revoke({"t": (0, 1)})
    assert not stage.assigned()


@pytest.mark.parametrize(
    ("interrupted", "unassigned", "left"),
    [
        ("_with_starts", 9, {("t", 0): 5, ("t", 1): 7}),
        ("_record", 0, {("t", 1): 7, ("t", 9): 2}),
    ],
    ids=["another partition", "one of its partitions"],
)
def test_an_unassignment_by_hand_leaves_the_rest_of_an_assignment_that_an_exception_has_delayed(
    stage: Stage,
    monkeypatch: pytest.MonkeyPatch,
    interrupted: str,
    unassigned: int,
    left: dict[tuple[str, int], int],
) -> None:
    """A handler raised within a cooperative assignment; the member was never assigned what it had gained."""
    stage.gain({"t": (9,)}, {("t", 9): 2}, cooperative=True)
    committed = {("t", 0): Offset(5), ("t", 1): Offset(7)}
    gain = Assign(next(stage.tickets), {"t": (0, 1)}, {"t": (0, 1, 9)}, committed, ME, None, cooperative=True)
    stage.member.applier._committed.on_fetched(gain.offsets)

    with monkeypatch.context() as patched, polled(stage.consumer), suppress(KeyboardInterrupt):
        patched.setattr(stage.applier, interrupted, _interrupt)
        stage.applier.assign(stage.consumer, gain, {})
    stage.consumer.incremental_unassign([TopicPartition("t", unassigned)])
    with polled(stage.consumer):
        stage.applier.assign(stage.consumer, gain, {})

    assert stage.assigned() == left


@pytest.mark.parametrize("sought", [None, 8])
def test_an_assignment_that_an_exception_has_delayed_replaces_what_was_assigned_by_hand(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, sought: int | None
) -> None:
    """A handler raised when on_assign had returned; the partition went on where it was read by hand."""
    stage.consumer.assign([TopicPartition("t", 0, 27)])
    gain = Assign(next(stage.tickets), {"t": (0,)}, {"t": (0,)}, {("t", 0): Offset(21)}, ME, None)
    stage.member.applier._committed.on_fetched(gain.offsets)

    with monkeypatch.context() as patched, polled(stage.consumer), suppress(KeyboardInterrupt):
        patched.setattr(stage.applier, "assign_in_callback", _interrupt)
        stage.applier.assign(stage.consumer, gain, {})
    if sought is not None:
        stage.consumer.seek(TopicPartition("t", 0, sought))
    with polled(stage.consumer):
        stage.applier.assign(stage.consumer, gain, {})

    assert stage.assigned() == {("t", 0): 21 if sought is None else 27}  # a seek changes no start
    assert stage.applier._offsets.sought(("t", 0)) == sought


def test_a_partition_assigned_again_goes_on_at_the_commit_under_way_even_if_a_later_one_was_rejected(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A member that joins has its later commit rejected at once; the earlier one has been sent."""
    member = stage.member
    ends: list[Callable[[CommitResult], None]] = []
    monkeypatch.setattr(member.committer._driver, "commit", lambda _offsets, _deadline, end: ends.append(end))
    monkeypatch.setattr(committer, "_UNDER_WAY_TIMEOUT", 0.0)
    for offset in (23, 30):
        stage.consumer.commit(offsets=[TopicPartition("t", 0, offset)], asynchronous=True)

    ends[1](CommitResult({("t", 0): ErrorCode.REBALANCE_IN_PROGRESS}))
    stage.consumer.assign([TopicPartition("t", 0)])
    assert stage.assigned() == {("t", 0): 23}

    ends[0](CommitResult({("t", 0): ErrorCode.NONE}))
    stage.consumer.assign([TopicPartition("t", 0)])
    assert stage.assigned() == {("t", 0): OFFSET_STORED}


def test_a_commit_that_an_exception_kept_from_being_sent_is_forgotten_after_its_deadline(
    stage: Stage,
) -> None:
    """It counted as under way for ever, and later assignments of its partition started there."""
    commits = stage.member.committer
    commits._under_way[PendingCommit({("t", 0): Offset(23)}, time.monotonic() - 10)] = None

    stage.consumer.assign([TopicPartition("t", 0)])
    assert stage.assigned() == {("t", 0): OFFSET_STORED}
    assert not commits.is_committing


@pytest.mark.parametrize("cooperative", [False, True], ids=["eager", "cooperative"])
def test_a_seek_after_an_interrupted_assignment_is_not_undone(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, *, cooperative: bool
) -> None:
    """A handler raises when librdkafka has assigned; the application seeks; a poll serves the event again.

    The partition was assigned a second time, from its committed offset: messages were skipped or came again.
    """
    committed = {("t", 0): Offset(5), ("t", 1): Offset(7)}
    gain = Assign(1, {"t": (0, 1)}, {"t": (0, 1)}, committed, ME, None, cooperative)
    stage.member.applier._committed.on_fetched(gain.offsets)
    offsets, prefetch = stage.applier._offsets, stage.applier._prefetch

    with monkeypatch.context() as patched, polled(stage.consumer), suppress(KeyboardInterrupt):
        patched.setattr(offsets, "set_start_offsets", _interrupt)
        stage.applier.assign(stage.consumer, gain, {})
    offsets.seek(("t", 0), 3, TopicPartition("t", 0))
    prefetch.set_start_offsets([TopicPartition("t", 0, 3)])
    with polled(stage.consumer):
        stage.applier.assign(stage.consumer, gain, {})

    assert sorted(stage.assigned()) == [("t", 0), ("t", 1)]
    assert offsets.start_offsets == prefetch._reached == {("t", 0): 3, ("t", 1): 7}


@pytest.mark.parametrize(
    ("callbacks", "lost", "called"),
    [
        (("revoke", "lost"), False, ["revoke"]),
        (("revoke", "lost"), True, ["lost"]),
        (("revoke",), True, ["revoke"]),
        (("lost",), False, []),
        ((), True, []),
    ],
)
def test_which_callbacks_are_called_for_revoked_and_lost_partitions(
    stage: Stage, callbacks: tuple[str, ...], called: list[str], *, lost: bool
) -> None:
    """As in librdkafka: on_revoke is called for lost partitions too, unless there is an on_lost."""
    stage.applier.on_revoke = stage.notify("revoke") if "revoke" in callbacks else None
    stage.applier.on_lost = stage.notify("lost") if "lost" in callbacks else None
    stage.gain({"t": (0,)})
    stage.revoke({"t": (0,)}, lost=lost)

    assert stage.called == [(name, [("t", 0)]) for name in called]
    assert stage.assigned() == {}


def test_a_pause_of_the_application_outlives_a_revocation(stage: Stage) -> None:
    stage.gain({"t": (0, 1)}, cooperative=True)
    stage.consumer.pause([TopicPartition("t", 0)])
    event = Revoke(next(stage.tickets), {"t": (0, 1)}, lost=False, cooperative=True)
    with polled(stage.consumer):
        stage.applier.revoke(stage.consumer, event)

    assert stage.applier._prefetch.paused == {("t", 0)}


def test_the_pause_of_a_topic_that_the_consumer_never_had_is_none(stage: Stage) -> None:
    """librdkafka does not raise either."""
    stage.consumer.pause([TopicPartition("t", 0)])

    assert stage.applier._prefetch.paused == set()


def test_nothing_can_be_polled_or_closed_from_a_callback(stage: Stage) -> None:
    refused: list[str] = []

    def on_assign(consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        for method in (consumer.poll, consumer.consume, consumer.close):
            with pytest.raises(RuntimeError, match="callback") as caught:
                method()
            refused.append(str(caught.value))

    stage.applier.on_assign = on_assign
    stage.gain({"t": (0,)})

    assert stage.consumer._member.failures.take() is None
    assert len(refused) == 3


@dataclass
class Listener(RebalanceListener):
    """Records its calls."""

    recorded: list[tuple[str, Partitions]] = field(default_factory=list)
    rebalances: list[Rebalance] = field(default_factory=list)

    def partitions_assigned(self, partitions: Partitions, seconds: float) -> None:
        assert seconds >= 0
        self.recorded.append(("assigned", partitions))

    def partitions_revoked(self, partitions: Partitions, seconds: float) -> None:
        assert seconds >= 0
        self.recorded.append(("revoked", partitions))

    def partitions_lost(self, partitions: Partitions, seconds: float) -> None:
        assert seconds >= 0
        self.recorded.append(("lost", partitions))

    def rebalanced(self, rebalance: Rebalance) -> None:
        self.rebalances.append(rebalance)


def test_listeners_are_called_for_revoked_and_assigned_partitions(stage: Stage) -> None:
    listener = Listener()
    stage.consumer.add_listener(listener)
    stage.gain({"t": (0,)})
    stage.revoke({"t": (0,)})
    stage.gain({"t": (1,)})
    stage.revoke({"t": (1,)}, lost=True)

    assert listener.recorded == [
        ("assigned", {"t": (0,)}),
        ("revoked", {"t": (0,)}),
        ("assigned", {"t": (1,)}),
        ("lost", {"t": (1,)}),
    ]


@pytest.mark.parametrize("lost", [False, True])
def test_a_rebalance_is_reported_when_it_has_ended(stage: Stage, *, lost: bool) -> None:
    listener = Listener()
    stage.consumer.add_listener(listener)
    stage.applier._clock = lambda: 12.5
    timeline = Timeline("members or partitions changed", 10.0, lost=lost)
    timeline.begin(Phase.ASSIGN, 12.0)
    stage.gain({"t": (0, 1)}, timeline=timeline)

    (rebalance,) = listener.rebalances
    assert (rebalance.group, rebalance.client_id) == ("g", "c")
    assert (rebalance.member_id, rebalance.generation, rebalance.protocol) == ("m-1", 3, "range")
    assert rebalance.outcome is (Outcome.LOST if lost else Outcome.COMPLETED)
    assert rebalance.reason == "members or partitions changed"
    assert rebalance.duration == 2.5
    assert rebalance.phases == {Phase.ASSIGN: 0.5}
    assert rebalance.partitions == {"t": (0, 1)}
    assert rebalance.error is None


def test_a_failed_rebalance_is_reported(stage: Stage) -> None:
    listener = Listener()
    stage.consumer.add_listener(listener)
    reporter = stage.applier._reporter
    reporter._clock = lambda: 12.5
    reporter.failed(Timeline("the consumer subscribed", 10.0), "the assignor 'mine' failed: why")
    reporter.failed(None, "the assignor 'mine' failed: why")

    (rebalance,) = listener.rebalances
    assert rebalance.outcome is Outcome.FAILED
    assert (rebalance.generation, rebalance.protocol, rebalance.partitions) == (-1, None, {})
    assert rebalance.duration == 2.5
    assert rebalance.error == "the assignor 'mine' failed: why"


def test_a_listener_that_raises_is_logged_and_harmless(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Listener):
        def partitions_assigned(self, partitions: Partitions, seconds: float) -> None:
            raise ValueError(f"of {partitions} after {seconds}")

    later = Listener()
    stage.consumer.add_listener(Broken())
    stage.consumer.add_listener(later)
    with caplog.at_level(logging.ERROR, "groupwright.consumer"):
        stage.gain({"t": (0,)})

    assert stage.assigned() == {("t", 0): OFFSET_BEGINNING}
    assert later.recorded == [("assigned", {"t": (0,)})]
    assert stage.consumer._member.failures.take() is None
    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "[c in g] the listener" in record.message
    assert "raised; the consumer continues" in record.message


def test_exceptions_of_librdkafkas_own_callbacks_are_kept(caplog: pytest.LogCaptureFixture) -> None:
    """Raised inside a native call it would destroy a message, and could make close() hang."""
    error = ValueError("mine")

    def stats_cb(_json: str) -> None:
        raise error

    def logger(*_: object) -> None: ...

    failures = Failures(lambda: None, logging.LoggerAdapter(logging.getLogger("groupwright.consumer")))
    guarded = guard_native_callbacks({"stats_cb": stats_cb, "logger": logger, "client.id": "c"}, failures)

    assert guarded["stats_cb"]("{}") is None
    assert guarded["stats_cb"]("{}") is None
    assert failures.take() is error
    assert failures.take() is None
    # A callback that always raises would otherwise keep every poll from returning a message.
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert guarded["logger"] is logger
    assert guarded["client.id"] == "c"


def test_an_assignment_is_not_applied_if_its_session_ended_while_it_was_prepared(
    new_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process was stopped while librdkafka looked the topics up, woke, and called on_assign too late."""
    stage = new_stage()
    assert isinstance(stage.consumer._member, ClassicMembership)
    inbox, ends = stage.consumer._member.events._inbox, [math.inf]
    stage.applier.on_assign = stage.notify("assigned")
    monkeypatch.setattr(Membership, "session_until", property(lambda _: ends[0]))

    def prepare(*_: object) -> bool:
        ends[0] = 0.0
        return True

    monkeypatch.setattr(stage.applier, "prepare", prepare)
    inbox.put(Assign(1, {"t": (0,)}, {"t": (0,)}, {}, ME, None))

    stage.consumer.poll(0)

    assert stage.called == []
    assert inbox.withdraw(1)


@pytest.mark.parametrize(("session_until", "expected"), [(math.inf, "revoked"), (0.0, "lost")])
def test_a_revocation_that_is_applied_after_the_session_is_a_loss(
    new_stage: Callable[..., Stage], monkeypatch: pytest.MonkeyPatch, session_until: float, expected: str
) -> None:
    """A process was stopped with a revocation in its inbox, and woke after its session had expired.

    It called on_revoke, because the polling thread ran a millisecond before the membership's thread.
    """
    stage = new_stage(auto_offset_reset="earliest")
    stage.gain({"t": (0,)})
    stage.applier.on_revoke, stage.applier.on_lost = stage.notify("revoked"), stage.notify("lost")
    member = stage.member
    monkeypatch.setattr(member.membership.facts, "identity", ME)
    monkeypatch.setattr(Membership, "session_until", property(lambda _: session_until))
    member.events._inbox.put(Revoke(2, {"t": (0,)}, lost=False, identity=ME))

    stage.consumer.poll(0)

    assert stage.called == [(expected, [("t", 0)])]
    monkeypatch.undo()
