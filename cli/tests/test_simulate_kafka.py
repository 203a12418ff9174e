"""`groupwright simulate` and `explain` on a real Kafka: what is simulated then happens."""

import json
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
import jsonschema  # type: ignore[import-untyped]
import pytest
from confluent_kafka import Producer, TopicPartition
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewPartitions
from typer.testing import CliRunner

from groupwright import cli
from groupwright.assignors import LoadAwareAssignor
from groupwright.cli.app import app
from groupwright.consumer import Consumer
from groupwright.testing import Listener, LocalKafka, Security
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.rights import allow
from integration_tests.harness.waiting import wait_until

if TYPE_CHECKING:
    import subprocess

pytestmark = pytest.mark.kafka

Member = Consumer | confluent_kafka.Consumer
Assigned = dict[str, dict[str, list[int]]]

SCHEMAS = Path(cli.__file__).parent / "_schemas"


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    fast = {
        "group.consumer.min.heartbeat.interval.ms": 200,
        "group.consumer.heartbeat.interval.ms": 200,
    }
    with LocalKafka(security=Security(authorize=True), config=fast) as kafka:
        yield kafka


@pytest.fixture
def group() -> str:
    return f"billing-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def orders(kafka: LocalKafka) -> str:
    """A topic of its own, since tests let it grow."""
    name = f"orders-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(name, 7)
    return name


class Members:
    """The members of a group, polled in turn."""

    def __init__(self, kafka: LocalKafka, group: str, topics: list[str]) -> None:
        self._kafka, self._group, self._topics = kafka, group, topics
        self.by_name: dict[str, Member] = {}

    def join(self, client: type[Member], name: str, **settings: Any) -> None:
        classic = {} if "group_protocol" in settings else {"heartbeat.interval.ms": 200}
        member = client(
            {
                "bootstrap.servers": self._kafka.bootstrap_servers,
                "group.id": self._group,
                "client.id": name,
                "topic.metadata.refresh.interval.ms": 300,
                **classic,
                **{key.replace("_", "."): value for key, value in settings.items()},
            }
        )
        member.subscribe(self._topics)
        self.by_name[name] = member

    def leave(self, name: str) -> None:
        self.by_name.pop(name).close()

    def settle(self, partitions: int) -> Assigned:
        """Poll until each partition has one owner, and all members have some; return the assignment."""

        def settled() -> bool:
            for member in self.by_name.values():
                message = member.poll(0.02)
                assert message is None or message.error() is None, message.error()
            owned = [(each.topic, each.partition) for m in self.by_name.values() for each in m.assignment()]
            has_all = len(owned) == len(set(owned)) == partitions
            return has_all and all(member.assignment() for member in self.by_name.values())

        wait_until(settled, "each partition has one owner")
        return {name: by_topic(member.assignment()) for name, member in self.by_name.items()}

    @contextmanager
    def polled(self) -> Iterator[None]:
        """Poll on a thread meanwhile: a member that learns of new partitions later rebalances once more."""
        ended = threading.Event()

        def poll() -> None:
            while not ended.is_set():
                for member in self.by_name.values():
                    member.poll(0.02)

        thread = threading.Thread(target=poll)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()

    def close(self) -> None:
        for name in list(self.by_name):
            self.leave(name)


def by_topic(partitions: list[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for each in sorted(partitions, key=lambda each: (each.topic, each.partition)):
        found.setdefault(each.topic, []).append(each.partition)
    return found


@pytest.fixture
def members(kafka: LocalKafka, group: str, orders: str) -> Iterator[Members]:
    kafka_members = Members(kafka, group, [orders])
    with ExitStack() as cleanup:
        cleanup.callback(kafka_members.close)
        yield kafka_members


def run(kafka: LocalKafka, *arguments: str, status: int = 0) -> str:
    """Run the command in this process, which is cheaper than a process of its own; return its output."""
    environment = {"GROUPWRIGHT_BOOTSTRAP_SERVERS": kafka.bootstrap_servers, "COLUMNS": "200"}
    result = CliRunner().invoke(app, list(arguments), env=environment)
    assert result.exit_code == status, (result.output, result.exception)
    return result.stdout if status == 0 else result.stderr


def document(text: str, schema: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    jsonschema.validate(found, json.loads((SCHEMAS / f"{schema}.schema.json").read_text(encoding="utf-8")))
    return found


def simulated(kafka: LocalKafka, *arguments: str) -> tuple[Assigned, dict[str, Any]]:
    """Return what the group's assignor would assign in the end, by the members' names, and its result."""
    found = document(run(kafka, "simulate", *arguments, "-o", "json"), "simulate")
    group_schema = json.loads((SCHEMAS / "group.schema.json").read_text(encoding="utf-8"))
    jsonschema.validate(found["group"], group_schema)
    [own] = [result for result in found["results"] if result["own"]]
    assigned: Mapping[str, dict[str, list[int]]] = own["steps"][-1]["assigned"]
    return {found["names"][id_]: share for id_, share in assigned.items()}, own


# --- Simulated, then done


@pytest.mark.parametrize(
    ("client", "assignor"),
    [
        pytest.param(confluent_kafka.Consumer, "range", id="librdkafka-range", marks=pytest.mark.slow),
        pytest.param(
            confluent_kafka.Consumer, "roundrobin", id="librdkafka-roundrobin", marks=pytest.mark.slow
        ),
        pytest.param(Consumer, "sticky", id="groupwright-sticky", marks=pytest.mark.slow),
        pytest.param(Consumer, "cooperative-sticky", id="groupwright-cooperative-sticky"),
    ],
)
def test_what_is_simulated_happens(
    kafka: LocalKafka,
    group: str,
    orders: str,
    members: Members,
    tmp_path: Path,
    client: type[Member],
    assignor: str,
) -> None:
    settings = {"partition_assignment_strategy": assignor}
    for name in ("c-1", "c-2", "c-3"):
        members.join(client, name, **settings)
    first = members.settle(7)
    files = iter(range(9))

    def foreseen(*arguments: str) -> tuple[Assigned, Path]:
        path = tmp_path / f"{next(files)}.json"
        with members.polled():
            assigned, _ = simulated(kafka, group, "--save", str(path), *arguments)
        again, own = simulated(kafka, "--file", str(path), *arguments)
        assert again == assigned  # from the file, without the cluster
        assert own["steps"][0]["moved"] == 0  # the group is as its assignor wants it
        return assigned, path

    now, _ = foreseen()
    assert now == first

    expected, path = foreseen("--join", "b-1")
    members.join(client, "b-1", **settings)
    assert members.settle(7) == expected
    with members.polled():
        assert_explained(kafka, group, path, first, expected)
        without_file = document(run(kafka, "explain", group, "-o", "json"), "explain")
    if assignor == "cooperative-sticky":  # members claim what they own, after the first round has revoked
        received = {(each["topic"], each["partition"]) for each in without_file["partitions"]}
        assert received == {key for key, name in owners(expected).items() if owners(first)[key] != name}
        assert any("moved in two rounds" in each for each in without_file["summary"])

    expected, _ = foreseen("--leave", "c-2")
    members.leave("c-2")
    assert members.settle(7) == expected

    expected, path = foreseen("--add-partitions", f"{orders}=12")
    before = {name: by_topic(member.assignment()) for name, member in members.by_name.items()}
    kafka.admin().create_partitions([NewPartitions(orders, 12)])[orders].result(PATIENCE)
    assert members.settle(12) == expected
    with members.polled():
        assert_explained(kafka, group, path, before, expected)


def assert_explained(kafka: LocalKafka, group: str, before: Path, then: Assigned, now: Assigned) -> None:
    """Check that each partition whose owner changed is explained, and no other."""
    found = document(run(kafka, "explain", group, "--before", str(before), "-o", "json"), "explain")
    owners_then, owners_now = owners(then), owners(now)
    explained = {(each["topic"], each["partition"]): each for each in found["partitions"]}
    assert set(explained) == {key for key in owners_now if owners_then.get(key) != owners_now[key]}
    for key, each in explained.items():
        assert (each["before"], each["member"], each["moved"]) == (
            owners_then.get(key),
            owners_now[key],
            True,
        )
        assert "cannot be known" not in each["sentence"]
    assert {member["name"]: member["assigned"] for member in found["members"]} == now
    assert all("leader saw other" not in each for member in found["members"] for each in member["sentences"])


def owners(assigned: Assigned) -> dict[tuple[str, int], str]:
    return {
        (topic, number): name
        for name, share in assigned.items()
        for topic, numbers in share.items()
        for number in numbers
    }


# --- Kinds of groups


def produce(kafka: LocalKafka, topic: str, messages: Mapping[int, int]) -> None:
    """Produce numbers of messages to partitions."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for partition, number in messages.items():
        for _ in range(number):
            producer.produce(topic, b"x", partition=partition)
    assert producer.flush(PATIENCE) == 0


def test_weights_are_those_that_a_leader_would_measure(
    kafka: LocalKafka, group: str, orders: str, members: Members
) -> None:
    produce(kafka, orders, {0: 600, 1: 60})
    assignor = LoadAwareAssignor(capacity=2)
    members.join(Consumer, "c-1", partition_assignment_strategy=assignor, enable_auto_commit=False)
    members.settle(7)
    committed = [TopicPartition(orders, 0, 300), TopicPartition(orders, 1, 60)]
    members.by_name["c-1"].commit(offsets=committed, asynchronous=False)

    def read(weights: str) -> dict[str, Any]:
        found = document(run(kafka, "simulate", group, "--weights", weights, "-o", "json"), "simulate")
        assert found["results"][-1]["own"]
        assert found["group"]["members"][0]["capacity"] == 2
        topic: dict[str, Any] = found["group"]["topics"][orders]
        return topic

    assert read("throughput")["weights"] == [2.0, 0.2, 0, 0, 0, 0, 0]  # in 300 s
    assert read("lag")["weights"] == [5.0, 0.0, *[2.5] * 5]  # in 60 s; the others are not known
    assert read("none")["weights"] is None
    shown = run(kafka, "explain", group)
    assert "c-1 has a load of 2.2 for a capacity of 2, 1.00 times the average, in 7 partitions." in shown


def test_static_members_restart_with_and_without_being_static(
    kafka: LocalKafka, group: str, orders: str, members: Members
) -> None:
    produce(kafka, orders, {0: 600, **dict.fromkeys(range(1, 7), 15)})
    for name in ("pod-1", "pod-2"):
        members.join(Consumer, "app", group_instance_id=name, partition_assignment_strategy="range")
        members.by_name[name] = members.by_name.pop("app")
    members.settle(7)

    arguments = (group, "--restart", "rolling", "--assignor", "range", "--assignor", "load-aware")
    found = document(run(kafka, "simulate", *arguments, "-o", "json"), "simulate")

    totals = {(each["assignor"], each["as_dynamic"]): each["total"] for each in found["results"]}
    assert (totals["range", False]["rebalances"], totals["range", False]["revoked"]) == (0, 0)
    assert totals["range", True]["rebalances"] == 4
    assert totals["load-aware", False]["peak_over_average"] > 1.5  # one partition has most messages
    assert totals["load-aware", False]["peak_over_bound"] <= 1.1  # its tolerance
    explained = document(run(kafka, "explain", group, "-o", "json"), "explain")
    assert [(each["name"], each["instance_id"]) for each in explained["members"]] == [
        ("pod-1", "pod-1"),
        ("pod-2", "pod-2"),
    ]
    assert (
        f"pod-1 is 1st of 2 for {orders}, so it gets partitions 0-3"
        in explained["members"][0]["sentences"][0]
    )


def test_a_group_of_kip_848_is_assigned_by_the_broker(
    kafka: LocalKafka, group: str, orders: str, members: Members, tmp_path: Path
) -> None:
    members.join(Consumer, "c-1", group_protocol="consumer")
    members.settle(7)
    before = tmp_path / "before.json"
    run(kafka, "explain", group, "--save", str(before))
    members.join(confluent_kafka.Consumer, "c-2", group_protocol="consumer")
    now = members.settle(7)

    found = document(run(kafka, "simulate", group, "-o", "json"), "simulate")
    assert found["notes"][0] == "* the group's assignor, broker:uniform."
    assert found["group"]["members"][0]["target"] is not None
    assigned, own = simulated(kafka, group)
    assert assigned == now
    assert own["steps"][0]["moved"] == 0
    expected, own = simulated(kafka, group, "--add-partitions", f"{orders}=12")
    assert own["total"]["moved"] == 0

    explained = document(run(kafka, "explain", group, "--before", str(before), "-o", "json"), "explain")
    assert explained["summary"][0].startswith("The broker assigns (KIP-848), with its assignor 'uniform'")
    assert {each["name"]: each["assigned"] for each in explained["members"]} == now
    moved = {(each["topic"], each["partition"]) for each in explained["partitions"]}
    assert moved == {(orders, number) for number in now["c-2"][orders]}
    assert all("Balance: c-1 had 7" in each["sentence"] for each in explained["partitions"])

    kafka.admin().create_partitions([NewPartitions(orders, 12)])[orders].result(PATIENCE)
    grown = members.settle(12)
    # If both ids are in one bucket of the broker's hash map, it may swap what is new.
    for name, had in now.items():
        assert set(had[orders]) <= set(grown[name][orders]) & set(expected[name][orders])
        assert len(grown[name][orders]) == len(expected[name][orders]) == 6


def test_an_empty_group_and_one_of_another_kind(kafka: LocalKafka, group: str, orders: str) -> None:
    consumer = confluent_kafka.Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    consumer.commit(offsets=[TopicPartition(orders, 0, 0)], asynchronous=False)
    consumer.close()

    refused = run(kafka, "simulate", group, status=6)
    joined = document(run(kafka, "simulate", group, "--join", "2", "-o", "json"), "simulate")
    explained = run(kafka, "explain", group)

    assert refused == (
        f"groupwright simulate: the group '{group}' has no members, so there is nothing to assign; add some "
        "with --join\n"
    )
    assigned = joined["results"][0]["steps"][1]["assigned"].values()
    assert sorted(len(share[orders]) for share in assigned) == [3, 4]
    assert "The group is Empty: it has no members, so nothing is assigned." in explained


def test_a_group_that_rebalances_is_awaited(kafka: LocalKafka, group: str, members: Members) -> None:
    settings = {"partition_assignment_strategy": "range"}
    members.join(Consumer, "c-1", **settings)
    members.settle(7)
    members.join(Consumer, "c-2", **settings)
    waiting = members.by_name["c-2"]  # c-1 is not polled, so it does not revoke

    def rebalances() -> bool:
        waiting.poll(0.02)
        state = kafka.admin().describe_consumer_groups([group])[group].result(PATIENCE).state
        return bool(state.name == "PREPARING_REBALANCING")

    wait_until(rebalances, "a rebalance")
    refused = run(kafka, "simulate", group, "--timeout", "3", status=6)

    assert f"the group '{group}' is PreparingRebalance, and brokers do not return the assignment" in refused
    members.settle(7)
    assert "c-2 has 3: " in run(kafka, "explain", group)


# --- Names, rights, brokers


@pytest.mark.parametrize("name", ["simulate", "explain"])
def test_wrong_names_are_refused(
    kafka: LocalKafka, group: str, orders: str, members: Members, name: str, tmp_path: Path
) -> None:
    members.join(confluent_kafka.Consumer, "worker-1", partition_assignment_strategy="range")
    members.settle(7)
    wrong_topic = {
        "simulate": ["--add-partitions", f"{orders}x=24"],
        "explain": ["--partition", f"{orders}x-1"],
    }
    wrong_member = {"simulate": ["--leave", "worker-2"], "explain": ["--member", "worker-2"]}
    (tmp_path / "there.json").write_text("{}")

    for arguments, status, message in (
        ([f"{group}x"], 4, f"there is no group '{group}x', did you mean '{group}'?"),
        (["zzzzzz"], 4, "there is no group 'zzzzzz', or these credentials may not describe it."),
        (
            [group, *wrong_member[name]],
            4,
            "there is no member 'worker-2', did you mean 'worker-1'?",
        ),
        (
            [group, *wrong_topic[name]],
            4,
            f"the group has no topic '{orders}x', did you mean '{orders}'?",
        ),
        (["--file", "billing"], 2, "there is no file 'billing'"),
        ([], 2, "name either a group of the cluster, or a file with one by --file FILE"),
        (
            [group, "--save", str(tmp_path / "there.json")],
            2,
            f"{tmp_path}/there.json exists and is not",
        ),
    ):
        assert run(kafka, name, *arguments, status=status).startswith(f"groupwright {name}: {message}")


@pytest.mark.parametrize("name", ["simulate", "explain"])
def test_a_secured_cluster_is_read_as_far_as_the_user_may(
    kafka: LocalKafka, group: str, orders: str, members: Members, name: str, tmp_path: Path
) -> None:
    members.join(confluent_kafka.Consumer, "c-1", partition_assignment_strategy="range")
    members.settle(7)
    config = tmp_path / "client.json"
    config.write_text(json.dumps(kafka.secure_config(Listener.SASL_SSL, user="alice")))
    arguments = [name, group, "--config", str(config)]

    def as_alice() -> tuple[int, str, str]:
        result = CliRunner().invoke(app, arguments)
        return result.exit_code, result.stdout, result.stderr

    status, shown, errors = as_alice()
    assert (status, errors) == (0, "")
    assert "c-1" in shown
    restrict(kafka, ResourceType.TOPIC, orders)
    wait_until(lambda: as_alice()[0] == 5, "a topic that alice may not describe")
    _, shown, errors = as_alice()
    assert "c-1" in shown
    assert f"members subscribe to {orders}, which these credentials may not describe" in errors
    restrict(kafka, ResourceType.GROUP, group)
    wait_until(lambda: as_alice()[1] == "", "a group that alice may not describe")
    status, _, errors = as_alice()
    assert status == 5
    assert errors.startswith(f"groupwright {name}: these credentials may not access the group '{group}': ")


def restrict(kafka: LocalKafka, resource: ResourceType, name: str) -> None:
    """Allow something to another user, which forbids everything to alice."""
    admin = kafka.admin()
    pattern = (resource, name, ResourcePatternType.LITERAL)
    binding = AclBinding(*pattern, "User:bob", "*", AclOperation.DESCRIBE, AclPermissionType.ALLOW)
    allow(admin, binding)


@pytest.mark.parametrize("name", ["simulate", "explain"])
def test_no_broker_is_said(name: str, groupwright: Callable[..., "subprocess.CompletedProcess[str]"]) -> None:
    result = groupwright(name, "billing", "--bootstrap-servers", "127.0.0.1:1", "--timeout", "1")

    assert (result.returncode, result.stdout) == (3, "")
    assert result.stderr.startswith(f"groupwright {name}: cannot query the cluster at 127.0.0.1:1")
