"""Two traces are compared line by line, and a row of the table explains a difference on purpose."""

from integration_tests.parity.compare import differences, explain
from integration_tests.parity.table import PAGE, Row, as_markdown, with_table
from integration_tests.parity.trace import Trace, ranges


def trace(*lines: str, seconds: float | None = None) -> Trace:
    found = Trace()
    for line in lines:
        found.add("c1", line, seconds)
    return found


def test_equal_traces_do_not_differ() -> None:
    assert differences(trace("a", "b"), trace("a", "b")) == []


def test_a_line_that_is_missing_is_a_difference() -> None:
    (found,) = differences(trace("a", "b"), trace("a"))
    assert (found.original, found.ours) == (("b",), ())


def test_a_line_that_differs_stands_against_the_one_in_its_place() -> None:
    """Also if the differing line equals its successor, which difflib would report as an addition."""
    (found,) = differences(trace("a", "failed", "stored"), trace("a", "stored", "stored"))
    assert (found.original, found.ours) == (("failed",), ("stored",))


def test_a_call_may_take_a_while_longer() -> None:
    assert differences(trace("a", seconds=0.1), trace("a", seconds=1.5)) == []


def test_a_call_that_takes_much_longer_is_a_difference() -> None:
    (found,) = differences(trace("a", seconds=0.1), trace("a", seconds=5.0))
    assert found.ours == ("a [slow]",)


def test_ours_may_be_faster() -> None:
    assert differences(trace("a", seconds=9.0), trace("a", seconds=0.1)) == []


def test_messages_of_the_poll_that_assigns_stand_after_the_assignment() -> None:
    found = Trace()
    found.add_message("c1", "t[0]", 0)
    found.add("c1", "until 1 assigned = done")
    found.add("c1", "assigned t[0]")
    found.defer_messages("c1", 2)
    found.add_message("c1", "t[0]", 1)

    assert [line.text for line in found.lines()["c1"]] == [
        "until 1 assigned = done", "assigned t[0]", "messages t[0] 0..1",
    ]  # fmt: skip


def test_messages_of_two_partitions_may_come_in_any_order() -> None:
    one, other = Trace(), Trace()
    for partition, offset in (("t[0]", 0), ("t[1]", 0), ("t[0]", 1)):
        one.add_message("c1", partition, offset)
    for partition, offset in (("t[0]", 0), ("t[0]", 1), ("t[1]", 0)):
        other.add_message("c1", partition, offset)
    assert differences(one, other) == []


def test_a_message_that_comes_again_is_a_difference() -> None:
    one, other = Trace(), Trace()
    for offset in (0, 1):
        one.add_message("c1", "t[0]", offset)
    for offset in (0, 1, 0):
        other.add_message("c1", "t[0]", offset)
    (found,) = differences(one, other)
    assert found.ours == ("messages t[0] 0..1,0",)


def test_ranges() -> None:
    assert ranges([0, 1, 2, 5, "EOF@6", 3, 4]) == "0..2,5,EOF@6,3..4"


ROW = Row(
    "words",
    "close",
    "waits",
    "returns",
    "nothing is left to do",
    ("closing_*",),
    ((r"close.*", r"close = 1"),),
)


def test_a_row_explains_its_scenarios() -> None:
    found = differences(trace("close = 0"), trace("close = 1"))
    assert explain("closing_early", found, [ROW]).rows == ("words",)
    assert not explain("seeking", found, [ROW]).good


def test_the_table_is_markdown() -> None:
    assert "| close | waits | returns | nothing is left to do |" in as_markdown([ROW])


def test_the_consumers_readme_has_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert page == with_table(page), "write it anew: make docs"


def test_traces_survive_json() -> None:
    found = trace("a", seconds=1.0)
    found.add_message("c1", "t[0]", 3)
    assert differences(found, Trace.from_json(found.to_json())) == []


def test_a_crash_of_ours_is_one_whatever_ran_beside_it() -> None:
    def found(*ours: str) -> bool:
        return explain(
            "scenario", differences(trace("child reads, ends by exit 0"), trace(*ours)), ()
        ).crashed

    assert found("child says nothing, ends by signal 11")
    assert found("the process died")
    assert not found("child says nothing, ends by signal 9")  # the scenario's watchdog
    assert not found("child reads nothing, ends by exit 0")


def test_what_a_program_stores_is_explained_by_a_row_that_explains_a_call() -> None:
    one, other = Trace(), Trace()
    one.add("c1", "commit fails")
    other.add("c1", "commit works")
    other.add("stored", "t1[0]@5")
    row = Row("later", "", "", "", "", (), (("commit fails", "commit works"), ("", r"t1.*")), in_fuzzing=True)

    assert explain("program 1", differences(one, other), [row]).good
    assert not explain("program 1", differences(trace(), _stored("t1[0]@5")), [row]).good


def _stored(line: str) -> Trace:
    found = Trace()
    found.add("stored", line)
    return found
