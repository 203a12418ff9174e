"""The whole demo on a real Kafka, as a user runs it."""

import json
import os
import re
import signal
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException

from groupwright.testing import Listener, LocalKafka, Security
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.terminal import Terminal
from integration_tests.harness.waiting import holds_within, wait_until

pytestmark = [pytest.mark.kafka, pytest.mark.slow]

StartDemo = Callable[..., Any]

SETTLED = "every partition has exactly one owner after"
FIRST_SETTLED = rf"✓ {SETTLED}"


def summary(output: str) -> dict[str, str]:
    """The summary's lines, by heading."""
    _, _, text = output.partition("\nSummary\n")
    return dict(re.findall(r"^  ([a-z]+) +(.*)$", text, re.MULTILINE))


def number(text: str) -> int:
    found = re.match(r"[\d,]+", text)
    assert found, text
    return int(found[0].replace(",", ""))


def test_the_demo_tells_its_story_and_the_books_balance(start_demo: StartDemo) -> None:
    demo = start_demo("--pause", "0.5")
    metrics = demo.wait_for(r"member-1 is up; its metrics: (http://127\.0\.0\.1:\d+/metrics)")[1]
    demo.wait_for(rf"member-4 joins[\s\S]*{FIRST_SETTLED}")
    with urllib.request.urlopen(metrics, timeout=PATIENCE) as answer:  # noqa: S310 - an address on this machine
        page = answer.read().decode()
    assert len(demo.members()) == 4

    assert demo.exit_status() == 0, demo.output + demo.errors
    assert demo.errors == ""
    demo.wait_for_its_processes()
    assert list(demo.temporary.iterdir()) == []

    completed = re.search(
        r'^groupwright_rebalances_total\{client_id="member-1".*completed.*"cooperative-sticky"\} (.*)$',
        page,
        re.MULTILINE,
    )
    assert completed
    assert float(completed[1]) >= 2

    story = [line[10:] for line in demo.output.splitlines() if re.match(r" *\d+\.\d s  (?! )", line)]
    lines = [line for line in story if line.startswith(("member-", "✓"))]
    assert [line.partition(":")[0].partition(" after")[0] for line in lines] == [
        "member-1, member-2 and member-3 join",
        "✓ every partition has exactly one owner",
        "member-4 joins",
        "✓ every partition has exactly one owner",
        "member-2 is killed",
        "✓ every partition has exactly one owner",
        "member-3 leaves",
        "✓ every partition has exactly one owner",
    ]

    result = summary(demo.output)
    assert result["lost"] == "0"
    assert result["owners"] == "4 of 4 changes left each partition with exactly one"
    assert "unexplained" not in result
    produced, consumed = (number(part) for part in result["messages"].split(", "))
    assert produced > 1000
    assert consumed - produced == number(result["duplicates"])
    # As few as possible: 4+4+4, 3+3+3+3, 4+4+4, 6+6.
    moved, kept = re.findall(r"\d+", result["partitions"])[::2]
    assert (moved, int(kept) > 20) == ("10", True), result["partitions"]
    assert number(result["meanwhile"]) > 0


def test_ctrl_c_in_the_middle_leaves_nothing_behind(start_demo: StartDemo) -> None:
    demo = start_demo("--pause", "60")
    demo.wait_for(FIRST_SETTLED)
    assert len(demo.members()) == 3
    demo.signal(signal.SIGINT)
    assert demo.exit_status() == 130
    demo.wait_for_its_processes()
    assert list(demo.temporary.iterdir()) == []
    assert "stopping" in demo.output
    assert demo.errors == "groupwright demo: stopped; nothing is left running\n"


def test_sigterm_while_kafka_starts_leaves_nothing_behind(start_demo: StartDemo) -> None:
    demo = start_demo()
    demo.wait_for("starting Kafka")
    wait_until(lambda: any(demo.temporary.glob("groupwright-kafka-*/kafka.log")), "the broker's log")
    demo.wait_for("starting Kafka")
    demo.signal(signal.SIGTERM)
    assert demo.exit_status() == 143
    demo.wait_for_its_processes()
    assert list(demo.temporary.iterdir()) == []


@pytest.mark.endurance
def test_a_second_ctrl_c_kills_members_that_do_not_leave(start_demo: StartDemo) -> None:
    """A member that is suspended cannot leave; the first Ctrl-C would wait for it."""
    demo = start_demo("--pause", "60")
    demo.wait_for(FIRST_SETTLED)
    for member in demo.members():
        member.suspend()
    demo.signal(signal.SIGINT)
    demo.wait_for("stopping")
    started = time.monotonic()
    demo.signal(signal.SIGINT)
    assert demo.exit_status() == 130
    assert time.monotonic() - started < PATIENCE / 4  # the first would have waited for a minute
    demo.wait_for_its_processes()


def test_nothing_outlives_a_demo_that_is_killed(start_demo: StartDemo) -> None:
    demo = start_demo("--pause", "60")
    demo.wait_for(FIRST_SETTLED)
    assert len(demo.members()) == 3
    demo.signal(signal.SIGKILL)
    demo.exit_status()
    demo.wait_for_its_processes()


def test_a_member_that_dies_by_itself_ends_the_demo_with_its_name(start_demo: StartDemo) -> None:
    demo = start_demo("--pause", "60")
    demo.wait_for(FIRST_SETTLED)
    demo.members()[0].kill()
    assert demo.exit_status() == 1
    assert re.match(r"groupwright demo: member-1 ended by itself, with exit status -9", demo.errors)
    assert "Traceback" not in demo.errors
    demo.wait_for_its_processes()


@pytest.mark.endurance
def test_on_a_cluster_of_ones_own_it_goes_on_until_ctrl_c_and_tidies_up(
    start_demo: StartDemo, local_kafka: LocalKafka
) -> None:
    demo = start_demo(
        *("--bootstrap-servers", local_kafka.bootstrap_servers, "--keep"),
        *("--assignor", "roundrobin", "--pause", "0", "--messages-per-second", "1000"),
    )
    name = demo.wait_for(r"the topic is (groupwright-demo-\w+)")[1]
    demo.wait_for("Ctrl-C ends it, with a summary")
    demo.signal(signal.SIGINT)
    assert demo.exit_status() == 0, demo.output + demo.errors
    demo.wait_for_its_processes()

    result = summary(demo.output)
    assert result["lost"] == "0"
    assert number(result["messages"]) > 1000

    admin = local_kafka.admin()
    assert name not in admin.list_topics(timeout=PATIENCE).topics
    with pytest.raises(KafkaException, match="GROUP_ID_NOT_FOUND"):
        admin.delete_consumer_groups([name])[name].result(PATIENCE)
    assert local_kafka.running


@pytest.mark.endurance
def test_on_a_terminal_it_shows_the_view_of_watch_with_the_steps() -> None:
    terminal = Terminal("demo", "--assignor", "range", "--pause", "1")
    try:
        assert holds_within(lambda: "duplicate is explained" in terminal.output, 3 * PATIENCE), (
            terminal.output
        )
        assert terminal.process.wait(PATIENCE) == 0
        assert terminal.after() == terminal.before
        shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", terminal.output).replace("\r", "")
    finally:
        terminal.close()

    assert "Traceback" not in shown
    assert "Groupwright demo: range, 12 partitions" in shown
    assert re.search(r"^groupwright-demo-\w+  Stable for \d+ s  classic, range  \d\d:", shown, re.MULTILINE)
    assert re.search(r"^4 members, 12 partitions; lag [\d,]+, [\d,.]+/s produced", shown, re.MULTILINE)
    assert re.search(r"^member-4 9-11\* +consuming +\d+ +\d+ +\d\.\d+ s", shown, re.MULTILINE)
    assert re.search(r"^member-2 \S+ +killed ", shown, re.MULTILINE)
    assert re.search(r"^\d rebalances seen, \d in the last minute$", shown, re.MULTILINE)
    addresses = r"^Kafka: 127\.0\.0\.1:\d+  metrics of member-1: http://127\.0\.0\.1:\d+/metrics$"
    assert re.search(addresses, shown, re.MULTILINE)
    last = shown[shown.rindex("Groupwright demo: ") :]
    assert "! The group has no members" in last
    assert [line.split()[:3] for line in last.splitlines() if re.match(r"member-\d", line)] == [
        ["member-1", "-", "left"],
        ["member-2", "-", "killed"],
        ["member-3", "-", "left"],
        ["member-4", "-", "left"],
    ]
    assert re.search(r"^✓ +member-3 leaves +one owner each after", shown, re.MULTILINE)


OWN_ASSIGNOR = """
from groupwright.assignors import Assignor

class FirstTakesAll(Assignor):
    name = "first-takes-all"  # so that the demo also kills a member without partitions

    def assign(self, group):
        first = min(group.members, key=lambda member: member.id)
        return {first.id: {topic: range(group.topics[topic].partitions) for topic in group.subscribers()}}
"""


@pytest.mark.endurance
def test_an_assignor_of_ones_own_on_a_secured_cluster(
    start_demo: StartDemo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "first_takes_all.py").write_text(OWN_ASSIGNOR)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    with LocalKafka(security=Security()) as kafka:
        config = tmp_path / "client.json"
        config.write_text(json.dumps(kafka.secure_config(Listener.SASL_SSL, user="alice")))
        demo = start_demo(
            *("--config", str(config), "--assignor", "first_takes_all:FirstTakesAll", "--pause", "0"),
            *("--messages-per-second", "1000", "--output", "json"),
        )
        assert demo.exit_status() == 0, demo.output + demo.errors
        demo.wait_for_its_processes()
        result = json.loads(demo.output)
        assert (result["passed"], result["messages"]["lost"]) == (True, 0)
        assert result["partitions"]["kept"] == 0  # it is eager
        assert len(result["changes"]) == 4
        name = re.findall(r"the topic is (groupwright-demo-\w+)", demo.errors)[0]
        admin = kafka.admin()
        assert name not in admin.list_topics(timeout=PATIENCE).topics
        with pytest.raises(KafkaException, match="GROUP_ID_NOT_FOUND"):
            admin.delete_consumer_groups([name])[name].result(PATIENCE)


FAILING_ASSIGNOR = """
from groupwright.assignors import Assignor

class NoPlan(Assignor):
    name = "no-plan"

    def assign(self, group):
        raise ValueError("no plan")
"""


def test_an_assignor_that_raises_ends_the_demo_with_its_error(
    start_demo: StartDemo, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "no_plan.py").write_text(FAILING_ASSIGNOR)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    demo = start_demo("--assignor", "no_plan:NoPlan", "--pause", "0")
    assert demo.exit_status() == 1
    message = r"groupwright demo: member-\d failed: the assignor 'no-plan' failed: ValueError: no plan\n"
    assert re.fullmatch(message, demo.errors)
    demo.wait_for_its_processes()
