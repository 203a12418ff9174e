"""Growth of `__consumer_offsets`: most groups then hash to another partition, without their offsets.

`docs/offsets-topic.md` describes the remedy, with the steps of these tests.
"""

import json
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_INVALID, Producer, TopicPartition
from confluent_kafka.cimpl import NewPartitions
from typer.testing import CliRunner

from groupwright.cli.app import app
from groupwright.consumer import Consumer
from groupwright.core.offsets_topic import OFFSETS_TOPIC, partition_for
from groupwright.testing import KafkaContainers, LocalKafka
from integration_tests.harness import clusters, offsets_topic
from integration_tests.harness.offsets_topic import StoredOffset
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.polling import take, values
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.wire import find_coordinators

pytestmark = pytest.mark.kafka

BEFORE, AFTER = 4, 8
TOPIC = "orders"
CONSUMED, WRITTEN = 3, 5


def groups(*, moved: bool) -> list[str]:
    """Return groups that hash to another partition after the growth, or to the same one."""
    ids = (f"billing-{number}" for number in range(40))
    return [group for group in ids if (partition_for(group, BEFORE) != partition_for(group, AFTER)) is moved][
        :4
    ]


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    """A separate broker, because the growth is permanent, with groups that have committed."""
    with LocalKafka(config={"offsets.topic.num.partitions": BEFORE}) as kafka:
        kafka.create_topic(TOPIC)
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        for number in range(WRITTEN):
            producer.produce(TOPIC, str(number))
        assert producer.flush(PATIENCE) == 0
        for group in groups(moved=True) + groups(moved=False):
            commit(kafka, group, CONSUMED)
        yield kafka


def new_consumer(kafka: LocalKafka, group: str) -> Consumer:
    """Return a consumer that has not subscribed yet."""
    return Consumer(
        {
            "bootstrap.servers": kafka.bootstrap_servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "fetch.wait.max.ms": 50,
        }
    )


def first_given(kafka: LocalKafka, group: str) -> int:
    """Return the offset at which a member begins."""
    with new_consumer(kafka, group) as consumer:
        consumer.subscribe([TOPIC])
        return values(take(consumer, 1))[0]


def committed(kafka: LocalKafka, group: str) -> int:
    with new_consumer(kafka, group) as consumer:
        return int(consumer.committed([TopicPartition(TOPIC, 0)], timeout=PATIENCE)[0].offset)


def commit(kafka: LocalKafka, group: str, offset: int) -> None:
    with new_consumer(kafka, group) as consumer:
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)


def finding(kafka: LocalKafka, group: str) -> str | None:
    """Return the severity reported by `groupwright doctor`."""
    settings = [f"bootstrap.servers={kafka.bootstrap_servers}", f"group.id={group}"]
    result = CliRunner().invoke(app, ["doctor", *settings, "--output", "json"])
    found = {each["rule"]: each["severity"] for each in json.loads(result.stdout)["findings"]}
    return found.get("offsets-topic-grown")


def test_a_growth_strands_the_offsets_of_most_groups_at_the_brokers_next_start(kafka: LocalKafka) -> None:
    """No error is reported: the groups restart at the beginning. The doctor warns before the restart."""
    moved, stayed = groups(moved=True), groups(moved=False)
    assert {committed(kafka, group) for group in moved + stayed} == {CONSUMED}
    assert finding(kafka, moved[0]) is None

    kafka.admin().create_partitions([NewPartitions(OFFSETS_TOPIC, AFTER)], request_timeout=PATIENCE)[
        OFFSETS_TOPIC
    ].result()
    listed = kafka.admin().list_topics
    wait_until(
        lambda: len(listed(OFFSETS_TOPIC, timeout=PATIENCE).topics[OFFSETS_TOPIC].partitions) == AFTER,
        "the broker to know of the growth",
    )
    assert {committed(kafka, group) for group in moved + stayed} == {CONSUMED}
    assert {finding(kafka, group) for group in moved} == {"warning"}
    assert {finding(kafka, group) for group in stayed} == {"note"}
    kafka.restart()

    # Before Kafka 4, a broker loads the groups of all partitions that it leads, whatever their ids hash to.
    # This broker leads all of them, which hides the loss.
    hidden = kafka.version.startswith("3.")
    assert {committed(kafka, group) for group in moved} == {CONSUMED if hidden else OFFSET_INVALID}
    assert {committed(kafka, group) for group in stayed} == {CONSUMED}
    assert first_given(kafka, moved[0]) == (CONSUMED if hidden else 0)
    assert first_given(kafka, stayed[0]) == CONSUMED

    # The offsets remain in a partition that is no longer read; a tool can commit them again.
    stranded = {
        record.group: record.value.offset
        for record in offsets_topic.records(kafka.bootstrap_servers)
        if isinstance(record.value, StoredOffset) and record.partition != partition_for(record.group, AFTER)
    }
    assert stranded == dict.fromkeys(moved, CONSUMED)
    for group, offset in stranded.items():
        commit(kafka, group, offset)
    assert {first_given(kafka, group) for group in moved} == {CONSUMED}


@pytest.mark.endurance
@pytest.mark.xdist_group("cluster")
def test_brokers_that_have_restarted_and_those_that_have_not_name_different_coordinators() -> None:
    """During a rolling restart, a group may split into two that both consume everything."""
    cluster = KafkaContainers(config={**clusters.PATIENT, "offsets.topic.num.partitions": 6})
    ids = [f"billing-{number}" for number in range(60)]
    with clusters.started(cluster):
        assert named_by(cluster, 1, ids) == named_by(cluster, 2, ids)

        # A broker that has restarted leads nothing, so nodes 2 and 3 lead: of a partition and the one to
        # which half of its groups move, one each.
        grown = cluster.admin().create_partitions(
            [NewPartitions(OFFSETS_TOPIC, 12, [on_the_other_node(each) for each in replicas(cluster)])],
            request_timeout=PATIENCE,
        )
        grown[OFFSETS_TOPIC].result()
        assert named_by(cluster, 1, ids) == named_by(cluster, 2, ids)
        cluster.restart(1)
        cluster.wait_until_ready()

        partitions = (
            cluster.admin().list_topics(OFFSETS_TOPIC, timeout=PATIENCE).topics[OFFSETS_TOPIC].partitions
        )
        for node, counted in ((1, 12), (2, 6), (3, 6)):
            expected = {group: partitions[partition_for(group, counted)].leader for group in ids}
            assert named_by(cluster, node, ids) == expected, f"node {node}"
        assert named_by(cluster, 1, ids) != named_by(cluster, 2, ids)


def replicas(cluster: KafkaContainers) -> list[list[int]]:
    """Return the nodes that hold each partition, the preferred leader first."""
    partitions = cluster.admin().list_topics(OFFSETS_TOPIC, timeout=PATIENCE).topics[OFFSETS_TOPIC].partitions
    return [list(partitions[number].replicas) for number in sorted(partitions)]


def on_the_other_node(nodes: list[int]) -> list[int]:
    """Return the replicas of a partition that has another leader than `nodes`, without node 1."""
    first, second = (node for node in nodes if node != 1)
    return [second, first, 1]


def named_by(cluster: KafkaContainers, node: int, ids: list[str]) -> dict[str, int]:
    """Return the coordinators returned by a node."""
    return {group: found for group, (found, _) in find_coordinators(cluster.address(node), ids).items()}
