"""The bridge between the membership and the network, on a real loop that reaches no broker."""

import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from groupwright.assignors import Group, RangeAssignor, TopicPartitions
from groupwright.consumer import actions as act
from groupwright.consumer.driver import Driver, PollClock
from groupwright.consumer.events import Failed, Inbox
from groupwright.consumer.leading import Leader
from groupwright.consumer.log import GroupLog
from groupwright.consumer.membership import Membership
from groupwright.consumer.network import Network, NetworkConfig
from groupwright.consumer.protocol import JoinRequest
from groupwright.consumer.timing import Timing

pytestmark = pytest.mark.usefixtures("no_thread_stays")

PATIENCE = 10.0


class Slow(RangeAssignor):
    """Takes its time to note what was assigned."""

    def on_assignment(self, _assignment: TopicPartitions, _generation: int) -> None:
        threading.Event().wait(0.3)


class Exits(RangeAssignor):
    def assign(self, _group: Group) -> Any:
        raise SystemExit(3)


class Rig:
    """A driver with everything that belongs to it."""

    def __init__(self) -> None:
        self.log = GroupLog(logging.getLogger("groupwright.consumer"), "c", "g")
        self.network = Network(NetworkConfig("127.0.0.1:1", "c", "g"))
        self.member = Membership(Timing(), lambda *_: (("range", b""),), lambda _: {}, jitter=lambda: 0.5)
        self.inbox = Inbox()
        self.driver = Driver(self.member, self.network, {"range": Slow()}, self.inbox, PollClock(), self.log)
        self.driver.start()


@pytest.fixture
def rig() -> Iterator[Rig]:
    rig = Rig()
    yield rig
    rig.driver.stop(PATIENCE)


def test_what_gets_due_while_an_action_is_done_is_not_missed(
    rig: Rig, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """The next look-up was due 0.1 s on, an assignor's on_assignment took 0.3 s: and nothing ever came again."""
    looked_up: list[float] = []

    def begin(now: float) -> list[act.Action]:
        rig.member.subscribe(("t",), now)
        rig.member.coordinator_missing(None, "", now)
        return [act.NotifyAssignor("range", {}, 1)]

    def start(now: float) -> bool:
        looked_up.append(now)
        return False

    rig.member.coordinator.start = start  # type: ignore[method-assign] # to see it without a broker
    rig.driver.call(begin)

    eventually(lambda: len(looked_up) >= 2 and looked_up[-1] >= rig.member.coordinator.next_at, "the look-up")


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
    join = rig.driver._join(act.SendJoin(99, JoinRequest("m-1", ())))
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


def test_a_server_that_refuses_the_connection_is_named(
    rig: Rig, caplog: pytest.LogCaptureFixture, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    """A bootstrap of kafka-python says only, after all its time, that it failed."""
    with caplog.at_level(logging.WARNING, "groupwright.consumer"):
        rig.driver.call(rig.member.subscribe, ("t",))
        eventually(lambda: "could not be looked up" in caplog.text, "the failed look-up")

    assert "could not be looked up: KafkaConnectionError: " in caplog.text
    assert "ECONNREFUSED" in caplog.text
