"""A cluster in containers: needs a container engine, and an image that it has or can get."""

import contextlib
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient

from integration_tests.harness.patience import PATIENCE

docker = pytest.importorskip("docker")

from groupwright.testing import (  # noqa: E402 - needs what may be missing
    ContainersUnavailableError,
    KafkaContainers,
    KafkaContainersError,
    KafkaNotReadyError,
    Listener,
    Security,
)
from groupwright.testing._kafka import containers, engine  # noqa: E402 - as above
from groupwright.testing._kafka.readiness import CLIENT_DEFAULTS  # noqa: E402 - as above
from integration_tests.harness.tools import lacking  # noqa: E402 - as above

pytestmark = pytest.mark.xdist_group("cluster")  # beside no other cluster

PROGRAM = """
import sys
from groupwright.testing import KafkaContainers

kafka = KafkaContainers(1)
kafka.start_all()
print("started", flush=True)
sys.stdin.read()
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaContainers]:
    kafka = KafkaContainers(security=Security(), proxied=True)
    try:
        kafka.start_all()
    except ContainersUnavailableError as error:
        lacking(f"needs brokers in containers: {error}")
    yield kafka
    kafka.close()


def test_a_cluster_has_a_node_at_least() -> None:
    with pytest.raises(ValueError, match="at least one node, not 0"):
        KafkaContainers(0)


def test_before_the_start_it_has_no_address() -> None:
    with pytest.raises(KafkaContainersError, match="has not been started"):
        _ = KafkaContainers(image="none").bootstrap_servers


def test_the_image_is_an_argument_or_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(containers.IMAGE_VARIABLE, raising=False)
    assert KafkaContainers().image == containers.DEFAULT_IMAGE
    monkeypatch.setenv(containers.IMAGE_VARIABLE, "mine:1")
    assert KafkaContainers().image == "mine:1"
    assert KafkaContainers(image="yours:2").image == "yours:2"


@pytest.mark.endurance
@pytest.mark.integration
def test_what_is_produced_is_on_three_nodes(cluster: KafkaContainers) -> None:
    cluster.create_topic("orders", partitions=6)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for number in range(60):
        producer.produce("orders", str(number), partition=number % 6)

    assert producer.flush(PATIENCE) == 0
    found = cluster.admin().list_topics("orders", timeout=PATIENCE).topics["orders"].partitions.values()
    assert {tuple(sorted(each.replicas)) for each in found} == {(1, 2, 3)}


@pytest.mark.endurance
@pytest.mark.integration
def test_a_group_finds_another_coordinator_when_its_own_is_killed(
    cluster: KafkaContainers, eventually: Callable[[Callable[[], bool]], bool]
) -> None:
    before = cluster.coordinator_of("billing")
    address = cluster.bootstrap_servers

    cluster.kill(before)
    assert not cluster.running(before)

    def moved() -> bool:
        try:
            return cluster.coordinator_of("billing") != before
        except KafkaNotReadyError:
            return False

    assert eventually(moved)
    cluster.start(before)
    assert cluster.running(before)
    assert cluster.bootstrap_servers == address


@pytest.mark.integration
def test_a_node_that_is_paused_runs_on_and_answers_later(cluster: KafkaContainers) -> None:
    cluster.pause(1)
    assert cluster.running(1)
    cluster.resume(1)
    cluster.wait_until_ready()


@pytest.mark.integration
def test_all_nodes_have_secured_listeners_and_know_the_users(cluster: KafkaContainers) -> None:
    for listener in Listener:
        config = cluster.secure_config(listener, mechanism="SCRAM-SHA-512", user="alice")
        for server in config["bootstrap.servers"].split(","):
            admin = AdminClient({**CLIENT_DEFAULTS, **config, "bootstrap.servers": server})
            brokers = admin.list_topics(timeout=PATIENCE).brokers
            assert {f"{each.host}:{each.port}" for each in brokers.values()} == set(
                config["bootstrap.servers"].split(",")
            )


@pytest.mark.integration
def test_a_node_behind_a_link_that_is_cut_is_out_of_reach_and_the_others_are_not(
    cluster: KafkaContainers, eventually: Callable[[Callable[[], bool]], bool]
) -> None:
    brokers = (
        AdminClient({**CLIENT_DEFAULTS, "bootstrap.servers": cluster.proxied_servers})
        .list_topics(timeout=PATIENCE)
        .brokers
    )
    assert {node: f"{each.host}:{each.port}" for node, each in brokers.items()} == {
        node: cluster.link(node).address for node in cluster.nodes
    }

    cluster.link(2).cut()

    assert eventually(lambda: cluster.link(2).connections == 0)
    for node in (1, 3):
        admin = AdminClient({**CLIENT_DEFAULTS, "bootstrap.servers": cluster.link(node).address})
        assert set(admin.list_topics(timeout=PATIENCE).brokers) == {1, 2, 3}
    cluster.link(2).restore()
    admin = AdminClient({**CLIENT_DEFAULTS, "bootstrap.servers": cluster.link(2).address})
    assert admin.list_topics(timeout=PATIENCE).brokers


@pytest.mark.endurance
@pytest.mark.integration
def test_all_nodes_come_back_with_their_data_when_all_were_killed(cluster: KafkaContainers) -> None:
    cluster.create_topic("kept")
    cluster.kill_all()
    assert not any(map(cluster.running, cluster.nodes))

    cluster.start_all()

    assert "kept" in cluster.admin().list_topics(timeout=PATIENCE).topics


@pytest.mark.endurance
@pytest.mark.integration
@pytest.mark.usefixtures("cluster")
def test_a_node_whose_disk_is_full_ends(eventually: Callable[[Callable[[], bool]], bool]) -> None:
    with KafkaContainers(1, disk="64m") as kafka:
        kafka.create_topic("much")
        producer = Producer({**CLIENT_DEFAULTS, "bootstrap.servers": kafka.bootstrap_servers})

        kafka.fill_disk(1)

        def has_ended() -> bool:
            producer.produce("much", b"x" * 10_000)
            producer.poll(0.01)
            return not kafka.running(1)

        assert eventually(has_ended)
        assert "No space left on device" in kafka.log(1)
        producer.purge()
        producer.flush(PATIENCE)


def test_a_disk_without_a_size_is_not_filled() -> None:
    with pytest.raises(KafkaContainersError, match='create the cluster with one, as in disk="256m"'):
        KafkaContainers(image="none").fill_disk(1)


@pytest.mark.integration
def test_an_image_that_is_nowhere_is_named(cluster: KafkaContainers) -> None:
    assert cluster.running(1)  # so that there is an engine
    with (
        pytest.raises(ContainersUnavailableError, match="does not have the image 'nobody/has:this'"),
        KafkaContainers(image="nobody/has:this"),
    ):
        pass


@pytest.mark.integration
@pytest.mark.parametrize(
    "ending",
    [
        pytest.param(None, id="its end", marks=pytest.mark.endurance),
        pytest.param(signal.SIGINT, id="Ctrl-C", marks=pytest.mark.endurance),
        pytest.param(signal.SIGKILL, id="SIGKILL"),
    ],
)
def test_a_cluster_ends_with_its_program_or_with_the_next_cluster(
    cluster: KafkaContainers, ending: signal.Signals | None
) -> None:
    """The program neither closes its cluster nor catches anything; killed, it cannot even know."""
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with program:
        assert program.stdout is not None
        assert program.stdout.readline() == "started\n"
        assert owned_by(program.pid) == 2

        if ending:
            program.send_signal(ending)
        program.communicate(timeout=PATIENCE)
    if ending is signal.SIGKILL:
        assert owned_by(program.pid) == 2
        engine.remove_orphans()

    assert owned_by(program.pid) == 0
    assert cluster.running(1)


def owned_by(pid: int) -> int:
    """Return how many containers and networks a process has left with the engine, or has there still."""
    client = docker.from_env(timeout=PATIENCE)
    try:
        labelled = {"label": f"groupwright.owner={pid}"}
        return len(client.containers.list(all=True, filters=labelled)) + len(
            client.networks.list(filters=labelled)
        )
    finally:
        client.close()


class Resource:
    """A container or a network."""

    def __init__(self, labels: dict[str, str], error: str | None = None) -> None:
        self.attrs = {"Labels": labels}
        self.removed = 0
        self._error = error

    def remove(self, **_: object) -> None:
        self.removed += 1
        if self._error is not None:
            raise docker.errors.APIError(self._error)


class Resources:
    """Containers or networks of a stub engine."""

    def __init__(self, *found: Resource) -> None:
        self._found = found

    def list(self, filters: dict[str, str | list[str]], **_: object) -> list[Resource]:
        label = filters["label"]
        wanted = {label} if isinstance(label, str) else set(label)
        return [
            each for each in self._found if wanted <= {f"{k}={v}" for k, v in each.attrs["Labels"].items()}
        ]


class StubEngine:
    """An engine that has these networks, and these containers."""

    def __init__(self, networks: list[Resource], containers: list[Resource]) -> None:
        self.networks = Resources(*networks)
        self.containers = Resources(*containers)


@pytest.fixture
def orphaned() -> dict[str, str]:
    """The labels of a cluster whose owner has ended."""
    program = subprocess.Popen([sys.executable, "-c", ""])
    program.wait(PATIENCE)
    return {**engine.labels("a"), "groupwright.owner": str(program.pid)}


def remove_orphans(
    monkeypatch: pytest.MonkeyPatch, *, networks: list[Resource], containers: list[Resource]
) -> None:
    stub = StubEngine(networks, containers)
    monkeypatch.setattr(engine, "_engine", lambda: contextlib.nullcontext(stub))
    engine.remove_orphans()


def test_clusters_of_ended_processes_are_removed_even_if_another_process_removes_them_too(
    monkeypatch: pytest.MonkeyPatch, orphaned: dict[str, str]
) -> None:
    networks = [Resource(orphaned, "403: network has active endpoints"), Resource(orphaned)]
    containers = [Resource(orphaned, "409: removal is already in progress"), Resource(engine.labels("b"))]

    remove_orphans(monkeypatch, networks=networks, containers=containers)

    assert [each.removed for each in (*networks, *containers)] == [1, 1, 1, 0]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere there are no PID namespaces")
@pytest.mark.parametrize("other", ["_BOOT_ID", "_PROCESS_NAMESPACE"])
def test_a_cluster_of_another_pid_namespace_is_not_removed(
    monkeypatch: pytest.MonkeyPatch, orphaned: dict[str, str], tmp_path: Path, other: str
) -> None:
    """Its owner's process id is unknown here, though the host's name may be the same."""
    (tmp_path / "boot").write_text("another")
    (tmp_path / "pid").symlink_to("pid:[1]")
    monkeypatch.setattr(engine, other, tmp_path / ("boot" if other == "_BOOT_ID" else "pid"))
    containers = [Resource(orphaned)]

    remove_orphans(monkeypatch, networks=[], containers=containers)

    assert containers[0].removed == 0
