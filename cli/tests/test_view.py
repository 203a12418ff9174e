"""View: lines without a terminal, a table with one."""

import io
import re

import pytest
from rich.console import Console

from groupwright.cli.demo.summary import Summary
from groupwright.cli.demo.view import LiveView, PlainView, view_for
from groupwright.cli.demo.view_model import MemberRow, Progress, Status, StepState, ViewModel
from groupwright.testing.groups import Rebalanced, Report, Started

SUMMARY = Summary(
    changes=[],
    seconds=[0.5],
    members=1,
    generations=1,
    revoked=0,
    kept=0,
    meanwhile=0,
    report=Report(
        produced=5, consumed=5, conflicts=(), strays=(), lost=(), foreign=(), explained=(), unexplained=()
    ),
)


def console(*, terminal: bool, width: int = 110, encoding: str = "utf-8") -> tuple[Console, io.TextIOWrapper]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return Console(
        file=file, force_terminal=terminal, width=width, highlight=False, _environ={"TERM": "xterm"}
    ), file


def shown(file: io.TextIOWrapper) -> str:
    """Return the output without escape sequences."""
    file.flush()
    file.seek(0)
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", file.read())


def model() -> ViewModel:
    found = ViewModel(
        title="the demo",
        kafka="127.0.0.1:9092",
        steps=[
            StepState("two join", "one owner each", Progress.DONE),
            StepState("one is killed", "Kafka notices", Progress.NOW),
            StepState("one leaves"),
        ],
        produced=1234,
        consumed=1200,
        redelivered=7,
        waiting=41,
    )
    for name, owned in (("member-1", (0, 1, 2, 3)), ("member-2", (4, 5, 8, 9, 10, 11))):
        row = found.members[name] = MemberRow(name)
        row.apply(Started(1, {"metrics": "http://127.0.0.1:45555/metrics"}))
        row.apply(Rebalanced(2, 4, 0.125, "completed", tuple(("t", number) for number in owned)))
    found.end("member-2", Status.KILLED)
    return found


def test_without_a_terminal_there_are_lines_with_their_time() -> None:
    plain, file = console(terminal=False)
    times = iter([100.0, 100.0, 101.5, 102.0, 103.25])
    with PlainView(plain, clock=lambda: next(times)) as view:
        view.show_activity("starting Kafka")
        view.show_activity("starting Kafka", "again, with a detail")
        view.announce("member-4 joins")
        view.announce("every partition has exactly one owner", passed=True)
        view.report("member-1 rebalanced")
        view.show(model())
    assert shown(file).splitlines() == [
        "   0.0 s  starting Kafka",
        "   1.5 s  member-4 joins",
        "   2.0 s  ✓ every partition has exactly one owner",
        "   3.2 s    member-1 rebalanced",
    ]


def test_a_terminal_that_knows_ascii_alone_gets_a_word_for_the_check_mark() -> None:
    plain, file = console(terminal=False, encoding="ascii")
    PlainView(plain).announce("settled", passed=True)
    assert "ok settled" in shown(file)


def test_a_long_line_stays_one_line_without_a_terminal() -> None:
    plain, file = console(terminal=False, width=40)
    PlainView(plain).announce("word " * 30)
    assert len(shown(file).splitlines()) == 1


def test_the_table_tells_of_every_member() -> None:
    live, file = console(terminal=True)
    with LiveView(live) as view:
        view.show(model())
    text = shown(file)
    assert re.search(
        r"member-1 +consuming +0-3 +0 +4 +0\.125 s +0 +0 +0 +127\.0\.0\.1:45555\n", re.sub(" +\n", "\n", text)
    )
    assert re.search(r"member-2 +killed +- +0 +4", text)
    assert "metrics of member-1: http://127.0.0.1:45555/metrics" in text
    assert "1,234 produced, 1,200 consumed, 41 waiting, 7 consumed twice" in text
    assert "Kafka: 127.0.0.1:9092" in text


def test_the_table_tells_how_far_the_story_is() -> None:
    live, file = console(terminal=True)
    with LiveView(live) as view:
        view.show(model())
    text = shown(file)
    assert re.search(r"✓ +two join +one owner each", text)
    assert re.search(r"one is killed +Kafka notices", text)
    assert re.search(r"· +one leaves", text)


def test_no_line_of_the_table_is_wider_than_eighty_columns_allow() -> None:
    live, file = console(terminal=True, width=80)
    with LiveView(live) as view:
        view.show(model())
    lines = shown(file).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.rstrip().endswith("meanwhile") for line in lines)
    assert "metrics of member-1: http://127.0.0.1:45555/metrics" in shown(file)


def test_a_step_before_the_story_has_its_detail_on_a_terminal() -> None:
    live, file = console(terminal=True)
    with LiveView(live) as view:
        view.show_activity("downloading Kafka", "kafka-clients.jar")
    assert re.search("downloading Kafka +kafka-clients.jar", shown(file))


def test_the_summary_is_the_same_with_and_without_a_terminal() -> None:
    texts = []
    for make, terminal in ((PlainView, False), (LiveView, True)):
        screen, file = console(terminal=terminal)
        make(screen).conclude(SUMMARY)
        texts.append([line.rstrip() for line in shown(file).splitlines()])
    assert texts[0] == texts[1]
    assert "  messages    5 produced, 5 consumed" in texts[0]


@pytest.mark.parametrize(
    ("terminal", "environment", "kind"),
    [
        (True, {}, LiveView),
        (True, {"CI": "true"}, PlainView),
        (False, {}, PlainView),
    ],
    ids=["a terminal", "a terminal in CI", "a pipe"],
)
def test_the_table_needs_a_terminal_with_somebody_before_it(
    *, terminal: bool, environment: dict[str, str], kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert type(view_for(console(terminal=terminal)[0])) is kind


def test_a_dumb_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    dumb = Console(file=io.StringIO(), force_terminal=True, _environ={"TERM": "dumb"})
    assert isinstance(view_for(dumb), PlainView)


def test_no_color_is_respected() -> None:
    file = io.StringIO()
    screen = Console(file=file, force_terminal=True, _environ={"TERM": "xterm", "NO_COLOR": "1"}, width=110)
    with LiveView(screen) as view:
        view.show(model())
    assert not re.search(r"\x1b\[[0-9;]*3[0-9]m", file.getvalue())
