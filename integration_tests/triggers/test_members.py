"""Rebalances triggered by members: the exact callbacks and generations that follow."""

import pytest

from groupwright.consumer import Outcome
from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness import coordinator
from integration_tests.harness.members import Join, RunningMember
from integration_tests.harness.wire import OK, WireMember
from integration_tests.triggers.conftest import Settle

pytestmark = pytest.mark.kafka

Partition = tuple[str, int]

eager_at_night = pytest.mark.parametrize(
    "strategy", [pytest.param("range", marks=pytest.mark.endurance), "cooperative-sticky"], indirect=True
)


def all_of(topic: str, partitions: int = 4) -> list[Partition]:
    return [(topic, number) for number in range(partitions)]


def generations_told(member: RunningMember) -> list[int]:
    return [rebalance.generation for rebalance in member.rebalances]


def test_a_member_that_joins_is_given_its_share(
    member: Join, settle: Settle, new_kafka_topic: NewKafkaTopic, *, cooperative: bool
) -> None:
    """Eager: one generation revokes and reassigns everything. Cooperative: two generations move a part."""
    topic = new_kafka_topic(partitions=4)
    first = member("first", [topic])
    settle(1, first)

    second = member("second", [topic])
    settle(3 if cooperative else 2, first, second)

    kept, moved = sorted(first.owned), sorted(second.owned)
    assert len(kept) == len(moved) == 2
    assert sorted(kept + moved) == all_of(topic)
    if cooperative:
        assert first.callbacks == [
            ("assign", all_of(topic)),
            ("revoke", moved),
            ("assign", []),
            ("assign", []),
        ]
        assert second.callbacks == [("assign", []), ("assign", moved)]
        assert (generations_told(first), generations_told(second)) == ([1, 3], [2, 3])
    else:
        assert first.callbacks == [("assign", all_of(topic)), ("revoke", all_of(topic)), ("assign", kept)]
        assert second.callbacks == [("assign", moved)]
        assert (generations_told(first), generations_told(second)) == ([1, 2], [2])


def test_what_a_member_had_that_leaves_is_given_to_the_others(
    member: Join, settle: Settle, new_kafka_topic: NewKafkaTopic, *, cooperative: bool
) -> None:
    """At once: the session timeout is longer than this test."""
    topic = new_kafka_topic(partitions=4)
    first = member("first", [topic])
    settle(1, first)
    second = member("second", [topic])
    last = 3 if cooperative else 2
    settle(last, first, second)
    kept, moved = sorted(first.owned), sorted(second.owned)
    first.callbacks.clear()

    second.close()
    settle(last + 1, first)

    assert second.callbacks[-1] == ("revoke", moved)
    if cooperative:
        assert first.callbacks == [("assign", moved)]
    else:
        assert first.callbacks == [("revoke", kept), ("assign", all_of(topic))]


@eager_at_night
def test_what_a_member_had_whose_session_ends_is_given_to_the_others(
    kafka: Kafka,
    group: str,
    member: Join,
    settle: Settle,
    new_kafka_topic: NewKafkaTopic,
    strategy: str,
    *,
    cooperative: bool,
) -> None:
    """The other member joins and stops: the first one regains all partitions after a session timeout."""
    topic = new_kafka_topic(partitions=4)
    first = member("first", [topic])
    settle(1, first)
    mute = WireMember(
        kafka.bootstrap_servers, group, "mute", topics=[topic], protocols=[strategy], session_ms=6_000
    )
    assert mute.join() == OK
    mute.send_sync()
    assert mute.synced() == OK
    mute.close()

    settle(3, first)

    if cooperative:
        (_, given_up) = first.callbacks[1]
        assert len(given_up) == 2
        assert first.callbacks == [
            ("assign", all_of(topic)),
            ("revoke", given_up),
            ("assign", []),
            ("assign", given_up),
        ]
        assert generations_told(first) == [1, 3]
    else:
        (_, kept) = first.callbacks[2]
        assert len(kept) == 2
        assert first.callbacks == [
            ("assign", all_of(topic)),
            ("revoke", all_of(topic)),
            ("assign", kept),
            ("revoke", kept),
            ("assign", all_of(topic)),
        ]
        assert generations_told(first) == [1, 2, 3]


@pytest.mark.parametrize("strategy", ["cooperative-sticky"], indirect=True)
def test_a_member_that_does_not_poll_in_time_loses_everything_and_comes_back(
    member: Join, settle: Settle, new_kafka_topic: NewKafkaTopic
) -> None:
    """Heartbeats continued, so it left by itself. `consumer/test_liveness.py` has the eager case."""
    topic = new_kafka_topic(partitions=4)
    stalled = member("stalled", [topic], max_poll_interval_ms=6000, session_timeout_ms=6000)
    settle(1, stalled)
    other = member("other", [topic])
    settle(3, stalled, other)
    had = sorted(stalled.owned)
    stalled.callbacks.clear()

    stalled.pause_polling()
    settle(4, other)
    assert sorted(other.owned) == all_of(topic)
    assert stalled.callbacks == []  # no poll can call them
    stalled.resume_polling()
    settle(6, stalled, other)

    assert stalled.callbacks[0] == ("lost", had)
    assert [kind for kind, _ in stalled.callbacks[1:]] == ["assign", "assign"]
    assert stalled.rebalances[2].outcome is Outcome.LOST
    assert sorted(stalled.owned | other.owned) == all_of(topic)


def test_a_static_member_that_is_back_within_its_session_is_not_noticed(
    kafka: Kafka,
    member: Join,
    settle: Settle,
    new_kafka_topic: NewKafkaTopic,
    group: str,
    *,
    cooperative: bool,
) -> None:
    """KIP-345: no new generation, no callback in the other member, and the same partitions."""
    topic = new_kafka_topic(partitions=4)
    stays = member("stays", [topic], group_instance_id="one")
    settle(1, stays)
    restarted = member("restarted", [topic], group_instance_id="two")
    last = 3 if cooperative else 2
    settle(last, stays, restarted)
    had = sorted(restarted.owned)
    stays.callbacks.clear()

    restarted.close()
    assert len(coordinator.owned(kafka.admin(), group)) == 2
    back = member("restarted", [topic], group_instance_id="two")
    settle(last, stays, back)

    assert restarted.callbacks[-1] == ("revoke", had)
    assert back.callbacks == [("assign", had)]
    assert stays.callbacks == []


@eager_at_night
def test_a_static_member_that_is_away_beyond_its_session_is_given_up(
    member: Join, settle: Settle, new_kafka_topic: NewKafkaTopic, *, cooperative: bool
) -> None:
    topic = new_kafka_topic(partitions=4)
    stays = member("stays", [topic], group_instance_id="one")
    settle(1, stays)
    away = member("away", [topic], group_instance_id="two", session_timeout_ms=6000)
    last = 3 if cooperative else 2
    settle(last, stays, away)

    away.close()
    settle(last + 1, stays)
    assert sorted(stays.owned) == all_of(topic)
    back = member("away", [topic], group_instance_id="two")
    settle(last + (3 if cooperative else 2), stays, back)

    assert len(stays.owned) == len(back.owned) == 2
    assert sorted(stays.owned | back.owned) == all_of(topic)
