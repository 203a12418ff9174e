"""TLS handshakes that fail, with a real server: each says who refused whom, and what to do."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import KafkaError

from groupwright.consumer._config.security import Security
from groupwright.consumer._network.connections import Network, NetworkConfig, RequestRefusedError
from groupwright.consumer._protocol.model import DisconnectedError
from groupwright.testing._kafka.certificates import write_certificates
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.usefixtures("no_thread_stays")

UNTRUSTED = "certificate in certificate chain; set ssl.ca.location (or ssl.ca.pem) to the authority"
OTHER_NAME = (
    "Hostname mismatch, certificate is not valid for '127.1'; its addresses in bootstrap.servers and "
    "advertised.listeners must be names in the certificate"
)
EXPIRED = "certificate has expired; renew it on the broker"
NOT_ACCEPTED = "it does not accept this client's certificate"


@dataclass(frozen=True)
class Case:
    """The settings of both sides, and the client's error."""

    words: str
    trusted: bool = True
    """True if the client knows the authority of the broker's certificate."""
    host: str = "127.0.0.1"
    expired: bool = False
    """True if the broker's certificate is."""
    client: str | None = None
    """Whose certificate the client has."""
    wanted: bool = False
    """True if the broker wants one."""
    client_trusted: bool = True
    """True if the broker knows its authority."""


CASES = {
    "the broker's authority is unknown": Case(UNTRUSTED, trusted=False),
    "an unknown authority is no matter of the client's certificate": Case(
        UNTRUSTED, trusted=False, client="alice", wanted=True
    ),
    "the broker's certificate is for another name": Case(OTHER_NAME, host="127.1"),
    "the broker's certificate has expired": Case(EXPIRED, expired=True),
    "the broker wants a certificate": Case(
        "it wants a certificate of this client that it can use: "
        "set ssl.certificate.location and ssl.key.location",
        wanted=True,
    ),
    "the client's certificate has expired": Case(
        "the certificate in ssl.certificate.location has expired: renew it", client="expired", wanted=True
    ),
    "the client's authority is unknown": Case(
        NOT_ACCEPTED, client="alice", wanted=True, client_trusted=False
    ),
}


@contextlib.contextmanager
def server(context: ssl.SSLContext) -> Iterator[int]:
    """Complete the handshake, and close the connection at the client's first byte."""

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            connection.settimeout(PATIENCE)
            with contextlib.suppress(OSError), context.wrap_socket(connection, server_side=True) as secured:
                secured.recv(1)
            connection.close()

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(PATIENCE)


def contexts(case: Case, directory: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return the server's side and the client's."""
    found = write_certificates(directory, "127.0.0.1", ["alice"], broker_expired=case.expired)
    theirs = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    theirs.load_cert_chain(found.broker)
    theirs.load_verify_locations(found.authority if case.client_trusted else found.other_authority)
    theirs.verify_mode = ssl.CERT_REQUIRED if case.wanted else ssl.CERT_NONE
    ours = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    ours.load_verify_locations(found.authority if case.trusted else found.other_authority)
    if case.client is not None:
        ours.load_cert_chain(*(found.expired if case.client == "expired" else found.of(case.client)))
    return theirs, ours


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_a_failed_handshake_says_what_to_do(
    case: Case, tmp_path: Path, eventually: Callable[[Callable[[], bool], str], None]
) -> None:
    theirs, ours = contexts(case, tmp_path)
    caught: list[RequestRefusedError] = []

    async def ask() -> None:
        while not caught:
            try:
                await network.find_coordinator()
            except RequestRefusedError as error:
                caught.append(error)
            except DisconnectedError:
                pass  # hung up before the reason was read: a client tries again

    with server(theirs) as port:
        security = Security(protocol="SSL", tls=ours)
        network = Network(NetworkConfig(f"{case.host}:{port}", "c", "g", security=security))
        network.start()
        try:
            network.call_soon(lambda: network.spawn(ask()))
            eventually(lambda: bool(caught), "the refusal")
        finally:
            network.call_soon(network.end)
            network.join_thread(PATIENCE)

    assert case.words in str(caught[0])
    assert caught[0].code == KafkaError._SSL
    blames_client = "this client's certificate" in str(caught[0])
    assert blames_client == (case.words == NOT_ACCEPTED)
