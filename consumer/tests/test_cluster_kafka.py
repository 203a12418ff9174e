"""`ClusterConnection` on real brokers: plain, secured, unknown and absent ones."""

import base64
import json
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from groupwright.consumer import ConfigurationError
from groupwright.consumer.cluster import ClusterConnection, ClusterConnectionError
from groupwright.core.kafka_apis import DESCRIBE_GROUPS, METADATA
from groupwright.core.wire_format import INT16, INT32, STRING, Api, Array
from groupwright.testing import Listener, LocalKafka, Security
from integration_tests.harness.patience import PATIENCE

pytestmark = [pytest.mark.kafka]

LIST_GROUPS = Api(
    "ListGroups",
    16,
    versions=(1, 2),
    request={},
    response={
        "throttle_time_ms": INT32,
        "error_code": INT16,
        "groups": Array({"group_id": STRING, "protocol_type": STRING}),
    },
)
PASSWORD = "password-of-alice"  # noqa: S105 - of a broker that lives for a test


def unsigned_token(subject: str, lifetime: float) -> tuple[str, float]:
    """An unsecured JSON web token (RFC 7515, appendix A.5), and its expiry."""
    now = time.time()
    claims = {"sub": subject, "iat": now, "exp": now + lifetime}
    parts = [
        base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=")
        for part in ({"alg": "none"}, claims)
    ]
    return ".".join((*parts, "")), now + lifetime


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    with LocalKafka(security=Security(users={"alice": PASSWORD})) as kafka:
        yield kafka


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        (Listener.SASL_PLAINTEXT, "PLAIN"),
        (Listener.SASL_SSL, "SCRAM-SHA-512"),
    ],
)
def test_brokers_and_groups_are_told_to_a_user_with_a_password(
    kafka: LocalKafka, listener: Listener, mechanism: str
) -> None:
    config = kafka.secure_config(listener, mechanism=mechanism)
    with ClusterConnection(config, timeout=PATIENCE) as cluster:
        (broker,) = cluster.brokers().values()
        responses = cluster.send_all({broker.id: LIST_GROUPS()})

    assert f"{broker.host}:{broker.port}" == config["bootstrap.servers"]
    assert responses[broker.id].error_code == 0


def test_a_client_certificate_is_sent(kafka: LocalKafka) -> None:
    config = kafka.secure_config(Listener.MUTUAL_TLS, user="alice")
    with ClusterConnection(config, timeout=PATIENCE) as cluster:
        assert len(cluster.brokers()) == 1


def test_a_token_is_fetched_before_the_first_request_and_again_when_four_fifths_of_its_life_are_over(
    kafka: LocalKafka,
) -> None:
    asked: list[str] = []

    def oauth_cb(config: str) -> tuple[str, float]:
        asked.append(config)
        token, expiry = unsigned_token("alice", 2.0)
        return token, expiry

    config: dict[str, Any] = kafka.secure_config(Listener.SASL_SSL, mechanism="OAUTHBEARER")
    config |= {"oauth_cb": oauth_cb, "sasl.oauthbearer.config": "key=1"}
    with ClusterConnection(config, timeout=PATIENCE) as cluster:
        cluster.brokers()
        assert asked == ["key=1"]
        deadline = time.monotonic() + PATIENCE
        while len(asked) < 2:
            assert time.monotonic() < deadline, "no second token was fetched"
            cluster.brokers()


def test_a_token_that_cannot_be_fetched_is_an_error_with_the_reason(kafka: LocalKafka) -> None:
    def oauth_cb(_: str) -> tuple[str, float]:
        raise OSError("the token server is away")

    config: dict[str, Any] = kafka.secure_config(Listener.SASL_SSL, mechanism="OAUTHBEARER")
    config["oauth_cb"] = oauth_cb
    with (
        ClusterConnection(config) as cluster,
        pytest.raises(ClusterConnectionError, match="token server is away"),
    ):
        cluster.brokers()


def test_a_wrong_password_is_refused_at_once(kafka: LocalKafka) -> None:
    config = kafka.secure_config(Listener.SASL_SSL, mechanism="PLAIN") | {"sasl.password": "wrong"}
    with (
        ClusterConnection(config, timeout=PATIENCE) as cluster,
        pytest.raises(ClusterConnectionError, match="refused the connection") as caught,
    ):
        cluster.brokers()

    assert caught.value.is_refused


def test_a_broker_that_the_cluster_does_not_have_is_an_error_beside_the_others_response(
    kafka: LocalKafka,
) -> None:
    with ClusterConnection({"bootstrap.servers": kafka.bootstrap_servers}, timeout=PATIENCE) as cluster:
        (known,) = cluster.brokers()
        requests = {known: DESCRIBE_GROUPS(groups=["none"]), 77: LIST_GROUPS()}
        responses = cluster.send_all(requests)

    assert responses[known].groups[0].group_state == "Dead"
    assert isinstance(responses[77], ClusterConnectionError)
    assert "77" in str(responses[77])
    assert not responses[77].is_refused


def test_threads_share_a_connection(kafka: LocalKafka) -> None:
    found: list[int] = []

    def ask() -> None:
        request = METADATA(topics=[])
        found.extend(len(cluster.send(request).brokers) for _ in range(20))

    with ClusterConnection({"bootstrap.servers": kafka.bootstrap_servers}, timeout=PATIENCE) as cluster:
        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)

    assert found == [1] * 80


def test_a_closed_connection_refuses_requests_at_once(kafka: LocalKafka) -> None:
    cluster = ClusterConnection({"bootstrap.servers": kafka.bootstrap_servers}, timeout=PATIENCE)
    cluster.brokers()
    cluster.close()
    cluster.close()

    with pytest.raises(ClusterConnectionError, match="closed"):
        cluster.brokers()


def test_an_address_without_a_broker_is_an_error_that_names_it() -> None:
    with (
        ClusterConnection({"bootstrap.servers": "127.0.0.1:1"}) as cluster,
        pytest.raises(ClusterConnectionError, match=r"127\.0\.0\.1:1") as caught,
    ):
        cluster.brokers()

    assert not caught.value.is_refused


@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({}, "bootstrap.servers is not set"),
        ({"bootstrap.servers": "a:b"}, "bootstrap.servers has 'a:b'"),
        ({"bootstrap.servers": "a:1", "security.protocol": "TLS"}, "security.protocol takes"),
    ],
)
def test_wrong_settings_are_refused_before_anything_is_started(config: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigurationError, match=words):
        ClusterConnection(config)
