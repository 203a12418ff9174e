"""Groupwright's members share a group with librdkafka's and with Java's, whichever leads it."""

import itertools
from collections import Counter
from collections.abc import Callable

import pytest

from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness import coordinator
from integration_tests.harness.foreign import ForeignMember
from integration_tests.harness.members import RunningMember
from integration_tests.harness.waiting import stays_so, wait_until

pytestmark = pytest.mark.kafka

Member = RunningMember | ForeignMember
StartMember = Callable[[str, str, str, list[str]], Member]
Produce = Callable[[str, int, int], None]

ASSIGNORS = {
    "librdkafka": ("range", "roundrobin", "cooperative-sticky"),
    "java": ("range", "roundrobin", "sticky", "cooperative-sticky"),
}
_EACH_PUSH = {
    ("groupwright", "java", "cooperative-sticky"),
    ("java", "groupwright", "range"),
    ("librdkafka", "groupwright", "cooperative-sticky"),
}
_GROUPS = (
    *(("groupwright", other, assignor) for other, names in ASSIGNORS.items() for assignor in names),
    # A follower does not call the assignor, so each eager one is the same to it.
    *(
        (other, "groupwright", assignor)
        for other in ASSIGNORS
        for assignor in ("range", "cooperative-sticky")
    ),
)
LEADING = [pytest.param(*each, marks=() if each in _EACH_PUSH else pytest.mark.endurance) for each in _GROUPS]
"""The client of the leader, that of the members who join it, and the assignor."""
FIVE_HEARTBEATS = 0.5
PARTITIONS = (4, 3)
MESSAGES = 10


class MixedGroup:
    """Members of one group, by name, with the coordinator's view of it."""

    def __init__(self, kafka: Kafka, group: str, partitions: set[tuple[str, int]]) -> None:
        self.members: dict[str, Member] = {}
        self._kafka = kafka
        self._group = group
        self._partitions = partitions

    def leaders(self) -> list[str]:
        """Return the leader of each generation."""
        return [entry.leader for entry in coordinator.generations(self._kafka, self._group)]

    def owned(self) -> dict[str, set[tuple[str, int]]]:
        """Return a copy of the partitions that each member owns."""
        return {name: set(member.owned) for name, member in self.members.items()}

    def settle(self) -> dict[str, set[tuple[str, int]]]:
        """Wait until each partition has one stable owner; return the partitions by member."""
        wait_until(self._settled, f"{', '.join(self.members)} to share the partitions")
        owned, generations = self.owned(), len(self.leaders())
        stays_so(lambda: self.owned() == owned, FIVE_HEARTBEATS, "the assignment")
        assert len(self.leaders()) == generations
        assert owned == coordinator.owned(self._kafka.admin(), self._group)
        return owned

    def _settled(self) -> bool:
        owned = self.owned()
        each_once = sorted(entry for share in owned.values() for entry in share) == sorted(self._partitions)
        if not (each_once and all(owned.values())):
            return False  # only then are the brokers' logs read, which are long
        last = coordinator.generations(self._kafka, self._group)[-1:]
        return [entry.members for entry in last] == [len(owned)]


@pytest.mark.parametrize(("leading", "joining", "assignor"), LEADING)
def test_a_mixed_group_shares_all_partitions_whoever_leads(
    kafka: Kafka,
    group: str,
    new_kafka_topic: NewKafkaTopic,
    produce: Produce,
    start_member: StartMember,
    leading: str,
    joining: str,
    assignor: str,
) -> None:
    """Two members of the other client join the leader; then one of them leaves, then the leader."""
    topics = {new_kafka_topic(partitions=partitions): partitions for partitions in PARTITIONS}
    everything = {(topic, number) for topic, partitions in topics.items() for number in range(partitions)}
    mixed = MixedGroup(kafka, group, everything)
    everybody: list[Member] = []
    shares: list[dict[str, set[tuple[str, int]]]] = []

    def write() -> None:
        for topic, partitions in topics.items():
            produce(topic, partitions, MESSAGES)

    for name, kind in (("founder", leading), ("second", joining), ("third", joining)):
        write()
        mixed.members[name] = start_member(kind, name, assignor, list(topics))
        everybody.append(mixed.members[name])
        shares.append(mixed.settle())
    write()
    mixed.members.pop("second").close()
    shares.append(mixed.settle())
    assert set(mixed.leaders()) == {"founder"}
    mixed.members.pop("founder").close()
    shares.append(mixed.settle())
    write()

    wait_until(
        lambda: sum(len(member.consumed) for member in everybody) >= 5 * MESSAGES * len(everything),
        "all messages to be consumed",
    )
    assert mixed.leaders()[-1] == "third"
    consumed = Counter(entry for member in everybody for entry in member.consumed)
    assert consumed == {(*entry, offset): 1 for entry in everything for offset in range(5 * MESSAGES)}
    assert [kind for member in everybody for kind, _ in member.callbacks if kind == "lost"] == []
    if assignor.endswith("sticky"):
        assert all(kept_what_they_could(before, after) for before, after in itertools.pairwise(shares))
    if assignor.startswith("cooperative"):
        alone, of_two, of_three = (share["founder"] for share in shares[:3])
        assert given_up(everybody[0]) == sorted(alone - of_two) + sorted(of_two - of_three)


def kept_what_they_could(
    before: dict[str, set[tuple[str, int]]], after: dict[str, set[tuple[str, int]]]
) -> bool:
    """Return whether no partition moved needlessly: each remaining member only gains or only loses."""
    stayed = before.keys() & after.keys()
    return all(before[name] <= after[name] or after[name] <= before[name] for name in stayed)


def given_up(member: Member) -> list[tuple[str, int]]:
    """Return the requests to a member, until it left."""
    revoked = [partitions for kind, partitions in member.callbacks if kind == "revoke"]
    return [entry for partitions in revoked[:-1] for entry in partitions]
