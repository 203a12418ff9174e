"""The cost of deploys, crashes and scaling in simulated groups."""

import doctest
import math
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from groupwright.assignors import Assignor, AssignorError, Group, RangeAssignor, RebalanceProtocol
from groupwright.testing import simulation
from groupwright.testing.simulation import (
    Behaviour,
    Crash,
    Join,
    KafkaVersion,
    Leave,
    Result,
    RollingRestart,
    Scenario,
    Settings,
    SimulationError,
    run_scenario,
    study,
)
from integration_tests.harness.patience import PATIENCE

README = Path(__file__).parents[1] / "README.md"
TOPICS = {"orders": 12}
EAGER = Settings(start_seconds=5)
COOPERATIVE = replace(EAGER, assignor="cooperative-sticky")
STATIC = replace(EAGER, static_membership=True)


def play(scenario: Scenario, settings: Settings = EAGER, pods: int = 4, seed: int = 1) -> Result:
    result = run_scenario(scenario, settings, pods=pods, topics=TOPICS, seed=seed)
    assert result.delivered - result.delivered_twice == result.produced  # nothing is lost
    assert result.min_moves <= result.moves
    assert result.seconds <= result.stable_seconds + 1
    return result


# --- Rolling restarts


@pytest.mark.parametrize("client", Behaviour)
@pytest.mark.parametrize("assignor", ["range", "cooperative-sticky"])
def test_static_members_restart_within_their_sessions_without_a_rebalance(
    client: Behaviour, assignor: str
) -> None:
    deploy = play(RollingRestart(), replace(STATIC, client=client, assignor=assignor))

    assert (deploy.rebalances, deploy.moves, deploy.min_moves, deploy.delivered_twice) == (0, 0, 0, 0)
    # Each partition waits for its own pod: 2 s to stop and 5 s to start, each up to a fifth more.
    assert all(len(each.pauses) == 1 for each in deploy.partitions)
    assert all(5.6 <= each.total <= 8.4 + 0.5 for each in deploy.partitions)


def test_static_members_that_take_longer_than_their_session_rebalance_twice_each() -> None:
    deploy = play(RollingRestart(), replace(STATIC, session_timeout_ms=6_000, start_seconds=15))

    assert deploy.rebalances == 8
    assert deploy.moves > 0


@pytest.mark.parametrize("client", Behaviour)
def test_dynamic_members_rebalance_when_they_leave_and_when_they_return(client: Behaviour) -> None:
    deploy = play(RollingRestart(), replace(EAGER, client=client))

    assert deploy.rebalances == 8
    assert deploy.paused_partitions == 12
    # A closed pod's partitions wait until the others hear of the rebalance by heartbeat.
    assert 2 < deploy.longest_pause < 3 + 0.5


@pytest.mark.parametrize("client", Behaviour)
def test_cooperative_members_pause_fewer_partitions_for_less_time(client: Behaviour) -> None:
    scenario = Join()
    eager = play(scenario, replace(EAGER, client=client), pods=3)
    cooperative = play(scenario, replace(COOPERATIVE, client=client), pods=3)

    assert eager.paused_partitions == 12
    assert cooperative.paused_partitions == cooperative.moves == cooperative.min_moves == 3
    assert eager.rebalances == 1
    assert cooperative.rebalances >= 2


def test_a_sticky_assignor_moves_no_more_than_needed() -> None:
    needed = play(RollingRestart(), replace(EAGER, assignor="sticky"))
    moved = play(RollingRestart())

    assert needed.moves == needed.min_moves
    assert moved.moves > moved.min_moves


def test_restarting_more_pods_at_once_is_faster_and_rebalances_less() -> None:
    one, all_ = play(RollingRestart()), play(RollingRestart(at_once=4))

    assert all_.rebalances < one.rebalances
    assert all_.seconds < one.seconds / 3
    assert all_.longest_pause > one.longest_pause  # no pod is left meanwhile


def test_killed_pods_pause_their_partitions_for_the_session_timeout() -> None:
    killed = play(RollingRestart(killed=4), replace(EAGER, session_timeout_ms=20_000, start_seconds=40))
    closed = play(RollingRestart(), replace(EAGER, session_timeout_ms=20_000, start_seconds=40))

    assert 17 <= killed.longest_pause <= 24
    assert closed.longest_pause < 4
    assert killed.delivered_twice > closed.delivered_twice


def test_a_deploy_that_waits_for_joins_takes_longer() -> None:
    slow = replace(EAGER, ready_seconds=0)

    assert play(RollingRestart(waits_for_join=True), slow).seconds > play(RollingRestart(), slow).seconds


def test_a_pod_is_replaced_when_its_consumer_has_closed() -> None:
    """Otherwise its replacement would fence it."""
    busy = replace(STATIC, processing_ms=(0, 15_000), start_seconds=0, stop_seconds=0)

    assert play(RollingRestart(), busy).rebalances == 0


def test_slow_applications_slow_eager_rebalances_down() -> None:
    busy = replace(EAGER, processing_ms=(0, 15_000))

    assert play(Join(), busy).stable_seconds > play(Join()).stable_seconds + 3


def test_cooperative_java_members_that_process_beyond_their_sessions_never_settle() -> None:
    """JoinGroup's response waits for a poll, and heartbeats wait for the response."""
    busy = replace(COOPERATIVE, session_timeout_ms=6_000, processing_ms=(0, 30_000))
    assert play(Join(), replace(busy, client=Behaviour.LIBRDKAFKA)).rebalances < 10

    with pytest.raises(SimulationError, match=r"processing_ms may be too long for .* session_timeout_ms"):
        play(Join(), busy)


# --- Crashes, joins and leaves


@pytest.mark.parametrize("settings", [EAGER, COOPERATIVE, replace(EAGER, client=Behaviour.LIBRDKAFKA)])
def test_a_crash_pauses_the_partitions_for_about_the_session_timeout(settings: Settings) -> None:
    slow = replace(settings, session_timeout_ms=30_000)
    crashes = [play(Crash(restarts=False), slow, seed=seed) for seed in range(4)]

    for crash in crashes:
        assert 30 - 3 <= crash.longest_pause <= 30 + 3 + 1
        assert sum(each.longest > 5 for each in crash.partitions) == 3  # the crashed pod's
        assert crash.rebalances >= 1
        assert crash.delivered_twice <= 3 * 6  # what it had not committed: up to 5 s of 3 partitions
    assert any(crash.delivered_twice for crash in crashes)


def test_a_crashed_pod_that_restarts_does_not_shorten_its_old_session() -> None:
    crash = play(Crash(), replace(EAGER, session_timeout_ms=40_000))

    assert crash.longest_pause > 30  # the group waits for the dead member's JoinGroup, or its session's end


def test_a_crashed_static_member_takes_its_partitions_back() -> None:
    crash = play(Crash(), STATIC)

    assert crash.rebalances == 0
    assert crash.longest_pause < 5 * 1.2 + 0.5


def test_leaving_pods_pause_their_partitions_for_a_heartbeat() -> None:
    leave = play(Leave(2))

    assert leave.rebalances <= 2
    assert 0 < leave.longest_pause < 4
    assert leave.moves >= 6


def test_a_static_member_that_leaves_for_good_pauses_for_its_session() -> None:
    leave = play(Leave(), replace(STATIC, session_timeout_ms=20_000))

    assert 17 <= leave.longest_pause <= 24


def test_a_longer_heartbeat_interval_pauses_longer() -> None:
    short = study(Leave(), replace(EAGER, heartbeat_interval_ms=500), pods=4, topics=TOPICS)
    long = study(Leave(), replace(EAGER, heartbeat_interval_ms=10_000), pods=4, topics=TOPICS)

    assert short.range(lambda result: result.longest_pause)[1] < 1
    assert 5 < long.range(lambda result: result.longest_pause)[1] < 11


def test_scenarios_follow_each_other() -> None:
    result = run_scenario(
        [Join(2), RollingRestart(at_once=2), Leave(3)], EAGER, pods=2, topics=TOPICS, seed=3
    )

    assert result.pods == 2
    assert result.scenario == "Join(members=2), RollingRestart(at_once=2), Leave(members=3)"
    assert result.rebalances >= 3
    assert result.delivered - result.delivered_twice == result.produced


@pytest.mark.parametrize("version", KafkaVersion)
def test_both_versions_of_kafka_are_played(version: KafkaVersion) -> None:
    assert play(RollingRestart(), replace(EAGER, kafka_version=version)).rebalances == 8


def test_several_topics_are_played() -> None:
    result = run_scenario(RollingRestart(), EAGER, pods=3, topics={"orders": 3, "payments": 5}, seed=1)

    assert [(each.topic, each.partition) for each in result.partitions[:4]] == [
        ("orders", 0),
        ("orders", 1),
        ("orders", 2),
        ("payments", 0),
    ]
    assert len(result.partitions) == 8


# --- Assignors


class FirstTakesAll(Assignor):
    """An assignor of a user's own."""

    name = "first-takes-all"

    def assign(self, group: Group) -> Mapping[str, Mapping[str, range]]:
        first = min(group.members, key=lambda member: member.id)
        return {first.id: {topic: range(group.topics[topic].partitions) for topic in group.subscribers()}}


def test_an_assignor_of_ones_own_is_played() -> None:
    result = play(RollingRestart(), replace(EAGER, assignor=FirstTakesAll()))

    assert result.rebalances == 8
    assert result.moves % 12 == 0


def test_an_eager_assignor_can_be_played_cooperatively() -> None:
    cooperative = replace(EAGER, rebalance_protocol=RebalanceProtocol.COOPERATIVE)

    assert play(Join(), cooperative).paused_partitions < play(Join()).paused_partitions


def test_a_cooperative_assignor_can_be_played_eagerly() -> None:
    eager = replace(COOPERATIVE, rebalance_protocol=RebalanceProtocol.EAGER)

    assert play(Join(), eager).paused_partitions == 12


def test_an_exception_of_an_assignor_is_raised() -> None:
    class Broken(RangeAssignor):
        name = "broken"

        def assign(self, group: Group) -> Mapping[str, Mapping[str, range]]:  # type: ignore[override]
            raise ZeroDivisionError(f"{len(group.members)} members")

    with pytest.raises(ZeroDivisionError, match="members"):
        run_scenario(RollingRestart(), replace(EAGER, assignor=Broken()), pods=2, topics=TOPICS)


@pytest.mark.slow
def test_an_assignor_that_never_converges_is_reported() -> None:
    class Restless(Assignor):
        """Takes a partition from every owner in every rebalance."""

        name = "restless"
        protocols = frozenset({RebalanceProtocol.COOPERATIVE})

        def assign(self, group: Group) -> Mapping[str, Mapping[str, list[int]]]:
            kept = {member.id: list(member.owned.get("orders", ()))[1:] for member in group.members}
            claimed = {each for member in group.members for each in member.owned.get("orders", ())}
            kept[min(kept)] += [each for each in range(12) if each not in claimed]
            return {id_: {"orders": partitions} for id_, partitions in kept.items()}

    settings = replace(EAGER, assignor=Restless())
    with pytest.raises(SimulationError, match=r"not stable after \d+ s and \d+ rebalances: its assignor may"):
        run_scenario(Join(), settings, pods=2, topics=TOPICS)


# --- Seeds


def test_the_same_seed_gives_the_same_result() -> None:
    assert play(RollingRestart(killed=2), seed=7) == play(RollingRestart(killed=2), seed=7)
    assert play(RollingRestart(killed=2), seed=7) != play(RollingRestart(killed=2), seed=8)


@pytest.mark.medium
def test_the_result_does_not_depend_on_the_order_of_sets() -> None:
    program = (
        "from groupwright.testing.simulation import *\n"
        "settings = Settings(assignor='cooperative-sticky', client=Behaviour.LIBRDKAFKA)\n"
        "topics = {'orders': 7, 'audit': 5}\n"
        "print(repr(run_scenario(RollingRestart(killed=2), settings, pods=4, topics=topics)))"
    )
    results = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True,
            text=True,
            check=True,
            timeout=PATIENCE,
        ).stdout
        for hash_seed in ("1", "2", "3")
    }

    assert len(results) == 1


def test_several_seeds_give_a_range() -> None:
    found = study(RollingRestart(), EAGER, pods=3, topics=TOPICS, seeds=range(3))

    assert [result.seed for result in found.results] == [0, 1, 2]
    assert found.results[1] == run_scenario(RollingRestart(), EAGER, pods=3, topics=TOPICS, seed=1)
    low, high = found.range(lambda result: result.total_pause)
    assert low < high
    assert "3 seeds" in str(found)
    assert f"total {low:,.0f} to {high:,.0f} s" in str(found)


# --- Text and errors


def test_a_result_as_text() -> None:
    deploy = play(RollingRestart(at_once=2), STATIC)

    assert str(deploy).splitlines()[:3] == [
        "RollingRestart(at_once=2): 4 pods, 12 partitions, seed 1",
        "  rebalances           0",
        "  moves of partitions  0, of which 0 were needed",
    ]
    assert str(deploy).splitlines()[3].startswith("  partitions paused    12; longest ")
    assert str(deploy).splitlines()[4] == f"  delivered twice      0 of {deploy.produced} messages"


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"heartbeat_interval_ms": 45_000},
            (
                "heartbeat_interval_ms is 45000, which is not below session_timeout_ms (45000), so sessions "
                "expire between heartbeats: set it to a third of the session timeout"
            ),
        ),
        (
            {"session_timeout_ms": 5_000},
            (
                "session_timeout_ms is 5000, and brokers refuse all outside of 6000 to 1800000: change it, "
                "or min_session_timeout_ms and max_session_timeout_ms as on your brokers"
            ),
        ),
        (
            {"client": Behaviour.LIBRDKAFKA, "max_poll_interval_ms": 40_000},
            (
                "max_poll_interval_ms is 40000, and librdkafka refuses less than session_timeout_ms, which "
                "is 45000: raise it"
            ),
        ),
        ({"heartbeat_interval_ms": 0}, "heartbeat_interval_ms is 0: set it to 1 or more"),
        ({"brokers": 0}, "brokers is 0: set it to 1 or more"),
        ({"messages_per_second": 0}, "messages_per_second is 0: set it to more than 0"),
        ({"start_seconds": -1}, "start_seconds is -1: set it to 0 or more"),
        ({"start_seconds": math.inf}, "start_seconds is inf: set it to a finite number"),
        ({"messages_per_second": math.nan}, "messages_per_second is nan: set it to a finite number"),
        ({"session_timeout_ms": "45s"}, "session_timeout_ms is '45s': set it to a finite number"),
        ({"brokers": 1.5}, "brokers is 1.5: set it to a whole number"),
        ({"processing_ms": 5}, "processing_ms is 5: set it to the shortest and the longest time"),
        ({"processing_ms": (1, "2")}, "processing_ms is '2': set it to a finite number"),
        ({"client": "java"}, "client is 'java': set it to Behaviour.JAVA or Behaviour.LIBRDKAFKA"),
        (
            {"kafka_version": "3.9"},
            "kafka_version is '3.9': set it to KafkaVersion.KAFKA_3_9 or KafkaVersion.KAFKA_4_3",
        ),
        ({"assignor": 5}, "assignor is 5: give an assignor object, or the name of a built-in one"),
        ({"processing_ms": (2, 1)}, "processing_ms is (2, 1): set it to the shortest and the longest time"),
    ],
)
def test_impossible_settings(settings: dict[str, object], message: str) -> None:
    with pytest.raises(SimulationError) as raised:
        Settings(**settings)  # type: ignore[arg-type]
    assert str(raised.value) == message


def test_an_unknown_assignor() -> None:
    with pytest.raises(AssignorError, match="rnage"):
        Settings(assignor="rnage")


def test_an_assignor_of_the_broker() -> None:
    with pytest.raises(AssignorError, match="runs in the broker and not in members"):
        Settings(assignor="broker:uniform")


@pytest.mark.parametrize(
    ("scenario", "pods", "topics", "message"),
    [
        (RollingRestart(), 0, TOPICS, "pods is 0: a group needs 1 or more"),
        (
            RollingRestart(),
            1,
            {},
            'topics is empty: name the topics and their numbers of partitions, as {"orders": 12}',
        ),
        (RollingRestart(), 1, {"orders": 0}, "topic 'orders' has 0 partitions: set 1 or more"),
        (RollingRestart(at_once=0), 3, TOPICS, "at_once is 0: restart between 1 and all 3 pods at once"),
        (RollingRestart(at_once=4), 3, TOPICS, "at_once is 4: restart between 1 and all 3 pods at once"),
        (RollingRestart(killed=4), 3, TOPICS, "killed is 4: kill between none and all 3 pods"),
        (Join(0), 3, TOPICS, "members is 0: let 1 or more pods join"),
        (Leave(3), 3, TOPICS, "members is 3: let at least 1 of 3 pods leave, and at least 1 stay"),
        (
            Crash(3, restarts=False),
            3,
            TOPICS,
            "members is 3: let 1 to 2 of 3 pods crash, so that a member is left",
        ),
        (Join(1.5), 3, TOPICS, "members is 1.5: set it to a whole number"),  # type: ignore[arg-type]
        (Join(), "3", TOPICS, "pods is '3': set it to a whole number"),
        (
            Join(),
            3,
            ["orders"],
            "topics is ['orders']: name the topics and their numbers of partitions, as {\"orders\": 12}",
        ),
        (
            Join(),
            3,
            {"orders": "12"},
            "the number of partitions of 'orders' is '12': set it to a whole number",
        ),
        (["join"], 3, TOPICS, "the scenario is 'join': give one, such as RollingRestart()"),
        ([], 3, TOPICS, "there is no scenario: give one, such as RollingRestart()"),
        (
            [Leave(2), Leave(1)],
            3,
            TOPICS,
            "members is 1: let at least 1 of 1 pods leave, and at least 1 stay",
        ),
    ],
)
def test_impossible_scenarios(scenario: Any, pods: Any, topics: Any, message: str) -> None:
    with pytest.raises(SimulationError) as raised:
        run_scenario(scenario, EAGER, pods=pods, topics=topics)
    assert str(raised.value) == message


def test_a_study_needs_a_seed() -> None:
    with pytest.raises(SimulationError, match="seeds is empty: give one or more, such as range"):
        study(RollingRestart(), EAGER, pods=2, topics=TOPICS, seeds=())
    with pytest.raises(SimulationError, match=r"seeds is 3: give several, such as range\(5\)"):
        study(RollingRestart(), EAGER, pods=2, topics=TOPICS, seeds=3)  # type: ignore[arg-type]


def test_a_group_that_cannot_keep_up_with_its_polls_is_reported() -> None:
    settings = replace(
        EAGER, session_timeout_ms=6_000, max_poll_interval_ms=6_000, processing_ms=(20_000, 20_000)
    )
    with pytest.raises(SimulationError, match="processing_ms may be too long for max_poll_interval_ms"):
        run_scenario(RollingRestart(), settings, pods=2, topics=TOPICS)


def test_every_public_name_is_documented() -> None:
    for name in simulation.__all__:
        if name != "Scenario":  # a union of classes
            assert getattr(simulation, name).__doc__, name


@pytest.mark.slow
def test_the_docstrings_example_runs() -> None:
    tested = doctest.testmod(simulation, optionflags=doctest.ELLIPSIS)
    assert tested == doctest.TestResults(failed=0, attempted=5)


@pytest.mark.slow
def test_the_readmes_example_prints_what_it_shows_apart_from_numbers() -> None:
    section = README.read_text(encoding="utf-8").partition("## The cost of a deploy")[2]
    program, shown = re.findall(r"```(?:python|text)\n(.*?)```", section, re.DOTALL)[:2]

    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )

    def masked(text: str) -> str:
        return re.sub(r"\d[\d,.]*( to \d[\d,.]*)?", "N", text)

    assert masked(ran.stdout) == masked(shown)
    assert ran.stderr == ""


@pytest.mark.slow
def test_a_deploy_of_forty_pods_with_four_hundred_partitions() -> None:
    settings = replace(COOPERATIVE, messages_per_second=0.2)
    deploy = run_scenario(RollingRestart(at_once=4), settings, pods=40, topics={"orders": 400})

    assert 20 <= deploy.rebalances <= 80
    assert deploy.moves >= deploy.min_moves >= 400
    assert deploy.delivered - deploy.delivered_twice == deploy.produced
