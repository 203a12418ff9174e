"""SASL mechanisms and the handshake, with bytes in place of a broker."""

import logging
import sys
import time
from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaError

from groupwright.consumer._config.tokens import Tokens
from groupwright.consumer._network.connection_errors import RequestRefusedError
from groupwright.consumer._network.handshake import Versions, authenticate, negotiate_versions
from groupwright.consumer._network.sasl import Exchange, gssapi, oauthbearer, plain, scram
from groupwright.core.kafka_apis import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from groupwright.core.wire_format import Message

# The example of RFC 7677, section 3.
NONCE = "rOprNGfwEbeRWgbNEkqO"
FIRST = f"r={NONCE}%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096".encode()
PROOF = b"p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
FINAL = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="


def rfc_7677() -> Exchange:
    return scram("SHA-256", "user", "pencil", NONCE)


def test_plain() -> None:
    assert list(plain("alice", "geheim-ß")) == ["\0alice\0geheim-ß".encode()]


def test_scram_is_that_of_the_rfc() -> None:
    exchange = rfc_7677()

    assert next(exchange) == b"n,,n=user,r=" + NONCE.encode()
    assert exchange.send(FIRST).endswith(PROOF)
    with pytest.raises(StopIteration):
        exchange.send(FINAL)


@pytest.mark.parametrize(
    ("first", "final"),
    [
        (FIRST, b"v=AAAATRBi23WpRQ/wtup+mMhUZUn/dB5nLTJRsjl95G4="),
        (FIRST, b"e=other-error"),
        (FIRST, b""),
        (FIRST.replace(NONCE.encode(), b"another"), FINAL),
        (FIRST.replace(b"i=4096", b"i=1"), FINAL),
        (FIRST.replace(b"i=4096", b"i=2000000000"), FINAL),
        (b"e=unknown-user", FINAL),
        (b"\xff", FINAL),
    ],
    ids=["signature", "error", "nothing", "nonce", "few iterations", "many", "no challenge", "no text"],
)
def test_a_broker_that_does_not_know_the_password_is_refused(first: bytes, final: bytes) -> None:
    exchange = rfc_7677()
    next(exchange)

    with pytest.raises(RequestRefusedError) as caught:  # noqa: PT012 - either of the two messages
        exchange.send(first)
        exchange.send(final)
    assert caught.value.code == KafkaError._AUTHENTICATION


def tokens(lifetime: float = 60.0) -> Tokens:
    found = Tokens(
        lambda _: ("token", time.time() + lifetime, "alice", {"scope": "a"}), logging.getLogger("test")
    )
    found.refresh("")
    return found


def test_a_token_is_sent_with_its_extensions() -> None:
    exchange = oauthbearer(tokens())

    assert next(exchange) == b"n,,\x01auth=Bearer token\x01scope=a\x01\x01"
    with pytest.raises(StopIteration):
        exchange.send(b"")


def test_a_rejected_token_is_confirmed_so_that_the_broker_reports_the_failure() -> None:
    exchange = oauthbearer(tokens())
    next(exchange)

    assert exchange.send(b'{"status":"invalid_token"}') == b"\x01"


def test_without_a_token_the_connection_is_refused() -> None:
    with pytest.raises(RequestRefusedError, match="has given no token"):
        next(oauthbearer(Tokens(lambda _: (), logging.getLogger("test"))))


def test_gssapi_asks_for_no_security_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    context = SimpleNamespace(complete=False, received=[])

    def step(token: bytes | None = None) -> bytes | None:
        context.received.append(token)
        context.complete = len(context.received) == 2
        return b"ticket" if token is None else None

    context.step = step
    context.unwrap = lambda data: SimpleNamespace(message=data.removeprefix(b"wrapped "))
    context.wrap = lambda data, encrypt: SimpleNamespace(message=data + b" wrapped" * (not encrypt))
    library = SimpleNamespace(
        exceptions=SimpleNamespace(GSSError=LookupError),
        MechType=SimpleNamespace(kerberos="kerberos"),
        NameType=SimpleNamespace(hostbased_service="service"),
        Name=lambda name, _type: SimpleNamespace(canonicalize=lambda mechanism: (name, mechanism)),
        SecurityContext=lambda **_: context,
    )
    monkeypatch.setitem(sys.modules, "gssapi", library)
    exchange = gssapi("kafka@broker")

    assert next(exchange) == b"ticket"
    assert exchange.send(b"mutual") == b""
    assert context.received == [None, b"mutual"]
    assert exchange.send(b"wrapped \x07\x00\xff\xff") == b"\x01\x00\x00\x00 wrapped"
    with pytest.raises(StopIteration):
        exchange.send(b"")


# --- The handshake --------------------------------------------------------------------------------------

VERSIONS: Versions = {SASL_HANDSHAKE.key: (0, 1), SASL_AUTHENTICATE.key: (0, 2)}


def test_the_broker_says_its_versions() -> None:
    handshake = negotiate_versions()
    request, version = next(handshake)
    assert (request.api, version) == (API_VERSIONS, 4)
    assert request.fields["client_software_name"] == "groupwright"

    row = Message(api_key=3, min_version=0, max_version=13)
    with pytest.raises(StopIteration) as end:
        handshake.send(Message(error_code=0, api_keys=[row]))
    assert end.value.value == {3: (0, 13)}


@pytest.mark.parametrize(
    ("known", "expected"), [([Message(api_key=18, min_version=0, max_version=2)], 2), ([], 0)]
)
def test_an_older_broker_is_asked_again_in_its_version(known: list[Message], expected: int) -> None:
    handshake = negotiate_versions()
    next(handshake)

    assert handshake.send(Message(error_code=35, api_keys=known))[1] == expected


def ok(**fields: Any) -> Message:
    return Message(**{"error_code": 0, "error_message": None, "session_lifetime_ms": 0, **fields})


def test_a_client_is_accepted_for_the_session_of_the_broker() -> None:
    handshake = authenticate("PLAIN", "SASL_SSL", VERSIONS, plain("alice", "secret"))
    request, version = next(handshake)
    assert (request.api, version, request.fields) == (SASL_HANDSHAKE, 1, {"mechanism": "PLAIN"})
    request, version = handshake.send(ok(mechanisms=["PLAIN"]))
    assert (request.api, version) == (SASL_AUTHENTICATE, 2)
    assert "secret" not in repr(request)

    with pytest.raises(StopIteration) as end:
        handshake.send(ok(auth_bytes=b"", session_lifetime_ms=2_500))
    assert end.value.value == 2.5


@pytest.mark.parametrize(
    ("response", "code", "words"),
    [
        (ok(error_code=34, mechanisms=[]), 34, "takes no SASL, so security.protocol SASL_SSL is wrong here"),
        (ok(error_code=33, mechanisms=["GSSAPI"]), 33, "does not offer sasl.mechanism PLAIN"),
        (ok(mechanisms=["GSSAPI"]), 33, "does not offer sasl.mechanism PLAIN"),
        (ok(error_code=-1, mechanisms=[]), -1, "refused the connection"),
    ],
)
def test_a_listener_without_the_mechanism_is_a_refusal(response: Message, code: int, words: str) -> None:
    handshake = authenticate("PLAIN", "SASL_SSL", VERSIONS, plain("alice", "secret"))
    next(handshake)

    with pytest.raises(RequestRefusedError, match=words) as caught:
        handshake.send(response)
    assert caught.value.code == code


@pytest.mark.parametrize("said", ["Authentication failed: wrong", None])
def test_a_wrong_password_is_a_refusal(said: str | None) -> None:
    handshake = authenticate("PLAIN", "SASL_SSL", VERSIONS, plain("alice", "secret"))
    next(handshake)
    handshake.send(ok(mechanisms=["PLAIN"]))

    with pytest.raises(RequestRefusedError, match="the broker refused the connection: ") as caught:
        handshake.send(ok(error_code=58, error_message=said, auth_bytes=b""))
    assert caught.value.code == 58
    assert (said or KafkaError(58).str()) in str(caught.value)


def test_a_broker_without_sasl_authenticate_is_too_old() -> None:
    with pytest.raises(RequestRefusedError, match="too old for this consumer: SaslHandshake"):
        next(authenticate("PLAIN", "SASL_SSL", {SASL_HANDSHAKE.key: (0, 0)}, plain("alice", "secret")))
