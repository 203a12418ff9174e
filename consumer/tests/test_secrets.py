"""No error, log or `repr` shows a secret, whatever property it was put under."""

import asyncio
import gc
import logging
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from groupwright.consumer import AIOConsumer, Consumer
from groupwright.consumer._config.config import read_config, read_connection
from groupwright.consumer._config.network_config import Transport
from groupwright.consumer._config.security import Security
from groupwright.consumer._config.settings import ALIASES, SETTINGS
from groupwright.consumer._network.connection import ConnectionSettings
from groupwright.consumer.configuration import find_problems
from groupwright.core.kafka_apis import SASL_AUTHENTICATE
from groupwright.testing._kafka.certificates import Certificates, write_certificates
from integration_tests.harness.secrets import SECRETS, Recorder, leaks, texts_of

_BEGINNINGS = ("ssl", "sasl", "https.", "enable.s", "security.", "oauth")
KEYS = (
    *(key for key in (*SETTINGS, *ALIASES) if key.startswith(_BEGINNINGS)),
    *(
        "sasl.jaas.config",
        "sasl.pasword",
        "ssl.key.pasword",
        "ssl.truststore.password",
        "ssl.ca",
        "my.password",
    ),
)
IDENTIFIERS = ("group.id", "group.instance.id", "client.id", "client.rack")
"""Properties whose values are public: brokers send them to every member of the group."""
OTHER_KEYS = tuple(key for key in SETTINGS if key not in (*KEYS, *IDENTIFIERS))
UNDER_OTHERS = ("PEM", "two lines", "NUL", "pairs", "URL", "bytes", "table", "object")
"""Secrets that are recognized under any property; a single word is not."""

_ANY = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g"}
_SASL = {**_ANY, "security.protocol": "SASL_PLAINTEXT", "sasl.username": "u", "sasl.password": "p"}
_OAUTH = {**_ANY, "security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "OAUTHBEARER"}
_OIDC = {
    **_OAUTH,
    "sasl.oauthbearer.method": "oidc",
    "sasl.oauthbearer.client.id": "i",
    "sasl.oauthbearer.client.secret": "s",
    "sasl.oauthbearer.token.endpoint.url": "https://127.0.0.1:1/token",
}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return write_certificates(tmp_path_factory.mktemp("certificates"), "127.0.0.1", ["alice"])


@pytest.fixture
def recorder() -> Iterator[Recorder]:
    """Record all loggers at DEBUG."""
    recorder, root = Recorder(), logging.getLogger()
    level = root.level
    root.addHandler(recorder)
    root.setLevel(logging.DEBUG)
    yield recorder
    root.setLevel(level)
    root.removeHandler(recorder)


def configurations(certificates: Certificates) -> dict[str, dict[str, Any]]:
    """Return configurations in which the security properties are read."""
    certificate, key = map(str, certificates.of("alice"))
    ca = {"ssl.ca.location": str(certificates.authority)}
    return {
        "without security": _ANY,
        "TLS": {**_ANY, "security.protocol": "SSL", **ca},
        "mutual TLS": {
            **_ANY,
            **ca,
            "security.protocol": "SSL",
            "ssl.certificate.location": certificate,
            "ssl.key.location": key,
        },
        "PEM texts": {
            **_ANY,
            **ca,
            "security.protocol": "SSL",
            "ssl.certificate.pem": Path(certificate).read_text(encoding="ascii"),
            "ssl.key.pem": Path(key).read_text(encoding="ascii"),
        },
        "key store": {
            **_ANY,
            **ca,
            "security.protocol": "SSL",
            "ssl.keystore.location": certificate,
            "ssl.keystore.password": "p",
        },
        "SCRAM": {**_SASL, "sasl.mechanism": "SCRAM-SHA-256"},
        "Kerberos": _SASL,
        "tokens": {**_OAUTH, "oauth_cb": lambda _: ("token", time.time() + 60)},
        "OIDC": {**_OIDC, "https.ca.location": ca["ssl.ca.location"]},
        "assigned by the broker": {
            **_SASL,
            "security.protocol": "SASL_SSL",
            **ca,
            "sasl.mechanism": "PLAIN",
            "group.protocol": "consumer",
        },
    }


def is_read(key: str, config: dict[str, Any]) -> bool:
    """Return whether a security property may be read in a configuration."""
    protocol = config.get("security.protocol", "")
    return not (
        (key.startswith("ssl.") and "SSL" not in protocol)
        or (key.startswith("sasl.") and "SASL" not in protocol)
        or (key.startswith(("https.", "sasl.oauth")) and config.get("sasl.mechanism") != "OAUTHBEARER")
    )


def texts(call: Callable[[], object]) -> list[str]:
    """Return the `repr` of a result, or what its exception shows."""
    try:
        return [repr(call())]
    except Exception as error:  # noqa: BLE001 - whatever it is
        return texts_of(error)


@pytest.mark.medium
def test_a_configuration_that_is_read_shows_no_secret(certificates: Certificates, recorder: Recorder) -> None:
    for name, config in configurations(certificates).items():
        for key in KEYS:
            for kind, secret in SECRETS.items() if is_read(key, config) else ():
                given = {**config, key: secret}
                shown = texts(lambda given=given: read_config(given))  # type: ignore[misc]
                if kind == "PEM":
                    shown += texts(lambda given=given: read_connection(given, timeout=1.0))  # type: ignore[misc]
                assert not leaks(shown), (name, key, kind)
    assert not leaks(recorder.texts)


def check(config: dict[str, Any]) -> None:
    """Read a configuration, for its errors alone."""
    read_config(config)


def test_other_properties_show_no_secret_that_can_be_recognized(recorder: Recorder) -> None:
    for key in OTHER_KEYS:
        for kind in UNDER_OTHERS:
            given = {**_ANY, key: SECRETS[kind]}
            assert not leaks(texts(lambda given=given: check(given))), (key, kind)  # type: ignore[misc]
    assert not leaks(recorder.texts)


@pytest.mark.medium
@pytest.mark.parametrize("name", ["without security", "mutual TLS", "assigned by the broker"])
def test_a_consumer_shows_no_secret(certificates: Certificates, recorder: Recorder, name: str) -> None:
    """librdkafka's own rejection of a property shows its value."""
    config = configurations(certificates)[name]

    def use(given: dict[str, Any]) -> str:
        consumer = Consumer(given)
        try:
            consumer.poll(0)
            return f"{consumer!r} {consumer.settings} {consumer._consumer_config}"
        finally:
            consumer.close()

    for key in KEYS:
        for kind in ("PEM", "password", "bytes"):
            given = {**config, "log_level": 7, "logger": logging.getLogger("librdkafka"), key: SECRETS[kind]}
            assert not leaks(texts(lambda given=given: use(given))), (key, kind)  # type: ignore[misc]
    gc.collect()
    assert not leaks(recorder.texts)


def test_an_asynchronous_consumer_shows_no_secret(recorder: Recorder) -> None:
    async def use(given: dict[str, Any]) -> str:
        consumer = AIOConsumer(given)
        try:
            return repr(consumer)
        finally:
            await consumer.close()

    for key in (
        "ssl.key.location",
        "ssl.ca.location",
        "ssl.endpoint.identification.algorithm",
        "sasl.pasword",
    ):
        given = {**_ANY, "security.protocol": "SSL", key: SECRETS["PEM"]}
        assert not leaks(texts(lambda given=given: asyncio.run(use(given)))), key  # type: ignore[misc]
    assert not leaks(recorder.texts)


@pytest.mark.medium
def test_the_problems_of_a_configuration_show_no_secret(certificates: Certificates) -> None:
    config = configurations(certificates)["mutual TLS"]
    for number, key in enumerate(KEYS):
        kind = ("PEM", "password", "table")[number % 3]
        found = find_problems({**config, key: SECRETS[kind]})
        assert not leaks(map(repr, found)), (key, kind)


def test_the_settings_of_connections_and_requests_show_no_secret() -> None:
    secret = str(SECRETS["password"])
    settings = ConnectionSettings("c", Security(), 1.0, Transport(), username=secret, password=secret)

    assert not leaks([repr(settings), repr(SASL_AUTHENTICATE(auth_bytes=secret.encode()))])
