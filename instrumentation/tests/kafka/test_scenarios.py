"""Metrics of group members in scenarios, for every kind of client: exact values, and times by the test.

Each scenario runs once, for all kinds of client at once. Each test checks the outcome for one kind.
"""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from groupwright.instrumentation._metrics.catalogue import CATALOGUE
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

if TYPE_CHECKING:
    from instrumentation.tests.kafka.conftest import Client, Member, ScenarioRun

pytestmark = pytest.mark.kafka

OutcomeOf = Callable[[Callable[["ScenarioRun"], Any], "Client"], Any]


# --- Joining and leaving --------------------------------------------------------------------------------


@dataclass(frozen=True)
class JoinAndLeave:
    """Four partitions: all to the first member, two to each, all to the first again."""

    alone: "Seen"
    shared: "Seen"
    again: "Seen"
    other: "Seen"
    other_closed: "Seen"
    reasons: list[str | None]
    seconds: float
    """From the first member's `subscribe` to the end, by the test's clock."""
    in_callbacks: float
    """Time inside the first member's callbacks, by the test's clock."""


@dataclass(frozen=True)
class Seen:
    """A member's metrics at one moment."""

    partitions: list[float | None]
    rebalances: float
    durations: tuple[float, float]
    """How many, and their sum."""
    phases: Mapping[str, float]
    """How many, by phase."""
    callbacks: Mapping[str, float]
    """How many, by callback."""
    callback_seconds: float
    state: Mapping[str, float]
    errors: float | None


def seen(member: "Member", topic: str) -> Seen:
    # Statistics, on which the state of a plain consumer rests, come a little later.
    count = member.values("rebalance_duration_seconds_count")
    return Seen(
        partitions=member.partitions(topic),
        rebalances=member.rebalances(),
        durations=(sum(count.values()), sum(member.values("rebalance_duration_seconds_sum").values())),
        phases={
            key[0]: value for key, value in member.values("rebalance_phase_duration_seconds_count").items()
        },
        callbacks={
            key[0]: value for key, value in member.values("rebalance_callback_duration_seconds_count").items()
        },
        callback_seconds=sum(member.values("rebalance_callback_duration_seconds_sum").values()),
        state={key[0]: value for key, value in member.values("membership_state").items()},
        errors=member.value("instrumentation_errors_total"),
    )


def join_and_leave(run: "ScenarioRun") -> JoinAndLeave:
    topic = run.topic(partitions=4)

    def gauges_follow(*members: "Member") -> bool:
        """An asyncio client sets them after the callback, in another thread."""
        return all(seen(member, topic).partitions[-1] == member.owned for member in members)

    first = run.member(topic, "first")
    first.join(topic)
    run.until(lambda: first.owned == 4 and first.rebalances() == 1, first)
    run.until(lambda: first.value("membership_state", state="stable") == 1, first)
    run.until(lambda: gauges_follow(first), first)
    alone = seen(first, topic)

    # A second round is one of the same rebalance within two of its intervals, also on a busy machine.
    calm = {} if run.client.broker_assigned else {"heartbeat.interval.ms": 2_000}
    second = run.member(topic, "second", **calm)
    second.join(topic)
    run.until(lambda: first.owned == second.owned == 2, first, second)
    run.until(lambda: first.rebalances() == 2 and second.rebalances() >= 1, first, second)
    run.until(lambda: gauges_follow(first, second), first, second)
    shared, other = seen(first, topic), seen(second, topic)

    second.close()
    run.until(lambda: first.owned == 4 and first.rebalances() == 3, first)
    run.until(lambda: gauges_follow(first), first)
    return JoinAndLeave(
        alone=alone,
        shared=shared,
        again=seen(first, topic),
        other=other,
        other_closed=seen(second, topic),
        reasons=run.reasons(3, first),
        seconds=time.monotonic() - first.began,
        in_callbacks=first.in_callbacks,
    )


def test_partitions_and_rebalances_are_counted_exactly(client: "Client", outcome_of: OutcomeOf) -> None:
    outcome = outcome_of(join_and_leave, client)

    assert (outcome.alone.partitions, outcome.alone.rebalances) == ([4, 0, 0, 4], 1)
    assert (outcome.shared.partitions, outcome.shared.rebalances) == (
        [6, 4, 0, 2] if client.eager else [4, 2, 0, 2],
        2,
    )
    assert (outcome.again.partitions, outcome.again.rebalances) == (
        [10, 6, 0, 4] if client.eager else [6, 2, 0, 4],
        3,
    )
    assert outcome.other.partitions == [2, 0, 0, 2]
    assert outcome.other_closed.partitions == [2, 2, 0, 0]
    # A cooperative member joins in two rounds, and that is one rebalance.
    assert outcome.other_closed.rebalances == 1
    assert outcome.alone.state == {
        "unjoined": 0, "preparing_rebalance": 0, "completing_rebalance": 0, "stable": 1,
    }  # fmt: skip
    assert outcome.again.errors == outcome.other_closed.errors == 0


def test_durations_and_phases_fit_times_taken_outside(client: "Client", outcome_of: OutcomeOf) -> None:
    outcome = outcome_of(join_and_leave, client)
    alone, again = outcome.alone, outcome.again

    assert alone.durations[0] == 1
    # What a plain consumer gains without a revocation has no beginning that it could see.
    assert again.durations[0] == (3 if client.eager or client.own_membership else 2)
    assert 0 < alone.durations[1] < again.durations[1] < outcome.seconds
    join = {"join", "sync"} if client.own_membership else {"join_and_sync"}
    assert alone.phases == dict.fromkeys({*join, "assign"}, 1)
    assert set(again.phases) == {*join, "assign", "revoke"}
    assert again.phases["assign"] == 3
    assert again.phases["revoke"] == (2 if client.eager else 1)
    assert 0 < outcome.in_callbacks <= again.callback_seconds < outcome.seconds
    assert alone.callbacks == {"assign": 1}


def test_the_reason_is_reported(client: "Client", outcome_of: OutcomeOf) -> None:
    """Only the group's leader, and only Groupwright's, knows which members joined and left."""
    others = (
        ["a member joined", "a member left"]
        if client.own_membership
        else ["members or partitions changed"] * 2
    )

    assert outcome_of(join_and_leave, client).reasons == ["the consumer subscribed", *others]


# --- What else there is to see --------------------------------------------------------------------------


@dataclass(frozen=True)
class Details:
    """Metrics of one member that has consumed 16 of 20 messages, and of a leader of two members."""

    messages: int
    lag: float | None
    lag_max: float | None
    gauges: Mapping[str, float | None]
    ages: Mapping[str, float | None]
    requests: Mapping[tuple[str, ...], float]
    failures: Mapping[tuple[str, ...], float]
    commits: list[float | None]
    info: Mapping[tuple[str, ...], float]
    inside: float | None
    elapsed: float
    leader: list[float | None]
    """Members, imbalance, moves, moves needed; when a second member has joined."""
    client_errors: Mapping[tuple[str, ...], float]
    families: set[str]
    """Those that have series."""


def details(run: "ScenarioRun") -> Details:
    topic = run.topic(partitions=4, messages=5)
    member = run.member(topic, "member", lag_by_partition=True)
    member.join(topic)
    deadline = time.monotonic() + PATIENCE
    while member.messages < 16:  # at least one of each partition: before, librdkafka may not know its lag
        assert time.monotonic() < deadline
        member.poll()
    # Nothing more is taken, and statistics go on coming.
    member.do("pause", member.do("assignment"))
    member.do("commit", asynchronous=False)

    def knows_all_lag() -> bool:
        # The sum alone may be that of statistics from before, which know the lag of a single partition.
        by_partition = member.values("partition_lag")
        return len(by_partition) == 4 and sum(by_partition.values()) == 4

    run.until(knows_all_lag, member)
    run.until(lambda: member.rebalances() == 1, member)
    run.until(lambda: member.value("membership_state", state="stable") == 1, member)
    # librdkafka's statistics have a round trip only if a response came since the last ones.
    round_trips: list[float] = []

    def has_round_trip() -> bool:
        round_trips.append(member.value("coordinator_round_trip_seconds") or 0.0)
        return round_trips[-1] > 0

    run.until(has_round_trip, member)
    if member.client.protocol != "consumer":
        sent = {"request": "offset_commit"}
        run.until(lambda: member.value("group_requests_total", **sent) == 1, member)
        run.until(lambda: (member.value("group_requests_total", request="heartbeat") or 0) > 0, member)
    if member.client.own_membership:  # the request is counted before its answer makes an age
        run.until(lambda: member.value("last_heartbeat_age_seconds") is not None, member)
    member.poll()
    alone: dict[str, Any] = {
        "messages": member.messages,
        "lag": member.value("lag", topic=topic),
        "lag_max": member.value("lag_max", topic=topic),
        "gauges": {
            name: member.value(name)
            for name in (
                "coordinator_node", "coordinator_changes_total", "coordinator_errors_total", "fenced_total",
                "max_poll_exceeded_total", "instrumentation_errors_total",
            )
        },
        "ages": {
            name: member.value(name)
            for name in (
                "last_poll_age_seconds", "last_heartbeat_age_seconds", "statistics_age_seconds",
                "poll_interval_used_ratio",
            )
        } | {"coordinator_round_trip_seconds": round_trips[-1]},
        "requests": member.values("group_requests_total"),
        "failures": member.values("group_request_failures_total"),
        "commits": [
            member.value("commits_total"),
            member.value("commit_duration_seconds_count"),
            sum(member.values("commit_failures_total").values()),
        ],
        "info": member.values("consumer_info"),
        "inside": member.value("poll_seconds_total"),
        "elapsed": time.monotonic() - member.began,
        "client_errors": member.values("client_errors_total"),
        "families": {family.name for family in member.registry.collect() if family.samples},
    }  # fmt: skip

    other = run.member(topic, "other")
    other.join(topic)
    run.until(lambda: other.owned == 2, member, other)
    run.until(lambda: member.rebalances() == 2, member, other)
    names = ("leader_members", "leader_imbalance", "leader_moves_total", "leader_min_moves_total")
    return Details(**alone, leader=[member.value(name) for name in names])


def test_lag_is_to_what_the_application_has_taken(client: "Client", outcome_of: OutcomeOf) -> None:
    """Groupwright's consumer had prefetched all 20 messages by then."""
    outcome = outcome_of(details, client)

    assert (outcome.messages, outcome.lag) == (16, 4)
    assert outcome.lag_max in {1, 2, 3, 4}


def test_the_membership_shows_its_coordinator_and_its_requests(
    client: "Client", outcome_of: OutcomeOf
) -> None:
    outcome = outcome_of(details, client)

    assert outcome.gauges == {
        "coordinator_node": 1,
        "coordinator_changes_total": 0,
        "coordinator_errors_total": 0,
        "fenced_total": 0,
        "max_poll_exceeded_total": 0,
        "instrumentation_errors_total": 0,
    }
    requests = {key[0]: value for key, value in outcome.requests.items()}
    if client.broker_assigned:
        # librdkafka counts no request of KIP-848's.
        assert not set(requests) & {"join_group", "sync_group", "heartbeat"}
    else:
        # With the first JoinGroup a member gets its id (KIP-394). librdkafka may send one again.
        assert requests["join_group"] == 2 if client.own_membership else requests["join_group"] >= 2
        assert (requests["sync_group"], requests["offset_commit"]) == (1, 1)
        assert requests["heartbeat"] >= 1
        assert requests["find_coordinator"] >= 1
        assert requests["offset_fetch"] >= 1
    assert outcome.failures == {}
    membership_labels = "groupwright" if client.own_membership else "librdkafka"
    kind = "eager" if client.eager else "consumer" if client.broker_assigned else "cooperative"
    assert outcome.info == {(membership_labels, kind): 1}
    assert outcome.client_errors == {}


def test_ages_and_times_fit_those_taken_outside(client: "Client", outcome_of: OutcomeOf) -> None:
    outcome = outcome_of(details, client)
    ages = outcome.ages

    assert 0 <= (ages["last_poll_age_seconds"] or 0) < outcome.elapsed
    assert 0 <= (ages["poll_interval_used_ratio"] or 0) < outcome.elapsed / 300
    assert 0 <= (ages["statistics_age_seconds"] or 0) < outcome.elapsed
    assert 0 < (ages["coordinator_round_trip_seconds"] or 0) < outcome.elapsed
    if client.own_membership:
        assert 0 <= (ages["last_heartbeat_age_seconds"] or 0) < outcome.elapsed
    else:
        assert ages["last_heartbeat_age_seconds"] is None
    assert 0 < (outcome.inside or 0) < outcome.elapsed


def test_metrics_without_a_source_in_librdkafka_are_absent(client: "Client", outcome_of: OutcomeOf) -> None:
    shown = outcome_of(details, client).families & {spec.family for spec in CATALOGUE if spec.own_membership}

    if client.own_membership:
        assert "groupwright_last_heartbeat_age_seconds" in shown
        assert "groupwright_leader_imbalance" in shown
    else:
        assert shown == set()


def test_commits_are_counted_and_timed(client: "Client", outcome_of: OutcomeOf) -> None:
    assert outcome_of(details, client).commits == [1, 1, 0]


def test_the_leader_counts_moves_against_the_fewest_needed(client: "Client", outcome_of: OutcomeOf) -> None:
    """The first of two members revoked two of its four partitions; two moves were needed."""
    expected = [2, 0, 2, 2] if client.own_membership else [None] * 4

    assert outcome_of(details, client).leader == expected


# --- What goes wrong ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """A member's metrics after a fault."""

    partitions: list[float | None]
    completed: float
    lost: float
    failed: float
    max_poll_exceeded: float | None
    fenced: float | None
    failures: Mapping[tuple[str, ...], float]
    callbacks: Mapping[str, float]
    errors: list[int]
    """Error codes from poll."""
    others: Any = None


def outcome(member: "Member", topic: str, others: Any = None) -> Outcome:
    return Outcome(
        partitions=member.partitions(topic),
        completed=member.rebalances("completed"),
        lost=member.rebalances("lost"),
        failed=member.rebalances("failed"),
        max_poll_exceeded=member.value("max_poll_exceeded_total"),
        fenced=member.value("fenced_total"),
        failures=member.values("group_request_failures_total"),
        callbacks={
            key[0]: value for key, value in member.values("rebalance_callback_duration_seconds_count").items()
        },
        errors=member.errors,
        others=others,
    )


def stall(run: "ScenarioRun") -> Outcome:
    topic = run.topic(partitions=2, messages=3)
    limit = {
        "max.poll.interval.ms": 6000,
        **({} if run.client.broker_assigned else {"session.timeout.ms": 6000}),
    }
    member = run.member(topic, "slow", **limit)
    member.join(topic)
    run.until(lambda: member.owned == 2 and member.rebalances() == 1, member)
    member.do("pause", member.do("assignment"))
    run.until(lambda: member.value("lag", topic=topic) is not None, member)
    # This is the stall: nothing else shows the client that its application hangs.
    wait_until(lambda: (member.value("poll_interval_used_ratio") or 0) >= 7.5 / 6, "a stall of 7.5 s")
    wait_until(
        lambda: (
            (member.value("lag", topic=topic), member.value("membership_state", state="unjoined"))
            == (None, 1)
        ),
        "its loss, and no lag: its successors show it",
    )
    used, elapsed = member.value("poll_interval_used_ratio"), time.monotonic() - member.began
    run.until(lambda: member.rebalances("lost") == 1, member)
    run.until(lambda: member.partitions(topic)[-1] == member.owned == 2, member)
    return outcome(member, topic, (used, elapsed))


@pytest.mark.slow
def test_a_stall_beyond_max_poll_loses_the_partitions(client: "Client", outcome_of: OutcomeOf) -> None:
    outcome = outcome_of(stall, client)

    assert outcome.errors == [KafkaError._MAX_POLL_EXCEEDED]
    assert outcome.max_poll_exceeded == 1
    assert outcome.partitions == [4, 0, 2, 2]
    assert (outcome.completed, outcome.lost, outcome.failed) == (1, 1, 0)
    assert outcome.callbacks["lost"] == 1
    used, elapsed = outcome.others
    assert 7.5 / 6 <= used <= elapsed / 6


def crash(run: "ScenarioRun") -> Outcome:
    topic = run.topic(partitions=4)
    survivor = run.member(topic, "survivor")
    survivor.join(topic)
    run.until(lambda: survivor.owned == 4 and survivor.rebalances() == 1, survivor)
    with run.victim(topic) as kill:
        run.until(lambda: survivor.owned == 2, survivor)
        kill(survivor)
    began = time.monotonic()
    run.until(lambda: survivor.owned == 4 and survivor.rebalances() == 3, survivor)
    seconds = time.monotonic() - began
    run.until(lambda: survivor.partitions(topic)[-1] == 4, survivor)
    return outcome(survivor, topic, seconds)


@pytest.mark.slow
def test_a_member_that_was_killed_is_missed_after_its_session(
    client: "Client", outcome_of: OutcomeOf
) -> None:
    outcome = outcome_of(crash, client)

    assert outcome.partitions == ([10, 6, 0, 4] if client.eager else [6, 2, 0, 4])
    assert (outcome.completed, outcome.lost, outcome.failed) == (3, 0, 0)
    assert outcome.others >= 4  # of the session's 6 s, some had passed since the last heartbeat


def change(run: "ScenarioRun") -> tuple[Outcome, list[str | None], list[float | None]]:
    one, two = run.topic("-one", partitions=2), run.topic("-two", partitions=3)
    member = run.member(one, "changing")
    member.join(one)
    run.until(lambda: member.owned == 2 and member.rebalances() == 1, member)
    member.join(one, two)
    run.until(lambda: member.owned == 5 and member.rebalances() == 2, member)
    run.grow(two, 5)
    run.until(lambda: member.owned == 7 and member.rebalances() == 3, member)
    run.until(lambda: (member.partitions(one)[-1], member.partitions(two)[-1]) == (2, 5), member)
    return outcome(member, one), run.reasons(3, member), member.partitions(two)


@pytest.mark.slow
def test_a_change_of_subscription_and_new_partitions_are_one_rebalance_each(
    client: "Client", outcome_of: OutcomeOf
) -> None:
    outcome, reasons, of_the_new_topic = outcome_of(change, client)

    assert (outcome.completed, outcome.lost, outcome.failed) == (3, 0, 0)
    assert outcome.partitions == ([6, 4, 0, 2] if client.eager else [2, 0, 0, 2])
    assert of_the_new_topic == ([8, 3, 0, 5] if client.eager else [5, 0, 0, 5])
    assert reasons[0] == "the consumer subscribed"
    if not client.broker_assigned:
        assert reasons[1] == "the subscription changed"
    if client.own_membership:
        assert "-two" in str(reasons[2])


def fence(run: "ScenarioRun") -> tuple[Outcome, Outcome]:
    topic = run.topic(partitions=2)
    first = run.member(topic, "first", **{"group.instance.id": "one"})
    first.join(topic)
    run.until(lambda: first.owned == 2 and first.rebalances() == 1, first)
    second = run.member(topic, "second", **{"group.instance.id": "one"})
    second.join(topic)
    if run.client.broker_assigned:
        run.until(lambda: second.rebalances("failed") >= 1, first, second)
    else:
        run.until(lambda: first.value("fenced_total") == 1 and bool(first.errors), first, second)
        run.until(lambda: second.rebalances() >= 1, second)
    return outcome(first, topic), outcome(second, topic)


def test_a_second_static_member_of_the_same_name_fences_the_first(
    client: "Client", outcome_of: OutcomeOf
) -> None:
    """Under KIP-848 it is the second that is refused."""
    first, second = outcome_of(fence, client)

    if client.broker_assigned:
        assert (first.fenced, first.lost, first.failed) == (0, 0, 0)
        assert (second.fenced, second.failed) == (0, 1)
        return
    assert first.fenced == 1
    # A plain consumer stays in its rebalance-free state, and reports nothing but the fatal error.
    assert first.failed == (1 if client.own_membership else 0)
    if client.own_membership:
        assert set(first.errors) == {KafkaError._FATAL}
        assert sum(first.failures.values()) == 1
        assert {error for error, _ in first.failures} == {"FENCED_INSTANCE_ID"}
    else:
        assert first.failures == {}
    assert (second.fenced, second.failed) == (0, 0)


def restart(run: "ScenarioRun") -> Outcome:
    topic = run.topic(partitions=4)
    session = (
        {} if run.client.broker_assigned else {"session.timeout.ms": 300_000}
    )  # however long a start takes
    # librdkafka may connect while the broker starts, and then waits as long for an answer.
    member = run.member(topic, "patient", **session, **{"socket.timeout.ms": 10_000})
    member.join(topic)
    run.until(lambda: member.owned == 4 and member.rebalances() == 1, member)

    def crash_and_start() -> None:
        run.kafka.kill()  # of a broker that is stopped librdkafka may hear last that there is no broker
        run.kafka.start()

    run.together(crash_and_start)

    def commits() -> bool:
        try:
            member.do("commit", offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
        except KafkaException:
            return False
        return True

    run.until(commits, member)
    run.until(lambda: member.value("membership_state", state="stable") == 1, member)
    run.until(lambda: member.value("coordinator_node") == 1, member)
    counts = [member.value("commits_total"), sum(member.values("commit_failures_total").values())]
    return outcome(member, topic, (counts, member.value("coordinator_changes_total")))


@pytest.mark.slow
def test_a_restart_of_the_coordinator_is_no_rebalance(client: "Client", outcome_of: OutcomeOf) -> None:
    """It finds the group in its log again, and the member is known to it."""
    outcome = outcome_of(restart, client)

    assert (outcome.completed, outcome.lost, outcome.failed) == (1, 0, 0)
    assert outcome.partitions == [4, 0, 0, 4]
    (ended, failed), changes = outcome.others
    assert ended == failed + 1
    assert changes == 0  # the same broker
