"""Tidying removes nondeterminism from a random program's trace, and nothing else."""

import pytest

from integration_tests.parity.fuzz.tidy import tidy
from integration_tests.parity.trace import Trace


def texts(trace: Trace, name: str) -> list[str]:
    return [line.text for line in trace.lines()[name]]


def test_on_commit_has_a_timeline_of_its_own_and_cuts_no_block() -> None:
    trace = Trace()
    trace.add_message("c1", "t1[0]", 0)
    trace.add("c1", "on_commit None [t1[0]@1]")
    trace.add_message("c1", "t1[0]", 1)

    tidy(trace, often=False, cooperative=False)

    assert texts(trace, "c1") == ["messages t1[0] 0..1"]
    assert texts(trace, "c1 on_commit") == ["on_commit None [t1[0]@1]"]


def test_a_commit_of_an_unknown_partition_comes_last_since_it_is_retried() -> None:
    trace = Trace()
    for line in ("UNKNOWN_TOPIC_OR_PART [t1[7]@1]", "None [t1[0]@2]", "None [t1[0]@1]"):
        trace.add("c1", f"on_commit {line}")

    tidy(trace, often=False, cooperative=False)

    assert texts(trace, "c1 on_commit") == [
        "on_commit None [t1[0]@2]",
        "on_commit None [t1[0]@1]",
        "on_commit UNKNOWN_TOPIC_OR_PART [t1[7]@1]",
    ]


def test_of_commits_at_a_short_interval_those_that_failed_are_kept_once() -> None:
    trace = Trace()
    for error in ("None", "_NO_OFFSET", "None", "_NO_OFFSET"):
        trace.add("c1", f"on_commit {error} [t1[0]@1]")

    tidy(trace, often=True, cooperative=False)

    assert texts(trace, "c1 on_commit") == ["on_commit _NO_OFFSET [t1[0]@1]"]


END = "messages t1[0] EOF@20"


def ends_after(line: str) -> list[str]:
    """Return what tidying leaves of a line between two equal ends of a partition."""
    trace = Trace()
    trace.add_message("c1", "t1[0]", "EOF@20")
    trace.add("c1", line)
    trace.add_message("c1", "t1[0]", "EOF@20")
    tidy(trace, often=False, cooperative=True)
    return texts(trace, "c1")


@pytest.mark.parametrize(
    "line",
    [
        "on_assign t1[1]",
        "on_revoke t2[0]",
        "commit(asynchronous=False) = [t1[0]@20]",
        "incremental_assign([t1[1]@3]) = None",
        "incremental_assign([t1[0]]) raises KafkaException(_CONFLICT)",
        "unassign() raises KafkaException(_STATE)",
        "seek(t1[1]@7) = None",
        "subscribe(['t1']) = None",
        "resume([t2[0], t1[0]]) = None",
    ],
)
def test_the_end_of_a_kept_partition_is_told_once(line: str) -> None:
    assert ends_after(line) == [END, line]


@pytest.mark.parametrize(
    "line",
    [
        "on_revoke t1[0..1] t2[0]",
        "on_lost t1[0]",
        "seek(t1[0]@end) = None",
        "incremental_assign([t1[0]@3]) = None",
        "assign([t1[0]]) = None",
        "unassign() = None",
        "unsubscribe() = None",
    ],
)
def test_the_end_of_a_partition_that_starts_again_is_told_again(line: str) -> None:
    assert ends_after(line) == [END, line, END]


def test_the_end_of_a_partition_that_was_paused_is_told_again_when_it_resumes() -> None:
    trace = Trace()
    for end in ("t1[0]", "t1[1]"):
        trace.add_message("c1", end, "EOF@20")
    trace.add("c1", "pause([t1[0]]) = None")
    trace.add("c1", "resume([t1[0..1]]) = None")
    for end in ("t1[0]", "t1[1]"):
        trace.add_message("c1", end, "EOF@20")

    tidy(trace, often=False, cooperative=True)

    assert texts(trace, "c1")[-1] == END


def test_an_error_that_is_repeated_is_one() -> None:
    trace = Trace()
    for _ in range(3):
        trace.add("c1", "error _TRANSPORT")

    tidy(trace, often=False, cooperative=False)

    assert texts(trace, "c1") == ["error _TRANSPORT"]


def test_rounds_of_a_cooperative_rebalance_that_change_nothing_are_left_out() -> None:
    trace = Trace()
    for line in ("on_assign nothing", "incremental_assign([]) = None", "on_assign t1[0]"):
        trace.add("c1", line)

    tidy(trace, often=False, cooperative=True)

    assert texts(trace, "c1") == ["on_assign t1[0]"]


def test_an_end_before_more_messages_is_chance_and_the_last_one_is_not() -> None:
    trace = Trace()
    for offset in (0, "EOF@1", 1, "EOF@2"):
        trace.add_message("c1", "t1[0]", offset)

    tidy(trace, often=False, cooperative=False)

    assert texts(trace, "c1") == ["messages t1[0] 0..1,EOF@2"]
