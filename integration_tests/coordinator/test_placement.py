"""The group id alone determines the partition of its records, and so its coordinator."""

import random
import uuid
from collections import Counter

import pytest

from groupwright.core.offsets_topic import OFFSETS_TOPIC, partition_for
from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness import offsets_topic
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.wire import OK, commit_expiring, find_coordinators

pytestmark = pytest.mark.kafka

GROUPS = 400
DAY_MS = 86_400_000
STRANGE = (
    "polygenelubricants",  # its hash is the smallest number, which has no absolute value
    "straße",
    "заказы",
    "订单",
    "billing-🧾",  # two units of UTF-16
    "a b/c:d*e",
    "\x01",
    "x" * 249,
)


def group_ids(count: int) -> list[str]:
    """Return ids of many lengths and alphabets, equal in each run except for a unique suffix."""
    rng = random.Random(1)  # noqa: S311 - groups, no secrets
    alphabets = (
        "abcdefghijklmnopqrstuvwxyz-.0123456789",
        "äöüßéèñ",
        "абвгдежз",
        "日本語中文字符",
        "😀🎉🚀🧾",
    )
    unique = uuid.uuid4().hex[:6]
    return [
        "".join(rng.choices(rng.choice(alphabets), k=rng.randint(1, 40))) + f"{number}{unique}"
        for number in range(count)
    ]


def test_the_leader_of_the_partition_that_the_id_hashes_to_coordinates_the_group(
    kafka: Kafka,
) -> None:
    """The check uses FindCoordinator with hundreds of ids in many alphabets."""
    groups = [*STRANGE, *group_ids(GROUPS)]
    named = find_coordinators(kafka.bootstrap_servers, groups)

    partitions = kafka.admin().list_topics(OFFSETS_TOPIC, timeout=PATIENCE).topics[OFFSETS_TOPIC].partitions
    expected = {group: partitions[partition_for(group, len(partitions))].leader for group in groups}

    assert {group: node for group, (node, _) in named.items()} == expected


def test_a_groups_records_are_in_the_partition_that_its_id_hashes_to(
    kafka: Kafka, new_kafka_topic: NewKafkaTopic
) -> None:
    """The check reads `__consumer_offsets`, so it also works with a single broker."""
    topic = new_kafka_topic()
    groups = [*STRANGE, *group_ids(60)]
    for group in groups:
        assert commit_expiring(kafka.bootstrap_servers, group, topic, 1, DAY_MS) == OK

    partitions = len(
        kafka.admin().list_topics(OFFSETS_TOPIC, timeout=PATIENCE).topics[OFFSETS_TOPIC].partitions
    )
    found = {
        record.group: record.partition
        for record in offsets_topic.records(kafka.bootstrap_servers)
        if record.key == (topic, 0)
    }

    assert found == {group: partition_for(group, partitions) for group in groups}
    assert len(Counter(found.values())) == partitions  # else the hash was not put to the test
