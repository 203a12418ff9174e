"""`groupwright doctor` on a real Kafka, and its advice, followed on real groups."""

import json
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
import jsonschema  # type: ignore[import-untyped]
import pytest
from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka.admin._acl import AclBinding, AclBindingFilter, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from groupwright import cli
from groupwright.consumer import Consumer
from groupwright.testing import Listener, LocalKafka, Security
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.rights import allow
from integration_tests.harness.waiting import wait_until

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.kafka

Run = Callable[..., "subprocess.CompletedProcess[str]"]
Member = Consumer | confluent_kafka.Consumer

# confluent-kafka's annotations have no None, which matches any name, user and host.
EVERY_RIGHT: Any = (
    *(ResourceType.ANY, None, ResourcePatternType.ANY),
    *(None, None, AclOperation.ANY, AclPermissionType.ANY),
)

SCHEMA = Path(cli.__file__).parent / "_schemas" / "doctor.schema.json"
GOOD = (
    "client.id=billing-1",
    "partition.assignment.strategy=cooperative-sticky",
    "enable.auto.offset.store=false",
)
PARTITIONS = 4


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    with LocalKafka(security=Security(authorize=True)) as kafka:
        kafka.create_topic("orders", PARTITIONS)
        yield kafka


@pytest.fixture
def group() -> str:
    return f"billing-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def doctor(kafka: LocalKafka, groupwright: Run) -> Run:
    def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        environment = {"GROUPWRIGHT_BOOTSTRAP_SERVERS": kafka.bootstrap_servers, **environment}
        return groupwright("doctor", *GOOD, *arguments, **environment)

    return run


@pytest.fixture
def start(kafka: LocalKafka, group: str) -> Iterator[Callable[..., Any]]:
    """Start a member of the group, of either client."""
    with ExitStack() as members:

        def start(client: type[Member], **settings: Any) -> Member:
            classic = {} if "group_protocol" in settings else {"heartbeat.interval.ms": 200}
            member = client(
                {
                    "bootstrap.servers": kafka.bootstrap_servers,
                    "group.id": group,
                    "client.id": uuid.uuid4().hex,
                    **classic,
                    **{key.replace("_", "."): value for key, value in settings.items()},
                }
            )
            members.callback(member.close)
            member.subscribe(["orders"])
            return member

        yield start


def settle(*members: Member) -> None:
    """Poll until the members share all partitions."""

    def settled() -> bool:
        for member in members:
            message = member.poll(0.02)
            assert message is None or message.error() is None, message.error()
        owned = [partition.partition for member in members for partition in member.assignment()]
        return sorted(owned) == list(range(PARTITIONS)) and all(member.assignment() for member in members)

    wait_until(settled, "each partition has one owner")


def document(result: "subprocess.CompletedProcess[str]") -> tuple[list[str], dict[str, tuple[bool, str]]]:
    """Return the rules, and the checks by subject."""
    found = json.loads(result.stdout)
    jsonschema.validate(found, json.loads(SCHEMA.read_text(encoding="utf-8")))
    return (
        [finding["rule"] for finding in found["findings"]],
        {check["subject"]: (check["checked"], check["detail"]) for check in found["checks"]},
    )


# --- What is said


def test_a_healthy_group_has_no_finding_and_everything_was_checked(
    doctor: Run, group: str, start: Callable[..., Member]
) -> None:
    strategy = {"partition.assignment.strategy": "cooperative-sticky"}
    settle(start(Consumer, **strategy), start(confluent_kafka.Consumer, **strategy))

    result = doctor(f"group.id={group}")

    assert (result.returncode, result.stderr) == (0, "")
    head, *checked = result.stdout.splitlines()
    assert (head, checked[-1]) == ("checked", "0 warnings, 0 notes")
    assert "  broker         limits of sessions and groups, of broker 1" in checked
    assert f"  group          '{group}', Stable with 2 members" in checked
    assert "not checked" not in result.stdout


def test_findings_are_about_the_group_and_the_brokers_limits(
    doctor: Run, group: str, start: Callable[..., Member]
) -> None:
    static = start(confluent_kafka.Consumer, group_instance_id="a", partition_assignment_strategy="range")
    dynamic = start(confluent_kafka.Consumer, partition_assignment_strategy="range")
    settle(static, dynamic)

    settings = ("session.timeout.ms=1900000", "max.poll.interval.ms=2000000")
    result = doctor(f"group.id={group}", *settings, "-o", "json")
    rules, checks = document(result)

    assert rules == ["broker-session-limits", "mixed-strategies", "partly-static"]
    assert all(is_checked for is_checked, _ in checks.values())
    changes = [finding["change"] for finding in json.loads(result.stdout)["findings"]]
    for change, start_of_it in zip(
        changes,
        (
            "Set session.timeout.ms to 1800000 or less",
            "If the group's assignor is to stay, set partition.assignment.strategy to range",
            "Set group.instance.id in all members, to a different one in each",
        ),
        strict=True,
    ):
        assert change.startswith(start_of_it)
    # Followed: the group has nothing but static members, and a new one joins with these settings.
    dynamic.close()
    dynamic = start(confluent_kafka.Consumer, group_instance_id="b", partition_assignment_strategy="range")
    longest = {"session.timeout.ms": 1_800_000, "max.poll.interval.ms": 2_000_000}
    new = start(Consumer, group_instance_id="c", partition_assignment_strategy="range", **longest)
    settle(static, dynamic, new)
    followed = ("partition.assignment.strategy=range", "group.instance.id=c", "session.timeout.ms=1800000")
    rules, _ = document(doctor(f"group.id={group}", *settings, *followed, "-o", "json"))
    assert rules == ["eager-strategy"]


def test_groups_of_kip_848_and_empty_groups_are_checked(
    doctor: Run, kafka: LocalKafka, group: str, start: Callable[..., Member]
) -> None:
    settle(start(confluent_kafka.Consumer, group_protocol="consumer"))
    new = ("group.protocol=consumer", "partition.assignment.strategy=")

    result = doctor(f"group.id={group}", *new)
    assert (result.returncode, result.stdout.splitlines()[-1]) == (0, "0 warnings, 0 notes"), result.stdout
    rules, _ = document(doctor(f"group.id={group}", "-o", "json"))
    assert rules == ["mixed-protocols"]

    commit(kafka, f"{group}-empty")
    empty = doctor(f"group.id={group}-empty")
    assert empty.returncode == 0
    assert f"'{group}-empty', Empty with 0 members" in empty.stdout


def test_an_unknown_and_a_deleted_group_are_named_with_a_suggestion(
    doctor: Run, kafka: LocalKafka, group: str
) -> None:
    commit(kafka, group)

    misspelt = doctor(f"group.id={group.replace('billing', 'biling')}", "-o", "json")
    assert misspelt.returncode == 4
    rules, checks = document(misspelt)
    assert rules == []
    assert checks["group"] == (
        False,
        f"there is no group '{group.replace('billing', 'biling')}', did you mean '{group}'?",
    )

    kafka.admin().delete_consumer_groups([group])[group].result(PATIENCE)
    dead = doctor(f"group.id={group}")
    assert dead.returncode == 4
    assert f"not checked\n  group          there is no group '{group}'" in dead.stdout


def test_a_broker_that_cannot_be_reached_is_no_health(groupwright: Run, group: str) -> None:
    result = groupwright(
        "doctor", *GOOD, f"group.id={group}", "--bootstrap-servers", "127.0.0.1:1", "--timeout", "1"
    )

    assert result.returncode == 3
    assert "not checked\n  broker         cannot query the cluster at 127.0.0.1:1" in result.stdout
    assert "  configuration  5 settings validated" in result.stdout


# --- Security


@pytest.fixture
def client_config(kafka: LocalKafka, tmp_path: Path) -> Path:
    path = tmp_path / "client.json"
    path.write_text(json.dumps(kafka.secure_config(Listener.SASL_SSL, user="alice")))
    return path


def test_a_secured_cluster_is_reached_by_the_file(
    groupwright: Run, kafka: LocalKafka, group: str, client_config: Path
) -> None:
    commit(kafka, group)

    result = groupwright("doctor", "--config", str(client_config), *GOOD, f"group.id={group}")

    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    assert "not checked" not in result.stdout
    wrong = groupwright(
        "doctor", "--config", str(client_config), *GOOD, f"group.id={group}", "sasl.password=wrong"
    )
    assert wrong.returncode == 3
    assert "Correct the security settings" in wrong.stdout


def test_what_is_forbidden_is_said(
    groupwright: Run, kafka: LocalKafka, group: str, client_config: Path
) -> None:
    """Rights on the cluster are rare among applications: the group is checked without them."""
    commit(kafka, group)
    rights = [
        right(ResourceType.BROKER, "kafka-cluster", AclOperation.ALTER),
        right(ResourceType.GROUP, f"{group}-other", AclOperation.READ, user="bob"),
    ]
    command = ("doctor", "--config", str(client_config), *GOOD, "-o", "json")
    try:
        allow(kafka.admin(), *rights)
        limits = groupwright(*command, f"group.id={group}")
        other = groupwright(*command, f"group.id={group}-other")
    finally:
        every = AclBindingFilter(*EVERY_RIGHT)
        kafka.admin().delete_acls([every])[every].result(PATIENCE)
        wait_until(lambda: not kafka.admin().describe_acls(every).result(PATIENCE), "no rights")

    _, checks = document(limits)
    assert limits.returncode == 7
    assert not checks["broker"][0]
    assert "these credentials may not access the settings of broker 1" in checks["broker"][1]
    assert checks["group"][0]
    assert checks["offsets topic"] == (False, "the broker's settings are not known")
    _, checks = document(other)
    assert other.returncode == 5
    assert "these credentials may not access the group" in checks["group"][1]


def right(resource: ResourceType, name: str, operation: AclOperation, *, user: str = "alice") -> AclBinding:
    return AclBinding(
        resource,
        name,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )


def commit(kafka: LocalKafka, group: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
    consumer.close()


# --- Its advice, followed


def test_plain_consumers_cannot_become_cooperative_by_a_rolling_restart_but_all_at_once(
    start: Callable[..., Member],
) -> None:
    plain = confluent_kafka.Consumer
    first, second = (start(plain, partition_assignment_strategy="range") for _ in range(2))
    settle(first, second)

    second.close()
    restarted = start(plain, partition_assignment_strategy="cooperative-sticky")
    errors: list[int] = []

    def is_refused() -> bool:
        first.poll(0.02)
        message = restarted.poll(0.02)
        error = message.error() if message is not None else None
        if error is not None:
            errors.append(error.code())
        return bool(errors)

    wait_until(is_refused, "the restarted member is refused")
    assert errors[0] == KafkaError.INCONSISTENT_GROUP_PROTOCOL

    first.close()
    restarted.close()
    settle(*(start(plain, partition_assignment_strategy="cooperative-sticky") for _ in range(2)))


def test_groupwrights_consumers_become_cooperative_by_two_rolling_restarts(
    doctor: Run, group: str, start: Callable[..., Member]
) -> None:
    members = [start(Consumer, partition_assignment_strategy="range") for _ in range(2)]
    settle(*members)
    for strategy in ("cooperative-sticky,range", "cooperative-sticky"):
        for number in range(2):
            members[number].close()
            members[number] = start(Consumer, partition_assignment_strategy=strategy)
            settle(*members)

    rules, _ = document(doctor(f"group.id={group}", "-o", "json"))
    assert rules == []


def test_plain_consumers_go_over_to_kip_848_by_a_rolling_restart(start: Callable[..., Member]) -> None:
    plain = confluent_kafka.Consumer
    members = [start(plain, partition_assignment_strategy="range") for _ in range(2)]
    settle(*members)
    for number in range(2):
        members[number].close()
        members[number] = start(plain, group_protocol="consumer")
        settle(*members)
