"""A broker's secured listeners: which clients they let in, with librdkafka's clients."""

import base64
import json
import time
import uuid
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, KafkaError
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from groupwright.testing import Listener, LocalKafka, Security, SecurityError
from groupwright.testing._kafka.local_kafka import DEFAULT_VERSION, VERSION_VARIABLE
from groupwright.testing._kafka.readiness import CLIENT_DEFAULTS
from groupwright.testing._kafka.security import _SCRAM, MECHANISMS
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.rights import allow


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    security = Security(users={"alice": "alice-secret", "bob": "bob-secret"}, authorize=True)
    with LocalKafka(security=security) as kafka:
        yield kafka


def unsigned_token(_config: str) -> tuple[str, float]:
    expiry = time.time() + 300
    parts = ({"alg": "none"}, {"sub": "alice", "iat": time.time(), "exp": expiry})
    words = [base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts]
    return ".".join((*words, "")), expiry


@pytest.mark.kafka
@pytest.mark.parametrize("listener", [Listener.SSL, Listener.MUTUAL_TLS])
def test_a_user_of_a_certificate_is_let_in(kafka: LocalKafka, listener: Listener) -> None:
    assert (
        AdminClient({**CLIENT_DEFAULTS, **kafka.secure_config(listener, user="bob")})
        .list_topics(timeout=PATIENCE)
        .brokers
    )


@pytest.mark.kafka
@pytest.mark.parametrize("listener", [Listener.SASL_PLAINTEXT, Listener.SASL_SSL])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_a_user_of_each_mechanism_is_let_in(kafka: LocalKafka, listener: Listener, mechanism: str) -> None:
    config = {
        **CLIENT_DEFAULTS,
        **kafka.secure_config(listener, mechanism=mechanism, user="bob"),
        "group.id": "g",
    }
    client = Consumer(config | ({"oauth_cb": unsigned_token} if mechanism == "OAUTHBEARER" else {}))

    assert client.list_topics(timeout=PATIENCE).brokers
    client.close()


@pytest.mark.kafka
def test_an_acl_keeps_a_user_out_and_lets_another_in(kafka: LocalKafka) -> None:
    topic = uuid.uuid4().hex
    kafka.create_topic(topic)
    binding = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        AclOperation.ALL,
        AclPermissionType.ALLOW,
    )
    allow(kafka.admin(), binding)

    def error_of(user: str) -> KafkaError | None:
        admin = AdminClient({**CLIENT_DEFAULTS, **kafka.secure_config(Listener.SASL_SSL, user=user)})
        return admin.list_topics(topic, timeout=PATIENCE).topics[topic].error

    assert error_of("alice") is None
    refused = error_of("bob")
    assert refused is not None
    assert refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED


@pytest.mark.kafka
def test_the_listeners_survive_a_restart(kafka: LocalKafka) -> None:
    before = kafka.secure_config(Listener.SASL_SSL, mechanism="SCRAM-SHA-256")
    kafka.restart()

    assert kafka.secure_config(Listener.SASL_SSL, mechanism="SCRAM-SHA-256") == before
    assert AdminClient({**CLIENT_DEFAULTS, **before}).list_topics(timeout=PATIENCE).brokers


def test_a_broker_without_secured_listeners_says_how_to_get_them() -> None:
    with pytest.raises(SecurityError, match=r"create this Kafka with security=Security\(\)"):
        LocalKafka().secure_config(Listener.SSL)


@pytest.mark.parametrize("name", ["", "a,b", 'a"b', "../a", "a b", "é", "a\n", "x" * 65, "broker", "expired"])
def test_a_user_whose_name_a_file_or_jaas_cannot_have_is_refused(name: str) -> None:
    with pytest.raises(SecurityError, match=r"^The user .* cannot be created: use 1 to 64 letters, digits"):
        Security(users={"alice": "secret", name: "secret"})


@pytest.mark.parametrize("password", ["", "a,b", 'a"b', "a\\b", "a\nb", " a", "a "])
def test_a_password_that_jaas_or_scram_cannot_have_is_refused(password: str) -> None:
    with pytest.raises(SecurityError, match=r"^The password of 'alice' cannot be stored: use 1 or more char"):
        Security(users={"alice": password})


def test_there_must_be_a_user() -> None:
    with pytest.raises(SecurityError, match="Security has no users: give one"):
        Security(users={})


@pytest.mark.kafka
@pytest.mark.parametrize("listener", Listener)
def test_an_unknown_user_is_refused_with_those_there_are(kafka: LocalKafka, listener: Listener) -> None:
    with pytest.raises(SecurityError, match="There is no user 'nobody'; there are: alice, bob"):
        kafka.secure_config(listener, user="nobody")


@pytest.mark.kafka
def test_other_characters_of_names_and_passwords_are_carried() -> None:
    users = {"a.b-c_d": "a b;=x'#{}$@![]/*//é"}
    with LocalKafka(security=Security(users=users)) as kafka:
        for mechanism in ("PLAIN", *_SCRAM):
            config = kafka.secure_config(Listener.SASL_PLAINTEXT, mechanism=mechanism)
            assert AdminClient({**CLIENT_DEFAULTS, **config}).list_topics(timeout=PATIENCE).brokers


def test_a_broker_that_was_not_started_has_no_certificates() -> None:
    with pytest.raises(SecurityError, match="start the Kafka first"):
        _ = LocalKafka(security=Security()).certificates


def test_the_version_is_the_arguments_or_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VERSION_VARIABLE, raising=False)
    assert LocalKafka().version == DEFAULT_VERSION

    monkeypatch.setenv(VERSION_VARIABLE, "3.9.2")
    assert LocalKafka().version == "3.9.2"
    assert LocalKafka(version="4.0.0").version == "4.0.0"
