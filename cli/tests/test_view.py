"""View: lines without a terminal, a table with one."""

import io
import re

import pytest
from rich.console import Console

from groupwright.cli._cluster.lag import GroupLag
from groupwright.cli._cluster.model import DescribedGroup, GroupMember, GroupType
from groupwright.cli.demo.summary import Summary
from groupwright.cli.demo.view import LiveView, PlainView, view_for
from groupwright.cli.demo.view_model import MemberRow, Progress, Status, StepState, ViewModel
from groupwright.cli.watch.run import now
from groupwright.cli.watch.view import frame
from groupwright.consumer.cluster import Broker
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


def console(
    *, terminal: bool, width: int = 110, height: int = 40, encoding: str = "utf-8"
) -> tuple[Console, io.TextIOWrapper]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    return Console(
        file=file,
        force_terminal=terminal,
        width=width,
        height=height,
        highlight=False,
        _environ={"TERM": "xterm"},
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


def described(*members: GroupMember, state: str = "Stable") -> GroupLag:
    """Return the demo's group, as a broker describes it."""
    broker = Broker(1, "127.0.0.1", 9092)
    return GroupLag(
        DescribedGroup("demo-1", GroupType.CLASSIC, state, "consumer", "range", members, broker), ()
    )


def assigned(name: str, *partitions: int) -> GroupMember:
    return GroupMember(f"{name}-0123", name, "127.0.0.1", assigned={"demo-1": partitions})


def live_view(screen: Console) -> LiveView:
    """Return a view whose group had two members, the second of which is killed."""
    view = LiveView(screen)
    view.group.update(described(state="Dead"), now() - 3)
    view.group.update(described(assigned("member-1", 0, 1), assigned("member-2", 2, 3)), now() - 2)
    view.group.update(described(assigned("member-1", 0, 1, 2, 3)), now())
    return view


def test_the_group_is_shown_as_watch_shows_it() -> None:
    live, file = console(terminal=True)
    with live_view(live) as view:
        view.show(model())
    text = shown(file)

    watched = io.StringIO()
    Console(file=watched, width=110).print(frame(view.group.view(now()), live, now=now()))
    head, counts, *_ = watched.getvalue().splitlines()
    assert head.startswith("demo-1  Stable for 0 s  classic, range")
    assert head[:-8] in text  # without the time of day
    assert counts in text
    assert "2 rebalances seen, 2 in the last minute" in text
    change = "member-2 left; 2 partitions moved; member-2 lost demo-1 2-3; member-1 gained demo-1 2-3"
    assert change in re.sub(r"\s+", " ", text)


def test_the_table_tells_of_every_member() -> None:
    live, file = console(terminal=True)
    with live_view(live) as view:
        view.show(model())
    text = shown(file)
    assert re.search(
        r"member-1 +0-3\* +consuming +0 +4 +0\.125 s +0 +0 +0 +127\.0\.0\.1:45555\n",
        re.sub(" +\n", "\n", text),
    )
    assert re.search(r"member-2 +- +killed +0 +4", text)
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


def test_a_terminal_of_eighty_columns_and_twenty_four_lines_has_room_for_the_table() -> None:
    live, file = console(terminal=True, width=80, height=24)
    with live_view(live) as view:
        view.show(model())
    lines = shown(file).splitlines()
    assert max(map(len, lines)) <= 80
    assert any(line.rstrip().endswith("meanwhile") for line in lines)
    assert any(line.startswith("member-2") for line in lines)
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
