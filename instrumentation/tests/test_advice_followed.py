"""Advice on configurations, followed to the letter: the finding is gone, and no other is new."""

from collections.abc import Mapping
from typing import Any

import confluent_kafka
import pytest

from groupwright.assignors import RebalanceProtocol, builtin_assignors
from groupwright.consumer import Consumer
from groupwright.consumer.configuration import ProblemKind, find_problems
from groupwright.instrumentation.advice import BrokerLimits, GroupFacts, on_broker, on_configuration, on_group
from groupwright.instrumentation.advice.configuration import RULES, Measured
from groupwright.instrumentation.advice.strategies import LIBRDKAFKA, is_cooperative

GOOD: dict[str, Any] = {
    "bootstrap.servers": "127.0.0.1:1",
    "group.id": "billing",
    "client.id": "billing-1",
    "partition.assignment.strategy": "cooperative-sticky",
    "enable.auto.offset.store": "false",
    "log_level": 0,
}
REMOVED = None
KIP_848 = dict.fromkeys(
    ("partition.assignment.strategy", "session.timeout.ms", "heartbeat.interval.ms"), REMOVED
) | {"group.protocol": "consumer"}
NARROW = Measured(limits=BrokerLimits(min_session_timeout=6_000, max_session_timeout=20_000))

Settings = Mapping[str, Any]

CASES: list[tuple[str, Settings, Measured, Settings]] = [
    # The rule, the settings that it finds, what is known, and one change that it advises.
    ("session-timeout", {"session.timeout.ms": 8000}, Measured(), {"session.timeout.ms": 9000}),
    ("session-timeout", {"session.timeout.ms": 8000}, Measured(), {"heartbeat.interval.ms": 2666}),
    ("session-timeout", {"heartbeat.interval.ms": 20000}, Measured(), {"session.timeout.ms": 60000}),
    ("session-timeout", {"heartbeat.interval.ms": 20000}, Measured(), {"heartbeat.interval.ms": 15000}),
    ("session-timeout", {"session.timeout.ms": 100}, Measured(), {"session.timeout.ms": 9000}),
    (
        "session-timeout",
        {"session.timeout.ms": 2, "max.poll.interval.ms": 5000},
        Measured(),
        {"session.timeout.ms": 6000, "heartbeat.interval.ms": 2000, "max.poll.interval.ms": 6000},
    ),
    (
        "session-timeout",
        {"session.timeout.ms": 20_000, "heartbeat.interval.ms": 7_000},
        NARROW,
        {"heartbeat.interval.ms": 6666},
    ),
    ("max-poll-interval", {}, Measured(longest_processing=200.0), {"max.poll.interval.ms": 600_000}),
    (
        "max-poll-interval",
        {"max.poll.interval.ms": 45_000},
        Measured(longest_processing=28_800.0),
        {"max.poll.interval.ms": 86_400_000},
    ),
    (
        "mixed-strategies",
        {"partition.assignment.strategy": "range,cooperative-sticky"},
        Measured(),
        {"partition.assignment.strategy": "cooperative-sticky"},
    ),
    (
        "mixed-strategies",
        {"partition.assignment.strategy": "co-partitioned-sticky,sticky"},
        Measured(),
        {"partition.assignment.strategy": "co-partitioned-sticky"},
    ),
    (
        "eager-strategy",
        {"partition.assignment.strategy": "range"},
        Measured(),
        {"partition.assignment.strategy": "cooperative-sticky"},
    ),
    (
        "eager-strategy",
        {"partition.assignment.strategy": "", "session.timeout.ms": 30_000},
        Measured(),
        KIP_848,
    ),
    (
        "static-membership",
        {},
        Measured(restarts_often=True),
        {"group.instance.id": "pod-1", "session.timeout.ms": 60_000},
    ),
    (
        "static-membership",
        {"session.timeout.ms": 20_000},
        Measured(restarts_often=True, limits=NARROW.limits),
        {"group.instance.id": "pod-1"},
    ),
    (
        "static-membership",
        {"session.timeout.ms": 120_000},
        Measured(restarts_often=True),
        {"group.instance.id": "pod-1"},
    ),
    (
        "static-session-timeout",
        {"group.instance.id": "pod-1", "session.timeout.ms": 10_000},
        NARROW,
        {"session.timeout.ms": 20_000},
    ),
    (
        "static-session-timeout",
        {"group.instance.id": "pod-1", "session.timeout.ms": 10_000, "max.poll.interval.ms": 10_000},
        Measured(),
        {"session.timeout.ms": 60_000, "max.poll.interval.ms": 60_000},
    ),
    ("auto-commit", {"enable.auto.offset.store": "true"}, Measured(), {"enable.auto.offset.store": "false"}),
    ("auto-commit", {"enable.auto.offset.store": "true"}, Measured(), {"enable.auto.commit": "false"}),
    (
        "auto-commit-interval",
        {"auto.commit.interval.ms": 90_000},
        Measured(),
        {"auto.commit.interval.ms": 5000},
    ),
    (
        "classic-settings",
        {"group.protocol": "consumer", "session.timeout.ms": 30_000},
        Measured(),
        {"partition.assignment.strategy": REMOVED, "session.timeout.ms": REMOVED},
    ),
    ("classic-settings", {"group.protocol": "consumer"}, Measured(), {"group.protocol": REMOVED}),
    ("client-id", {"client.id": ""}, Measured(), {"client.id": "billing-1"}),
]

CHOSEN = {"pod-1", "billing-1", "consumer"}
"""Values that the reader of an advice chooses, or that it writes as words."""


def changed(settings: Settings, change: Settings) -> dict[str, Any]:
    return {key: value for key, value in {**settings, **change}.items() if value is not REMOVED}


@pytest.mark.parametrize(("rule", "settings", "known", "change"), CASES)
def test_advice_that_is_followed_leaves_no_finding(
    rule: str, settings: Settings, known: Measured, change: Settings
) -> None:
    given = changed(GOOD, settings)
    before = {finding.rule: finding for finding in on_configuration(given, known)}
    for key, value in change.items():
        assert key in str(before[rule])
        assert str(value) in before[rule].change or value in (REMOVED, *CHOSEN), before[rule].change

    after = changed(given, change)

    assert {finding.rule for finding in on_configuration(after, known)} <= before.keys() - {rule}
    assert on_broker(after, known.limits) == []
    refused = [each for each in find_problems(after) if each.kind is not ProblemKind.UNSUPPORTED]
    assert refused == []
    Consumer(after).close()
    if after.get("partition.assignment.strategy") != "co-partitioned-sticky":
        confluent_kafka.Consumer(after).close()


def test_every_rule_with_a_change_of_settings_is_followed() -> None:
    """`not-in-librdkafka` advises another class, which the test above creates with its own assignor."""
    names = {name.removeprefix("_") for name in (rule.__name__ for rule in RULES)}
    followed = {rule for rule, *_ in CASES}

    assert len(names) == len(followed | {"not-in-librdkafka"})


@pytest.mark.parametrize("session", [5_999, 1_800_001])
def test_advice_on_the_brokers_limits_is_followed(session: int) -> None:
    settings = {**GOOD, "session.timeout.ms": session, "max.poll.interval.ms": 2_000_000}
    (finding,) = on_broker(settings, BrokerLimits())
    (wanted,) = (each for each in (6_000, 1_800_000) if f"to {each} or" in finding.change)

    after = {**settings, "session.timeout.ms": wanted, "heartbeat.interval.ms": 2_000}

    assert [*on_broker(after, BrokerLimits()), *on_configuration(after)] == []


@pytest.mark.parametrize(
    ("mine", "theirs", "way"),
    [
        ("cooperative-sticky", "range", "To change the group from eager to cooperative"),
        ("range", "cooperative-sticky", "Plain confluent-kafka consumers: stop all members"),
        ("range", "roundrobin", "the first with range, roundrobin, the second without roundrobin"),
        ("load-aware", "cooperative-sticky", "the first with load-aware, cooperative-sticky"),
        ("my-own", "range", "the first with my-own, range"),
        ("load-aware", "range", "To change it: two rolling restarts, the first with load-aware, range"),
    ],
)
def test_advice_on_the_vote_is_followed(mine: str, theirs: str, way: str) -> None:
    group = GroupFacts("Stable", theirs, [("billing-2", None)])
    (finding,) = on_group({**GOOD, "partition.assignment.strategy": mine}, group)

    assert f"set partition.assignment.strategy to {theirs}. " in finding.change
    assert way in finding.change
    assert on_group({**GOOD, "partition.assignment.strategy": theirs}, group) == []


def test_the_kinds_of_assignors_are_those_of_their_classes() -> None:
    kinds = {each.name: RebalanceProtocol.COOPERATIVE in each.protocols for each in builtin_assignors()}

    assert {name: is_cooperative(name) for name in kinds} == kinds
    assert kinds.keys() >= LIBRDKAFKA
    (finding,) = on_configuration({**GOOD, "partition.assignment.strategy": "my-own"})
    assert finding.rule == "not-in-librdkafka"
