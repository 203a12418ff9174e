"""Tidying removes nondeterminism from a random program's trace, and nothing else."""

from parity.fuzz.tidy import tidy
from parity.trace import Trace


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


def test_of_commits_at_a_short_interval_those_that_failed_are_kept() -> None:
    trace = Trace()
    for error in ("None", "_NO_OFFSET", "None"):
        trace.add("c1", f"on_commit {error} [t1[0]@1]")

    tidy(trace, often=True, cooperative=False)

    assert texts(trace, "c1 on_commit") == ["on_commit _NO_OFFSET [t1[0]@1]"]


def test_the_end_of_a_partition_is_told_once_until_something_is_called() -> None:
    trace = Trace()
    for line in ("on_assign nothing", "seek(t1[0]@end) = None"):
        trace.add_message("c1", "t1[0]", "EOF@20")
        trace.add("c1", line)
    trace.add_message("c1", "t1[0]", "EOF@20")

    tidy(trace, often=False, cooperative=False)

    end = "messages t1[0] EOF@20"
    assert texts(trace, "c1") == [end, "on_assign nothing", "seek(t1[0]@end) = None", end]


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
