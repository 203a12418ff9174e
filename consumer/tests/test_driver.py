"""The bridge between the membership and the network, on a real loop that reaches no broker."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError

from groupwright.assignors import (
    Group,
    JoinedMember,
    LoadAwareAssignor,
    Member,
    PartitionsByTopic,
    ProcessingTime,
    RangeAssignor,
    Subscription,
    Topic,
    WeightFunction,
    decode_assignment,
    encode_subscription,
)
from groupwright.consumer._config.log import GroupLog
from groupwright.consumer._coordinator.committed_offsets import CommittedOffsets
from groupwright.consumer._coordinator.driver import Driver
from groupwright.consumer._coordinator.inbox import Failed, Inbox, Reported
from groupwright.consumer._coordinator.leader import Leader
from groupwright.consumer._network.connections import (
    Network,
    NetworkConfig,
    NoBrokerError,
    RequestRefusedError,
)
from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.events import Assign
from groupwright.consumer._protocol.known_brokers import Address
from groupwright.consumer._protocol.membership import Membership
from groupwright.consumer._protocol.model import (
    DisconnectedError,
    GroupDescription,
    JoinGroupPayload,
    JoinGroupResponse,
    MemberIdentity,
    MetadataResponse,
    Offset,
    OffsetCommitResponse,
    OffsetFetchResponse,
    Offsets,
    SyncGroupResponse,
)
from groupwright.consumer._protocol.subscription import parse_subscription
from groupwright.consumer._protocol.timers import PollClock, Timing
from groupwright.consumer._protocol.transitions import State
from groupwright.core import ErrorCode, Leadership
from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from groupwright.consumer._protocol.commit_queue import CommitResult

pytestmark = pytest.mark.usefixtures("no_thread_stays")


class Slow(RangeAssignor):
    """Takes its time to note what was assigned."""

    def on_assignment(self, _assignment: PartitionsByTopic, _generation: int) -> None:
        threading.Event().wait(0.3)


class Exits(RangeAssignor):
    def assign(self, _group: Group) -> Any:
        raise SystemExit(3)


class Rig:
    """A driver with everything that belongs to it."""

    def __init__(self, servers: str = "127.0.0.1:1", *, cooperative: bool = False) -> None:
        self.log = GroupLog(logging.getLogger("groupwright.consumer"), "c", "g")
        self.network = Network(NetworkConfig(servers, "c", "g"))
        timing = Timing(heartbeat_interval=0.05)
        self.member = Membership(
            timing,
            lambda *_: (("range", b""),),
            lambda _: {"t": (0, 1)},
            cooperative=cooperative,
            jitter=lambda: 0.5,
        )
        self.inbox = Inbox()
        self.driver = Driver(
            self.member,
            self.network,
            {"range": Slow()},
            self.inbox,
            CommittedOffsets(),
            PollClock(),
            self.log,
        )
        self.driver.start()


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.driver.stop(PATIENCE)


def test_a_timer_that_falls_due_during_an_action_is_not_missed(
    rig: Rig, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """The next look-up was due after 0.1 s, on_assignment took 0.3 s, and no look-up followed."""
    looked_up: list[float] = []

    def begin(now: float) -> list[act.Action]:
        rig.member.subscribe(parse_subscription(["t"]), now)
        rig.member.reply(act.FindCoordinator(), act.Disconnected(), now)
        return [act.NotifyAssignor("range", {}, 1)]

    def start(now: float) -> bool:
        looked_up.append(now)
        return False

    rig.member.coordinator.start = start  # type: ignore[method-assign] # to see it without a broker
    rig.driver.call(begin)

    eventually(lambda: len(looked_up) >= 2 and looked_up[-1] >= rig.member.coordinator.next_at, "the look-up")


def test_a_tick_that_comes_after_another_input_leaves_one_timer(
    rig: Rig, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """The tick forgot the timer that the other input had armed: ticks multiplied on a busy machine."""
    armed: list[int] = []

    def wait_to_look_up(now: float) -> list[act.Action]:
        rig.member.subscribe(parse_subscription(["t"]), now)
        rig.member.reply(act.FindCoordinator(), act.Disconnected(), now)
        return []

    def tick_late() -> None:
        rig.driver._feed(wait_to_look_up)
        for _ in range(3):
            rig.driver._feed(lambda _now: [])
            rig.driver._tick()
        armed.append(sum(timer.function == rig.driver._tick for _, _, timer in rig.network._timers))

    rig.network.call_soon(tick_late)

    eventually(lambda: bool(armed), "the ticks")
    assert armed == [1]


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (0, "left the group: why"),
        (25, "left the group: why"),  # UNKNOWN_MEMBER_ID
        (16, "could not leave the group: LeaveGroup was answered with NOT_COORDINATOR"),
        (DisconnectedError("gone"), "could not leave the group: LeaveGroup had no response: gone"),
    ],
)
def test_a_member_that_could_not_leave_says_so(
    rig: Rig,
    result: "int | DisconnectedError",
    words: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[[Callable[[], bool], str], None],
) -> None:
    """Its partitions had no owner for a session, and the log had no line about it."""

    async def leave(*_: object) -> int:
        if isinstance(result, DisconnectedError):
            raise result
        return result

    caplog.set_level(logging.INFO, "groupwright.consumer")
    monkeypatch.setattr(rig.network, "leave", leave)
    identity = MemberIdentity(1, "m-1", "range")
    rig.driver.call(lambda _now: [act.SendLeaveGroup(0, identity, "why")])

    eventually(lambda: words in caplog.text, "the line in the log")
    assert ("session.timeout.ms" in caplog.text) is ("could not" in words)


@pytest.mark.parametrize("by_design", [True, False])
def test_a_member_that_stays_says_until_when(
    rig: Rig,
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[[Callable[[], bool], str], None],
    *,
    by_design: bool,
) -> None:
    caplog.set_level(logging.INFO, "groupwright.consumer")
    rig.driver.call(lambda _now: [act.StayInGroup(by_design)])

    eventually(lambda: "session.timeout.ms" in caplog.text, "the line in the log")
    assert caplog.records[-1].levelno == (logging.INFO if by_design else logging.WARNING)


def test_a_defect_is_told_to_the_application_and_the_log(rig: Rig, caplog: pytest.LogCaptureFixture) -> None:
    def fail(_now: float) -> list[act.Action]:
        raise LookupError("a defect")

    with caplog.at_level(logging.ERROR, "groupwright.consumer"):
        rig.driver.call(fail)
        rig.inbox.wait(PATIENCE)

    event = rig.inbox.take()
    assert isinstance(event, Failed)
    assert str(event.error).startswith("the membership failed unexpectedly, please report it: LookupError(")
    assert "[c in g] the membership failed unexpectedly" in caplog.messages


def test_a_join_that_was_given_up_while_it_waited_for_the_commits_is_not_sent(
    rig: Rig, caplog: pytest.LogCaptureFixture
) -> None:
    """Sent after LeaveGroup, it would bring the member back."""
    join = rig.driver._exchange(act.SendJoinGroup(99, JoinGroupPayload("m-1", ())))
    with pytest.raises(StopIteration):
        join.send(None)

    assert "JoinGroup" not in caplog.text


def test_an_assignor_that_exits_fails_like_any_other(rig: Rig) -> None:
    leader = Leader(rig.network, {"range": Exits()}, rig.log)
    raised: list[Exception] = []
    done = threading.Event()

    async def lead() -> None:
        try:
            await leader._in_thread(lambda: Exits().assign(Group([], {})))
        except Exception as error:  # noqa: BLE001 - what is looked for
            raised.append(error)
        done.set()

    rig.network.call_soon(lambda: rig.network.spawn(lead()))
    assert done.wait(PATIENCE)
    assert [str(error) for error in raised] == ["it raised SystemExit(3)"]


def test_rates_are_not_averaged_with_the_first_processing_times(rig: Rig) -> None:
    """Averaged with messages per second, seconds of work per second would not be seen for hours."""
    assignor = LoadAwareAssignor(weights=ProcessingTime(rate=WeightFunction(lambda *_: 2.0)))
    leader = Leader(rig.network, {assignor.name: assignor}, rig.log, smoothing=3600)
    topics = {"t": Topic(2)}
    assert leader._weigh(assignor, [Member("c-1", ["t"])], topics, 1) == {"t": Topic(2, weights=[2, 2])}

    assignor.on_assignment(PartitionsByTopic({"t": [0, 1]}), 1)
    members = []
    for seconds in ({0: 0.25, 1: 0.5}, {0: 4.0, 1: 0.5}):
        assignor.processing_times = {"t": seconds}
        members.append([Member("c-1", ["t"], user_data=assignor.user_data(frozenset({"t"})))])
    assert leader._weigh(assignor, members[0], topics, 3) == {"t": Topic(2, weights=[0.5, 1])}
    weights = leader._weigh(assignor, members[1], topics, 5)["t"].weights
    assert weights == pytest.approx([0.5, 1], rel=0.1), "later times are averaged"


def test_a_server_that_refuses_the_connection_is_named_once(
    rig: Rig, caplog: pytest.LogCaptureFixture, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    attempts: list[Address] = []
    not_connected = rig.network._known.not_connected

    def count(address: Address, now: float) -> float:
        attempts.append(address)
        return not_connected(address, now)

    rig.network._known.not_connected = count  # type: ignore[method-assign] # to count the attempts
    with caplog.at_level(logging.INFO):
        rig.driver.call(rig.member.subscribe, parse_subscription(["t"]))
        eventually(lambda: len(attempts) >= 3, "some attempts")

    (line,) = caplog.messages
    assert "could not be looked up: 127.0.0.1:1 cannot be reached" in line
    assert "Connection refused" in line


@pytest.mark.medium
def test_a_reason_is_logged_again_once_the_coordinator_was_found(
    rig: Rig,
    script: "Script",
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[[Callable[[], bool], str], None],
) -> None:
    script.say("find_coordinator", NoBrokerError("no route"))
    with caplog.at_level(logging.INFO, "groupwright.consumer"):
        for times in (1, 2):
            rig.driver.call(rig.member.subscribe, parse_subscription(["t"]))
            eventually(lambda: caplog.text.count("no route") == times, "the warning")  # noqa: B023 - called at once
            script.say("find_coordinator", (0, ""))
            eventually(lambda: caplog.text.count("the group's coordinator was found") == times, "the end")  # noqa: B023 - as above
            script.say("find_coordinator", NoBrokerError("no route"))
            rig.driver.call(rig.member.reply, act.SendHeartbeat(MemberIdentity()), act.Disconnected())


# --- Steps that cannot be sent, or that a defect cuts short ---------------------------------------------


class Script:
    """A network with scripted responses, on the rig's loop."""

    def __init__(self, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
        self._rig = rig
        self._patch = monkeypatch

    def say(self, method: str, answer: object) -> None:
        """Let a request be answered by a value, or by what it raises."""

        async def answered(*_: object) -> object:
            if isinstance(answer, Exception):
                raise answer
            return answer

        self._patch.setattr(self._rig.network, method, answered)

    def begin(self) -> None:
        """Let a member join a group that another one leads, and stay in it."""
        self.say("find_coordinator", (0, ""))
        self.say("join", JoinGroupResponse(generation=1, protocol="range", leader="m-2", member_id="m-1"))
        self.say("sync", SyncGroupResponse(assignment=b"t"))
        self.say("fetch_offsets", OffsetFetchResponse())
        self.say("heartbeat", 0)
        self.say("fetch_topics", MetadataResponse({"t": Topic(1)}))

    def hold(self, method: str) -> Callable[[object], None]:
        """Let a request be parked; return what answers it."""
        parked: list[Any] = []

        async def wait(*_: object) -> object:
            parked.append(self._rig.network.future())
            return await parked[-1]

        self._patch.setattr(self._rig.network, method, wait)

        def answer(value: object) -> None:
            self._rig.network.call_soon(lambda: parked[-1].success(value))

        return answer


@pytest.fixture
def script(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Script:
    script = Script(rig, monkeypatch)
    script.begin()
    return script


def failure(rig: Rig) -> str:
    """Wait for the error that poll will raise or hand out, and let the application have polled."""
    deadline = time.monotonic() + PATIENCE
    while True:
        rig.inbox.wait(PATIENCE)
        event = rig.inbox.take()
        assert event is not None, "no error came"
        rig.inbox.done(event)
        if isinstance(event, Failed):
            return str(event.error)
        if isinstance(event, Reported):
            return event.error.str()
        assert time.monotonic() < deadline


@pytest.mark.parametrize("request_name", ["join", "sync", "fetch_offsets"])
def test_a_broker_that_is_too_old_is_an_error_that_says_what_to_do(
    rig: Rig, script: Script, request_name: str
) -> None:
    """The client knows before it sends; it treated this as a broken connection and retried forever."""
    script.say(request_name, RequestRefusedError(35, "the broker is too old for this consumer"))
    rig.driver.call(rig.member.subscribe, parse_subscription(["t"]))

    assert failure(rig) == (
        "the broker is too old for this consumer: Broker: API version not supported: "
        "the coordinator is too old for this member. It must be Kafka 0.11 or later, and 2.3 or later "
        "for a static member: upgrade the broker, or leave group.instance.id out"
    )


@pytest.mark.medium
@pytest.mark.parametrize("request_name", ["join", "sync", "fetch_offsets", "find_coordinator", "heartbeat"])
def test_a_request_that_a_defect_cut_short_is_made_again(
    rig: Rig, script: Script, request_name: str, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """Its step stayed open: the member waited for an answer for ever."""
    script.say(request_name, LookupError("a defect"))
    rig.driver.call(rig.member.subscribe, parse_subscription(["t"]))
    assert "please report it: LookupError('a defect')" in failure(rig)

    script.say(request_name, 0 if request_name == "heartbeat" else None)
    calls: list[None] = []
    original = getattr(rig.network, request_name)

    async def counted(*args: object) -> object:
        calls.append(None)
        return await original(*args)

    setattr(rig.network, request_name, counted)
    rig.driver.call(rig.member.resume)
    eventually(lambda: bool(calls), "the request")


@pytest.mark.medium
def test_an_open_transaction_that_holds_an_assignment_up_is_told_once(
    rig: Rig,
    script: Script,
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[[Callable[[], bool], str], None],
) -> None:
    script.say("fetch_offsets", OffsetFetchResponse(errors={("t", 0): 88, ("t", 1): 0}))
    with caplog.at_level(logging.WARNING, "groupwright.consumer"):
        rig.driver.call(rig.member.subscribe, parse_subscription(["t"]))
        eventually(lambda: rig.member.facts.attempt >= 5, "some tries")
    script.say("fetch_offsets", OffsetFetchResponse(errors={("t", 0): 0, ("t", 1): 0}))
    eventually(lambda: bool(rig.inbox), "the assignment")

    logged = [message for message in caplog.messages if "transaction" in message]
    expected = (
        "[c in g] 1 assigned partitions, such as t [0], wait for an open transaction that may change their "
        "committed offsets: commit or abort it, or it ends after its transaction.timeout.ms"
    )
    assert logged == [expected]


@pytest.mark.medium
def test_a_silence_is_told_once_whatever_is_done_first_after_it(
    rig: Rig,
    script: Script,
    caplog: pytest.LogCaptureFixture,
    eventually: Callable[[Callable[[], bool], str], None],
) -> None:
    """A call of the application came before the overdue tick and postponed it: no warning was logged."""
    script.say("heartbeat", 0)
    rig.driver.call(rig.member.subscribe, parse_subscription(["t"]))
    eventually(lambda: bool(rig.inbox), "the assignment")
    rig.driver._session_timeout = 0.2
    called: list[float] = []

    def note(now: float) -> list[act.Action]:
        called.append(now)
        return []

    def hold_up() -> None:
        threading.Event().wait(0.5)
        rig.driver._feed(note)

    rig.network.call_soon(hold_up)
    eventually(lambda: bool(called), "the call after the silence")

    logged = [
        message for message in caplog.messages if "the thread that sends heartbeats did not run" in message
    ]
    assert len(logged) == 1


def test_a_leader_plans_what_it_may_see_and_warns_of_the_rest(
    rig: Rig, script: Script, eventually: Callable[..., None], caplog: pytest.LogCaptureFixture
) -> None:
    """As Java's does; the member that has subscribed to the rest detects it itself."""
    subscription = encode_subscription(Subscription(("t", "secret"), None, PartitionsByTopic({}), -1, None))
    members = (JoinedMember("m-1", None, subscription),)
    script.say(
        "join",
        JoinGroupResponse(generation=1, protocol="range", leader="m-1", member_id="m-1", members=members),
    )
    script.say("fetch_topics", MetadataResponse({"t": Topic(1)}, unauthorized=frozenset({"secret"})))
    rig.driver.call(rig.member.subscribe, parse_subscription(["t"]))
    eventually(lambda: rig.member.state is State.STABLE, "the group to be assigned")
    logged = [message for message in caplog.messages if "may not see the topics 'secret'" in message]

    assert len(logged) == 1
    assert "DESCRIBE" in logged[0]


@pytest.mark.parametrize(
    ("described", "address"),
    [
        (
            GroupDescription("Stable", "range", {"m-2": "billing"}, {"m-2": "10.0.0.7"}),
            " (client.id 'billing' at 10.0.0.7)",
        ),
        (NoBrokerError("no route"), ""),
    ],
)
def test_a_leader_warns_once_of_a_member_that_it_cannot_decode(
    rig: Rig,
    script: Script,
    eventually: Callable[..., None],
    caplog: pytest.LogCaptureFixture,
    described: object,
    address: str,
) -> None:
    """Once for each reason, in however many rebalances."""
    script.say("describe_group", described)
    script.say("fetch_topics", MetadataResponse({"t": Topic(2)}))
    leader = Leader(rig.network, {"range": RangeAssignor()}, rig.log)
    mine = JoinedMember("m-1", None, encode_subscription(Subscription(("t",))))
    answers: list[act.GroupAssignment | None] = []

    async def lead(data: bytes) -> None:
        members = (mine, JoinedMember("m-2", None, data))
        answers.append(await leader.perform_assignment("range", members, lambda: True))

    def warnings() -> list[str]:
        return [line for line in caplog.messages if "is assigned nothing" in line]

    for times, data in enumerate((b"", b"", b"\0", b"\0"), 1):
        rig.network.call_soon(lambda data=data: rig.network.spawn(lead(data)))
        eventually(lambda times=times: len(answers) == times, "the assignment")
    eventually(lambda: len(warnings()) == 2, "a warning for each reason")

    reasons = [
        f"malformed subscription: at byte 0, expected 2 bytes of version, found {n} bytes left"
        for n in (0, 1)
    ]
    assert warnings() == [
        f"[c in g] member 'm-2'{address} is assigned nothing: {reason}" for reason in reasons
    ]
    assert [answer and answer.undecodable for answer in answers] == [
        {"m-2": reason} for reason in reasons for _ in range(2)
    ]
    last = answers[-1]
    assert last is not None
    assert {id_: decode_assignment(data).partitions for id_, data in last.assignments.items()} == {
        "m-1": {"t": [0, 1]},
        "m-2": {},
    }


def test_a_leader_evaluates_its_assignment_after_syncgroup_and_once(
    rig: Rig, script: Script, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    """The group waits for SyncGroup; it need not wait for the leader's statistics."""
    order: list[object] = []
    evaluate = rig.driver._leader.evaluate

    async def sync(*_: object) -> SyncGroupResponse:
        order.append("sync")
        return SyncGroupResponse(assignment=b"t")

    async def evaluated(generation: int) -> Leadership | None:
        order.append(await evaluate(generation))
        order.append(await evaluate(generation))
        return None

    monkeypatch.setattr(rig.network, "sync", sync)
    monkeypatch.setattr(rig.driver._leader, "evaluate", evaluated)
    member = JoinedMember("m-1", None, encode_subscription(Subscription(("t",))))
    script.say(
        "join",
        JoinGroupResponse(generation=1, protocol="range", leader="m-1", member_id="m-1", members=(member,)),
    )
    script.say("fetch_topics", MetadataResponse({"t": Topic(2)}))
    rig.driver.call(rig.member.subscribe, parse_subscription(["t"]))
    eventually(lambda: rig.member.state is State.STABLE, "the group to be assigned")

    assert order == ["sync", Leadership(members=1, moved=0, min_moves=0, imbalance=0), None]


# --- Commits when the consumer is closed ----------------------------------------------------------------


def test_commits_that_have_not_ended_end_with_the_thread(
    rig: Rig, script: Script, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """A thread that waited for one hung until its deadline."""
    script.hold("commit")
    results: list[CommitResult] = []
    far = time.monotonic() + 1000
    rig.driver.commit({("t", 0): Offset(5)}, far, results.append)
    eventually(lambda: rig.driver._commits._sending, "the commit in flight")
    rig.driver.commit({("t", 0): Offset(6)}, far, results.append)
    rig.driver.stop(PATIENCE)
    rig.driver.commit({("t", 0): Offset(7)}, far, results.append)

    assert [(dict(result.errors), result.message) for result in results] == [
        ({("t", 0): KafkaError._DESTROY}, "the consumer is closed")
    ] * 3


def test_closing_outside_of_any_group_sends_what_waits(
    rig: Rig, script: Script, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """Nothing waited for it where no LeaveGroup was sent."""
    answer = script.hold("commit")
    results: list[CommitResult] = []
    rig.driver.commit({("t", 0): Offset(5)}, time.monotonic() + 1000, results.append)
    rig.driver.call(rig.member.close)
    eventually(lambda: rig.driver._commits._sending, "the commit in flight")
    assert not rig.inbox

    answer(OffsetCommitResponse({("t", 0): 0}))
    eventually(lambda: bool(rig.inbox), "Closed")
    assert [dict(result.errors) for result in results] == [{("t", 0): 0}]


@pytest.mark.medium
def test_commits_end_when_the_coordinator_is_refused_and_each_later_one_looks_again(
    rig: Rig, script: Script, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """Each waited for its deadline, although the application had no rights to the group."""
    script.say("find_coordinator", (30, "Not authorized"))
    results: list[CommitResult] = []
    for number in (1, 2):
        rig.driver.commit({("t", 0): Offset(5)}, time.monotonic() + 1000, results.append)
        eventually(lambda: len(results) == number, "the commit's end")  # noqa: B023 - called at once

    assert [(dict(result.errors), result.message) for result in results] == [
        ({("t", 0): KafkaError._WAIT_COORD}, "Not authorized")
    ] * 2


def test_a_commit_is_tried_again_with_growing_pauses(
    rig: Rig,
    script: Script,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[[Callable[[], bool], str], None],
) -> None:
    """A coordinator that could not store offsets got ten commits a second of each member."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 6:
            script.say("commit", OffsetCommitResponse({("t", 0): ErrorCode.NONE}))

    results: list[CommitResult] = []
    monkeypatch.setattr(rig.network, "sleep", sleep)
    script.say("commit", OffsetCommitResponse({("t", 0): ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}))
    rig.driver.commit({("t", 0): Offset(5)}, time.monotonic() + 1000, results.append)
    eventually(lambda: bool(results), "the commit's end")

    assert dict(results[0].errors) == {("t", 0): ErrorCode.NONE}
    for pause, wanted in zip(pauses, (0.1, 0.2, 0.4, 0.8, 1.0, 1.0), strict=True):
        assert 0.8 * wanted <= pause <= 1.2 * wanted


@pytest.mark.medium
def test_each_commit_fails_at_its_own_deadline(
    rig: Rig, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """No broker can be reached. The second commit's deadline is the first."""
    ended: list[str] = []
    now = time.monotonic()
    rig.driver.commit({("t", 0): Offset(5)}, now + 0.6, lambda _: ended.append("later"))
    rig.driver.commit({("t", 0): Offset(6)}, now + 0.2, lambda _: ended.append("sooner"))
    eventually(lambda: len(ended) == 2, "both commits' end")

    assert ended == ["sooner", "later"]
    assert time.monotonic() >= now + 0.6


def test_a_deadline_that_passes_after_another_commit_came_leaves_one_timer(
    rig: Rig, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """The timer that the other commit had armed was forgotten, and stayed armed beside the next one."""
    armed: list[int] = []

    def expire_late() -> None:
        commits = rig.driver._commits
        for seconds in (1000, 900, 800):
            rig.driver.commit({("t", 0): Offset(5)}, time.monotonic() + seconds, lambda _: None)
            commits._admit()
            commits._expire()
        armed.append(sum(timer.function == commits._expire for _, _, timer in rig.network._timers))

    rig.network.call_soon(expire_late)

    eventually(lambda: bool(armed), "the deadlines")
    assert armed == [1]


# --- Commits of a cooperative member that joins ---------------------------------------------------------


@pytest.fixture
def cooperative_rig() -> Iterator[Rig]:
    rig = Rig(cooperative=True)
    yield rig
    rig.driver.stop(PATIENCE)


def assigned(rig: Rig, script: Script, eventually: Callable[[Callable[[], bool], str], None]) -> Assign:
    """Let the member join; return its assignment, which the application has taken."""
    script.begin()
    rig.driver.call(rig.member.subscribe, parse_subscription(["t"]))
    eventually(lambda: bool(rig.inbox), "the assignment")
    event = rig.inbox.take()
    assert isinstance(event, Assign)
    return event


def apply(rig: Rig, event: Assign) -> None:
    rig.inbox.done(event)
    rig.driver.call(rig.member.taken, event.ticket)
    rig.driver.call(rig.member.applied, event.ticket)


@pytest.mark.medium
@pytest.mark.parametrize(
    ("answer", "seconds", "error"),
    [
        pytest.param(JoinGroupResponse(error=25), PATIENCE, 25, id="and is lost"),
        pytest.param(None, 0.2, 27, id="for too long"),
        pytest.param(
            JoinGroupResponse(generation=2, protocol="range", leader="m-2", member_id="m-1"),
            PATIENCE,
            0,
            id="and goes on",
        ),
    ],
)
def test_a_commit_waits_for_the_end_of_the_round(
    cooperative_rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[[Callable[[], bool], str], None],
    answer: JoinGroupResponse | None,
    seconds: float,
    error: int,
) -> None:
    """JoinGroup holds the connection; a commit that waits for it must carry its own generation."""
    rig, script = cooperative_rig, Script(cooperative_rig, monkeypatch)
    event = assigned(rig, script, eventually)
    release = script.hold("join")
    script.say("heartbeat", 27)
    apply(rig, event)
    eventually(lambda: rig.member.state is State.PREPARING_REBALANCE, "the parked JoinGroup")

    sent: list[MemberIdentity] = []

    async def commit(identity: MemberIdentity, offsets: Offsets) -> OffsetCommitResponse:
        sent.append(identity)
        return OffsetCommitResponse(dict.fromkeys(offsets, 0))

    monkeypatch.setattr(rig.network, "commit", commit)
    results: list[CommitResult] = []
    rig.driver.commit({("t", 0): Offset(5)}, time.monotonic() + seconds, results.append)
    if answer is not None:
        rig.network.call_soon(lambda: None)
        assert results == []
        release(answer)
    eventually(lambda: bool(results), "the commit's end")

    assert [dict(result.errors) for result in results] == [{("t", 0): error}]
    assert sent == ([MemberIdentity(2, "m-1", "range")] if error == 0 else [])


@pytest.mark.medium
def test_heartbeats_go_on_while_a_join_waits_for_a_commit(
    cooperative_rig: Rig,
    monkeypatch: pytest.MonkeyPatch,
    eventually: Callable[[Callable[[], bool], str], None],
) -> None:
    """The coordinator cannot store offsets for a while, and the member kept still until its session ended."""
    rig, script = cooperative_rig, Script(cooperative_rig, monkeypatch)
    event = assigned(rig, script, eventually)
    beats: list[MemberIdentity] = []

    async def heartbeat(identity: MemberIdentity) -> int:
        beats.append(identity)
        return ErrorCode.REBALANCE_IN_PROGRESS

    sent: list[MemberIdentity] = []

    async def commit(identity: MemberIdentity, offsets: Offsets) -> OffsetCommitResponse:
        sent.append(identity)
        return OffsetCommitResponse(dict.fromkeys(offsets, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS))

    monkeypatch.setattr(rig.network, "commit", commit)
    results: list[CommitResult] = []
    apply(rig, event)
    rig.driver.commit({("t", 0): Offset(5)}, time.monotonic() + 1000, results.append)
    eventually(lambda: bool(sent), "the commit")  # one that comes after JoinGroup waits for its response
    monkeypatch.setattr(rig.network, "heartbeat", heartbeat)
    eventually(lambda: rig.member.state is State.PREPARING_REBALANCE, "the JoinGroup that waits")
    before = len(beats)
    eventually(lambda: len(beats) > before + 3, "heartbeats meanwhile")
    assert not results

    release = script.hold("join")
    script.say("commit", OffsetCommitResponse({("t", 0): ErrorCode.NONE}))
    eventually(lambda: bool(results), "the commit's end")
    eventually(lambda: rig.member.facts.parked, "the parked JoinGroup")
    release(JoinGroupResponse(generation=2, protocol="range", leader="m-2", member_id="m-1"))
    eventually(lambda: rig.member.state is State.STABLE, "the next generation")


def test_a_look_up_that_the_end_cuts_short_is_no_warning(caplog: pytest.LogCaptureFixture) -> None:
    """It was logged as "could not be looked up: Cancelled"."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        rig = Rig(f"127.0.0.1:{silent.getsockname()[1]}")
        rig.driver.call(rig.member.subscribe, parse_subscription(["t"]))
        connection, _ = silent.accept()
        with connection:
            rig.driver.stop(PATIENCE)

    assert caplog.messages == []
