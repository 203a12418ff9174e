"""SASL mechanisms: the client's messages, without input or output.

Each mechanism is a generator: it yields a message of the client, and is sent the broker's response to it. It
returns once the broker has authenticated the client.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import importlib
import secrets
from collections.abc import Generator
from typing import Any

from confluent_kafka import KafkaError

from groupwright.consumer._config.security import Security
from groupwright.consumer._config.tokens import Tokens, TokenUnavailableError
from groupwright.consumer._network.connection_errors import RequestRefusedError

Exchange = Generator[bytes, bytes, None]

_MIN_ITERATIONS, _MAX_ITERATIONS = 4096, 10_000_000
_NO_LAYER = b"\x01\x00\x00\x00"
"""RFC 4752, section 3.1: no security layer, and no authorization identity beside the ticket's."""


def exchange(security: Security, username: str, password: str, host: str) -> Exchange:
    """Return the exchange of the mechanism in `sasl.mechanism` with a broker.

    Raises:
        RequestRefusedError: While the exchange runs: there is no token or ticket, or the broker does not
            prove that it knows the password.
    """
    match security.mechanism:
        case "PLAIN":
            return plain(username, password)
        case "SCRAM-SHA-256" | "SCRAM-SHA-512" as mechanism:
            return scram(mechanism.removeprefix("SCRAM-"), username, password)
        case "OAUTHBEARER" if security.tokens is not None:
            return oauthbearer(security.tokens)
        case "GSSAPI":
            return gssapi(f"{security.kerberos_service}@{host}")
    raise AssertionError(security.mechanism)


def plain(username: str, password: str) -> Exchange:
    """Send the user's name and password (RFC 4616)."""
    yield f"\0{username}\0{password}".encode()


def scram(digest: str, username: str, password: str, nonce: str | None = None) -> Exchange:
    """Prove that both sides know the password, without sending it (RFC 5802, RFC 7677).

    Args:
        digest: ``SHA-256`` or ``SHA-512``.
        username: The user's name, with "=" and "," escaped.
        password: The password.
        nonce: The client's nonce; random by default.
    """
    name = digest.replace("-", "").lower()
    nonce = nonce or secrets.token_urlsafe(24)
    client_first = f"n={username},r={nonce}"
    response = yield f"n,,{client_first}".encode()
    try:
        server_first = response.decode()
        given = dict(part.split("=", 1) for part in server_first.split(","))
        salt, iterations = base64.b64decode(given["s"], validate=True), int(given["i"])
    except (KeyError, ValueError, binascii.Error):
        raise _refused(f"the broker's response is not one of SCRAM-{digest}") from None
    if not given.get("r", "").startswith(nonce) or not _MIN_ITERATIONS <= iterations <= _MAX_ITERATIONS:
        raise _refused(f"the broker's nonce or number of iterations ({iterations}) is not acceptable")
    without_proof = f"c=biws,r={given['r']}"  # biws: "n,,", no channel binding
    signed = f"{client_first},{server_first},{without_proof}".encode()
    salted = hashlib.pbkdf2_hmac(name, password.encode(), salt, iterations)
    client_key = hmac.digest(salted, b"Client Key", name)
    signature = hmac.digest(hashlib.new(name, client_key).digest(), signed, name)
    proof = bytes(mine ^ theirs for mine, theirs in zip(client_key, signature, strict=True))
    server_final = yield f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
    expected = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
    if not hmac.compare_digest(server_final.split(b",")[0], b"v=" + base64.b64encode(expected)):
        raise _refused("the broker does not prove that it knows the password")


def oauthbearer(tokens: Tokens) -> Exchange:
    """Send the token (RFC 7628, KIP-255); a response with content rejects it, and must be confirmed."""
    try:
        token = tokens.current()
    except TokenUnavailableError as error:
        raise _refused(str(error)) from error
    extensions = "".join(f"\x01{key}={value}" for key, value in token.extensions.items())
    response = yield f"n,,\x01auth=Bearer {token.value}{extensions}\x01\x01".encode()
    while response:
        response = yield b"\x01"  # the broker then reports the failure


def gssapi(service: str) -> Exchange:
    """Authenticate with the ticket in the credential cache, without a security layer (RFC 4752).

    Args:
        service: The service's name, ``service@host``.
    """
    library: Any = importlib.import_module("gssapi")
    kerberos = library.MechType.kerberos
    try:
        name = library.Name(service, library.NameType.hostbased_service).canonicalize(kerberos)
        context = library.SecurityContext(name=name, mech=kerberos, usage="initiate")
        token = context.step()
        while not context.complete:
            token = context.step((yield token or b""))
        context.unwrap((yield token or b""))  # the layers that the broker offers, which include none
        response = yield context.wrap(_NO_LAYER, False).message  # noqa: FBT003 - the library's signature
    except library.exceptions.GSSError as error:
        raise _refused(f"Kerberos: {error}") from error
    if response:
        raise _refused("the broker goes on after the last message of GSSAPI")


def _refused(message: str) -> RequestRefusedError:
    return RequestRefusedError(KafkaError._AUTHENTICATION, message)  # noqa: SLF001 - librdkafka's public code
