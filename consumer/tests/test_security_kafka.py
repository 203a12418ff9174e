"""A real broker with TLS and SASL: the clients that it accepts, and the errors of the others."""

import base64
import json
import logging
import socket
import subprocess
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException, Message, Producer
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.admin._scram import ScramCredentialInfo, ScramMechanism, UserScramCredentialUpsertion

from groupwright.consumer import Consumer
from groupwright.consumer._config.network_config import Transport
from groupwright.consumer._network.connections import Network, NetworkConfig
from groupwright.testing import Listener, LocalKafka, Security
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.rights import allow
from integration_tests.harness.waiting import wait_until

pytestmark = [pytest.mark.kafka]

PASSWORD = "marked-password-of-alice"  # noqa: S105 - what no log may show
TOPIC = "letters"
SCRAM = ["SCRAM-SHA-256", "SCRAM-SHA-512"]


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    security = Security(users={"alice": PASSWORD}, authorize=True)
    with LocalKafka(security=security) as kafka:
        kafka.create_topic(TOPIC)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        producer.produce(TOPIC, b"hello")
        producer.flush(PATIENCE)
        yield kafka


def unsigned_token(subject: str, lifetime: float) -> tuple[str, float]:
    """An unsecured JSON web token (RFC 7515, appendix A.5), and its expiry."""
    now = time.time()
    claims = {"sub": subject, "iat": now, "exp": now + lifetime}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "none"}, claims)
    ]
    return ".".join((*parts, "")), now + lifetime


def poll_once(config: dict[str, Any], seconds: float = PATIENCE) -> Message | None:
    """Consume the topic's first message, as a group of one."""
    consumer = Consumer({"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest", **config})
    try:
        consumer.subscribe([TOPIC])
        return consumer.poll(seconds)
    finally:
        consumer.close()


def refusal(config: dict[str, Any]) -> KafkaError:
    message = poll_once(config)
    assert message is not None, "no refusal came"
    error = message.error()
    assert error is not None
    return error


def consumed(message: Message | None) -> bytes:
    assert message is not None
    assert message.error() is None
    value = message.value()
    assert isinstance(value, bytes)
    return value


# --- What gets in ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("listener", [Listener.SASL_PLAINTEXT, Listener.SASL_SSL])
@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
def test_a_user_with_a_password_consumes(kafka: LocalKafka, listener: Listener, mechanism: str) -> None:
    assert consumed(poll_once(kafka.secure_config(listener, mechanism=mechanism))) == b"hello"


def test_a_name_with_a_comma_and_an_equals_sign_gets_through_scram(kafka: LocalKafka) -> None:
    """RFC 5802 has them escaped; sent as they are, they end the name."""
    scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096)
    added = UserScramCredentialUpsertion("b,o=b", scram, b"secret-of-bob")
    kafka.admin().alter_user_scram_credentials([added])["b,o=b"].result(PATIENCE)
    config = kafka.secure_config(Listener.SASL_SSL, mechanism=SCRAM[0])

    bob = {**config, "sasl.username": "b,o=b", "sasl.password": "secret-of-bob"}

    def is_known() -> bool:
        message = poll_once(bob)
        return message is not None and message.error() is None

    wait_until(is_known, "the broker to know the new user")
    assert consumed(poll_once(bob)) == b"hello"


def test_a_bearer_of_tokens_consumes_and_is_asked_once_for_both_connections(kafka: LocalKafka) -> None:
    asked: list[str] = []

    def oauth_cb(config: str) -> tuple[str, float, str, dict[str, str]]:
        asked.append(config)
        return (*unsigned_token("alice", 300), "alice", {"region": "here"})

    config = kafka.secure_config(Listener.SASL_SSL, mechanism="OAUTHBEARER")

    assert (
        consumed(poll_once({**config, "oauth_cb": oauth_cb, "sasl.oauthbearer.config": "key=1"})) == b"hello"
    )
    assert asked == ["key=1"]


@pytest.mark.parametrize("listener", [Listener.SSL, Listener.MUTUAL_TLS])
def test_a_certificate_of_files_consumes(kafka: LocalKafka, listener: Listener) -> None:
    assert consumed(poll_once(kafka.secure_config(listener, user="alice"))) == b"hello"


def test_a_certificate_of_strings_consumes(kafka: LocalKafka) -> None:
    config = kafka.secure_config(Listener.MUTUAL_TLS)
    for key in ("ssl.ca", "ssl.certificate", "ssl.key"):
        config[f"{key}.pem"] = Path(config.pop(f"{key}.location")).read_text(encoding="ascii")

    assert consumed(poll_once(config)) == b"hello"


def test_a_key_store_consumes(kafka: LocalKafka, tmp_path: Path) -> None:
    pkcs12 = pytest.importorskip("cryptography.hazmat.primitives.serialization.pkcs12")
    serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
    x509 = pytest.importorskip("cryptography.x509")
    certificate, key = kafka.certificates.of("alice")
    store = tmp_path / "alice.p12"
    store.write_bytes(
        pkcs12.serialize_key_and_certificates(
            b"alice",
            serialization.load_pem_private_key(key.read_bytes(), None),
            x509.load_pem_x509_certificate(certificate.read_bytes()),
            None,
            serialization.BestAvailableEncryption(b"store-secret"),
        )
    )
    config = kafka.secure_config(Listener.MUTUAL_TLS)
    del config["ssl.certificate.location"], config["ssl.key.location"]

    config |= {"ssl.keystore.location": str(store), "ssl.keystore.password": "store-secret"}
    assert consumed(poll_once(config)) == b"hello"


def test_a_broker_that_is_not_verified_is_consumed_from(kafka: LocalKafka) -> None:
    config = {**kafka.secure_config(Listener.SSL), "enable.ssl.certificate.verification": False}
    del config["ssl.ca.location"]

    assert consumed(poll_once(config)) == b"hello"


def test_a_name_goes_with_the_certificate_or_is_not_asked_for(kafka: LocalKafka) -> None:
    """The certificate is for `localhost` and 127.0.0.1; 127.0.0.2 is the same broker by another name."""
    config = kafka.secure_config(Listener.SSL)
    config["bootstrap.servers"] = config["bootstrap.servers"].replace("127.0.0.1", "localhost")

    assert consumed(poll_once({**config, "broker.address.family": "v4"})) == b"hello"
    assert consumed(poll_once({**config, "ssl.endpoint.identification.algorithm": "none"})) == b"hello"


# --- What does not --------------------------------------------------------------------------------------


@pytest.mark.parametrize("mechanism", ["PLAIN", *SCRAM])
@pytest.mark.parametrize("attempt", range(4))
def test_a_wrong_password_comes_out_of_poll_each_time(
    kafka: LocalKafka, mechanism: str, attempt: int
) -> None:
    """A broker sends the error and closes the connection at once: the error must be read first."""
    listener = [Listener.SASL_PLAINTEXT, Listener.SASL_SSL][attempt % 2]

    error = refusal({**kafka.secure_config(listener, mechanism=mechanism), "sasl.password": "wrong"})
    assert (
        error.code() == KafkaError._AUTHENTICATION
    )  # librdkafka's code for the same, with which it calls error_cb
    assert error.str().startswith("the broker refused the connection: Authentication failed")


def test_a_wrong_password_is_told_once_until_it_is_mended(kafka: LocalKafka) -> None:
    config = kafka.secure_config(Listener.SASL_PLAINTEXT, mechanism="PLAIN")
    group = {"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest"}
    with Consumer({**config, **group, "sasl.password": "wrong"}) as consumer:
        consumer.subscribe([TOPIC])
        message = consumer.poll(PATIENCE)
        assert message is not None
        assert message.error() is not None
        assert consumer.poll(3.0) is None  # three tries or so

        consumer.set_sasl_credentials("alice", PASSWORD)
        assert consumed(consumer.poll(PATIENCE)) == b"hello"


def test_a_token_that_the_broker_does_not_take_comes_out_of_poll(kafka: LocalKafka) -> None:
    config = kafka.secure_config(Listener.SASL_SSL, mechanism="OAUTHBEARER")

    error = refusal({**config, "oauth_cb": lambda _: ("nonsense", time.time() + 300)})
    assert error.code() == KafkaError._AUTHENTICATION
    assert "invalid_token" in error.str()


def test_a_token_that_expires_without_another_comes_out_of_poll(
    kafka: LocalKafka, eventually: Callable[..., None]
) -> None:
    """A broker ends a connection when the token it was made with expires (KIP-368)."""
    tokens = iter([unsigned_token("alice", 6)])
    config = kafka.secure_config(Listener.SASL_PLAINTEXT, mechanism="OAUTHBEARER")
    # Consumed messages are committed before a partition is revoked; commits are retried for a session.
    group = {"group.id": uuid.uuid4().hex, "auto.offset.reset": "earliest", "session.timeout.ms": 6000}

    consumer = Consumer({**config, **group, "oauth_cb": lambda _: next(tokens)})
    try:
        consumer.subscribe([TOPIC])
        assert consumed(consumer.poll(PATIENCE)) == b"hello"
        reported: list[str] = []

        def refused() -> bool:
            message = consumer.poll(1)
            error = None if message is None else message.error()
            reported.extend([] if error is None else [error.str()])
            return bool(reported)

        eventually(refused, "the refusal")
        assert "oauth_cb expired" in reported[0]
        assert "when it was called for another, it raised StopIteration" in reported[0]
    finally:
        consumer.close()


def test_a_certificate_of_an_unknown_authority_comes_out_of_poll(kafka: LocalKafka) -> None:
    error = refusal(
        {**kafka.secure_config(Listener.SSL), "ssl.ca.location": str(kafka.certificates.other_authority)}
    )

    assert error.code() == KafkaError._SSL
    assert "is not accepted: unable to get local issuer certificate; set ssl.ca.location" in error.str()
    assert "ssl.certificate.location" not in error.str()


def test_a_client_without_a_certificate_where_one_is_wanted_comes_out_of_poll(kafka: LocalKafka) -> None:
    """With TLS 1.3 the client's side of the handshake is long done when the broker says so."""
    config = kafka.secure_config(Listener.MUTUAL_TLS)
    del config["ssl.certificate.location"], config["ssl.key.location"]

    error = refusal(config)
    assert error.code() == KafkaError._SSL
    assert (
        "it wants a certificate of this client that it can use: set ssl.certificate.location" in error.str()
    )


@pytest.mark.parametrize(
    ("of", "at", "words"),
    [
        (None, Listener.SSL, "the broker speaks TLS on this port, and this client does not"),
        (
            Listener.SASL_PLAINTEXT,
            Listener.SASL_SSL,
            "the broker speaks TLS on this port, and this client does not",
        ),
        (None, Listener.SASL_PLAINTEXT, "wants another security.protocol than PLAINTEXT"),
        (Listener.SSL, Listener.SASL_SSL, "wants another security.protocol than SSL"),
        (Listener.SASL_PLAINTEXT, None, "takes no SASL, so security.protocol SASL_PLAINTEXT is wrong here"),
        (Listener.SASL_SSL, Listener.SSL, "takes no SASL, so security.protocol SASL_SSL is wrong here"),
    ],
)
def test_the_wrong_protocol_comes_out_of_poll(
    kafka: LocalKafka, of: Listener | None, at: Listener | None, words: str
) -> None:
    def config(listener: Listener | None) -> dict[str, str]:
        return (
            {"bootstrap.servers": kafka.bootstrap_servers}
            if listener is None
            else kafka.secure_config(listener)
        )

    assert words in str(refusal({**config(of), "bootstrap.servers": config(at)["bootstrap.servers"]}))


def test_tls_to_a_plain_port_says_what_it_looks_like(
    kafka: LocalKafka, caplog: pytest.LogCaptureFixture
) -> None:
    """A proxy before a broker that is down hangs up in the same way, so this does not end the consumer."""
    config = {**kafka.secure_config(Listener.SSL), "bootstrap.servers": kafka.bootstrap_servers}

    assert poll_once(config, seconds=2) is None
    assert (
        "closed the connection during the TLS handshake; if this repeats, its port probably does not use TLS"
        in caplog.text
    )


def test_a_group_that_the_user_may_not_read_comes_out_of_poll(kafka: LocalKafka) -> None:
    binding = AclBinding(
        ResourceType.GROUP,
        "closed",
        ResourcePatternType.LITERAL,
        "User:nobody",
        "*",
        AclOperation.READ,
        AclPermissionType.ALLOW,
    )
    allow(kafka.admin(), binding)

    reported: list[KafkaError] = []
    with Consumer({**kafka.secure_config(Listener.SASL_SSL), "group.id": "closed"}) as consumer:
        consumer.subscribe([TOPIC])
        # librdkafka's handle, which fetches, reports it too.
        while not any(
            "Allow it the operation READ on the group 'closed'" in error.str() for error in reported
        ):
            message = consumer.poll(PATIENCE)
            assert message is not None
            error = message.error()
            assert error is not None
            reported.append(error)
    assert {error.code() for error in reported} == {KafkaError.GROUP_AUTHORIZATION_FAILED}


# --- Secrets --------------------------------------------------------------------------------------------


def test_no_log_and_no_error_shows_a_secret(kafka: LocalKafka, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, "groupwright")
    token = unsigned_token("alice", 300)
    reported: list[str] = []

    for listener in (Listener.SASL_PLAINTEXT, Listener.SASL_SSL):
        for mechanism in ("PLAIN", *SCRAM):
            config = kafka.secure_config(listener, mechanism=mechanism)
            poll_once(config)
            reported += [str(refusal({**config, "sasl.password": "marked-" + PASSWORD}))]
        config = kafka.secure_config(listener, mechanism="OAUTHBEARER")
        poll_once({**config, "oauth_cb": lambda _: token})
    with pytest.raises(KafkaException):
        poll_once(
            {
                **kafka.secure_config(Listener.MUTUAL_TLS),
                "ssl.key.password": "marked",
                "ssl.cipher.suites": "?",
            }
        )

    shown = caplog.text + "".join(reported)
    assert "SaslAuthenticate" in shown
    assert "marked" not in shown
    assert token[0] not in shown
    assert token[0].split(".")[1] not in shown


def test_no_secret_reaches_standard_error(kafka: LocalKafka) -> None:
    """librdkafka writes its own log there."""
    program = (
        "import sys, json\n"
        "from groupwright.consumer import Consumer\n"
        "consumer = Consumer(json.loads(sys.argv[1]))\n"
        "consumer.subscribe(['letters'])\n"
        "print(repr(consumer.poll().error()), consumer._consumer_config, file=sys.stderr)\n"
        "consumer.close()\n"
    )
    config = {
        **kafka.secure_config(Listener.SASL_PLAINTEXT),
        "sasl.password": "marked",
        "group.id": "g",
        "debug": "all",
    }

    ran = subprocess.run(
        [sys.executable, "-c", program, json.dumps(config)],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert "_AUTHENTICATION" in ran.stderr
    assert "marked" not in ran.stdout + ran.stderr


# --- Connections ----------------------------------------------------------------------------------------


def test_a_slow_name_server_holds_nothing_back(
    kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch, eventually: Callable[..., None]
) -> None:
    """On the loop, a look-up of some seconds would hold back heartbeats."""
    asked, answer = threading.Event(), threading.Event()
    real = socket.getaddrinfo

    def look_up(*args: Any) -> Any:
        asked.set()
        assert answer.wait(PATIENCE)
        return real(*args)

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    port = kafka.bootstrap_servers.rpartition(":")[2]
    network = Network(
        NetworkConfig(f"localhost:{port}", "c", "g", transport=Transport(address_family=socket.AF_INET))
    )
    network.start()
    found: list[tuple[int, str]] = []

    async def find() -> None:
        found.append(await network.find_coordinator())

    try:
        network.call_soon(lambda: network.spawn(find()))
        assert asked.wait(PATIENCE)
        beat = threading.Event()
        network.call_soon(beat.set)
        assert beat.wait(PATIENCE)
        assert not found
        answer.set()
        eventually(lambda: bool(found), "the coordinator")
        assert found == [(0, "")]
    finally:
        answer.set()
        network.call_soon(network.end)
        network.join_thread(PATIENCE)
