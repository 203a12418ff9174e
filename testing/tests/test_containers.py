"""A cluster in containers: needs a container engine, and an image that it has or can get."""

from collections.abc import Callable, Iterator

import pytest
from confluent_kafka import Producer

docker = pytest.importorskip("docker")

from groupwright.testing import containers  # noqa: E402 - needs what may be missing
from groupwright.testing.containers import KafkaContainers  # noqa: E402 - as above
from groupwright.testing.errors import KafkaContainersError  # noqa: E402 - as above


@pytest.fixture(scope="module")
def image() -> str:
    """The image, where there is an engine that has it."""
    name = KafkaContainers().image
    try:
        client = docker.from_env(timeout=10)
    except docker.errors.DockerException as error:
        pytest.skip(f"no container engine answers: {error}")
    try:
        client.images.get(name)
    except docker.errors.ImageNotFound:
        pytest.skip(f"the container engine does not have {name}; integration_tests/image/build makes one")
    finally:
        client.close()
    return name


@pytest.fixture(scope="module")
def cluster(image: str) -> Iterator[KafkaContainers]:
    with KafkaContainers(image=image) as kafka:
        yield kafka


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


def test_what_is_produced_is_on_three_nodes(cluster: KafkaContainers) -> None:
    cluster.create_topic("orders", partitions=6)
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all"})
    for number in range(60):
        producer.produce("orders", str(number), partition=number % 6)

    assert producer.flush(30) == 0
    found = cluster.admin().list_topics("orders", timeout=10).topics["orders"].partitions.values()
    assert {tuple(sorted(each.replicas)) for each in found} == {(1, 2, 3)}


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
        except KafkaContainersError:
            return False

    assert eventually(moved)
    cluster.start(before)
    assert cluster.running(before)
    assert cluster.bootstrap_servers == address


def test_a_node_that_is_paused_runs_on_and_answers_later(cluster: KafkaContainers) -> None:
    cluster.pause(1)
    assert cluster.running(1)
    cluster.resume(1)
    cluster.wait_until_ready()
