"""The coordinator's view of a group: its members, and the leader of each generation."""

import re
from dataclasses import dataclass

from confluent_kafka.admin import AdminClient

from groupwright.testing import Kafka
from integration_tests.harness.patience import PATIENCE


@dataclass(frozen=True, slots=True)
class Generation:
    """A generation assigned by its leader."""

    number: int
    leader: str
    """Its ``client.id``, of which the coordinator makes member ids."""
    members: int


def generations(kafka: Kafka, group: str) -> list[Generation]:
    """Return the group's generations, in order, from the broker's log: no request returns the leaders."""
    line = re.compile(
        rf"Assignment received from leader (\S+)-[0-9a-f-]{{36}} for group {re.escape(group)} "
        r"for generation (\d+)\. The group has (\d+) members"
    )
    found = line.finditer(kafka.log())
    entries = [Generation(int(entry[2]), entry[1], int(entry[3])) for entry in found]
    return sorted(entries, key=lambda generation: generation.number)


def owned(admin: AdminClient, group: str) -> dict[str, set[tuple[str, int]]]:
    """Return the coordinator's assignment, by the members' ``client.id``."""
    description = admin.describe_consumer_groups([group], request_timeout=PATIENCE)[group].result()
    return {
        member.client_id: {(part.topic, part.partition) for part in member.assignment.topic_partitions}
        for member in description.members
    }
