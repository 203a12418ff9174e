"""Groups with Kerberos authentication, with a real KDC, a real broker and both clients' libraries."""

import importlib.util
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from confluent_kafka import Consumer as NativeConsumer
from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicPartition

from groupwright.consumer import Consumer
from groupwright.testing import LocalKafka
from groupwright.testing._kafka import ports
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness import kerberos
from integration_tests.harness.kerberos import Realm
from integration_tests.harness.members import Join
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.polling import polls_in_peace, refusal, take
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

SERVICE = f"kafka/{ports.HOST}"
GSSAPI = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "GSSAPI"}

NO_KINIT = {"sasl.kerberos.min.time.before.relogin": "0"}
"""librdkafka does not log in: the user does."""

Produce = Callable[[str, int, int], None]
Connect = Callable[[Mapping[str, str]], Consumer]


@pytest.fixture(scope="module")
def realm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Realm]:
    """A realm with a broker and a user, set in the environment of this process."""
    skip_without_kerberos()
    realm = Realm(tmp_path_factory.mktemp("realm"), [SERVICE, "alice"])
    with realm, pytest.MonkeyPatch.context() as patch:
        for name, value in realm.environment.items():
            patch.setenv(name, value)
        yield realm


def skip_without_kerberos() -> None:
    """Skip, in continuous integration too: no wheel of confluent-kafka has GSSAPI."""
    config = {**GSSAPI, **NO_KINIT, "bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": "0"}
    try:
        NativeConsumer(config).close()
    except KafkaException as error:
        pytest.skip(f"librdkafka was built without GSSAPI: {error.args[0].str()}")
    if importlib.util.find_spec("gssapi") is None:
        pytest.skip("the package gssapi is not installed")
    if missing := kerberos.missing_programs():
        pytest.skip(f"{', '.join(missing)} not installed (Debian: krb5-kdc, krb5-admin-server, krb5-user)")


@pytest.fixture(scope="module")
def servers() -> str:
    """The address of the listener that requires tickets."""
    return f"{ports.HOST}:{ports.free_port()}"


@pytest.fixture(scope="module")
def kafka(realm: Realm, servers: str) -> Iterator[LocalKafka]:
    """A broker with a plain listener, and one that requires tickets."""
    port, controller_port = ports.free_port(), ports.free_port()
    login = (
        "com.sun.security.auth.module.Krb5LoginModule required useKeyTab=true storeKey=true "
        f'keyTab="{realm.keytab(SERVICE)}" principal="{SERVICE}@{kerberos.NAME}";'
    )
    advertised = f"PLAINTEXT://{ports.HOST}:{port},KERBEROS://{servers}"
    config = {
        "listeners": f"{advertised},CONTROLLER://{ports.HOST}:{controller_port}",
        "advertised.listeners": advertised,
        "controller.quorum.voters": f"1@{ports.HOST}:{controller_port}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,KERBEROS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "GSSAPI",
        "sasl.kerberos.service.name": "kafka",
        "listener.name.kerberos.gssapi.sasl.jaas.config": login,
        "connections.max.reauth.ms": "2000",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JAVA_TOOL_OPTIONS", f"-Djava.security.krb5.conf={realm.config}")
        with LocalKafka(port=port, config=config) as kafka:
            yield kafka


@pytest.fixture
def tickets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty ticket cache of the test."""
    cache = tmp_path / "tickets"
    monkeypatch.setenv("KRB5CCNAME", f"FILE:{cache}")
    return cache


@pytest.fixture
def connect(kafka: LocalKafka, servers: str, group: str) -> Iterator[Connect]:  # noqa: ARG001 - it is to run
    """Create consumers of the test's group on the Kerberos listener; all are closed at the end."""
    consumers: list[Consumer] = []

    def make(settings: Mapping[str, str]) -> Consumer:
        own = {"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"}
        consumers.append(Consumer({**own, **GSSAPI, "log_level": 0, **settings}))
        return consumers[-1]

    yield make
    for consumer in consumers:
        consumer.close()


def refused(consumer: Consumer, topic: str) -> KafkaError:
    """Subscribe, and return the error that poll returns."""
    consumer.subscribe([topic])
    error = refusal(consumer)
    assert error.code() == KafkaError._AUTHENTICATION
    return error


def test_members_whose_kinit_logs_in_share_commit_and_leave(
    kafka: LocalKafka,
    realm: Realm,
    servers: str,
    tickets: Path,
    group: str,
    join: Join,
    new_kafka_topic: NewKafkaTopic,
    produce: Produce,
) -> None:
    """The membership connects before librdkafka's kinit has finished, and finds no ticket yet."""
    topic = new_kafka_topic(partitions=4)
    produce(topic, 4, 5)
    assert not tickets.exists()

    settings = {
        "bootstrap_servers": servers,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "GSSAPI",
        "sasl_kerberos_principal": "alice",
        "sasl_kerberos_keytab": str(realm.keytab("alice")),
    }
    first = join("first", [topic], **settings)
    wait_until(lambda: len(first.owned) == 4, "the first member to own everything")
    second = join("second", [topic], **settings)
    wait_until(lambda: len(first.owned) == len(second.owned) == 2, "two partitions each")
    generation, authenticated = first.generation, authentications(kafka)
    wait_until(lambda: authentications(kafka) >= authenticated + 12, "to authenticate again (KIP-368)")
    assert first.generation == second.generation == generation
    everything = {(topic, partition, offset) for partition in range(4) for offset in range(5)}
    wait_until(lambda: {*first.consumed, *second.consumed} == everything, "all messages")

    second.close()
    wait_until(lambda: len(first.owned) == 4, "the first member to own everything again")
    first.close()

    assert first.errors == second.errors == []
    admin = kafka.admin()
    described = admin.describe_consumer_groups([group], request_timeout=PATIENCE)[group].result()
    assert described.state == ConsumerGroupState.EMPTY
    assert committed(kafka, group, topic, 4) == [5, 5, 5, 5]


def authentications(kafka: LocalKafka) -> int:
    return kafka.log().count(f"authenticationID=alice@{kerberos.NAME}; authorizationID=kafka@{ports.HOST}")


def committed(kafka: LocalKafka, group: str, topic: str, partitions: int) -> list[int]:
    reader = NativeConsumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    try:
        wanted = [TopicPartition(topic, number) for number in range(partitions)]
        return [each.offset for each in reader.committed(wanted, timeout=PATIENCE)]
    finally:
        reader.close()


def test_without_a_ticket_a_poll_says_so_until_the_user_has_logged_in(
    realm: Realm, tickets: Path, connect: Connect, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    topic = new_kafka_topic()
    produce(topic, 1, 1)
    consumer = connect(NO_KINIT)

    error = refused(consumer, topic)
    assert f"No Kerberos credentials available (default cache: FILE:{tickets})" in error.str()
    assert "log in with kinit" in error.str()

    realm.log_in("alice", tickets)
    wait_until(lambda: polls_in_peace(consumer), "to be let in")
    assert len(take(consumer, 1)) == 1


@pytest.mark.usefixtures("tickets")
def test_a_kinit_that_fails_is_waited_for_no_longer_than_a_connection(
    tmp_path: Path, connect: Connect, new_kafka_topic: NewKafkaTopic
) -> None:
    failing = {"sasl.kerberos.principal": "alice", "sasl.kerberos.keytab": str(tmp_path / "none")}
    consumer = connect({**failing, "socket.connection.setup.timeout.ms": "1000"})

    assert "No Kerberos credentials available" in refused(consumer, new_kafka_topic()).str()


def test_a_service_that_the_realm_does_not_know_is_told_with_its_name(
    realm: Realm, tickets: Path, connect: Connect, new_kafka_topic: NewKafkaTopic
) -> None:
    realm.log_in("alice", tickets)
    consumer = connect({**NO_KINIT, "sasl.kerberos.service.name": "unheard-of"})

    error = refused(consumer, new_kafka_topic())

    assert f"unheard-of/{ports.HOST}@{kerberos.NAME} not found in Kerberos database" in error.str()
    assert "sasl.kerberos.service.name" in error.str()
