"""A proxy that cuts, silences, delays, drops and slows: between sockets, and before a broker."""

import contextlib
import gc
import math
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from groupwright.testing import KafkaNotReadyError, Link, LocalKafka, Proxy
from groupwright.testing._kafka.readiness import CLIENT_DEFAULTS
from integration_tests.harness.patience import PATIENCE

Eventually = Callable[[Callable[[], bool]], bool]

MOMENT = 0.3


class _Echo(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        try:
            while data := self.request.recv(65536):
                self.request.sendall(data)
        except ConnectionError:
            pass


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False


@pytest.fixture
def echo() -> Iterator[int]:
    """A server that echoes; its port."""
    with _Server(("127.0.0.1", 0), _Echo) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join(PATIENCE)


@pytest.fixture
def link(echo: int) -> Iterator[Link]:
    with Proxy() as proxy:
        yield proxy.open(echo)


@pytest.fixture
def connect(link: Link) -> Iterator[Callable[[], socket.socket]]:
    opened: list[socket.socket] = []

    def to_link() -> socket.socket:
        opened.append(socket.create_connection(("127.0.0.1", link.port), PATIENCE))
        return opened[-1]

    yield to_link
    for each in opened:
        each.close()


def echoed(connection: socket.socket, data: bytes) -> bytes:
    connection.sendall(data)
    return received(connection, len(data))


def received(connection: socket.socket, size: int) -> bytes:
    data = b""
    while len(data) < size and (more := connection.recv(size - len(data))):
        data += more
    return data


def hears_nothing(connection: socket.socket) -> bool:
    connection.settimeout(MOMENT)
    try:
        return not connection.recv(1)
    except TimeoutError:
        return True
    finally:
        connection.settimeout(PATIENCE)


def is_reset(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1)
    except ConnectionError:
        return True


def test_what_is_sent_arrives_both_ways_in_order(connect: Callable[[], socket.socket]) -> None:
    data = bytes(range(256)) * 20_000
    connection = connect()
    sender = threading.Thread(target=connection.sendall, args=(data,))
    sender.start()

    assert received(connection, len(data)) == data
    sender.join(PATIENCE)


def test_a_link_that_is_cut_resets_its_connections_and_new_ones_until_it_is_restored(
    link: Link, connect: Callable[[], socket.socket]
) -> None:
    before = connect()
    assert echoed(before, b"heard") == b"heard"

    link.cut()

    assert is_reset(before)
    assert is_reset(connect())
    link.restore()
    assert echoed(connect(), b"again") == b"again"


def test_a_reset_ends_the_connections_there_are_and_no_others(
    link: Link, connect: Callable[[], socket.socket]
) -> None:
    before = connect()
    assert echoed(before, b"heard") == b"heard"

    link.reset()

    assert is_reset(before)
    assert echoed(connect(), b"again") == b"again"


@pytest.mark.medium
def test_a_silent_link_holds_everything_back_and_loses_nothing(
    link: Link, connect: Callable[[], socket.socket]
) -> None:
    before = connect()
    assert echoed(before, b"heard") == b"heard"
    link.silence()
    during = connect()
    for connection in (before, during):
        connection.sendall(b"kept")
        assert hears_nothing(connection)

    link.restore()

    assert received(before, 4) == received(during, 4) == b"kept"


def test_responses_are_held_back_while_requests_arrive() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, Proxy() as proxy:
        link = proxy.open(server.getsockname()[1])
        link.silence_responses()
        with socket.create_connection(("127.0.0.1", link.port), PATIENCE) as client:
            served, _ = server.accept()
            with served:
                client.sendall(b"asked")
                assert received(served, 5) == b"asked"
                served.sendall(b"answered")
                assert hears_nothing(client)

                link.restore()

                assert received(client, 8) == b"answered"


def test_a_closed_link_refuses(link: Link, connect: Callable[[], socket.socket]) -> None:
    before = connect()
    assert echoed(before, b"heard") == b"heard"

    link.close()

    assert is_reset(before)
    with pytest.raises(ConnectionRefusedError):
        connect()


def test_what_is_dropped_is_lost_and_only_a_connection_that_lost_something_is_reset(
    link: Link, connect: Callable[[], socket.socket], eventually: Eventually
) -> None:
    lossy, whole = connect(), connect()
    assert echoed(lossy, b"heard") == echoed(whole, b"heard") == b"heard"
    link.drop()
    lossy.sendall(b"lost")
    assert hears_nothing(lossy)
    assert (link.connections, link.lossy_connections) == (2, 1)

    link.restore()

    assert is_reset(lossy)
    assert echoed(whole, b"again") == b"again"
    assert eventually(lambda: link.connections == 1)


def test_a_delay_is_added_in_each_direction(link: Link, connect: Callable[[], socket.socket]) -> None:
    connection = connect()
    assert echoed(connection, b"heard") == b"heard"
    link.delay(0.2, jitter=0.05)

    start = time.monotonic()
    assert echoed(connection, b"late") == b"late"

    assert time.monotonic() - start >= 0.4


def test_a_delay_does_not_hold_up_what_follows(link: Link, connect: Callable[[], socket.socket]) -> None:
    """A thousand words, each due two tenths later than sent: not one after the other."""
    connection = connect()
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.delay(0.2)
    start = time.monotonic()
    for _ in range(1000):
        connection.sendall(b"x" * 10)

    assert received(connection, 10_000) == b"x" * 10_000
    assert time.monotonic() - start < 1000 * 0.2


@pytest.mark.medium
@pytest.mark.parametrize(
    "slow_down",
    [lambda link: link.delay(PATIENCE), lambda link: link.throttle(1 / PATIENCE)],
    ids=["delay", "throttle"],
)
def test_a_restored_link_holds_nothing_back(
    link: Link, connect: Callable[[], socket.socket], slow_down: Callable[[Link], None]
) -> None:
    connection = connect()
    slow_down(link)
    connection.sendall(b"late")
    assert hears_nothing(connection)
    start = time.monotonic()

    link.restore()

    assert received(connection, 4) == b"late"
    assert echoed(connection, b"again") == b"again"
    assert time.monotonic() - start < PATIENCE / 4


@pytest.mark.medium
def test_a_throttled_link_lets_so_many_bytes_pass_a_second(
    link: Link, connect: Callable[[], socket.socket]
) -> None:
    connection = connect()
    link.throttle(20_000)

    start = time.monotonic()
    assert echoed(connection, b"x" * 10_000) == b"x" * 10_000

    assert time.monotonic() - start >= 0.5


def test_a_rate_of_nothing_is_refused_with_what_to_do(link: Link) -> None:
    with pytest.raises(ValueError, match=r"more than 0, not 0; silence\(\) stops all"):
        link.throttle(0)


@pytest.mark.parametrize("time", [-1, math.nan, math.inf, "1", None])
def test_an_impossible_delay_is_refused(link: Link, time: Any) -> None:
    with pytest.raises(ValueError, match="seconds must be a number of 0 or more, not "):
        link.delay(time)
    with pytest.raises(ValueError, match="jitter must be a number of 0 or more, not "):
        link.delay(0.1, jitter=time)
    with pytest.raises(ValueError, match="bytes_per_second must be more than 0, not "):
        link.throttle(time)
    assert not link.faults.delays


def test_a_client_of_a_server_that_is_not_there_is_reset() -> None:
    with socket.socket() as nobody, Proxy() as proxy:
        nobody.bind(("127.0.0.1", 0))
        link = proxy.open(nobody.getsockname()[1])
        with socket.create_connection(("127.0.0.1", link.port), PATIENCE) as connection:
            assert is_reset(connection)


def test_a_side_that_closes_has_the_other_closed(
    link: Link, connect: Callable[[], socket.socket], eventually: Eventually
) -> None:
    connection = connect()
    assert echoed(connection, b"heard") == b"heard"
    assert link.connections == 1

    connection.close()

    assert eventually(lambda: link.connections == 0)


def test_a_proxy_that_is_closed_leaves_no_thread_and_no_connection(echo: int) -> None:
    before = threading.active_count()
    proxy = Proxy()
    link = proxy.open(echo)
    with socket.create_connection(("127.0.0.1", link.port), PATIENCE) as connection:
        assert echoed(connection, b"heard") == b"heard"

        proxy.close()
        proxy.close()

        assert is_reset(connection)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", link.port), PATIENCE)
    assert not [thread for thread in threading.enumerate() if thread.name == "groupwright proxy"]
    assert threading.active_count() <= before + 1  # the echo server's, for the connection


def test_a_broker_without_a_proxy_says_how_to_get_one() -> None:
    with pytest.raises(KafkaNotReadyError, match="create this Kafka with proxied=True"):
        LocalKafka().link()


def test_a_broker_that_was_not_started_has_no_links() -> None:
    with pytest.raises(KafkaNotReadyError, match="No link to node 1; nodes with links: none yet"):
        _ = LocalKafka(proxied=True).proxied_servers


@pytest.mark.kafka
@pytest.mark.slow
def test_a_client_that_comes_through_a_brokers_proxy_stays_behind_it() -> None:
    with LocalKafka(proxied=True) as kafka:
        kafka.create_topic("orders")
        admin = AdminClient({**CLIENT_DEFAULTS, "bootstrap.servers": kafka.proxied_servers})
        brokers = admin.list_topics(timeout=PATIENCE).brokers.values()
        assert [f"{each.host}:{each.port}" for each in brokers] == [kafka.link().address]
        delivered: list[bool] = []
        producer = Producer({**CLIENT_DEFAULTS, "bootstrap.servers": kafka.proxied_servers})
        kafka.link().silence()
        producer.produce("orders", b"waits", on_delivery=lambda error, _: delivered.append(error is None))
        producer.flush(MOMENT)
        assert delivered == []

        kafka.link().restore()

        assert producer.flush(PATIENCE) == 0
        assert delivered == [True]
        address = kafka.link().address
        kafka.restart()
        assert kafka.proxied_servers == address
        admin = AdminClient({**CLIENT_DEFAULTS, "bootstrap.servers": address})
        assert admin.list_topics(timeout=PATIENCE).brokers


def test_a_connection_whose_task_is_cancelled_is_reset_on_both_sides(
    link: Link, connect: Callable[[], socket.socket]
) -> None:
    """A proxy that closes cancels what still connects to the server, after it has reset all connections."""
    connection = connect()
    assert echoed(connection, b"hello") == b"hello"
    (served,) = link._connections

    async def cancel() -> None:
        assert served.serving is not None
        served.serving.cancel()

    link._proxy.call(cancel)

    assert is_reset(connection)
    assert all(writer.transport.is_closing() for writer in served._writers)


@pytest.mark.medium
@pytest.mark.parametrize("delay", [0.0, 0.001, 0.005])
def test_a_proxy_that_closes_while_clients_connect_leaves_no_socket_open(echo: int, delay: float) -> None:
    """A connection that was accepted, and whose task had not begun, was not closed."""
    for _ in range(20):
        with contextlib.ExitStack() as clients, Proxy() as proxy:
            link = proxy.open(echo)
            for _ in range(10):
                clients.enter_context(socket.create_connection(("127.0.0.1", link.port), PATIENCE))
            time.sleep(delay)  # various moments, rather than a condition
        gc.collect()  # pytest turns the warning of an unclosed socket into an error
