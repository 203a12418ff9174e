"""`groupwright migrate` on a real Kafka: what it says of a group before, while and after it goes over."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
import jsonschema  # type: ignore[import-untyped]
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import (  # type: ignore[attr-defined] # as documented
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from groupwright import cli
from groupwright.consumer import Consumer
from groupwright.testing import LocalKafka
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.kafka

SCHEMA = json.loads((Path(cli.__file__).parent / "_schemas" / "migrate.schema.json").read_text())
PARTITIONS = 7
FAST = {"group.consumer.min.heartbeat.interval.ms": 200, "group.consumer.heartbeat.interval.ms": 200}
Run = Callable[..., "subprocess.CompletedProcess[str]"]
Migrate = Callable[[str], dict[str, Any]]


@pytest.fixture(
    scope="module", params=["4.4.0", pytest.param("4.3.1", marks=(pytest.mark.slow, pytest.mark.endurance))]
)
def kafka(request: pytest.FixtureRequest) -> Iterator[LocalKafka]:
    with LocalKafka(version=request.param, config=FAST) as kafka:
        kafka.create_topic("orders", PARTITIONS)
        yield kafka


class Service:
    """The members of a group, which are restarted one by one."""

    def __init__(self, kafka: LocalKafka, group: str) -> None:
        self._config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "log_level": 0}
        self._members: dict[str, Any] = {}

    def start(self, name: str, strategy: str | None = None) -> None:
        """Start a member, Groupwright's or a plain one; without a strategy, one of KIP-848."""
        protocol: dict[str, Any] = {"group.protocol": "consumer"}
        if strategy is not None:
            protocol = {"partition.assignment.strategy": strategy, "heartbeat.interval.ms": 200}
        client = Consumer if name.startswith("own") else confluent_kafka.Consumer
        self._members[name] = client({**self._config, "client.id": name, **protocol})
        self._members[name].subscribe(["orders"])
        self.settle()

    def stop(self, name: str) -> None:
        self._members.pop(name).close()

    def restart(self, name: str, strategy: str | None = None) -> None:
        self.stop(name)
        self.start(name, strategy)

    def replace(self, name: str, by: str, strategy: str) -> None:
        self.stop(name)
        self.start(by, strategy)

    def settle(self) -> dict[str, set[int]]:
        """Poll until each partition has one owner, and each member some; return them."""

        def has_settled() -> bool:
            for member in self._members.values():
                message = member.poll(0.02)
                assert message is None or message.error() is None, message.error()
            shares = [[each.partition for each in m.assignment()] for m in self._members.values()]
            owned = [number for share in shares for number in share]
            return all(shares) and sorted(owned) == list(range(PARTITIONS))

        wait_until(has_settled, "each partition to have one owner")
        return {
            name: {each.partition for each in member.assignment()} for name, member in self._members.items()
        }

    def close(self) -> None:
        for member in self._members.values():
            member.close()
        self._members = {}


@pytest.fixture
def service(kafka: LocalKafka, request: pytest.FixtureRequest) -> Iterator[Service]:
    service = Service(kafka, request.node.name)
    yield service
    service.close()


@pytest.fixture
def migrate(kafka: LocalKafka, groupwright: Run, request: pytest.FixtureRequest) -> Callable[[], Any]:
    """Return what the command says of the test's group."""

    def run() -> dict[str, Any]:
        group, servers = request.node.name, kafka.bootstrap_servers
        done = groupwright("migrate", group, "--bootstrap-servers", servers, "-o", "json")
        assert (done.returncode, done.stderr) == (0, "")
        document: dict[str, Any] = json.loads(done.stdout)
        jsonschema.validate(document, SCHEMA)
        return document

    return run


@pytest.mark.slow
@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_goes_over_and_back_as_it_is_told(
    service: Service, migrate: Callable[[], Any], strategy: str
) -> None:
    other = "plain-2" if strategy == "range" else "own-2"
    service.start("own-1", strategy)
    service.start(other, strategy)

    plan = migrate()
    assert (plan["type"], plan["way"], plan["gone"]) == ("classic", "online", [])
    assert sorted(plan["to_go"]) == sorted(["own-1", other])
    found = {check["subject"]: check["verdict"] for check in plan["checks"]}
    by_cluster = ("brokers", "policy", "size", "assignments", "subscriptions")
    assert found == dict.fromkeys(by_cluster, "fine") | dict.fromkeys(("clients", "patterns"), "unknown")
    assert plan["outcomes"][0] == {"assignor": "uniform", "moved": 0, "least": 3, "most": 4}

    service.restart(other)
    plan = migrate()
    assert (plan["type"], plan["way"]) == ("consumer", "under way")
    assert (plan["gone"], plan["to_go"]) == ([other], ["own-1"])
    assert "own-1" in plan["steps"][0]
    assert other in plan["back"][0]

    service.restart("own-1")
    shares = service.settle()
    plan = migrate()
    assert (plan["way"], plan["to_go"], plan["checks"], plan["outcomes"]) == ("done", [], [], [])
    assert sorted(map(len, shares.values())) == [3, 4]
    assert (plan["steps"], len(plan["back"])) == ([], 2)

    service.restart(other, strategy)
    assert migrate()["way"] == "under way"
    service.restart("own-1", strategy)
    plan = migrate()
    assert (plan["type"], plan["way"]) == ("classic", "online")


def test_a_group_that_librdkafka_leads_cooperatively_stops_or_changes_its_client_first(
    kafka: LocalKafka, service: Service, migrate: Callable[[], Any], request: pytest.FixtureRequest
) -> None:
    """Its leader sends user data with the partitions, with which no broker takes a group over."""
    service.start("plain-1", "cooperative-sticky")
    service.start("plain-2", "cooperative-sticky")
    plan = migrate()
    assert plan["way"] == "full stop"
    assert [check["subject"] for check in plan["checks"] if check["verdict"] == "hinders"] == ["assignments"]
    assert plan["outcomes"][0] == {"assignor": "uniform", "moved": None, "least": 3, "most": 4}
    assert is_refused(kafka, request.node.name)

    service.replace("plain-1", "own-1", "cooperative-sticky")
    service.replace("plain-2", "own-2", "cooperative-sticky")
    assert migrate()["way"] == "online"
    service.restart("own-1")
    assert migrate()["way"] == "under way"


def test_the_broker_moves_as_many_partitions_as_was_said(
    service: Service, migrate: Callable[[], Any]
) -> None:
    """A member of KIP-848 beside a classic one, which had everything."""
    service.start("own-1", "range")
    alone = migrate()["outcomes"][0]
    assert alone == {"assignor": "uniform", "moved": 0, "least": PARTITIONS, "most": PARTITIONS}

    service.start("plain-2")
    assert {name: len(share) for name, share in service.settle().items()} in (
        {"own-1": 4, "plain-2": 3},
        {"own-1": 3, "plain-2": 4},
    )


def test_a_group_without_members_goes_over_with_its_first(
    kafka: LocalKafka, service: Service, migrate: Callable[[], Any], request: pytest.FixtureRequest
) -> None:
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": request.node.name, "log_level": 0}
    consumer = confluent_kafka.Consumer(config)
    consumer.commit(offsets=[confluent_kafka.TopicPartition("orders", 0, 5)], asynchronous=False)
    consumer.close()

    plan = migrate()
    assert (plan["way"], plan["to_go"], len(plan["steps"]), plan["back"]) == ("empty", [], 1, [])
    service.start("plain-1")
    assert migrate()["way"] == "done"


def test_the_sessions_are_those_that_the_group_would_have(
    kafka: LocalKafka, service: Service, migrate: Callable[[], Any], request: pytest.FixtureRequest
) -> None:
    service.start("own-1", "range")
    assert any("45000 ms and 200 ms" in change for change in migrate()["changes"])

    own = ConfigEntry("consumer.session.timeout.ms", "50000", incremental_operation=AlterConfigOpType.SET)
    group = ConfigResource(ResourceType.GROUP, request.node.name, incremental_configs=[own])
    (altered,) = kafka.admin().incremental_alter_configs([group]).values()
    altered.result(PATIENCE)

    def is_told() -> bool:
        return any("50000 ms and 200 ms" in change for change in migrate()["changes"])

    wait_until(is_told, "the coordinator to know the group's own setting")


@pytest.mark.slow
def test_a_policy_that_lets_no_group_back_keeps_the_broker_assigning(groupwright: Run) -> None:
    with LocalKafka(config={**FAST, "group.consumer.migration.policy": "upgrade"}) as kafka:
        kafka.create_topic("orders", PARTITIONS)
        service = Service(kafka, "billing")

        def migrate() -> str:
            done = groupwright("migrate", "billing", "--bootstrap-servers", kafka.bootstrap_servers)
            assert (done.returncode, done.stderr) == (0, "")
            return done.stdout

        service.start("own-1", "range")
        service.start("own-2", "range")
        service.restart("own-1")
        service.stop("own-1")
        assert "only classic members, but the broker assigns until all stop" in migrate()

        service.close()
        service.start("own-1", "range")
        assert "can go over online" in migrate()
        service.close()


@pytest.mark.slow
def test_a_policy_that_does_not_allow_it_asks_for_a_full_stop(groupwright: Run) -> None:
    with LocalKafka(config={**FAST, "group.consumer.migration.policy": "disabled"}) as kafka:
        kafka.create_topic("orders", PARTITIONS)
        service = Service(kafka, "billing")
        service.start("own-1", "range")
        done = groupwright("migrate", "billing", "--bootstrap-servers", kafka.bootstrap_servers)
        assert (done.returncode, done.stderr) == (0, "")
        assert "can go over by a full stop" in done.stdout
        assert "group.consumer.migration.policy is disabled" in done.stdout
        assert is_refused(kafka, "billing")

        service.close()
        service.start("plain-2")  # after the full stop
        service.close()


def is_refused(kafka: LocalKafka, group: str) -> bool:
    """Return whether a member of KIP-848 gets a fatal error."""
    config = {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "log_level": 0}
    newer = confluent_kafka.Consumer({**config, "group.protocol": "consumer"})
    newer.subscribe(["orders"])
    errors: list[confluent_kafka.KafkaError] = []

    def ends() -> bool:
        try:
            message = newer.poll(0.1)
            error = None if message is None else message.error()
        except KafkaException as failure:
            error = failure.args[0]
        errors.extend([] if error is None else [error])
        return bool(errors or newer.assignment())

    wait_until(ends, "the refusal")
    newer.close()
    return [each.name() for each in errors] == ["_FATAL"]


@pytest.mark.endurance
@pytest.mark.slow
def test_brokers_before_kafka_4_are_named(groupwright: Run) -> None:
    with LocalKafka(version="3.9.2") as kafka:
        kafka.create_topic("orders", PARTITIONS)
        service = Service(kafka, "billing")
        service.start("own-1", "range")
        done = groupwright("migrate", "billing", "--bootstrap-servers", kafka.bootstrap_servers, "-o", "csv")
        service.close()
    assert done.returncode == 1
    assert "brokers,hinders," in done.stdout


def test_a_group_that_does_not_exist_is_an_error(kafka: LocalKafka, groupwright: Run) -> None:
    done = groupwright("migrate", "biling", "--bootstrap-servers", kafka.bootstrap_servers)
    assert (done.returncode, done.stdout) == (4, "")
