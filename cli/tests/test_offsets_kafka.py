"""Offsets of groups on a real Kafka: shown, reset, deleted, refused; read back by Kafka's own tool."""

import csv
import json
import subprocess
import sys
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import confluent_kafka
import jsonschema  # type: ignore[import-untyped]
import pytest
from confluent_kafka import KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from groupwright import cli
from groupwright.cli._cluster.client import Cluster
from groupwright.cli._cluster.model import CommittedOffset
from groupwright.cli._cluster.requests import words
from groupwright.cli.offsets.execution import execute
from groupwright.cli.offsets.plan import PlannedPartition
from groupwright.cli.offsets.target import Timestamp
from groupwright.consumer import Consumer
from groupwright.testing import Listener, LocalKafka, Security
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.rights import allow
from integration_tests.harness.tools import command_of_kafkas_tool
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

Run = Callable[..., "subprocess.CompletedProcess[str]"]

MESSAGES = 100  # in each partition
OLD, NEW = 1_700_000_000_000, 1_700_003_600_000  # timestamps of the first and the second half
SCHEMA = Path(cli.__file__).parent / "_schemas" / "offsets.schema.json"
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    # A static member of KIP-848 that has stopped stays.
    hour = dict.fromkeys(
        ("group.consumer.max.session.timeout.ms", "group.consumer.session.timeout.ms"), 3_600_000
    )
    with LocalKafka(security=Security(authorize=True), config=hour) as kafka:
        yield kafka


@pytest.fixture(scope="module")
def topic(kafka: LocalKafka) -> str:
    """Three partitions of 100 messages, the second half an hour after the first."""
    kafka.create_topic("orders", 3)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for partition in range(3):
        for number in range(MESSAGES):
            at = OLD if number < MESSAGES // 2 else NEW
            producer.produce("orders", b"x", partition=partition, timestamp=at)
    assert producer.flush(PATIENCE) == 0
    return "orders"


def produce(kafka: LocalKafka, topic: str, messages: int) -> None:
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for _ in range(messages):
        producer.produce(topic, b"x", partition=0)
    assert producer.flush(PATIENCE) == 0


@pytest.fixture
def group() -> str:
    return f"billing-{uuid.uuid4().hex[:8]}"


@pytest.fixture
def offsets(kafka: LocalKafka, groupwright: Run) -> Run:
    def run(*arguments: str, **environment: str) -> "subprocess.CompletedProcess[str]":
        return groupwright(
            "offsets", *arguments, GROUPWRIGHT_BOOTSTRAP_SERVERS=kafka.bootstrap_servers, **environment
        )

    return run


@pytest.fixture(scope="module")
def kafka_tool(kafka: LocalKafka) -> Callable[..., str]:
    """Kafka's kafka-consumer-groups.sh."""
    command = [*command_of_kafkas_tool(kafka.version, TOOL), "--bootstrap-server", kafka.bootstrap_servers]

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [*command, *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        )
        return done.stdout

    return run


def commit(kafka: LocalKafka, group: str, *offsets: int | None, metadata: str = "") -> None:
    """Commit offsets of the first partitions by hand, as a group without members."""
    with_metadata: dict[str, Any] = {"metadata": metadata} if metadata else {}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    wanted = [
        TopicPartition("orders", partition, offset, **with_metadata)
        for partition, offset in enumerate(offsets)
        if offset is not None
    ]
    consumer.commit(offsets=wanted, asynchronous=False)
    consumer.close()


def committed(kafka: LocalKafka, group: str) -> dict[int, int]:
    """Return the committed offsets, as librdkafka fetches them."""
    consumer = confluent_kafka.Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    found = consumer.committed([TopicPartition("orders", number) for number in range(3)], timeout=PATIENCE)
    consumer.close()
    return {each.partition: each.offset for each in found if each.offset >= 0}


@contextmanager
def member(kafka: LocalKafka, group: str, **settings: Any) -> Iterator[Any]:
    """A member with partitions, of the protocol and kind that the settings say."""
    make: Any = settings.pop("make", confluent_kafka.Consumer)
    consumer = make(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "client.id": "worker",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **{key.replace("_", "."): value for key, value in settings.items()},
        }
    )
    consumer.subscribe(["orders"])
    try:
        wait_until(lambda: consumer.poll(0.1) is not None and bool(consumer.assignment()), "the assignment")
        yield consumer
    finally:
        consumer.close()


def document(result: "subprocess.CompletedProcess[str]") -> dict[str, Any]:
    found: dict[str, Any] = json.loads(result.stdout)
    jsonschema.validate(found, json.loads(SCHEMA.read_text(encoding="utf-8")))
    return found


def table(result: "subprocess.CompletedProcess[str]") -> list[list[str]]:
    return [line.split() for line in result.stdout.splitlines()]


def said(result: "subprocess.CompletedProcess[str]") -> list[str]:
    return [line.removeprefix("groupwright offsets: ") for line in result.stderr.splitlines()]


# --- Shown


def test_committed_offsets_are_shown(kafka: LocalKafka, topic: str, group: str, offsets: Run) -> None:
    commit(kafka, group, 30, None, 100, metadata="mine")

    result = offsets(group)

    assert (result.returncode, result.stderr) == (0, "")
    assert "\x1b" not in result.stdout
    assert table(result) == [
        ["TOPIC", "PARTITION", "BEGIN", "COMMITTED", "END", "LAG", "EPOCH", "METADATA"],
        [topic, "0", "0", "30", "100", "70", "-", "mine"],
        [topic, "2", "0", "100", "100", "0", "-", "mine"],
    ]
    found = document(offsets(group, "--topic", "orders:1-2", "--output", "json"))
    assert (found["group"], found["type"], found["state"], found["action"]) == (
        group,
        "classic",
        "Empty",
        "show",
    )
    assert [(row["partition"], row["committed"], row["lag"]) for row in found["partitions"]] == [
        (1, None, None),
        (2, 100, 0),
    ]


# --- Reset


def test_a_dry_run_shows_before_and_after_and_writes_nothing(
    kafka: LocalKafka, group: str, topic: str, offsets: Run
) -> None:
    commit(kafka, group, 30, 100, 2)

    result = offsets(group, "--shift", "-10", COLUMNS="80")

    assert result.returncode == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    assert [row[:6] for row in table(result)[:4]] == [
        ["TOPIC", "PARTITION", "BEFORE", "AFTER", "LAG", "AFTER"],
        [topic, "0", "30", "20", "80", "planned"],
        [topic, "1", "100", "90", "10", "planned"],
        [topic, "2", "2", "0", "100", "planned"],
    ]
    assert "-8 is before the log: its beginning" in " ".join(result.stdout.split())
    assert said(result) == ["dry run: nothing was written; --execute writes the plan"]
    assert committed(kafka, group) == {0: 30, 1: 100, 2: 2}


@pytest.mark.parametrize(
    ("target", "after"),
    [
        ("earliest", [0, 0, 0]),
        ("latest", [100, 100, 100]),
        (f"timestamp:{datetime.fromtimestamp(NEW / 1000, UTC).isoformat()}", [50, 50, 50]),
        ("duration:1s", [100, 100, 100]),
        ("offset:250", [100, 100, 100]),
        ("offset:17", [17, 17, 17]),
    ],
)
def test_each_target_is_written(
    kafka: LocalKafka, topic: str, offsets: Run, target: str, after: list[int]
) -> None:
    group = f"targets-{uuid.uuid4().hex[:8]}"

    result = offsets(group, "--reset-to", target, "--create", "--topic", topic, "-o", "json", "--execute")

    assert result.returncode == 0, result.stderr
    found = document(result)
    assert found["executed"]
    assert {row["outcome"] for row in found["partitions"]} == {"done"}
    assert [row["after"] for row in found["partitions"]] == after
    assert committed(kafka, group) == dict(enumerate(after))
    *moment, last = said(result)
    assert last == "3 offsets written and read back, 0 unchanged"
    assert bool(moment) == target.startswith(("timestamp:", "duration:"))


@pytest.mark.slow
def test_what_was_written_is_read_back_by_kafkas_tool_and_undone_by_the_export(
    kafka: LocalKafka,
    topic: str,
    group: str,
    offsets: Run,
    kafka_tool: Callable[..., str],
    tmp_path: Path,
) -> None:
    commit(kafka, group, 30, 17, 60)
    before = tmp_path / "before.csv"

    timestamp = f"timestamp:{datetime.fromtimestamp(NEW / 1000, UTC).isoformat()}"
    written = offsets(
        *(group, "--reset-to", timestamp, "--topic", "orders:0,2", "--export", str(before), "--execute")
    )

    assert written.returncode == 0
    assert said(written) == [
        f"the target is the first message at or after {Timestamp(NEW)}",
        f"{before} has the offsets of 2 partitions, as they were before",
        "2 offsets written and read back, 0 unchanged",
    ]
    # Kafka's tool reads what was written.
    export = ("--reset-offsets", "--group", group, "--all-topics", "--to-current", "--export")
    theirs = kafka_tool(*export)
    lines = sorted(csv.reader([line for line in theirs.splitlines() if line.startswith(topic)]))
    assert lines == [[topic, "0", "50"], [topic, "1", "17"], [topic, "2", "50"]]
    # Kafka's tool imports our export, which undoes the reset.
    kafka_tool("--reset-offsets", "--group", group, "--from-file", str(before), "--execute")
    assert committed(kafka, group) == {0: 30, 1: 17, 2: 60}
    # Ours imports the export of Kafka's tool, which is the state before that.
    path = tmp_path / "theirs.csv"
    path.write_text(theirs)
    imported = offsets(group, "--reset-to", f"file:{path}", "--execute")
    assert (imported.returncode, said(imported)) == (
        0,
        ["2 offsets written and read back, 1 unchanged"],
    )
    assert committed(kafka, group) == {0: 50, 1: 17, 2: 50}


def test_an_export_in_json_restores_metadata_and_leader_epochs(
    kafka: LocalKafka, topic: str, group: str, offsets: Run, tmp_path: Path
) -> None:
    place, other = (topic, 0), (topic, 1)
    before = {place: CommittedOffset(30, 0, "mine"), other: CommittedOffset(17, None, "yours")}
    path = tmp_path / "before.json"
    with Cluster({"bootstrap.servers": kafka.bootstrap_servers}) as cluster:
        cluster.commit(group, before)
        reset = offsets(group, "--reset-to", "earliest", "--export", str(path), "--execute")
        cluster.commit(group, {other: CommittedOffset(17)})
        restored = offsets(group, "--reset-to", f"file:{path}", "--execute")

        assert (reset.returncode, restored.returncode) == (0, 0), restored.stderr
        assert said(restored) == ["2 offsets written and read back, 0 unchanged"]
        assert cluster.committed([group])[group] == before
    assert "the offset stays, with the metadata of the file" in restored.stdout


@pytest.mark.slow
def test_kafkas_tool_plans_the_same(
    kafka: LocalKafka, topic: str, group: str, offsets: Run, kafka_tool: Callable[..., str]
) -> None:
    """One option of the tool that clamps, and the one that both call a shift."""
    commit(kafka, group, 5, 50, 95)

    theirs = kafka_tool("--reset-offsets", "--group", group, "--topic", topic, "--shift-by", "10", "--export")
    ours = offsets(group, "--shift", "10", "--topic", topic, "--output", "csv")

    rows = list(csv.DictReader(ours.stdout.splitlines()))
    lines = [line for line in theirs.splitlines() if line.startswith(topic)]
    assert sorted(csv.reader(lines)) == [[row["topic"], row["partition"], row["after"]] for row in rows]
    assert [row["note"] for row in rows] == ["", "", "105 is beyond the log: its end"]


# --- Active groups


@pytest.mark.usefixtures("topic")
def test_a_static_member_that_has_stopped_is_said_to_stay(
    kafka: LocalKafka, group: str, groupwright: Run
) -> None:
    commit(kafka, group, 30, 30, 30)
    static = {"group_instance_id": "static-1", "group_protocol": "consumer"}
    with member(kafka, group, make=confluent_kafka.Consumer, **static):
        pass
    servers = {"GROUPWRIGHT_BOOTSTRAP_SERVERS": kafka.bootstrap_servers}
    described = groupwright("describe", group, **servers).stdout
    assert "! static-1 has stopped: a static member keeps its partitions" in described
    assert "it rebalances now" not in described
    refused = groupwright("offsets", group, "--delete", "--execute", **servers)
    assert (refused.returncode, refused.stdout) == (6, "")
    assert refused.stderr.endswith(
        "Stop them first, or choose other topics with --topic; static members (group.instance.id) stay until "
        "their session times out\n"
    )


@pytest.mark.parametrize(
    "settings",
    [
        {"make": confluent_kafka.Consumer},
        {"make": confluent_kafka.Consumer, "group_instance_id": "static-1"},
        {"make": confluent_kafka.Consumer, "group_protocol": "consumer"},
        {"make": Consumer},
    ],
    ids=["classic", "static", "KIP-848", "groupwright"],
)
def test_an_active_group_is_never_moved(
    kafka: LocalKafka, topic: str, group: str, offsets: Run, settings: dict[str, Any]
) -> None:
    commit(kafka, group, 30, 30, 30)
    name = settings.get("group_instance_id", "worker")
    with member(kafka, group, **settings):
        refused = offsets(group, "--reset-to", "latest", "--execute")

        assert (refused.returncode, refused.stdout) == (6, "")
        [sentence] = said(refused)
        assert sentence == (
            f"nothing was written: the group {group!r} has 1 member ({name}), which would overwrite the "
            "offsets. Stop them first"
            + ("; static members (group.instance.id) stay until their session times out" * (name != "worker"))
        )
        # A member that joined after the check: the broker refuses the write itself.
        plan = [PlannedPartition(topic, 0, CommittedOffset(30), 0, 100, 100)]
        with Cluster({"bootstrap.servers": kafka.bootstrap_servers}) as cluster:
            result = execute(cluster, group, plan)
        assert "UNKNOWN_MEMBER_ID" in result.failures[topic, 0]
        assert "its offset is 30" in result.failures[topic, 0]
        assert committed(kafka, group) == {0: 30, 1: 30, 2: 30}


def test_a_dry_run_of_an_active_group_shows_the_plan_and_says_that_it_would_be_refused(
    kafka: LocalKafka, group: str, offsets: Run
) -> None:
    commit(kafka, group, 30)
    with member(kafka, group):
        result = offsets(group, "--reset-to", "latest", "-o", "json")
        deletion = offsets(group, "--delete", "--execute")

    assert (result.returncode, document(result)["members"]) == (6, 1)
    assert said(result)[-1].startswith(
        f"--execute would be refused: the group {group!r} has 1 member (worker)"
    )
    assert deletion.returncode == 6
    assert "offsets of topics that members subscribe to are not deleted" in deletion.stderr
    assert committed(kafka, group) == {0: 30}


def test_a_member_that_joins_between_check_and_write_keeps_its_offsets(
    kafka: LocalKafka, topic: str, group: str
) -> None:
    """The command itself, which waits after its check until the member has joined."""
    commit(kafka, group, 30, 30, 30)
    program = (
        "import sys; from groupwright.cli import main; from groupwright.cli.offsets import execution\n"
        "real = execution.execute\n"
        "def execute(*arguments):\n"
        "    print('checked', flush=True); sys.stdin.readline(); return real(*arguments)\n"
        "execution.execute = execute; main()"
    )
    arguments = ("offsets", group, "--reset-to", "latest", "--execute", "-o", "json")
    command = subprocess.Popen(
        [sys.executable, "-c", program, *arguments, "--bootstrap-servers", kafka.bootstrap_servers],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert command.stdout is not None
    assert command.stdout.readline() == "checked\n"
    with member(kafka, group):
        output, errors = command.communicate("\n", timeout=PATIENCE)
        assert command.returncode == 6
        assert {row["outcome"] for row in json.loads(output)["partitions"]} == {"failed"}
        assert f"{topic}-0: " in errors
        assert "UNKNOWN_MEMBER_ID" in errors
        assert f"nothing was written: the broker refused it, since the group {group!r} has 1 member" in errors
        assert committed(kafka, group) == {0: 30, 1: 30, 2: 30}


# --- Empty and unknown groups


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_whose_members_left_is_reset_and_its_offsets_deleted(
    kafka: LocalKafka, topic: str, group: str, offsets: Run, protocol: str
) -> None:
    with member(kafka, group, group_protocol=protocol) as consumer:
        consumer.commit(offsets=[TopicPartition(topic, 0, 40)], asynchronous=False)

    reset = offsets(group, "--reset-to", "earliest", "--topic", "orders:0-1", "--execute")
    assert (reset.returncode, committed(kafka, group)) == (0, {0: 0, 1: 0})

    dry = offsets(group, "--delete", "--topic", "orders:1")
    assert (dry.returncode, committed(kafka, group)) == (0, {0: 0, 1: 0})
    deletion = offsets(group, "--delete", "--topic", "orders:1-2", "-o", "json", "--execute")
    assert deletion.returncode == 0, deletion.stderr
    assert [row["outcome"] for row in document(deletion)["partitions"]] == ["done", "unchanged"]
    assert said(deletion) == ["1 offset deleted and read back, 1 unchanged"]
    assert committed(kafka, group) == {0: 0}


def test_wrong_names_and_options_are_refused(kafka: LocalKafka, topic: str, group: str, offsets: Run) -> None:
    commit(kafka, group, 30)

    for arguments, status, message in (
        (
            [f"{group}x", "--reset-to", "latest", "--topic", topic],
            4,
            f"there is no group '{group}x', did you mean",
        ),
        (["zzzzzz"], 4, "there is no group 'zzzzzz', or these credentials may not describe it."),
        ([group, "--topic", "ordesr"], 4, "there is no topic 'ordesr', did you mean 'orders'?"),
        ([group, "--reset-to", "1h"], 2, "--reset-to '1h' is not understood, did you mean 'duration:1h'?"),
        ([group, "--execute"], 2, "--execute needs --reset-to, --shift or --delete"),
        ([group, "--shift", "1", "--delete"], 2, "pass one of --reset-to, --shift and --delete"),
        (["zzzzzz", "--create", "--reset-to", "latest"], 4, "no partition of 'zzzzzz' is chosen: it has no"),
    ):
        result = offsets(*arguments)
        assert (result.returncode, result.stdout) == (status, ""), result.stderr
        assert said(result)[0].startswith(message)


def test_a_plan_with_an_unknown_partition_is_not_begun(
    kafka: LocalKafka, topic: str, group: str, offsets: Run, tmp_path: Path
) -> None:
    commit(kafka, group, 30)
    (tmp_path / "plan.csv").write_text(f"{topic},0,5\n{topic},9,5\n")

    dry = offsets(group, "--reset-to", f"file:{tmp_path / 'plan.csv'}")
    result = offsets(group, "--reset-to", f"file:{tmp_path / 'plan.csv'}", "--execute")

    assert (dry.returncode, result.returncode, result.stdout) == (7, 7, "")
    assert said(result)[0].startswith("orders-9: the partition does not exist")
    assert said(result)[1].startswith("nothing was written, since 1 of 2 partitions have no plan")
    assert committed(kafka, group) == {0: 30}


# --- Security, and no broker


@pytest.fixture(scope="module")
def payments(kafka: LocalKafka) -> str:
    """A topic that alice may describe, but not read."""
    kafka.create_topic("payments", 1)
    allow_alice(kafka.admin(), ResourceType.TOPIC, "payments", AclOperation.DESCRIBE)
    return "payments"


@pytest.fixture
def as_alice(kafka: LocalKafka, groupwright: Run, tmp_path: Path) -> Run:
    config = tmp_path / "client.json"
    config.write_text(json.dumps(kafka.secure_config(Listener.SASL_SSL, user="alice")))

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return groupwright("offsets", *arguments, "--config", str(config))

    return run


def allow_alice(admin: AdminClient, resource: ResourceType, name: str, operation: AclOperation) -> None:
    binding = AclBinding(
        resource,
        name,
        ResourcePatternType.LITERAL,
        "User:alice",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    allow(admin, binding)


@pytest.mark.slow
def test_offsets_of_a_former_topic_are_refused(
    kafka: LocalKafka, group: str, offsets: Run, tmp_path: Path
) -> None:
    """By the topic's id, which a file in JSON has, and otherwise by the end of the log."""
    name = f"former-{uuid.uuid4().hex[:8]}"
    kafka.create_topic(name, 1)
    produce(kafka, name, 20)
    offsets(group, "--topic", name, "--reset-to", "offset:9", "--create", "--execute")
    files = [tmp_path / "before.json", tmp_path / "before.csv"]
    for each in files:
        offsets(group, "--export", str(each))
    kafka.admin().delete_topics([name])[name].result(PATIENCE)
    wait_until(lambda: name not in kafka.admin().list_topics(timeout=PATIENCE).topics, "no topic")
    kafka.create_topic(name, 1)
    produce(kafka, name, 5)

    by_id, by_end = (offsets(group, "--create", "--reset-to", f"file:{each}", "--execute") for each in files)

    assert (by_id.returncode, by_end.returncode) == (7, 7)
    assert f"{name}-0: the file was written for a former topic of this name\n" in by_id.stderr
    assert f"{name}-0: 9 is beyond the end of the log, 5: the file was written for" in by_end.stderr
    for refused in (by_id, by_end):
        assert "nothing was written" in refused.stderr


@pytest.mark.usefixtures("topic")
def test_a_user_without_rights_to_write_is_told_so_and_nothing_is_written(
    kafka: LocalKafka, as_alice: Run, payments: str
) -> None:
    for group, right in (("none", AclOperation.DELETE), ("view", AclOperation.DESCRIBE)):
        commit(kafka, group, 30)
        allow_alice(kafka.admin(), ResourceType.GROUP, group, right)
    reset = ("--reset-to", "latest", "--execute")

    for group in ("none", "view"):
        forbidden = as_alice(group, *reset)
        assert (forbidden.returncode, forbidden.stdout) == (5, "")
        refusal = f"nothing was written: these credentials may not access the group '{group}': "
        assert said(forbidden)[0].startswith(refusal)
        assert said(forbidden)[0].endswith(". They need READ on the group")
        assert committed(kafka, group) == {0: 30}
    of_topic = as_alice("mine", "--create", "--reset-to", "offset:0", "--topic", payments, "--execute")
    assert (of_topic.returncode, of_topic.stdout) == (5, "")
    refusal = "nothing was written: these credentials may not access the topics 'payments': "
    assert said(of_topic)[0].startswith(refusal)
    assert said(of_topic)[0].endswith(". They need READ on the topics")


def test_a_reset_of_which_a_part_is_refused_names_the_part_and_shows_the_rest(
    kafka: LocalKafka, topic: str, payments: str, as_alice: Run, tmp_path: Path
) -> None:
    commit(kafka, "half", 30, 30)
    produce(kafka, payments, 5)
    (tmp_path / "plan.csv").write_text(f"{topic},0,7\n{topic},1,30\n{payments},0,5\n")

    result = as_alice("half", "--reset-to", f"file:{tmp_path / 'plan.csv'}", "--execute", "-o", "json")

    assert result.returncode == 7
    rows = {(row["topic"], row["partition"]): row for row in document(result)["partitions"]}
    assert {key: row["outcome"] for key, row in rows.items()} == {
        (topic, 0): "done",
        (topic, 1): "unchanged",
        (payments, 0): "failed",
    }
    refused, summary = said(result)
    assert refused.startswith("payments-0: ")
    assert refused.endswith("(TOPIC_AUTHORIZATION_FAILED); its offset is none")
    assert summary == "1 of 2 offsets were not written, 1 were"
    assert committed(kafka, "half") == {0: 7, 1: 30}


def test_offsets_of_a_topic_that_is_created_again_meanwhile_are_refused(
    kafka: LocalKafka, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers since 4.1 take the topic's id; older ones take its name, and the offset."""
    place = (topic, 0)
    has_ids = tuple(map(int, kafka.version.split(".")[:2])) >= (4, 1)
    with Cluster({"bootstrap.servers": kafka.bootstrap_servers}) as cluster:
        assert cluster.commit(group, {place: CommittedOffset(1)}) == {place: None}
        former = replace(cluster.topics({topic})[topic], id=str(uuid.uuid4()))
        monkeypatch.setattr(cluster, "topics", lambda _: {topic: former})
        answer = cluster.commit(group, {place: CommittedOffset(2)})
    assert answer == {place: words(KafkaError.UNKNOWN_TOPIC_ID) if has_ids else None}
    assert committed(kafka, group) == {0: 1 if has_ids else 2}


def test_no_broker_is_said(groupwright: Run) -> None:
    result = groupwright("offsets", "billing", "--bootstrap-servers", "127.0.0.1:1", "--timeout", "1")

    assert (result.returncode, result.stdout) == (3, "")
    assert said(result)[0].startswith("cannot query the cluster at 127.0.0.1:1")
