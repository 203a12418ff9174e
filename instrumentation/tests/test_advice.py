"""Each rule of advice: what it finds, what it leaves alone, and that it says what to change."""

import json
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from groupwright.consumer import Outcome, Rebalance
from groupwright.core import Kind
from groupwright.instrumentation import MembershipSnapshot, Metrics, instrument
from groupwright.instrumentation.advice import (
    BrokerLimits,
    Finding,
    GroupFacts,
    RunningAdvice,
    Severity,
    on_broker,
    on_configuration,
    on_group,
)
from groupwright.instrumentation.advice.configuration import Measured
from groupwright.instrumentation.advice.running import WINDOW

Value = Callable[..., float | None]

DATA = Path(__file__).parent / "data"

GOOD = {
    "group.id": "billing",
    "client.id": "billing-1",
    "partition.assignment.strategy": "cooperative-sticky",
    "enable.auto.offset.store": False,
}
LIMITS = BrokerLimits(min_session_timeout=6_000, max_session_timeout=1_800_000, max_size=3)


def rules(findings: list[Finding]) -> list[str]:
    return [finding.rule for finding in findings]


def test_a_good_configuration_has_nothing_to_be_said() -> None:
    assert on_configuration(GOOD) == []


@pytest.mark.parametrize(
    ("rule", "changes", "evidence", "change"),
    [
        (
            "session-timeout",
            {"session.timeout.ms": 8_000},
            (
                "session.timeout.ms is 8000, less than three times heartbeat.interval.ms, which is 3000 (the "
                "default)"
            ),
            "Set session.timeout.ms to 9000 or more, or heartbeat.interval.ms to 2666 or less",
        ),
        (
            "session-timeout",
            {"heartbeat.interval.ms": "20000"},
            "session.timeout.ms is 45000 (the default)",
            "heartbeat.interval.ms to 15000",
        ),
        (
            "mixed-strategies",
            {"partition.assignment.strategy": "cooperative-sticky, range"},
            "mixes cooperative (cooperative-sticky) and eager assignors (range)",
            (
                "once all members have this list, restart them one by one with cooperative-sticky alone. "
                "Plain confluent-kafka consumers: stop all members"
            ),
        ),
        (
            "eager-strategy",
            {"partition.assignment.strategy": "range"},
            "partition.assignment.strategy is range",
            "two rolling restarts, the first with cooperative-sticky added to the list",
        ),
        (
            "static-session-timeout",
            {"group.instance.id": "pod-1", "session.timeout.ms": 10_000},
            "session.timeout.ms is 10000",
            "60000",
        ),
        (
            "auto-commit",
            {"enable.auto.offset.store": "true"},
            "enable.auto.commit is true (the default)",
            "Set enable.auto.offset.store to false",
        ),
        (
            "auto-commit-interval",
            {"auto.commit.interval.ms": 60_000},
            "auto.commit.interval.ms is 60000",
            "Set auto.commit.interval.ms to about 5000",
        ),
        (
            "classic-settings",
            {"group.protocol": "consumer"},
            "group.protocol is consumer, and partition.assignment.strategy is set",
            "group.remote.assignor",
        ),
        (
            "not-in-librdkafka",
            {"partition.assignment.strategy": "cooperative-own"},
            "partition.assignment.strategy has cooperative-own",
            "Use groupwright.consumer.Consumer",
        ),
        ("client-id", {"client.id": ""}, "client.id is not set", "Set client.id"),
    ],
)
def test_a_rule_finds_its_fault_and_no_other_does(
    rule: str, changes: dict[str, Any], evidence: str, change: str
) -> None:
    (finding,) = on_configuration({**GOOD, **changes})

    assert finding.rule == rule
    assert evidence in finding.evidence
    assert change in finding.change
    assert finding.consequence


def test_what_librdkafka_refuses_by_itself_is_left_to_it() -> None:
    assert on_configuration({**GOOD, "session.timeout.ms": "soon"}) == []


def test_objects_as_strategies_go_by_their_names() -> None:
    class Own:
        name = "own"

    (finding,) = on_configuration({**GOOD, "partition.assignment.strategy": [Own()]})
    assert (finding.rule, finding.evidence) == (
        "not-in-librdkafka",
        "partition.assignment.strategy has own",
    )


def test_no_advice_on_the_session_exceeds_what_the_broker_and_the_consumer_accept() -> None:
    """A session above max.poll.interval.ms is refused by the client, one above the broker's limit by the "
    "broker."""
    slow = {**GOOD, "heartbeat.interval.ms": 20_000}
    (finding,) = on_configuration({**slow, "max.poll.interval.ms": 50_000})
    assert finding.change == "Set heartbeat.interval.ms to 15000 or less"
    narrow = Measured(limits=BrokerLimits(max_session_timeout=50_000))
    (finding,) = on_configuration(slow, narrow)
    assert finding.change == "Set heartbeat.interval.ms to 15000 or less"
    wide = Measured(limits=BrokerLimits(min_session_timeout=70_000))
    (finding,) = on_configuration(slow, wide)
    assert finding.change.startswith("Set session.timeout.ms to 70000 or more")


def test_advice_on_static_members_is_within_limits_and_warns_of_equal_ids() -> None:
    (finding,) = on_configuration(GOOD, Measured(restarts_often=True))
    assert "a different one in each member" in finding.change
    assert "such as 60000 (the broker accepts 1800000 at most)" in finding.change
    short = {**GOOD, "group.instance.id": "a", "session.timeout.ms": 10_000, "max.poll.interval.ms": 20_000}
    (finding,) = on_configuration(short, Measured(limits=BrokerLimits(max_session_timeout=30_000)))
    assert "such as 30000, and max.poll.interval.ms no lower than that: it is 20000" in finding.change


def test_an_assignor_of_groupwright_alone_is_not_looked_for_in_java() -> None:
    for name, where in (("sticky", "Consumer or Java's consumer in all"), ("load-aware", "Consumer in all")):
        (finding,) = on_configuration({**GOOD, "partition.assignment.strategy": name})[:1]
        assert where in finding.change


def test_advice_on_processing_is_within_librdkafkas_limit() -> None:
    (finding,) = on_configuration(GOOD, Measured(longest_processing=40_000.0))
    assert finding.change.startswith("Process fewer messages")


def test_members_of_a_cooperative_and_of_an_eager_group_get_ways_that_work() -> None:
    (finding,) = on_group(GOOD, GroupFacts("Stable", "range", [("a", None)]))
    assert "Java's consumers: two rolling restarts" in finding.change
    assert "Plain confluent-kafka consumers: stop all members" in finding.change
    eager = {**GOOD, "partition.assignment.strategy": "roundrobin"}
    (finding,) = on_group(eager, GroupFacts("Stable", "range", [("a", None)]))
    assert "the first with roundrobin, range, the second without range" in finding.change


def test_what_is_measured_is_held_against_the_configuration() -> None:
    slow = on_configuration(GOOD, Measured(longest_processing=200.0))
    assert rules(slow) == ["max-poll-interval"]
    assert slow[0].consequence.startswith("If processing gets slower, the member leaves")
    assert "Set max.poll.interval.ms to 600000" in slow[0].change
    assert on_configuration(GOOD, Measured(longest_processing=100.0)) == []
    (too_slow,) = on_configuration(GOOD, Measured(longest_processing=300.0))
    assert too_slow.consequence.startswith("Then the member leaves the group")

    assert rules(on_configuration(GOOD, Measured(restarts_often=True))) == ["static-membership"]
    assert on_configuration({**GOOD, "group.instance.id": "a"}, Measured(restarts_often=True)) == []


def test_a_session_outside_of_the_brokers_limits() -> None:
    assert on_broker(GOOD, LIMITS) == []
    for session in (5_999, 1_800_001):
        (finding,) = on_broker({**GOOD, "session.timeout.ms": session}, LIMITS)
        assert finding.rule == "broker-session-limits"
        assert "the broker accepts 6000 to 1800000" in finding.evidence
    (finding,) = on_broker({"session.timeout.ms": 3_000, "max.poll.interval.ms": 4_000}, LIMITS)
    assert "6000 or more, and max.poll.interval.ms no lower than that: it is 4000" in finding.change


@pytest.mark.parametrize(
    ("rule", "group"),
    [
        ("mixed-strategies", GroupFacts("STABLE", "range", [("a", "1")])),
        ("partly-static", GroupFacts("STABLE", "cooperative-sticky", [("a", "1"), ("b", None)])),
        ("client-id", GroupFacts("STABLE", "cooperative-sticky", [("a", None), ("a", None)])),
        ("rebalancing", GroupFacts("PREPARING_REBALANCING", "", [("a", None)])),
        ("rebalancing", GroupFacts("CompletingRebalance", "", [("a", None)])),
        ("mixed-protocols", GroupFacts("STABLE", "uniform", [("a", None)], classic=False)),
        ("group-size", GroupFacts("STABLE", "cooperative-sticky", [("a", "1"), ("b", "2"), ("c", "3")])),
    ],
)
def test_a_rule_over_the_group_finds_its_fault_and_no_other_does(rule: str, group: GroupFacts) -> None:
    assert rules(on_group(GOOD, group, LIMITS)) == [rule]


def test_an_assignor_that_has_no_name_in_a_configuration_is_an_object() -> None:
    (finding,) = on_group(GOOD, GroupFacts("Stable", "mine", [("a", "1")]))
    assert "set partition.assignment.strategy to mine, as an object of its class. " in finding.change


def test_groups_of_kip_848_have_a_limit_of_their_own() -> None:
    group = GroupFacts("Stable", "uniform", [("a", None)], classic=False)
    consumer = {"client.id": "a", "group.protocol": "consumer"}
    assert on_group(consumer, group, BrokerLimits(max_size=1)) == []
    (finding,) = on_group(consumer, group, BrokerLimits(max_consumer_size=1))
    assert "group.consumer.max.size is 1" in finding.evidence


def test_an_empty_group_has_nothing_to_be_said() -> None:
    assert on_group(GOOD, GroupFacts("EMPTY", "", []), LIMITS) == []


def completed_rebalances() -> dict[str, list[float]]:
    """Seconds at which a member of simulated groups completed rebalances, by run.

    Each is the member with the most: `groupwright.testing.simulation`, default settings, librdkafka's
    behaviour. In the storm, one of three members is killed and started again for 40 minutes.
    """
    runs: dict[str, list[float]] = json.loads((DATA / "completed-rebalances.json").read_text("utf-8"))
    return runs


@pytest.mark.parametrize("run", [each for each in completed_rebalances() if each.startswith("rolling")])
def test_a_rolling_deploy_is_no_storm(run: str) -> None:
    advice = RunningAdvice(3.0, 300.0)

    assert [each for at in completed_rebalances()[run] for each in advice.on_rebalance("completed", at)] == []


def test_a_storm_is_warned_of_once_in_a_window() -> None:
    advice = RunningAdvice(3.0, 300.0)
    times = completed_rebalances()["storm"]
    found = {at: each for at in times if (each := advice.on_rebalance("completed", at))}

    (first,) = (at for at in found if at < 3 * WINDOW)
    assert first > 2 * WINDOW
    assert rules(found[first]) == ["storm"]
    assert all(later - at >= WINDOW for at, later in pairwise(found))
    assert advice.on_rebalance("completed", times[-1] + 3 * WINDOW) == []  # those before are over


def test_a_member_that_flaps_is_warned_of() -> None:
    advice = RunningAdvice(3.0, 300.0)

    found = [advice.on_rebalance(outcome, 1.0) for outcome in ("lost", "completed", "failed", "lost")]

    assert [rules(each) for each in found] == [[], [], [], ["flapping"]]


def test_a_callback_that_takes_longer_than_a_heartbeat_is_warned_of() -> None:
    advice = RunningAdvice(3.0, 300.0)
    assert advice.on_callback("revoke", 3.0, 0.0) == []
    (finding,) = RunningAdvice(3.0, 300.0).on_callback("lost", 4.25, 1.0)
    assert "without a commit" in finding.change
    (finding,) = advice.on_callback("revoke", 4.25, 1.0)
    assert "on_revoke took 4.2 s, and heartbeat.interval.ms is 3000" in finding.evidence
    assert finding.consequence.startswith("The whole group waits for it")
    assert advice.on_callback("revoke", 4.25, WINDOW) == []
    assert rules(advice.on_callback("revoke", 4.25, WINDOW + 1.0)) == ["slow-callback"]


@pytest.mark.parametrize("kind", [Kind.COOPERATIVE, Kind.CONSUMER])
def test_a_slow_callback_holds_up_no_whole_group_that_is_not_eager(kind: Kind) -> None:
    for callback in ("assign", "revoke", "lost"):
        advice = RunningAdvice(3.0, 300.0)
        advice.on_rebalance("completed", 0.0, kind)
        (finding,) = advice.on_callback(callback, 4.0, 1.0)
        assert "group waits" not in finding.consequence
        assert "polls no message meanwhile" in finding.consequence


def test_processing_that_nears_the_limit_is_warned_of() -> None:
    advice = RunningAdvice(3.0, 300.0)
    assert advice.on_poll_age(150.0, 0.0) == []
    assert rules(advice.on_poll_age(151.0, 0.0)) == ["max-poll-interval"]
    (finding,) = RunningAdvice(3.0, 60_000.0).on_poll_age(40_000.0, 0.0)
    assert finding.change == "Process fewer messages between polls"  # three times that is not allowed


def test_warnings_are_logged_and_counted_at_the_start_and_at_run_time(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: Callable[..., Any],
    new_rebalance: Callable[..., Rebalance],
    caplog: pytest.LogCaptureFixture,
) -> None:
    consumer = new_consumer(membership_snapshot=MembershipSnapshot(max_poll_interval=300.0))
    consumer.settings = {"session.timeout.ms": 6_000, "heartbeat.interval.ms": 3_000}
    listener = Metrics.of(registry).add_consumer(consumer)
    assert value("groupwright_warnings_total", rule="session-timeout") == 1
    for _ in range(4):
        listener.rebalanced(new_rebalance(outcome=Outcome.LOST))
    consumer.age = lambda: 299.0

    assert value("groupwright_warnings_total", rule="flapping") == 1
    value("groupwright_last_poll_age_seconds")
    assert value("groupwright_warnings_total", rule="max-poll-interval") == 1
    assert value("groupwright_poll_interval_used_ratio") == 299 / 300
    words = [record.getMessage().split()[3] for record in caplog.records]
    assert words == ["session-timeout:", "flapping:", "max-poll-interval:"]
    assert {finding.severity for finding in on_configuration({})} == {Severity.NOTE}


def test_advice_can_be_refused(
    registry: CollectorRegistry,
    value: Value,
    new_consumer: Callable[..., Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    listener = instrument(new_consumer(), registry, advise=False)
    listener.partitions_revoked({"orders": [0]}, 99.0)

    assert value("groupwright_warnings_total", rule="slow-callback") is None
    assert caplog.records == []
