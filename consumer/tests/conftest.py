"""Fixtures: `Player`, the environment of a membership, and `Scene`, topics and consumers on a real broker."""

import contextlib
import dis
import functools
import gc
import os
import sys
import threading
import time
import uuid
from collections import deque
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, TypeVar

import confluent_kafka
import pytest
from confluent_kafka import KafkaException, Message, Producer, TopicPartition

import groupwright.consumer
from groupwright.assignors import JoinedMember, MalformedBytesError, Topic
from groupwright.consumer import Consumer
from groupwright.consumer._membership.classic_membership import ClassicMembership
from groupwright.consumer._network.connections import Network, NetworkConfig
from groupwright.consumer._network.event_loop import Loop
from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.events import Assign, Event, Revoke, TopicUnavailable
from groupwright.consumer._protocol.membership import Membership, SubscriptionEncoder
from groupwright.consumer._protocol.model import (
    JoinGroupResponse,
    MemberIdentity,
    MetadataResponse,
    Offset,
    OffsetFetchResponse,
    SyncGroupResponse,
    keys,
)
from groupwright.consumer._protocol.subscription import parse_subscription
from groupwright.consumer._protocol.timers import Timing
from groupwright.consumer._protocol.transitions import State
from groupwright.core import Partitions, locking
from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

_Action = TypeVar("_Action", bound=act.Action)
_Answer = TypeVar("_Answer")


TIMING = Timing(session_timeout=10.0, heartbeat_interval=3.0, max_poll_interval=30.0)


def encode_subscription(
    topics: tuple[str, ...], owned: Partitions, generation: int
) -> tuple[tuple[str, bytes], ...]:
    """Write a subscription so that a test can read it."""
    return (("range", f"{','.join(topics)} owns {keys(owned)} of generation {generation}".encode()),)


def encode_assignment(partitions: Partitions) -> bytes:
    return ";".join(
        f"{topic}:{','.join(map(str, numbers))}" for topic, numbers in partitions.items()
    ).encode()


def decode_assignment(data: bytes) -> Partitions:
    if data == b"!":
        raise MalformedBytesError("assignment", 0, "a version", "!")
    return {
        topic: tuple(map(int, numbers.split(",")))
        for topic, numbers in (part.split(":") for part in data.decode().split(";"))
    }


def topics_answer(topics: Mapping[str, int], **fields: Any) -> MetadataResponse:
    """Say that these topics exist, with so many partitions."""
    return MetadataResponse({name: Topic(count) for name, count in topics.items()}, **fields)


@dataclass(eq=False)
class Player:
    """Simulates the network, the application and the clock for one membership.

    Requests of the membership wait in `asked` until the test answers them. Events wait in `inbox` until the
    test lets the application `serve` them. A dropped connection fails its open requests, as a real one does.
    """

    member: Membership
    timing: Timing = TIMING
    now: float = 1000.0
    polled: float = 1000.0
    asked: list[act.Action] = field(default_factory=list)
    inbox: deque[Event] = field(default_factory=deque)
    served: list[Event] = field(default_factory=list)
    refused: list[act.ReportError] = field(default_factory=list)
    notified: list[act.NotifyAssignor] = field(default_factory=list)
    looks: list[act.FetchMetadata] = field(default_factory=list)
    unavailable: list[tuple[str, int]] = field(default_factory=list)
    drops: int = 0
    commits_end: bool = True
    """True if nothing waits in the queue of commits; else they end when the test says so."""
    joins_wait: bool = False
    """True if commits are under way, for which JoinGroup waits (`end_commits`)."""
    waiting_join: act.SendJoinGroup | None = None
    _later: deque[tuple[Callable[..., list[act.Action]], tuple[Any, ...]]] = field(default_factory=deque)

    # --- The driver's part

    def feed(self, method: Callable[..., list[act.Action]], *args: Any) -> None:
        """Call an input, do what it asks for, and what follows at once from that."""
        self.member.runs(self.now)
        actions = method(*args, self.now)
        self.member.facts.check_invariants()
        for action in actions:
            self._do(action)
        while self._later:
            later, with_args = self._later.popleft()
            self.feed(later, *with_args)

    def reply(self, request: act.Request, reply: act.Reply) -> None:
        """Reply to a request, one that was asked or one of the past."""
        self.feed(self.member.reply, request, reply)

    def _do(self, action: act.Action) -> None:
        match action:
            case act.DeliverEvent(TopicUnavailable() as event):
                self.unavailable.append((event.topic, event.error))
            case act.DeliverEvent(event):
                self.inbox.append(event)
            case act.WithdrawEvent(ticket):
                self._withdraw(ticket)
            case act.DropConnection():
                self.drops += 1
                self._fail_requests()
            case act.ReportError():
                self.refused.append(action)
            case act.NotifyAssignor():
                self.notified.append(action)
            case act.SendOffsetCommits() if self.commits_end:
                self._later.append((self.member.reply, (action, act.Answered())))
            case act.SendJoinGroup() if self.joins_wait:
                self.waiting_join = action
                self._later.append((self.member.join_waits, (action.attempt,)))
            case act.FetchMetadata():
                self.looks.append(action)
            case _:
                self.asked.append(action)

    def _withdraw(self, ticket: int) -> None:
        for event in self.inbox:
            if isinstance(event, Assign | Revoke) and event.ticket == ticket:
                self.inbox.remove(event)
                self._later.append((self.member.withdrawn, (ticket,)))
                return

    def _fail_requests(self) -> None:
        for action in list(self.asked):
            if isinstance(action, act.Request) and action.to_coordinator:
                self._later.append((self.member.reply, (action, act.Disconnected())))
                self.asked.remove(action)

    def end_commits(self) -> None:
        """Let the commits end for which JoinGroup waits; it is sent, or fails without a coordinator."""
        self.joins_wait = False
        join, self.waiting_join = self.waiting_join, None
        if join is None:
            return
        self.feed(self.member.join_sent, join.attempt)
        if not self.member.awaits(join):
            return
        if self.member.coordinator.known:
            self.asked.append(join)
        else:
            self.reply(join, act.Disconnected())

    def take(self, kind: type[_Action]) -> _Action:
        """Return the one request of this kind that waits for its answer, to answer it."""
        found = [action for action in self.asked if isinstance(action, kind)]
        assert len(found) == 1, f"{len(found)} of {kind.__name__} in {self.asked}"
        self.asked.remove(found[0])
        return found[0]

    def asks(self, kind: type[act.Action]) -> bool:
        """Return whether a request of this kind waits for its answer."""
        return any(isinstance(action, kind) for action in self.asked)

    # --- The clock

    def wait(self, seconds: float, *, polling: bool = True) -> None:
        """Let so much time pass, with a tick whenever the membership wants one."""
        self.wait_until(self.now + seconds, polling=polling)

    def wait_until(self, end: float, *, polling: bool = True) -> None:
        """Let time pass until then."""
        while True:
            due = self.member.next_tick(self.now)
            assert due is None or due >= self.now
            # The driver looks often enough to know of a sleep.
            self.now = min(end, end if due is None else due, self.now + self.timing.session_timeout / 4)
            if polling:
                self.polled = self.now
            self.feed(lambda now: self.member.tick(now, self.polled))
            if self.now >= end:
                return

    # --- The network

    def find(self) -> None:
        """Answer the look-up: here is the coordinator. Topics that are subscribed to by name exist."""
        self.reply(self.take(act.FindCoordinator), act.Answered())
        if any(look.topics for look in self.looks):
            self.see()

    def disconnect(self) -> None:
        """Break the connection to the coordinator: everything under way on it fails."""
        self._fail_requests()
        self.feed(lambda _now: [])

    def answer_join(self, error: int = 0, *, leads: bool = False, **fields: Any) -> None:
        """Answer JoinGroup, by default with the next generation."""
        sent = self.take(act.SendJoinGroup)
        if error == 0:
            member_id = sent.request.member_id or "m-1"
            usual = {
                "generation": 1
                if self.member.identity.generation < 1
                else self.member.identity.generation + 1,
                "protocol_type": "consumer",
                "protocol": "range",
                "leader": member_id if leads else "another",
                "member_id": member_id,
                "members": (JoinedMember(member_id, None, b""),) if leads else (),
            }
            fields = usual | fields
        self.reply(sent, act.Answered(JoinGroupResponse(error=error, **fields)))

    def answer_sync(self, partitions: Partitions | bytes = b"", error: int = 0, **fields: Any) -> None:
        """Answer SyncGroup with an assignment."""
        sent = self.take(act.SendSyncGroup)
        data = partitions if isinstance(partitions, bytes) else encode_assignment(partitions)
        usual = {"protocol_type": "consumer", "protocol": "range", "assignment": data if error == 0 else b""}
        self.reply(sent, act.Answered(SyncGroupResponse(error=error, **(usual | fields))))

    def answer_offsets(self, committed: int = 7, error: int = 0, **fields: Any) -> None:
        """Answer OffsetFetch with the same committed offset for every partition."""
        sent = self.take(act.FetchOffsets)
        offsets = dict.fromkeys(keys(sent.partitions), Offset(committed))
        usual: dict[str, Any] = {"offsets": offsets, "errors": dict.fromkeys(offsets, 0)}
        self.reply(sent, act.Answered(OffsetFetchResponse(error=error, **(usual | fields))))

    def answer_heartbeat(self, error: int = 0, identity: MemberIdentity | None = None) -> None:
        """Answer a heartbeat, sent by this member now or by the one of a former `identity`."""
        sent = self.take(act.SendHeartbeat)
        self.reply(sent if identity is None else act.SendHeartbeat(identity), act.Answered(error))

    def answer_plan(self, topics: Mapping[str, int], *absent: str) -> None:
        """Let the leader's assignor return a plan for `topics` (name to partitions) and for absent ones."""
        plan = self.take(act.PerformAssignment)
        asked = {*topics, *absent}
        assignments = {} if plan.skip else {"m-1": b"t:0"}
        computed = act.GroupAssignment(assignments, frozenset(asked), topics_answer(topics))
        self.reply(plan, act.Answered(computed))

    def answer_look(self, topics: Mapping[str, int], **fields: Any) -> None:
        """Answer Metadata: these topics exist, with so many partitions."""
        assert len(self.looks) == 1, self.looks
        self.reply(self.looks.pop(), act.Answered(topics_answer(topics, **fields)))

    def see(self) -> None:
        """Answer Metadata: all topics that were asked for by name exist."""
        self.answer_look(dict.fromkeys(self.looks[0].topics or (), 1))

    def answer_leave(self, error: int = 0) -> None:
        """Answer LeaveGroup."""
        self.reply(self.take(act.SendLeaveGroup), act.Answered(error))

    # --- The application

    def event(self) -> Event:
        """Take the oldest event, as a poll does; it is under way until `applied`."""
        event = self.inbox.popleft()
        self.served.append(event)
        if isinstance(event, Assign):
            self.feed(self.member.taken, event.ticket)
        return event

    def serve(self) -> Event:
        """Take the oldest event and deal with it at once."""
        event = self.event()
        self.apply(event)
        return event

    def apply(self, event: Event) -> None:
        """End the callbacks of an event that was taken."""
        if isinstance(event, Assign | Revoke):
            self.feed(self.member.applied, event.ticket)

    def subscribe(self, *topics: str) -> None:
        """Subscribe to names and regular expressions."""
        self.feed(self.member.subscribe, parse_subscription(topics))

    # --- Whole stretches

    def join(self, partitions: Partitions, topics: tuple[str, ...] = ("t",), member_id: str = "m-1") -> None:
        """Become a stable member that owns these partitions, from nothing."""
        self.subscribe(*topics)
        self.find()
        self.answer_join(79, member_id=member_id)
        self.settle(partitions)

    def settle(self, partitions: Partitions) -> None:
        """Go from JoinGroup's being sent to the assignment's being applied."""
        self.answer_join()
        self.answer_sync(partitions)
        if partitions:
            self.answer_offsets()
        assert isinstance(self.serve(), Assign)
        assert self.member.state is State.STABLE
        assert self.member.owned == partitions

    def beat(self) -> None:
        """Let time pass until a heartbeat is due; it then waits for its answer."""
        self.wait(self.timing.heartbeat_interval)
        assert self.asks(act.SendHeartbeat)

    def plan(self) -> None:
        """Lead a group: stop where the assignor runs."""
        self.subscribe("t")
        self.find()
        self.answer_join(leads=True)
        assert self.member.state is State.COMPLETING_REBALANCE


@dataclass(eq=False)
class Scene:
    """A group of the test's own on a real broker, and what a test does with it."""

    kafka: LocalKafka
    group: str = field(default_factory=lambda: f"group-{uuid.uuid4().hex[:8]}")
    consumers: list[Consumer] = field(default_factory=list)

    def topic(self, partitions: int = 1, messages: int = 0) -> str:
        """Create a topic with so many messages in each partition."""
        name = f"topic-{uuid.uuid4().hex[:8]}"
        self.kafka.create_topic(name, partitions)
        self.produce(name, messages, partitions)
        return name

    def produce(self, topic: str, messages: int, partitions: int = 1, first: int = 0) -> None:
        """Write so many messages to each partition: their numbers, from `first` on."""
        servers = self.kafka.bootstrap_servers
        # Idempotent, since a broker that is slow to answer would have messages written twice.
        producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True, "log_level": 0})
        for number in range(first, first + messages):
            for partition in range(partitions):
                producer.produce(topic, str(number), partition=partition)
        assert producer.flush(PATIENCE) == 0

    def consumer(self, **keys: Any) -> Consumer:
        """Make a consumer of the group; keys are those of the configuration, with underscores for dots."""
        config: dict[str, Any] = {
            "bootstrap.servers": self.kafka.bootstrap_servers,
            "group.id": self.group,
            "client.id": f"c-{len(self.consumers)}",
            "auto.offset.reset": "earliest",
            "heartbeat.interval.ms": 100,
            "fetch.wait.max.ms": 50,
            "reconnect.backoff.max.ms": 500,
            "log_level": 0,
        }
        callbacks = {"on_commit", "stats_cb"}
        config |= {key if key in callbacks else key.replace("_", "."): value for key, value in keys.items()}
        self.consumers.append(Consumer(config))
        return self.consumers[-1]

    def poll_until(
        self, condition: Callable[[], bool], *consumers: Consumer, what: str = "the condition"
    ) -> list[Message]:
        """Poll the consumers in turn until the condition holds; return what came, errors included."""
        messages: list[Message] = []
        deadline = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < deadline, f"{what}: not within {PATIENCE:.0f} s"
            for consumer in consumers:
                message = consumer.poll(0.05)
                if message is not None:
                    messages.append(message)
        return messages

    def own(self, consumer: Consumer, partitions: int, *others: Consumer) -> list[Message]:
        """Poll, the others too, until the consumer has so many partitions; return what came."""
        what = f"{partitions} partitions of {consumer.client_id}"
        return self.poll_until(lambda: len(consumer.assignment()) == partitions, consumer, *others, what=what)

    def poll(self, consumer: Consumer, count: int) -> list[Message]:
        """Poll so many messages, none of them an error."""
        messages: list[Message] = []
        deadline = time.monotonic() + PATIENCE
        while len(messages) < count:
            assert time.monotonic() < deadline, f"only {len(messages)} of {count} messages"
            message = consumer.poll(0.5)
            if message is not None:
                assert message.error() is None, message.error()
                messages.append(message)
        return messages

    def take(self, consumer: Consumer, count: int) -> list[int | None]:
        """Poll so many messages, none of them an error; return their offsets."""
        return [message.offset() for message in self.poll(consumer, count)]

    def committed(self, topic: str, partitions: int = 1) -> list[int]:
        """Return what the group has committed, asked by somebody else; -1001 where it has nothing."""
        config = {
            "bootstrap.servers": self.kafka.bootstrap_servers,
            "group.id": self.group,
            "log_level": 0,
        }
        with contextlib.closing(confluent_kafka.Consumer(config)) as other:
            wanted = [TopicPartition(topic, number) for number in range(partitions)]
            return [found.offset for found in other.committed(wanted, timeout=PATIENCE)]

    def members(self) -> int:
        """Return how many members the coordinator counts."""
        described = self.kafka.admin().describe_consumer_groups([self.group])[self.group]
        return len(described.result(PATIENCE).members)

    def ask(self, request: Callable[[Network], Coroutine[Any, Any, _Answer]]) -> _Answer:
        """Send a request to the coordinator, over a connection that is no consumer's."""
        network = Network(NetworkConfig(self.kafka.bootstrap_servers, "the test", self.group))
        answers: list[_Answer] = []
        done = threading.Event()

        async def send() -> None:
            await network.find_coordinator()
            answers.append(await request(network))
            done.set()

        network.start()
        try:
            network.call_soon(lambda: network.spawn(send()))
            assert done.wait(PATIENCE)
        finally:
            network.call_soon(network.end)
            network.join_thread(PATIENCE)
        return answers[0]

    @staticmethod
    def member_of(consumer: Consumer) -> ClassicMembership:
        """Look inside: the membership that is Groupwright's own."""
        assert isinstance(consumer._member, ClassicMembership)
        return consumer._member

    def expel(self, consumer: Consumer) -> None:
        """Take a member out of the group behind its back."""
        identity = self.member_of(consumer).membership.identity
        assert self.ask(lambda network: network.leave(identity, "expelled by the test")) == 0


@pytest.fixture
def new_scene() -> Iterator[Callable[[LocalKafka], Scene]]:
    """Make a scene on a broker; its consumers are closed at the test's end."""
    scenes: list[Scene] = []

    def make(kafka: LocalKafka) -> Scene:
        scenes.append(Scene(kafka))
        return scenes[-1]

    yield make
    for scene in scenes:
        for consumer in scene.consumers:
            with contextlib.suppress(KafkaException):
                consumer.close()


@pytest.fixture
def new_protocol(local_kafka: LocalKafka) -> None:
    """Skip where the broker has the new protocol in preview only."""
    if local_kafka.version.startswith("3."):
        pytest.skip(f"Kafka {local_kafka.version} has group.protocol=consumer in preview only")


@pytest.fixture
def scene(new_scene: Callable[[LocalKafka], Scene], local_kafka: LocalKafka) -> Scene:
    """A scene on the broker that the tests share."""
    return new_scene(local_kafka)


@pytest.fixture
def new_player() -> Callable[..., Player]:
    """Return a factory of players, of a static member if `static`; backoffs have no jitter."""

    def make(
        *,
        static: bool = False,
        cooperative: bool = False,
        timing: Timing = TIMING,
        encode: SubscriptionEncoder = encode_subscription,
        decode: Callable[[bytes], Partitions] = decode_assignment,
    ) -> Player:
        member = Membership(
            timing,
            encode,
            decode,
            cooperative=cooperative,
            static=static,
            jitter=lambda: 0.5,
        )
        return Player(member, timing)

    return make


@pytest.fixture
def player(new_player: Callable[..., Player]) -> Player:
    """A player of a dynamic member that has not subscribed yet."""
    return new_player()


@pytest.fixture
def stable(player: Player) -> Player:
    """A player of the stable member ``m-1`` of generation 1, which owns t-0 and t-1."""
    player.join({"t": (0, 1)})
    assert player.member.identity == MemberIdentity(1, "m-1", "range")
    return player


@pytest.fixture
def eventually() -> Callable[[Callable[[], bool], str], None]:
    """Wait until a condition holds; fail, saying what did not come, if it does not."""
    return wait_until


@pytest.fixture
def loop() -> Iterator[Loop]:
    """A network thread without connections."""
    loop = Loop("test")
    loop.start()
    yield loop
    loop.call_soon(loop.end)
    loop.join_thread(PATIENCE)


@pytest.fixture
def run_on(
    eventually: Callable[[Callable[[], bool], str], None],
) -> Callable[[Loop, Awaitable[Any]], Any]:
    """Run a coroutine on a network thread; return its result, or the exception that it raised."""

    def run(loop: Loop, coroutine: Awaitable[Any]) -> Any:
        results: list[Any] = []

        async def await_it() -> None:
            try:
                results.append(await coroutine)
            except Exception as error:  # noqa: BLE001 - what is looked for
                results.append(error)

        loop.call_soon(lambda: loop.spawn(await_it()))
        eventually(lambda: bool(results), "the result")
        return results[0]

    return run


@pytest.fixture
def no_thread_stays() -> Iterator[None]:
    """Every consumer that a test makes ends its thread."""
    yield
    gc.collect()
    deadline = time.monotonic() + PATIENCE
    threads = [thread for thread in threading.enumerate() if thread.name.startswith("groupwright")]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    assert not [thread.name for thread in threads if thread.is_alive()]


# --- Signal handlers ------------------------------------------------------------------------------------

_CHECKED_AFTER = frozenset({"RESUME", "CALL", "CALL_KW", "CALL_FUNCTION_EX", "JUMP_BACKWARD"})
"""CPython runs signal handlers after these bytecodes only."""
_RETURNS = frozenset({"RETURN_VALUE", "RETURN_CONST"})

_CONSUMER = f"{Path(groupwright.consumer.__file__).parent}{os.sep}"
"""Handlers raise in these files, and in none of the tests, whatever the checkout's folder is named."""


class HandlerError(BaseException):
    """Raised by a signal handler."""


def _same_handler(code: CodeType, before: int, now: int) -> bool:
    """Return whether the same `try` or `with` holds for both bytecodes.

    CPython raises at the earlier one. Where a `with` ends in between, as in `return call()`, an exception
    that is raised at the later one would leave the lock held.
    """
    return _handler_of(code, before) == _handler_of(code, now)


@functools.cache
def _handler_of(code: CodeType, offset: int) -> int | None:
    ranges = dis._parse_exception_table(code)  # type: ignore[attr-defined]
    return next((each.target for each in ranges if each.start <= offset < each.end), None)


class _Handler:
    """Raises at the `place`-th bytecode at which a signal handler may run.

    It looks at the consumer's code and `threading`, whose conditions and events could be left locked.
    """

    def __init__(self, place: int) -> None:
        self.raised = False
        self._left = place
        self._last: dict[FrameType, int] = {}

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """Have the interpreter call this at each bytecode of this thread."""
        if sys.version_info < (3, 12):
            sys.settrace(self._trace)
            try:
                yield
            finally:
                sys.settrace(None)
            return
        # A trace function is not told of the bytecodes of a function that runs for the first time.
        monitoring, tool, thread = sys.monitoring, sys.monitoring.DEBUGGER_ID, threading.get_ident()

        def instruction(code: CodeType, offset: int) -> object:
            if not _is_watched(code):
                return monitoring.DISABLE
            if threading.get_ident() == thread:
                self._visit(sys._getframe(1), offset)
            return None

        monitoring.use_tool_id(tool, "groupwright's tests")
        monitoring.register_callback(tool, monitoring.events.INSTRUCTION, instruction)
        monitoring.set_events(tool, monitoring.events.INSTRUCTION)
        try:
            yield
        finally:
            monitoring.set_events(tool, 0)
            monitoring.free_tool_id(tool)

    def _trace(self, frame: FrameType, event: str, _argument: object) -> Any:
        if not _is_watched(frame.f_code):
            return None
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        if event == "opcode":
            self._visit(frame, frame.f_lasti)
        return self._trace

    def _visit(self, frame: FrameType, offset: int) -> None:
        code = frame.f_code
        operation = dis.opname[code.co_code[offset]]
        before, self._last[frame] = self._last.get(frame), offset
        last = None if before is None else dis.opname[code.co_code[before]]
        # CPython raises the exception of a function's last call inside the caller's `try`; raised here it
        # would be outside. Calls on `threading`'s locks have no `try`.
        ends = (operation in _RETURNS and code.co_name != "__enter__") or (
            last == "CALL_FUNCTION_EX" and code.co_name == "call"
        )
        if last in _CHECKED_AFTER and not ends and _same_handler(code, before or 0, offset):
            self._left -= 1
            if self._left == 0:
                self.raised = True
                raise HandlerError


def _is_watched(code: CodeType) -> bool:
    return code.co_filename.startswith(_CONSUMER) or code.co_filename in {
        locking.__file__,
        threading.__file__,
    }


class _SecondHandler:
    """A profile function that raises once more, at the `place`-th call or return after a `_Handler` has."""

    def __init__(self, first: _Handler, place: int) -> None:
        self.raised = False
        self._first = first
        self._left = place

    def __call__(self, frame: FrameType, event: str, _argument: object) -> None:
        if self._first.raised and frame.f_code.co_filename.startswith(_CONSUMER):
            self._left -= event in {"call", "c_return"}
            if self._left == 0:
                self.raised = True
                raise HandlerError


@pytest.fixture
def interrupted() -> Callable[..., tuple[int, Any]]:
    """Call a function with a signal handler that raises at some place of the consumer's code.

    With `again` it raises a second time, at that place after the first. Returns how often it has raised,
    which is 0 if there is no such place, and what the function has returned.
    """

    def call(place: int, function: Callable[[], Any], again: int = 0) -> tuple[int, Any]:
        handler, result = _Handler(place), None
        second = _SecondHandler(handler, again)
        if again:
            sys.setprofile(second)
        try:
            with handler.watching():
                result = function()
        except HandlerError:
            pass
        finally:
            sys.setprofile(None)
        return handler.raised + second.raised, result

    return call
