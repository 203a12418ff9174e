"""Simulations of groups in files: numbers, tables, JSON, CSV, and assignors of one's own."""

import csv
import io
import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from groupwright import cli
from groupwright.assignors import (
    CooperativeStickyAssignor,
    Group,
    LoadAwareAssignor,
    Member,
    RangeAssignor,
    StickyAssignor,
    evaluate,
)
from groupwright.assignors import simulate as simulated
from groupwright.cli._command_line.assignors import STUDY_NAMES, load_assignor
from groupwright.cli._study.events import AddPartitions, Event, Join, Leave, NewMember, Restart
from groupwright.cli._study.files import document_of
from groupwright.cli._study.model import StudiedGroup
from groupwright.cli._study.steps import make_scenario
from groupwright.cli.app import app
from groupwright.cli.simulate import report
from groupwright.cli.simulate.report import total
from groupwright.cli.simulate.simulation import Candidate, Simulation, simulate_scenario
from integration_tests.harness.studied_groups import any_study, member, study

SCHEMA = json.loads(
    (Path(cli.__file__).parent / "_schemas" / "simulate.schema.json").read_text(encoding="utf-8")
)
GROUP = study(
    [
        member("c-1", "orders", "audit", assigned={"orders": [0, 1, 2, 3], "audit": [0]}),
        member("c-2", "orders", "audit", assigned={"orders": [4, 5, 6], "audit": [1]}),
        member("c-3", "orders", "audit", assigned={"orders": [7, 8, 9]}),
    ],
    {"orders": 10, "audit": 2},
    state="Stable",
)


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "group.json"
    path.write_text(json.dumps(document_of(GROUP)), encoding="utf-8")
    return str(path)


def run(file: str, *arguments: str, status: int = 0, width: int = 200) -> str:
    result = CliRunner().invoke(app, ["simulate", "--file", file, *arguments], env={"COLUMNS": str(width)})
    assert result.exit_code == status, (result.output, result.exception)
    return result.stdout if status in (0, 7) else result.stderr


def simulation_of(
    name: str, assignor: Any, *events: Event, group: Any = GROUP, as_dynamic: bool = False
) -> Simulation:
    return simulate_scenario(make_scenario(group, events, as_dynamic=as_dynamic), Candidate(name, assignor))


# --- Numbers


def test_the_numbers_are_those_of_the_library() -> None:
    found = simulation_of("cooperative-sticky", CooperativeStickyAssignor(), Leave(("c-2",)))

    owned = {each.id: each.assigned for each in GROUP.members}
    members = [Member(each.id, each.topics, owned=owned[each.id], generation=1) for each in GROUP.members]
    start, left = simulated(
        Group(members, GROUP.topics),
        CooperativeStickyAssignor(),
        [lambda group: Group([each for each in group.members if each.id != "c-2"], group.topics)],
    )
    for step, event in zip(found.steps, (start, left), strict=True):
        assert step.assigned == {id_: share.as_tuples() for id_, share in event.assignment.items()}
        assert step.quality == evaluate(event.before, event.assignment)
        assert (step.rebalances, step.revoked) == (len(event.rebalances), event.revoked.count)
    assert (found.steps[0].quality.moves, found.steps[0].quality.min_moves) == (1, 1)
    assert not found.is_own
    assert simulation_of("range", RangeAssignor()).is_own


def test_totals_are_sums_over_the_events_and_the_balance_of_the_last() -> None:
    steps = simulation_of("sticky", StickyAssignor(), Restart("rolling"), Join((NewMember(),))).steps

    found = total(steps[1:])

    assert len(steps) == 8
    assert found["moved"] == sum(step.quality.moves for step in steps[1:])
    assert found["rebalances"] == 7
    assert found["imbalance"] == steps[-1].quality.imbalance


def test_static_members_restart_without_moves_and_dynamic_ones_with() -> None:
    static = study(
        [
            member(f"m-{each}", instance_id=f"pod-{each}", assigned={"orders": [2 * each, 2 * each + 1]})
            for each in range(3)
        ]
    )

    kept = simulation_of("range", RangeAssignor(), Restart("rolling"), group=static)
    moved = simulation_of("range", RangeAssignor(), Restart("rolling"), group=static, as_dynamic=True)

    assert {key: total(kept.steps[1:])[key] for key in ("moved", "revoked", "rebalances")} == {
        "moved": 0,
        "revoked": 0,
        "rebalances": 0,
    }
    assert kept.steps[-1].assigned == {each.id: each.assigned for each in static.members}
    assert total(moved.steps[1:])["rebalances"] == 6
    assert total(moved.steps[1:])["moved"] > 0


def test_loads_follow_weights_and_capacities() -> None:
    members = [member("big", capacity=3), member("small")]
    weighted = study(members, {"orders": {"partitions": 4, "weights": [10, 10, 10, 10]}}, "load-aware")

    aware = simulation_of(
        "load-aware", LoadAwareAssignor(), Join((NewMember("huge", capacity=4),)), group=weighted
    )
    plain = simulation_of("range", RangeAssignor(), group=weighted)

    start, joined = aware.steps
    assert start.load is not None
    assert joined.load is not None
    assert start.load.loads == {"big": 30, "small": 10}
    assert start.load.peak_over_bound == 1
    assert sorted(joined.load.capacities.values()) == [1, 3, 4]
    assert plain.steps[0].load is not None
    assert plain.steps[0].load.peak_over_bound == 2  # 20 for a capacity of 1, where 10 is possible


def test_racks_are_counted() -> None:
    racks = [["a"], ["b"], ["a"], ["b"]]
    members = [
        member("m-1", rack="a", assigned={"orders": [0, 1]}),
        member("m-2", rack="b", assigned={"orders": [2, 3]}),
    ]
    found = simulation_of(
        "range", RangeAssignor(), group=study(members, {"orders": {"partitions": 4, "racks": racks}})
    )

    assert found.steps[0].assigned == {"m-1": {"orders": (0, 2)}, "m-2": {"orders": (1, 3)}}
    assert (found.steps[0].quality.rack_mismatches, found.steps[0].quality.moves) == (0, 2)


class Broken(RangeAssignor):
    """Assigns as range, and fails for four members."""

    name = "broken"

    def assign(self, group: Group) -> Any:
        if len(group.members) > 3:
            raise RuntimeError("four are too many")
        return super().assign(group)


def test_an_assignor_that_fails_leaves_the_others_their_results(file: str) -> None:
    result = CliRunner().invoke(
        app,
        [
            "simulate",
            "--file",
            file,
            "--join",
            "1",
            "--assignor",
            f"{__name__}:Broken",
            "--assignor",
            "range",
            "-o",
            "json",
        ],
    )

    assert result.exit_code == 7
    assert result.stderr == f"groupwright simulate: assignor '{__name__}:Broken' failed: four are too many\n"
    failed, other = document(result.stdout)["results"]
    assert (failed["error"], failed["steps"], failed["total"]) == ("four are too many", [], None)
    assert (other["error"], len(other["steps"])) == (None, 2)


class Recording(RangeAssignor):
    """Assigns everything to the member that says so."""

    name = "recording"

    def assign(self, group: Group) -> Any:
        chosen = next(each.id for each in group.members if each.user_data == b"me")
        return {chosen: {topic: range(known.partitions) for topic, known in group.topics.items()}}


def test_a_custom_assignor_gets_the_user_data_of_its_group() -> None:
    recorded = study([member("a"), member("b", user_data="bWU=")], assignor="recording")

    found = simulation_of(f"{__name__}:Recording", Recording(), group=recorded)

    assert found.error == ""
    assert found.is_own
    assert found.steps[0].assigned["b"] == {"orders": tuple(range(6))}


@pytest.mark.endurance
@pytest.mark.slow
@given(any_study(), st.sampled_from(STUDY_NAMES), st.booleans())
@settings(max_examples=80, deadline=None)
def test_any_group_of_a_file_is_simulated(group: StudiedGroup, name: str, as_dynamic: bool) -> None:  # noqa: FBT001 - drawn
    join = Join((NewMember(), NewMember(rack="x")))
    events: list[Event] = [join, AddPartitions("orders", 7), Restart("rolling")]
    found = simulate_scenario(
        make_scenario(group, events, as_dynamic=as_dynamic), Candidate(name, load_assignor(name))
    )

    assert found.error == ""
    for step in found.steps[1:]:
        assert step.quality.unassigned == 0
    jsonschema.validate(report.document(group, [found], []), SCHEMA)


# --- Outputs


def document(text: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(text)
    jsonschema.validate(found, SCHEMA)
    return found


@pytest.mark.medium
def test_the_document_follows_the_schema_and_can_be_read_again(file: str, tmp_path: Path) -> None:
    arguments = ("--join", "2", "--leave", "c-3", "--add-partitions", "orders=+2", "--restart", "rolling")
    found = document(run(file, *arguments, "-o", "json"))

    assert found["events"][:3] == [
        "new-1 and new-2 join",
        "c-3 leaves",
        "orders grows from 10 to 12 partitions",
    ]
    assert [each["assignor"] for each in found["results"]] == [
        "range",
        "roundrobin",
        "sticky",
        "cooperative-sticky",
        "broker:uniform",
    ]
    for result in found["results"]:
        last = result["steps"][-1]
        assert len(result["steps"]) == len(found["events"]) + 1
        assert sum(len(n) for share in last["assigned"].values() for n in share.values()) == 14
        assert set(last["assigned"]) <= set(found["names"])
    (tmp_path / "again.json").write_text(json.dumps(found), encoding="utf-8")
    assert document(run(str(tmp_path / "again.json"), *arguments, "-o", "json")) == found


def test_csv_has_a_row_for_each_assignor_and_step(file: str) -> None:
    rows = list(csv.DictReader(io.StringIO(run(file, "--join", "1", "-o", "csv"))))

    assert [(row["assignor"], row["step"], row["own"]) for row in rows[:3]] == [
        ("range", "0", "yes"),
        ("range", "1", "yes"),
        ("roundrobin", "0", "no"),
    ]
    assert rows[1]["event"] == "new-1 joins"
    assert (rows[0]["moved"], rows[0]["revoked"], rows[0]["error"]) == ("0", "12", "")


def test_csv_has_the_ratios_of_the_json(tmp_path: Path) -> None:
    path = tmp_path / "weighted.json"
    topics = {"orders": {"partitions": 3, "weights": [10, 10.3, 10.1]}}
    path.write_text(json.dumps(document_of(study([member("a"), member("b")], topics))), encoding="utf-8")

    row = next(csv.DictReader(io.StringIO(run(str(path), "--assignor", "range", "-o", "csv"))))

    [step] = json.loads(run(str(path), "--assignor", "range", "-o", "json"))["results"][0]["steps"]
    assert float(row["peak_over_average"]) == step["peak_over_average"] == 1.3355


def test_the_tables(file: str) -> None:
    printed = run(file, "--leave", "c-3", "--assignor", "range")

    # The widths of columns differ between versions of rich.
    assert [re.sub(" {2,}", "  ", line.rstrip()) for line in printed.splitlines()] == [
        "billing: Stable, classic, range, 3 members, 12 partitions of 2 topics",
        "",
        "the group as it is",
        "ASSIGNOR  IMBALANCE  MOVED  MIN MOVED  REVOKED  SPREAD  ROUNDS",
        "range*  2  0  1  12  1  1",
        "",
        "c-3 leaves",
        "ASSIGNOR  IMBALANCE  MOVED  MIN MOVED  REVOKED  SPREAD  ROUNDS",
        "range*  0  1  0  9  0  1",
        "",
        "assigned in the end",
        "MEMBER  range*",
        "c-1  6: audit 0, orders 0-4",
        "c-2  6: audit 1, orders 5-9",
        "",
        "* the group's assignor, range.",
    ]


def test_each_step_has_a_table_if_wanted(file: str) -> None:
    shown = run(file, "--restart", "c-1", "--steps").splitlines()

    titles = [
        "the group as it is",
        "c-1 restarts: it leaves",
        "c-1 restarts: it joins",
        "after 2 events, with their sums",
    ]
    assert [line.strip() for line in shown if line.strip() in titles] == titles


def test_many_members_are_cut_unless_all_are_wanted(tmp_path: Path) -> None:
    many = study([member(f"m-{each:03}") for each in range(40)], {"orders": 80})
    path = tmp_path / "many.json"
    path.write_text(json.dumps(document_of(many)), encoding="utf-8")

    assert "and 10 more members: pass --all-members, or --output json" in run(str(path))
    assert "m-039" not in run(str(path))
    assert "m-039" in run(str(path), "--all-members")


@pytest.mark.medium
@pytest.mark.parametrize("width", [80, 200])
def test_tables_fit_the_width_and_have_no_colours_in_a_pipe(
    tmp_path: Path, width: int, groupwright: Callable[..., "subprocess.CompletedProcess[str]"]
) -> None:
    racks = [["a"], ["b"], ["a"], ["b"]]
    wide = study(
        [
            member("m-1", rack="a", assigned={"orders": [0, 1]}),
            member("m-2", rack="b", assigned={"orders": [2, 3]}),
        ],
        {"orders": {"partitions": 4, "racks": racks, "weights": [1, 2, 3, 4]}},
    )
    (tmp_path / "wide.json").write_text(json.dumps(document_of(wide)), encoding="utf-8")

    result = groupwright("simulate", "--file", str(tmp_path / "wide.json"), "--join", "2", COLUMNS=str(width))

    assert (result.returncode, result.stderr) == (0, "")
    assert max(len(line.rstrip()) for line in result.stdout.splitlines()) <= width
    assert "\x1b" not in result.stdout
    heads = [line.split() for line in result.stdout.splitlines() if line.startswith("ASSIGNOR")]
    assert len(heads) == 2
    assert "LOAD" in heads[0]
    assert "cooperative-sticky" in result.stdout


@pytest.mark.medium
def test_colours_are_for_terminals(file: str) -> None:
    master, slave = pty.openpty()
    environment = {
        key: value for key, value in os.environ.items() if key not in ("CI", "NO_COLOR", "COLUMNS")
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "groupwright.cli", "simulate", "--file", file, "--assignor", "range"],
        stdout=slave,
        stdin=subprocess.DEVNULL,
        env={**environment, "TERM": "xterm-256color"},
    )
    os.close(slave)
    shown = b""
    try:
        while read := os.read(master, 65536):
            shown += read
    except OSError:  # the end, on Linux
        pass
    os.close(master)

    assert process.wait() == 0
    assert b"\x1b[1m" in shown


# --- Notes and refusals


@pytest.mark.medium
def test_notes_are_honest(file: str, tmp_path: Path) -> None:
    def notes(change: dict[str, Any], *arguments: str) -> str:
        path = tmp_path / "changed.json"
        path.write_text(json.dumps({**document_of(GROUP), **change}), encoding="utf-8")
        return " ".join(document(run(str(path), *arguments, "-o", "json"))["notes"])

    assert notes({}, "--assignor", "range") == "* the group's assignor, range."
    assert notes({}).startswith("* the group's assignor, range. broker:… assigns in the broker")
    assert notes({"assignor": "mine"}, "--assignor", "range") == (
        "The group's assignor 'mine' is not among these: pass --assignor module:Class."
    )
    by_broker = {"type": "consumer", "assignor": "range"}
    assert notes(by_broker).startswith("* the group's assignor, broker:range. broker:… assigns in the broker")
    assert notes(by_broker, "--assignor", "range") == (
        "The group's assignor 'broker:range' is not among these: pass --assignor broker:range."
    )
    assert notes({"type": "consumer", "assignor": "mine"}).startswith("The brokers assign this group, with")
    assert "Members subscribe to audit, which do not exist" in notes({"topics": {"orders": 10}})
    assert "Coordinators generate the ids of members that join" in notes({}, "--join", "1")
    assert (
        "load-aware"
        in document(run(file, "--assignor", "load-aware", "-o", "json"))["results"][0]["assignor"]
    )


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--assignor", "rnge"], 2, "no assignor is named 'rnge', did you mean 'range'?"),
        (["--leave", "c-11"], 4, "there is no member 'c-11', did you mean 'c-1'?"),
        (["--add-partitions", "order=20"], 4, "the group has no topic 'order', did you mean 'orders'?"),
        (["billing"], 2, "name either a group of the cluster, or a file"),
    ],
)
def test_wrong_options_are_refused(file: str, arguments: list[str], status: int, message: str) -> None:
    assert run(file, *arguments, status=status).startswith(f"groupwright simulate: {message}")


def test_a_group_without_members_needs_some(tmp_path: Path) -> None:
    path = tmp_path / "empty.json"
    path.write_text('{"group": "billing", "members": [], "topics": {"orders": 4}}', encoding="utf-8")

    refused = run(str(path), status=6)
    assert (
        "the group 'billing' has no members, so there is nothing to assign; add some with --join" in refused
    )
    found = document(run(str(path), "--join", "2", "-o", "json"))
    assert found["results"][0]["steps"][1]["imbalance"] == 0
    path.write_text('{"members": [], "topics": {}}', encoding="utf-8")
    assert "neither members nor committed offsets" in run(str(path), "--join", "2", status=6)


def test_all_members_may_leave(file: str) -> None:
    found = document(run(file, "--leave", "c-1", "--leave", "c-2", "--leave", "c-3", "-o", "json"))

    assert found["results"][0]["steps"][-1]["assigned"] == {}
    assert found["results"][0]["steps"][-1]["rebalances"] == 0
    assert "c-3 leaves" in run(file, "--leave", "c-1", "--leave", "c-2", "--leave", "c-3", "--steps")


def test_partitions_that_are_added_are_assigned() -> None:
    found = simulation_of("range", RangeAssignor(), AddPartitions("orders", 12))

    assert [step.quality.partitions for step in found.steps] == [12, 14]
    assert found.steps[1].quality.unassigned == 0
