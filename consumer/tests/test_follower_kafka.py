"""Memory of a member that does not lead its group.

It imports neither numpy (13 MB) nor confluent_kafka.admin (0.4 MB).
"""

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from integration_tests.harness.patience import PATIENCE

if TYPE_CHECKING:
    from consumer.tests.conftest import Scene

pytestmark = pytest.mark.kafka

PROGRAM = """
import sys
from groupwright.assignors import Assignor
from groupwright.consumer import Consumer
from groupwright.consumer._membership.handle import request_metadata

class FirstTakesAll(Assignor):
    name = "range"

    def assign(self, group):
        first = min(group.members, key=lambda member: member.id)
        return {first.id: {topic: range(group.topics[topic].partitions) for topic in group.subscribers()}}

def poll_until_assigned(number):
    global message
    while len(consumer.assignment()) != number:
        message = consumer.poll(0.1) or message

def print_added(*modules):
    print({*modules} & sys.modules.keys(), flush=True)

message = None
servers, group, topic, strategy = sys.argv[1:]
config = {"bootstrap.servers": servers, "group.id": group, "heartbeat.interval.ms": 100, "log_level": 0}
config["partition.assignment.strategy"] = FirstTakesAll() if strategy == "own" else strategy
config["auto.offset.reset"] = "earliest"
with Consumer(config) as consumer:
    consumer.subscribe([topic])
    poll_until_assigned(2)
    while message is None:
        message = consumer.poll(0.1)
    consumer.commit(message, asynchronous=False)
    assert request_metadata(consumer, topic)
    print_added("numpy", "confluent_kafka.admin")
    poll_until_assigned(4)
    print_added("numpy")
"""


@pytest.mark.parametrize("strategy", ["range", "roundrobin,range", "sticky", "cooperative-sticky", "own"])
def test_a_member_imports_numpy_when_it_leads(scene: "Scene", tmp_path: Path, strategy: str) -> None:
    topic = scene.topic(partitions=4)
    leader = scene.consumer(partition_assignment_strategy="range" if strategy == "own" else strategy)
    leader.subscribe([topic])
    scene.own(leader, 4)
    command = [sys.executable, "-c", PROGRAM, scene.kafka.bootstrap_servers, scene.group, topic, strategy]
    said = tmp_path / "said"
    with said.open("w") as file, subprocess.Popen(command, stdout=file, stderr=file) as follower:
        try:
            scene.own(leader, 2)
            scene.produce(topic, 1, partitions=4)
            scene.poll_until(lambda: "\n" in said.read_text(), leader, what="the follower's message")
            assert said.read_text() == "set()\n"
            leader.close()
            assert follower.wait(PATIENCE) == 0
        finally:
            follower.kill()
    assert said.read_text() == "set()\n{'numpy'}\n"
