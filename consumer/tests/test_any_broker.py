"""Requests to any broker, on a real loop; brokers are coroutines."""

from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import pytest

from groupwright.consumer._network.any_broker import AnyBroker, NoBrokerError
from groupwright.consumer._network.brokers import Node
from groupwright.consumer._network.connection_errors import RequestRefusedError, RequestTimedOutError
from groupwright.consumer._network.connections import Network, NetworkConfig
from groupwright.consumer._protocol.known_brokers import Address, KnownBrokers
from groupwright.consumer._protocol.model import DisconnectedError
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("no_thread_stays")

A, B, C = (Address(name, 9092) for name in "abc")
Broker = Callable[[], Awaitable[str]]


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network(NetworkConfig("a,b", "c", "g", session_timeout=0.3))
    network.start()
    yield network
    network.call_soon(network.end)
    network.join_thread(PATIENCE)


@pytest.fixture
def run(network: Network, run_on: Callable[[Network, Any], Any]) -> Callable[[Any], Any]:
    return partial(run_on, network)


class Brokers:
    """Brokers whose responses a test decides; `asked` has the order in which they were asked."""

    def __init__(self, network: Network, responses: dict[Address, str | Exception | None]) -> None:
        self.asked: list[Address] = []
        self.held: dict[Address, Any] = {}
        self._network = network
        self._responses = responses

    async def ask(self, address: Address) -> str:
        self.asked.append(address)
        response = self._responses[address]
        if response is None:  # it keeps the client waiting
            self.held[address] = self._network.future()
            response = await self.held[address]
        if isinstance(response, Exception):
            raise response
        return str(response)


def known() -> KnownBrokers:
    return KnownBrokers([A, B, C], chance=SimpleNamespace(shuffle=lambda _: None, random=lambda: 0.5))  # type: ignore[arg-type] # what is used of Random


def test_the_next_broker_is_asked_when_one_has_failed(network: Network, run: Callable[[Any], Any]) -> None:
    brokers = Brokers(network, {A: DisconnectedError("refused"), B: "yes", C: "yes"})
    found = known()

    assert run(AnyBroker(network, found, brokers.ask).result()) == "yes"
    assert brokers.asked == [A, B]
    assert found.describe_failures() == "a:9092: refused"


def test_the_next_broker_is_asked_while_one_takes_long_and_the_first_result_counts(
    network: Network, run: Callable[[Any], Any], eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    brokers = Brokers(network, {A: None, B: "b", C: "c"})
    discarded: list[str] = []

    assert run(AnyBroker(network, known(), brokers.ask, discard=discarded.append).result()) == "b"
    assert brokers.asked == [A, B]
    network.call_soon(brokers.held[A].success, "a")
    eventually(lambda: discarded == ["a"], "the late result")


def test_a_slow_broker_is_not_given_up_when_the_others_have_failed(
    network: Network, run: Callable[[Any], Any]
) -> None:
    brokers = Brokers(network, {A: None, B: DisconnectedError("no"), C: DisconnectedError("no")})

    async def answer_late() -> str:
        request = AnyBroker(network, known(), brokers.ask)
        network.spawn(late())
        return await request.result()

    async def late() -> None:
        while len(brokers.asked) < 3:
            await network.sleep(0.01)
        brokers.held[A].success("at last")

    assert run(answer_late()) == "at last"


@pytest.mark.parametrize(
    ("responses", "kind", "words"),
    [
        ([DisconnectedError("x")] * 3, NoBrokerError, "a:9092: x; b:9092: x; c:9092: x"),
        (
            [DisconnectedError("x"), RequestRefusedError(29, "wrong password"), DisconnectedError("x")],
            RequestRefusedError,
            "wrong password",
        ),
        ([LookupError("a defect")] * 3, LookupError, "a defect"),
    ],
)
def test_if_all_fail_the_error_has_the_reasons(
    network: Network, run: Callable[[Any], Any], responses: list[Exception], kind: type, words: str
) -> None:
    brokers = Brokers(network, dict(zip((A, B, C), responses, strict=True)))

    error = run(AnyBroker(network, known(), brokers.ask).result())

    assert type(error) is kind
    assert str(error) == words


def test_a_timeout_lengthens_the_next_one(network: Network, run: Callable[[Any], Any]) -> None:
    found = known()
    brokers = Brokers(network, {A: RequestTimedOutError("no response"), B: "b", C: "c"})

    run(AnyBroker(network, found, brokers.ask).result())

    assert [found.timeout(each, 1, 60) for each in (A, B)] == [2, 1]


def test_without_any_broker_there_is_an_error(network: Network, run: Callable[[Any], Any]) -> None:
    error = run(AnyBroker(network, KnownBrokers([]), Brokers(network, {}).ask).result())

    assert isinstance(error, NoBrokerError)
    assert str(error) == "there are no bootstrap.servers"


# --- FindCoordinator --------------------------------------------------------------------------------------


def coordinator_at(address: Address, error: int = 0) -> SimpleNamespace:
    row = SimpleNamespace(
        error_code=error, error_message=None, host=address.host, port=address.port, node_id=1
    )
    return SimpleNamespace(coordinators=[row])


def test_a_dead_coordinator_that_others_name_costs_no_address(
    network: Network, run: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The network forgot its brokers at the first failure, and asked `bootstrap.servers` alone."""
    asked: list[Address] = []
    network._known.learn({1: A, 2: B, 3: C}, "cluster", A)
    dead = A

    async def ask(address: Address, _request: object) -> object:
        asked.append(address)
        if address == dead:
            raise DisconnectedError(f"{address} cannot be reached")
        return coordinator_at(C if len(asked) > 4 else dead)

    async def connect(node: Node, _timeout: float) -> None:
        if node == (dead, "coordinator"):
            raise DisconnectedError(f"{dead} cannot be reached")

    monkeypatch.setattr(network, "_ask", ask)
    monkeypatch.setattr(network, "_await_connection", connect)
    monkeypatch.setattr(network, "_refresh", lambda _: ask(B, None))

    failures = []
    while (outcome := run(network.find_coordinator())) != (0, ""):
        failures.append(outcome)

    assert all(type(error) is DisconnectedError for error in failures)
    assert "it names a:9092 as the coordinator" in str(failures[0])
    assert set(network._known.order(0.0)) == {A, B, C}
    assert network.lookup_failures == ""
