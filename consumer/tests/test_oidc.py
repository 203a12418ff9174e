"""``sasl.oauthbearer.method=oidc``: one request to a token endpoint serves librdkafka and the membership."""

import base64
import json
import ssl
import threading
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaException, Producer

from groupwright.consumer import ConfigurationError, Consumer
from groupwright.consumer._config.config import read_config
from groupwright.consumer._config.oidc import TokenEndpointError, read_oidc
from groupwright.testing import Listener, LocalKafka, Security
from groupwright.testing._kafka.certificates import write_certificates
from integration_tests.harness.patience import PATIENCE

SECRET = "marked-secret"  # noqa: S105 - what no message may show
TOPIC = "letters"


def jwt(lifetime: float = 300, **claims: Any) -> str:
    """Return an unsecured JSON web token (RFC 7515, appendix A.5)."""
    claims = {"sub": "alice", "exp": time.time() + lifetime, "iat": time.time()} | claims
    parts = [json.dumps({"alg": "none"}), json.dumps(claims)]
    return ".".join([*(base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts), ""])


@dataclass
class Endpoint:
    """An authorization server, as far as its token endpoint goes."""

    url: str = ""
    status: int = 200
    content: Callable[[], str] = lambda: json.dumps({"access_token": jwt()})
    headers: dict[str, str] = field(default_factory=dict)
    asked: list[tuple[dict[str, list[str]], str]] = field(default_factory=list)
    """The form and the credentials of each request."""

    def config(self, **keys: str) -> dict[str, str]:
        given = {"token.endpoint.url": self.url, "client.id": "me", "client.secret": SECRET, **keys}
        return {f"sasl.oauthbearer.{key}": value for key, value in given.items()}


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    made = Endpoint()
    with serving(made) as server:
        made.url = f"http://127.0.0.1:{server.server_port}/token"
        yield made


class serving:  # noqa: N801 - a context manager
    def __init__(self, endpoint: Endpoint, tls: ssl.SSLContext | None = None) -> None:
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                form = self.rfile.read(int(self.headers["Content-Length"])).decode()
                kind, _, credentials = self.headers["Authorization"].partition(" ")
                assert kind == "Basic"
                endpoint.asked.append((urllib.parse.parse_qs(form), base64.b64decode(credentials).decode()))
                content = endpoint.content().encode()
                self.send_response(endpoint.status)
                for name, value in {"Content-Type": "application/json", **endpoint.headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        if tls is not None:
            self.server.socket = tls.wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.01,))

    def __enter__(self) -> ThreadingHTTPServer:
        self.thread.start()
        return self.server

    def __exit__(self, *_args: object) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


# --- What is asked and answered -------------------------------------------------------------------------


def test_a_token_is_fetched_with_the_clients_credentials(endpoint: Endpoint) -> None:
    client = read_oidc(endpoint.config(scope="kafka read", extensions="a=1, b=2=3"))
    expiry = time.time() + 300
    endpoint.content = lambda: json.dumps({"access_token": jwt(exp=expiry)})

    token, expires, principal, extensions = client("")

    assert (expires, principal, extensions) == (expiry, "alice", {"a": "1", "b": "2=3"})
    assert token.count(".") == 2
    form = {"grant_type": ["client_credentials"], "scope": ["kafka read"]}
    assert endpoint.asked == [(form, f"me:{SECRET}")]
    assert SECRET not in repr(client)


def test_an_endpoint_without_a_scheme_is_one_of_http(endpoint: Endpoint) -> None:
    endpoint.url = endpoint.url.removeprefix("http://")

    assert read_oidc(endpoint.config())("")[2] == "alice"


def test_another_claim_may_name_the_principal(endpoint: Endpoint) -> None:
    endpoint.content = lambda: json.dumps({"access_token": jwt(azp="my-app")})

    assert read_oidc(endpoint.config(**{"sub.claim.name": "azp"}))("")[2] == "my-app"
    assert endpoint.asked[0][0] == {"grant_type": ["client_credentials"]}


@pytest.mark.parametrize(
    ("status", "content", "words"),
    [
        (
            401,
            '{"error": "invalid_client", "error_description": "who?"}',
            "answered 401: invalid_client: who?",
        ),
        (401, "<html>", "answered 401"),
        (500, "", "answered 500"),
        (302, "", "answered 302"),
        (200, "<html>", "answered with something else than JSON"),
        (200, "[]", "answered with something else than JSON"),
        (200, '{"access_token": 7}', "answered without an access_token"),
        (200, '{"access_token": "opaque"}', "gave a token that is no JWT with a claim 'exp'"),
        (200, '{"access_token": "a.b.c"}', "gave a token that is no JWT with a claim 'exp'"),
        pytest.param(  # ids of their own, since tokens have the time in them
            200,
            json.dumps({"access_token": jwt(exp="soon")}),
            "gave a token that is no JWT with a claim 'exp'",
            id="no-expiry",
        ),
        pytest.param(
            200,
            json.dumps({"access_token": jwt(sub="")}),
            "gave a token without the claim that sasl.oauthbearer.sub.claim.name names",
            id="no-subject",
        ),
    ],
)
def test_an_answer_that_is_no_token_is_told(
    endpoint: Endpoint, status: int, content: str, words: str
) -> None:
    endpoint.status, endpoint.content = status, lambda: content
    endpoint.headers = {"Location": endpoint.url + "/elsewhere"}  # which would get the secret
    with pytest.raises(TokenEndpointError) as caught:
        read_oidc(endpoint.config())("")

    assert str(caught.value).startswith(f"{endpoint.url} {words}")
    assert len(endpoint.asked) == 1
    assert SECRET not in str(caught.value)


def test_an_endpoint_that_is_away_is_told_without_the_secrets_of_its_url() -> None:
    config = Endpoint("http://user:hidden@127.0.0.1:1/token?key=hidden").config()
    with pytest.raises(TokenEndpointError) as caught:
        read_oidc(config)("")

    assert str(caught.value).startswith("http://127.0.0.1:1/token cannot be reached: ")
    assert "hidden" not in str(caught.value)


@pytest.mark.parametrize("as_pem", [False, True])
def test_an_endpoint_behind_tls_is_trusted_by_https_ca(tmp_path: Path, *, as_pem: bool) -> None:
    certificates = write_certificates(tmp_path, "127.0.0.1", [])
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificates.broker)
    endpoint = Endpoint()
    authority = certificates.authority
    trusted = authority.read_text(encoding="ascii") if as_pem else str(authority)
    key = "https.ca.pem" if as_pem else "https.ca.location"
    with serving(endpoint, tls) as server:
        endpoint.url = f"https://127.0.0.1:{server.server_port}/token"

        assert read_oidc({**endpoint.config(), key: trusted})("")[2] == "alice"
        with pytest.raises(TokenEndpointError, match=r"cannot be reached: .*CERTIFICATE_VERIFY_FAILED"):
            read_oidc({**endpoint.config(), "https.ca.location": str(certificates.other_authority)})("")


# --- Configuration --------------------------------------------------------------------------------------

BASE = {
    "bootstrap.servers": "127.0.0.1:1",
    "group.id": "g",
    "security.protocol": "SASL_PLAINTEXT",
    "sasl.mechanism": "OAUTHBEARER",
    "sasl.oauthbearer.method": "oidc",
}


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({"sasl.oauthbearer.token.endpoint.url": None}, "needs sasl.oauthbearer.token.endpoint.url"),
        ({"sasl.oauthbearer.client.id": None}, "needs sasl.oauthbearer.client.id"),
        ({"sasl.oauthbearer.client.secret": None}, "needs sasl.oauthbearer.client.secret"),
        ({"sasl.oauthbearer.token.endpoint.url": "file:///x"}, "takes an URL of the form https://host/path"),
        ({"sasl.oauthbearer.token.endpoint.url": "https://[x"}, "takes an URL of the form https://host/path"),
        ({"sasl.oauthbearer.extensions": "a"}, "takes name=value pairs"),
        (
            {"sasl.oauthbearer.grant.type": "urn:ietf:params:oauth:grant-type:jwt-bearer"},
            "grant.type takes client_credentials alone: for another one, write an oauth_cb",
        ),
        (
            {"sasl.oauthbearer.metadata.authentication.type": "azure_imds"},
            "is not supported; write an oauth_cb that fetches the token",
        ),
        ({"https.ca.location": "/nowhere"}, "https.ca.location cannot be used"),
        ({"https.ca.pem": "x", "https.ca.location": "x"}, "are both set; leave one of them out"),
        ({"sasl.oauthbearer.method": "magic"}, "takes default or oidc: set one of them"),
    ],
)
def test_what_cannot_be_served_is_refused(keys: dict[str, Any], words: str) -> None:
    config = BASE | Endpoint("https://127.0.0.1:1/token").config() | keys
    with pytest.raises(ConfigurationError) as caught:
        read_config(config)

    assert words in str(caught.value)
    assert SECRET not in str(caught.value)


def test_librdkafka_does_not_fetch_beside_the_membership() -> None:
    read = read_config(BASE | Endpoint("http://127.0.0.1:1/token").config())

    assert "sasl.oauthbearer.method" not in read.native
    assert read.network.security.tokens is not None
    assert read.native["oauth_cb"] == read.network.security.tokens.refresh
    assert SECRET not in repr(read)


def test_an_oauth_cb_beside_it_is_used_instead() -> None:
    """As in librdkafka."""
    tokens = read_config({**BASE, "oauth_cb": lambda _: ("own", 9e9)}).network.security.tokens
    assert tokens is not None
    tokens.refresh("")

    assert tokens.current().value == "own"


# --- On a broker ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    with LocalKafka(security=Security(users={"alice": "secret-of-alice"}, authorize=True)) as kafka:
        kafka.create_topic(TOPIC)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        producer.produce(TOPIC, b"hello")
        producer.flush(PATIENCE)
        yield kafka


def consumer_of(kafka: LocalKafka, endpoint: Endpoint) -> Consumer:
    return Consumer(
        {
            **kafka.secure_config(Listener.SASL_PLAINTEXT, mechanism="OAUTHBEARER"),
            **endpoint.config(),
            "sasl.oauthbearer.method": "oidc",
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "socket.timeout.ms": 3000,  # a synchronous commit waits so long for an unknown coordinator
        }
    )


@pytest.mark.kafka
def test_one_token_serves_both_and_another_is_fetched_before_it_expires(
    kafka: LocalKafka, endpoint: Endpoint, eventually: Callable[..., None]
) -> None:
    endpoint.content = lambda: json.dumps({"access_token": jwt(5)})
    with consumer_of(kafka, endpoint) as consumer:
        consumer.subscribe([TOPIC])
        message = consumer.poll(PATIENCE)
        assert message is not None
        assert message.value() == b"hello"
        assert len(endpoint.asked) == 1
        # The broker ends connections whose token has expired (KIP-368): these commits need the later ones.
        eventually(lambda: consumer.poll(0.1) is None and len(endpoint.asked) > 2, "two more tokens")
        consumer.commit(message, asynchronous=False)
        assert consumer.assignment() != []


@pytest.mark.skipif(
    confluent_kafka.libversion()[1] < 0x020D0000, reason="it asks for the first token in poll"
)
@pytest.mark.kafka
@pytest.mark.slow
def test_a_consumer_is_not_made_without_a_first_token(
    kafka: LocalKafka, endpoint: Endpoint, caplog: pytest.LogCaptureFixture
) -> None:
    """As with any `oauth_cb`: confluent-kafka waits for 10 s."""
    endpoint.status, endpoint.content = 401, lambda: '{"error": "invalid_client"}'
    with pytest.raises(KafkaException, match=r"OAuth token not set within 10 .* answered 401"):
        consumer_of(kafka, endpoint)

    assert f"{endpoint.url} answered 401: invalid_client" in caplog.text
    assert SECRET not in caplog.text


@pytest.mark.kafka
@pytest.mark.slow
def test_an_endpoint_that_is_away_for_longer_than_a_token_lives_is_told_by_poll_and_recovered_from(
    kafka: LocalKafka, endpoint: Endpoint, eventually: Callable[..., None]
) -> None:
    endpoint.content = lambda: json.dumps({"access_token": jwt(6)})
    with consumer_of(kafka, endpoint) as consumer:
        consumer.subscribe([TOPIC])
        message = consumer.poll(PATIENCE)
        assert message is not None
        endpoint.status = 503
        reports: list[str] = []

        def refused() -> bool:
            answer = consumer.poll(0.5)
            error = None if answer is None else answer.error()
            reports.extend([] if error is None else [error.str()])
            return any(f"{endpoint.url} answered 503" in text for text in reports)

        eventually(refused, "the refusal")
        assert "the last token of sasl.oauthbearer.method=oidc expired" in reports[-1]

        endpoint.status = 200
        committed, deadline = False, time.monotonic() + PATIENCE  # librdkafka asks again after 10 s
        while not committed and time.monotonic() < deadline:
            with suppress(KafkaException):
                consumer.poll(1)
                committed = bool(consumer.commit(message, asynchronous=False))
        assert committed
