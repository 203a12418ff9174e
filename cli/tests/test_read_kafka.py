"""`groups`, `describe`, `lag` and `locate` on a real Kafka, with groups of all types and states."""

import csv
import io
import json
import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import confluent_kafka
import jsonschema  # type: ignore[import-untyped]
import pytest
from confluent_kafka import AcknowledgeType, Producer, TopicPartition
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from typer.testing import CliRunner, Result

from groupwright import cli
from groupwright.cli._cluster.client import Cluster
from groupwright.cli._command_line.exit import CommandError
from groupwright.cli.app import app
from groupwright.cli.exporter.admin_source import AdminSource
from groupwright.cli.exporter.limits import GroupLimit, Patterns
from groupwright.cli.exporter.offsets_topic_source import OffsetsLog, OffsetsTopicSource
from groupwright.consumer import Consumer
from groupwright.core.offsets_topic import OFFSETS_TOPIC
from groupwright.testing import Listener, LocalKafka, Security
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.rights import allow
from integration_tests.harness.streams import join_streams_group
from integration_tests.harness.tools import command_of_kafkas_tool
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

Run = Callable[..., Result]

SCHEMAS = Path(cli.__file__).parent / "_schemas"
PARTITIONS, MESSAGES, COMMITTED = 4, 10, 4
SHARED_LAG = 6
SECONDS_OLD = 1_700_000_000
BY_HAND = {"enable.auto.commit": False, "max.poll.interval.ms": 3_600_000}
"""Of members that stay without polls."""
MEMBERS: dict[str, list[dict[str, Any]]] = {
    "classic": [{"client.id": name, "heartbeat.interval.ms": 200} for name in ("one", "two")],
    "static": [
        {"client.id": name, "group.instance.id": f"i-{name}", "heartbeat.interval.ms": 200} for name in "ab"
    ],
    "new": [{"client.id": "one", "group.protocol": "consumer", "client.rack": "r1"}],
    "own": [{"client.id": "one", "make": Consumer, "partition.assignment.strategy": "cooperative-sticky"}],
}
TYPES = {"new": "consumer", "shared": "share", "flow": "streams"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    """A broker with a group of each type, and one without members; the group `gone` was deleted."""
    # The member of the streams group sends no heartbeats.
    hour = dict.fromkeys(
        ("group.streams.max.session.timeout.ms", "group.streams.session.timeout.ms"), 3_600_000
    )
    with LocalKafka(security=Security(authorize=True), config=hour) as kafka, ExitStack() as members:
        kafka.create_topic("orders", PARTITIONS)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(PARTITIONS * MESSAGES):
            at = SECONDS_OLD * 1000
            producer.produce("orders", b"x", partition=number % PARTITIONS, timestamp=at)
        assert producer.flush(PATIENCE) == 0
        for group in (*MEMBERS, "empty", "gone"):
            commit(kafka, group)
        kafka.admin().delete_consumer_groups(["gone"])["gone"].result(PATIENCE)
        for group, all_settings in MEMBERS.items():
            join(kafka, group, all_settings, members)
        share(kafka, members)
        join_streams_group(kafka.bootstrap_servers, "flow", "orders")
        yield kafka


def settings_of(kafka: LocalKafka, group: str) -> dict[str, Any]:
    return {"bootstrap.servers": kafka.bootstrap_servers, "group.id": group, "client.id": "one"}


def commit(kafka: LocalKafka, group: str) -> None:
    consumer = confluent_kafka.Consumer(settings_of(kafka, group))
    offsets = [TopicPartition("orders", number, COMMITTED) for number in range(PARTITIONS)]
    consumer.commit(offsets=offsets, asynchronous=False)
    consumer.close()


def share(kafka: LocalKafka, members: ExitStack) -> None:
    """Add a share group that has processed nine messages after its start offset, and six not."""
    kafka.create_topic("jobs", 1)
    settings = {**settings_of(kafka, "shared"), "share.acknowledgement.mode": "explicit"}
    consumer = members.enter_context(confluent_kafka.ShareConsumer(settings))
    consumer.subscribe(["jobs"])
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers, "linger.ms": 100})

    def produce(messages: int) -> None:
        for _ in range(messages):
            producer.produce("jobs", b"x")
        assert producer.flush(PATIENCE) == 0

    def acknowledge(*released: int) -> int:
        messages = consumer.poll(0.1)
        for number, message in enumerate(messages):
            release = number in released
            consumer.acknowledge(message, AcknowledgeType.RELEASE if release else AcknowledgeType.ACCEPT)
        consumer.commit_sync(PATIENCE)
        return len(messages)

    def has_begun() -> bool:
        produce(1)
        return acknowledge() > 0

    wait_until(has_begun, "the share group has its first message")
    produce(10)  # in one batch, which a member gets as a whole
    wait_until(lambda: acknowledge(0) == 10, "the batch")
    produce(5)


def join(kafka: LocalKafka, group: str, all_settings: list[dict[str, Any]], members: ExitStack) -> None:
    """Add members, and poll until all partitions have an owner. They stay without further polls."""
    consumers = []
    for settings in all_settings:
        make: Any = settings.get("make", confluent_kafka.Consumer)
        given = {key: value for key, value in settings.items() if key != "make"}
        consumer = make({**settings_of(kafka, group), **BY_HAND, **given})
        members.callback(consumer.close)
        consumer.subscribe(["orders"])
        consumers.append(consumer)

    def settled() -> bool:
        for consumer in consumers:
            consumer.poll(0.02)
        owned = [len(consumer.assignment()) for consumer in consumers]
        return sum(owned) == PARTITIONS and all(owned)

    wait_until(settled, f"each partition of {group} has one owner")


@pytest.fixture
def run(kafka: LocalKafka) -> Run:
    """Run a command in this process, without a terminal."""

    def run(*arguments: str, **environment: str) -> Result:
        given = {"GROUPWRIGHT_BOOTSTRAP_SERVERS": kafka.bootstrap_servers, "COLUMNS": "200", **environment}
        return CliRunner().invoke(app, arguments, env=given)

    return run


def document(result: Result, command: str) -> Any:
    assert (result.exit_code, result.stderr) == (0, ""), result.output
    found = json.loads(result.stdout)
    jsonschema.validate(found, json.loads((SCHEMAS / f"{command}.schema.json").read_text(encoding="utf-8")))
    return found


# --- Groups


def test_groups_of_all_types_and_states_are_listed(run: Run) -> None:
    rows = {row["group"]: row for row in document(run("groups", "-o", "json"), "groups")}

    lag = PARTITIONS * (MESSAGES - COMMITTED)
    shapes = {
        group: (row["type"], row["state"], row["assignor"], row["members"], row["partitions"], row["lag"])
        for group, row in rows.items()
    }
    assert shapes == {
        "classic": ("classic", "Stable", "range", 2, PARTITIONS, lag),
        "static": ("classic", "Stable", "range", 2, PARTITIONS, lag),
        "new": ("consumer", "Stable", "uniform", 1, PARTITIONS, lag),
        "own": ("classic", "Stable", "cooperative-sticky", 1, PARTITIONS, lag),
        "empty": ("classic", "Empty", None, 0, PARTITIONS, lag),
        "shared": ("share", "Stable", "simple", 1, 1, SHARED_LAG),
        "flow": ("streams", "Stable", None, 1, PARTITIONS, None),
    }


def test_filters_sorting_and_csv(run: Run) -> None:
    result = run("groups", "*a*", "--state", "stable", "--sort", "members", "--output", "csv")

    assert result.exit_code == 0
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert [row["group"] for row in rows] == ["classic", "static", "shared"]
    assert [row["group"] for row in json.loads(run("groups", "--type", "share", "-o", "json").stdout)] == [
        "shared"
    ]
    none = run("groups", "clasic")
    assert (none.exit_code, none.stderr) == (
        0,
        "groupwright groups: none of 7 groups matches, did you mean 'classic'?\n",
    )


# --- One group


@pytest.mark.parametrize("group", [*MEMBERS, "empty", "shared", "flow"])
def test_a_group_is_described(kafka: LocalKafka, run: Run, group: str) -> None:
    found = document(run("describe", group, "-o", "json"), "describe")

    assert (found["group"], found["type"]) == (group, TYPES.get(group, "classic"))
    located = document(run("locate", group, "-o", "json"), "locate")[0]
    coordinator = found["coordinator"]
    assert (located["partition"], located["broker"], located["port"]) == (
        coordinator["offsets_partition"],
        coordinator["broker"],
        coordinator["port"],
    )
    assert f"{coordinator['host']}:{coordinator['port']}" == kafka.bootstrap_servers
    topic, partitions = ("jobs", 1) if group == "shared" else ("orders", PARTITIONS)
    assigned = [number for member in found["members"] for number in member["assigned"].get(topic, [])]
    assert sorted(assigned) == ([] if group == "empty" else list(range(partitions)))
    assert all(member["host"] == "127.0.0.1" for member in found["members"])
    wanted = [settings.get("group.instance.id") for settings in MEMBERS.get(group, ())]
    if wanted:
        assert sorted(map(str, wanted)) == sorted(str(each["instance_id"]) for each in found["members"])
        assert [each["rack"] for each in found["members"]] == [
            settings.get("client.rack") for settings in MEMBERS[group]
        ]
    odd = {
        "empty": "The group has no members: clients that assign partitions themselves may consume",
        "flow": "No offset of orders-0, orders-1",
    }
    assert [each.startswith(odd.get(group, "nothing")) for each in found["findings"]] == [True] * (
        group in odd
    )


def test_the_lag_of_a_share_group_is_that_of_kafkas_tool(kafka: LocalKafka, run: Run) -> None:
    [partition] = document(run("describe", "shared", "-o", "json"), "describe")["partitions"]

    tool = command_of_kafkas_tool(kafka.version, "org.apache.kafka.tools.consumer.group.ShareGroupCommand")
    servers = "--bootstrap-server", kafka.bootstrap_servers
    command = [*tool, *servers, "--describe", "--group", "shared"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    assert shown.split()[-5:] == ["shared", "jobs", "0", str(partition["committed"]), str(SHARED_LAG)]
    assert partition["lag"] == SHARED_LAG
    assert partition["end"] - partition["committed"] == SHARED_LAG + 9


@pytest.mark.parametrize("width", [80, 200])
def test_a_description_fits_the_terminal(run: Run, width: int) -> None:
    for group in (*MEMBERS, "shared", "flow"):
        lines = run("describe", group, COLUMNS=str(width)).stdout.splitlines()
        assert max(map(len, lines)) <= width
        assert f"group        {group}" in lines
        topic = "jobs" if group == "shared" else "orders"
        assert f"subscribes   {topic}" in lines
        (header,) = [line for line in lines if line.startswith("MEMBER ")]
        assert header.split()[-1] == "ASSIGNED"
        row = lines[lines.index(header) + 1]
        assert row.split()[0] in {"one", "two", "i-a", "rdkafka"} or group == "flow"
        assert f"{topic} 0" in row
    empty = run("describe", "empty", COLUMNS=str(width)).stdout
    assert empty.startswith("! The group has no members: clients that assign partitions")


def test_lag_in_messages_and_seconds_by_partition_with_its_member(run: Run) -> None:
    rows = document(run("lag", "classic", "empty", "--by", "partition", "-o", "json"), "lag")

    assert [(row["group"], row["partition"]) for row in rows] == [
        (group, number) for group in ("classic", "empty") for number in range(PARTITIONS)
    ]
    assert all(row["messages"] == MESSAGES - COMMITTED and row["seconds"] > 0 for row in rows)
    assert [row["member"] for row in rows] == ["one", "one", "two", "two", None, None, None, None]
    by_group = {row["group"]: row["messages"] for row in document(run("lag", "-o", "json"), "lag")}
    assert by_group == {
        **dict.fromkeys([*MEMBERS, "empty"], PARTITIONS * (MESSAGES - COMMITTED)),
        "shared": SHARED_LAG,
        "flow": None,
    }


def test_no_output_names_owners_while_a_classic_group_rebalances(kafka: LocalKafka, run: Run) -> None:
    with ExitStack() as members:
        commit(kafka, "moving")
        join(kafka, "moving", MEMBERS["classic"], members)
        joining = members.enter_context(closing(confluent_kafka.Consumer(settings_of(kafka, "moving"))))
        joining.subscribe(["orders"])  # it waits for the others, which are not polled

        def described() -> Any:
            joining.poll(0.02)
            return document(run("describe", "moving", "-o", "json"), "describe")

        wait_until(lambda: described()["state"] == "PreparingRebalance", "a rebalance that does not end")
        found = described()
        by_partition = document(run("lag", "moving", "--by", "partition", "-o", "json"), "lag")
        groups = document(run("groups", "moving", "-o", "json"), "groups")
        watched = run("watch", "moving", "--once").stdout

    assert [each["assigned"] for each in found["members"]] == [None] * 3
    assert [each["member"] for each in found["partitions"]] == [None] * PARTITIONS
    assert [each["member"] for each in by_partition] == [None] * PARTITIONS
    assert [each["partitions"] for each in groups] == [PARTITIONS]
    assert "3 members, partitions not known; lag" in watched
    assert "orders" not in watched


def test_the_exporter_shows_the_same_lag_of_groups_of_every_type(kafka: LocalKafka, run: Run) -> None:
    with Cluster({"bootstrap.servers": kafka.bootstrap_servers}) as cluster:
        snapshot = AdminSource(cluster, GroupLimit(Patterns(), 100)).snapshot()

    lags = {each.group.id: each.total for each in snapshot.groups}
    assert lags == {row["group"]: row["messages"] for row in document(run("lag", "-o", "json"), "lag")}
    assert lags["shared"] == SHARED_LAG


@pytest.mark.parametrize("command", [("groups",), ("describe", "own"), ("lag", "--no-seconds")], ids=" ".join)
def test_groups_are_shown_without_numpy(kafka: LocalKafka, command: tuple[str, ...]) -> None:
    """An import of numpy takes longer than the requests."""
    program = "import sys; sys.modules['numpy'] = None; from groupwright.cli import main; main()"
    shown = subprocess.run(
        [sys.executable, "-c", program, *command, "--bootstrap-servers", kafka.bootstrap_servers],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (shown.returncode, shown.stderr) == (0, "")
    assert "own" in shown.stdout


# --- What is wrong


@pytest.mark.parametrize("command", ["describe", "lag"])
@pytest.mark.parametrize(
    ("group", "said"),
    [
        ("clasic", "there is no group 'clasic', did you mean 'classic'?"),
        ("gone", "there is no group 'gone', or these credentials may not describe it. "),
    ],
)
def test_wrong_names_are_not_found(run: Run, command: str, group: str, said: str) -> None:
    result = run(command, group)

    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.startswith(f"groupwright {command}: {said}")


def give_to_bob(kafka: LocalKafka, kind: ResourceType, name: str) -> None:
    """Leave a resource to a user, and to no other."""
    literal, read = ResourcePatternType.LITERAL, AclOperation.READ
    allow(kafka.admin(), AclBinding(kind, name, literal, "User:bob", "*", read, AclPermissionType.ALLOW))


def test_a_secured_cluster_shows_what_the_credentials_allow(
    kafka: LocalKafka, run: Run, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The group `static` belongs to another user; groups without rights belong to all."""
    give_to_bob(kafka, ResourceType.GROUP, "static")
    config = tmp_path / "client.json"
    settings = kafka.secure_config(Listener.SASL_SSL, user="alice")
    config.write_text(json.dumps(settings))
    alice = {"GROUPWRIGHT_CONFIG": str(config), "GROUPWRIGHT_BOOTSTRAP_SERVERS": ""}

    found = document(run("describe", "classic", "-o", "json", **alice), "describe")
    assert (len(found["members"]), found["lag"]) == (2, PARTITIONS * (MESSAGES - COMMITTED))
    for name, *options in (["groups"], ["lag", "--no-seconds"]):
        partly = run(name, *options, "-o", "json", **alice)
        assert partly.exit_code == 7
        assert partly.stderr == f"groupwright {name}: these credentials may not describe static\n"
        assert "classic" in {row["group"] for row in json.loads(partly.stdout)}
    for command in ("describe", "lag"):
        forbidden = run(command, "static", **alice)
        assert (forbidden.exit_code, forbidden.stdout) == (5, "")
        assert "these credentials may not access the group 'static': " in forbidden.stderr

    # Of groups that are not classic, brokers also check the topics.
    give_to_bob(kafka, ResourceType.TOPIC, "orders")
    partitions = ", ".join(f"orders-{number}" for number in range(PARTITIONS))
    reason = "the partition does not exist, or this client may not see it"
    unseen = f"The offsets of {partitions} are not known: {reason}."
    for name, *options in (["groups"], ["lag", "--no-seconds"]):
        partly = run(name, *options, "-o", "json", **alice)
        assert partly.exit_code == 7
        assert partly.stderr.splitlines() == [
            f"groupwright {name}: classic: {unseen}",
            f"groupwright {name}: own: {unseen}",
            f"groupwright {name}: these credentials may not describe flow, new, static",
        ]
    listed = {row["group"]: row for row in json.loads(run("groups", "-o", "json", **alice).stdout)}
    assert (listed["new"]["type"], listed["new"]["state"], listed["new"]["members"]) == (
        *("consumer", "Stable"),
        None,
    )
    assert "They need DESCRIBE on all topics of its members" in run("describe", "new", **alice).stderr
    caplog.clear()
    with Cluster(settings) as cluster:
        source = AdminSource(cluster, GroupLimit(Patterns(), 100))
        for _ in range(2):
            snapshot = source.snapshot()
            assert snapshot.left_out == {"excluded": 0, "max_groups": 0, "forbidden": 3}
            shown = {group.group.id for group in snapshot.groups}
            assert "classic" in shown
            assert not {"flow", "new", "static"} & shown
    assert [record.message.endswith("of their members: flow, new, static") for record in caplog.records] == [
        True
    ]

    give_to_bob(kafka, ResourceType.TOPIC, OFFSETS_TOPIC)
    with Cluster(settings) as cluster, closing(OffsetsLog(settings, PATIENCE)) as log:
        groups = GroupLimit(Patterns(), 100)
        admin = AdminSource(cluster, groups)
        wait_until(lambda: admin.snapshot().offsets_topic is None, "the offsets topic to be out of sight")
        with pytest.raises(CommandError, match="may not read __consumer_offsets: allow Read and Describe"):
            OffsetsTopicSource(cluster, groups, log).snapshot()

    config.write_text(json.dumps({**settings, "sasl.password": "wrong"}))
    wrong = run("groups", **alice)
    assert (wrong.exit_code, wrong.stdout) == (3, "")
    assert wrong.stderr.endswith("Correct the security settings\n")


# --- The page

PAGE = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
RUN_BY_OTHER_TESTS = (
    *("pip", "source", "curl"),
    *("groupwright completion", "groupwright exporter", "groupwright demo", "groupwright pipeline"),
)
STATUSES = {"doctor": 1}
OF_MEMBERS = {"simulate", "explain"}
"""Commands about a group with members; `offsets` resets one without."""


def test_each_command_of_the_page_runs(
    kafka: LocalKafka, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        line.partition("  #")[0].strip()
        for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL)
        for line in block.splitlines()
    ]
    commands = [line for line in lines if not line.startswith(RUN_BY_OTHER_TESTS)]
    assert len(commands) > 15
    monkeypatch.chdir(tmp_path)
    settings = "group.id=billing\nclient.id=billing-1\nmax.poll.interval.ms=30000\n"
    Path("consumer.properties").write_text(settings, encoding="utf-8")
    Path("my").mkdir()
    Path("my/module.py").write_text(
        "from groupwright.assignors import RangeAssignor\n\n\nclass MyAssignor(RangeAssignor):\n    pass\n",
        encoding="utf-8",
    )

    def run_all(*, of_members: bool) -> None:
        for command in commands:
            _, name, *arguments = shlex.split(command.replace("localhost:9092", kafka.bootstrap_servers))
            if (name in OF_MEMBERS) is of_members:
                result = run(name, *arguments)
                assert result.exit_code == STATUSES.get(name, 0), (command, result.output)
                assert result.stdout, command

    commit(kafka, "billing")
    try:
        run_all(of_members=False)
        with ExitStack() as members:
            join(kafka, "billing", [{"client.id": "worker-3"}], members)
            run_all(of_members=True)
    finally:
        kafka.admin().delete_consumer_groups(["billing"])["billing"].result(PATIENCE)


# --- Terminals and shells


def test_colours_are_for_terminals_alone(kafka: LocalKafka, groupwright: Callable[..., Any]) -> None:
    arguments = ("describe", "empty", "--bootstrap-servers", kafka.bootstrap_servers)

    assert "\x1b[" not in groupwright(*arguments).stdout
    for environment, has_colours in (({}, True), ({"NO_COLOR": "1"}, False)):
        assert ("\x1b[33m" in on_terminal(*arguments, **environment)) is has_colours


def on_terminal(*arguments: str, **environment: str) -> str:
    parent, child = pty.openpty()
    command = [sys.executable, "-m", "groupwright.cli", *arguments]
    unset = ("CI", "NO_COLOR", "FORCE_COLOR")
    base = {name: value for name, value in os.environ.items() if name not in unset}
    with os.fdopen(parent, "rb", buffering=0) as terminal:
        done = subprocess.run(
            command, env={**base, "TERM": "xterm", **environment}, stdout=child, timeout=PATIENCE, check=True
        )
        os.close(child)
        assert done.returncode == 0
        return terminal.read(1 << 16).decode()


def test_a_shell_completes_the_names_of_groups(kafka: LocalKafka, groupwright: Callable[..., Any]) -> None:
    def completed(line: str) -> list[str]:
        words = line.split(" ")
        result = groupwright(
            COMP_WORDS=line,
            COMP_CWORD=str(len(words) - 1),
            _GROUPWRIGHT_COMPLETE="complete_bash",
            GROUPWRIGHT_BOOTSTRAP_SERVERS="127.0.0.1:1",
        )
        return str(result.stdout).split()

    servers = f"--bootstrap-servers {kafka.bootstrap_servers}"
    assert completed(f"groupwright describe {servers} s") == ["shared", "static"]
    assert completed(f"groupwright lag {servers} static s") == ["shared"]
    assert completed("groupwright describe s") == []


@pytest.mark.parametrize("group", ["shared", "flow"])
def test_a_consumer_is_told_that_its_group_id_belongs_to_another_type_of_group(
    kafka: LocalKafka, group: str
) -> None:
    with Consumer(settings_of(kafka, group)) as consumer:
        consumer.subscribe(["orders"])
        errors: list[str] = []

        def is_refused() -> bool:
            message = consumer.poll(0.1)
            if message is not None and (error := message.error()) is not None:
                errors.append(error.str())
            return bool(errors)

        wait_until(is_refused, "the consumer is refused")
    assert f"the group id {group!r} belongs to a group of another type" in errors[0]
