"""Targets are compared turn by turn, and pure-Python clients are represented by their fastest methods."""

from dataclasses import replace

import pytest

from benchmarks.consumer.results import (
    EventRun,
    FetchRun,
    Gaps,
    IdleRun,
    LoadCheckRun,
    MemberChangeRun,
    Outcome,
    Results,
    Status,
    Waits,
)
from benchmarks.consumer.tables import tables
from benchmarks.consumer.targets import findings_of


def results() -> Results:
    return Results(command="", date="", machine={}, clients={}, messages=1_000_000)


def fetched(*seconds: float) -> Outcome[FetchRun]:
    """Make runs of a million messages after the first."""
    return Outcome(runs=[FetchRun(1_000_001, 1, 100_000_100, each, 1.0) for each in seconds])


@pytest.mark.parametrize(("seconds", "reached"), [(1.7, True), (1.73, True), (1.8, False)])
def test_poll_reaches_its_part_of_confluents_rate_or_not(seconds: float, reached: bool) -> None:  # noqa: FBT001 - a case
    found = results()
    found.throughput = {
        "Groupwright poll()": fetched(1.0, seconds, 9.0),
        "confluent-kafka poll()": fetched(2.0, 2.0, 2.0),
    }

    (finding,) = findings_of(found)

    assert finding.reached is reached
    assert finding.text.startswith(f"Groupwright poll() fetches {2 / seconds:.2f} times")


def test_rates_are_compared_turn_by_turn() -> None:
    found = results()
    found.throughput = {
        "Groupwright consume(1000)": fetched(1.0, 5.0, 3.0),
        "confluent-kafka consume(1000)": fetched(1.0, 4.0, 3.0, 9.0),
    }

    (finding,) = findings_of(found)

    assert finding.text.startswith("Groupwright consume(1000) fetches 1.00 times")


def test_the_pure_python_clients_are_taken_at_their_best() -> None:
    found = results()
    found.throughput = {
        "Groupwright consume(1000)": fetched(1.0),
        "aiokafka iteration": fetched(6.0),
        "aiokafka getmany()": fetched(4.0),
        "kafka-python poll()": fetched(20.0),
    }

    assert [(finding.text, finding.reached) for finding in findings_of(found)] == [
        ("Groupwright consume(1000) fetches 20.0 times what kafka-python poll() does, wanted 5", True),
        ("Groupwright consume(1000) fetches 4.0 times what aiokafka getmany() does, wanted 5", False),
    ]


def test_the_slowest_event_is_judged() -> None:
    found = results()
    found.events = {"Groupwright": Outcome(runs=[EventRun(revokes=(0.01, 0.051), assigns=(0.02,))])}

    assert [(finding.text, finding.reached) for finding in findings_of(found)] == [
        ("of 3 events the last to be delivered waited 51.0 ms, wanted 50", False),
    ]


def test_an_idle_member_is_judged_beside_confluents() -> None:
    def idled(cpu: float, objects: int, resident: int) -> Outcome[IdleRun]:
        return Outcome(runs=[IdleRun(20, cpu, 0.1, objects, resident)])

    found = results()
    found.idle = {
        "Groupwright": idled(0.1, 24_000, 36_000_001),
        "confluent-kafka": idled(0.04, 15_000, 27_000_000),
    }

    assert [(finding.text, finding.reached) for finding in findings_of(found)] == [
        (
            "an idle member takes 2.5 times the processor time of confluent-kafka's, wanted at most 2.5",
            True,
        ),
        ("it has 9,000 objects more, wanted at most 13,000", True),
        ("it takes 9.0 MB of memory more, wanted at most 9", False),
    ]


def test_a_wait_for_a_load_check_is_judged_beside_the_waits_before() -> None:
    found = results()
    before = Waits(9, 0.005, 0.02)
    for longest, is_reached in ((0.06, True), (0.08, False)):
        runs = [LoadCheckRun(5, before, Waits(9, 0.005, longest), 0, 0)]
        found.load_checks = {"Groupwright load-aware": Outcome(runs=runs)}

        (finding,) = findings_of(found)

        assert finding.reached is is_reached
        assert f"waits {1000 * longest:.0f} ms at most, and 20 ms before" in finding.text


def test_what_groupwright_lacks_is_said() -> None:
    found = results()
    found.member_changes = {
        "join/3": {"Groupwright cooperative-sticky": Outcome(Status.LACKING, "not served")}
    }

    (finding,) = findings_of(found)

    assert (finding.text, finding.reached) == (
        "join/3: Groupwright cooperative-sticky lacking: not served",
        False,
    )


def test_a_join_takes_no_longer_than_theirs_or_does() -> None:
    def joined(*seconds: float) -> Outcome[MemberChangeRun]:
        gaps = Gaps(0, 0, 0)
        return Outcome(runs=[MemberChangeRun(each, each, gaps, gaps, gaps, 0, 0) for each in seconds])

    found = results()
    found.member_changes = {
        "join/3": {
            "Groupwright cooperative-sticky": joined(9.0, 1.0, 1.1),
            "confluent-kafka cooperative-sticky": joined(1.0, 1.1, 1.2),
            "Java cooperative-sticky": joined(1.0),
        }
    }

    assert [(finding.text, finding.reached) for finding in findings_of(found)] == [
        (
            "join/3: all consumed after 1.10 s, wanted at most 1.10 of confluent-kafka cooperative-sticky",
            True,
        ),
        (
            "join/3: all consumed after 1.10 s, wanted at most 1.00 of Java cooperative-sticky",
            False,
        ),
    ]


def test_other_changes_of_members_have_no_target_but_failures_are_said() -> None:
    gaps = Gaps(0, 0, 0)
    run = MemberChangeRun(9.0, 9.0, gaps, gaps, gaps, 0, 0)
    found = results()
    found.member_changes = {
        "kill/10": {
            "Groupwright cooperative-sticky": Outcome(runs=[run]),
            "confluent-kafka cooperative-sticky": Outcome(runs=[replace(run, consumed=1.0)]),
        },
        "deploy/10": {"Groupwright cooperative-sticky": Outcome(Status.TIMEOUT, "no 'consumes'")},
    }

    assert [finding.text for finding in findings_of(found)] == [
        "deploy/10: Groupwright cooperative-sticky timeout: no 'consumes'"
    ]
    assert [table.title for table in tables(found)] == [
        "A member is killed in a group of 10 on 300 partitions",
        "All members are replaced, one after the other, in a group of 10 on 300 partitions",
    ]


def test_a_join_is_shown_by_the_run_in_the_middle() -> None:
    runs = [
        MemberChangeRun(each, each + 1, Gaps(2, 0.1, each), Gaps(0, 0, 0), Gaps(2, 0.1, 0.1), 4, 0)
        for each in (3.0, 1.0, 2.0)
    ]
    found = results()
    found.member_changes = {"join/3": {"Java cooperative-sticky": Outcome(runs=runs)}}

    (table,) = tables(found)

    assert table.rows == [
        [
            "Java cooperative-sticky",
            "3",
            "2.00 (1.00-3.00)",
            "3.00 (2.00-4.00)",
            "2",
            "100, 2000",
            "0",
            "-",
            "100, 100",
            "4",
            "0",
        ]
    ]
