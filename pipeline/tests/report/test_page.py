"""The page as a reader has it: alone, offline, in a browser; whatever the tables hold."""

import re
import subprocess
from datetime import UTC, datetime, timedelta
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from groupwright.pipeline._report.detail_queries import _ownership, _Reported
from groupwright.pipeline._report.rebalance_events import with_epoch_members
from groupwright.pipeline.report import Compared, Limits, TimeRange, write_report
from integration_tests.harness.tools import find_program

pytestmark = pytest.mark.slow

MADE_AT = datetime(2026, 11, 21, 9, 30, tzinfo=UTC)
HOSTILE = "</svg><script>alert('owned')</script>\"'&{{ 7*7 }}\u202e\x00<img src=x onerror=alert(1)>"


class Seen(HTMLParser):
    """The tags of a page, with its sections' texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text: dict[str, str] = {}
        self._section = ""
        self.feed(page)

    def handle_starttag(self, tag: Any, attrs: Any) -> None:
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in {"src", "href", "srcset", "onerror"}]
        if tag in {"section", "header", "footer"}:
            self._section = dict(attrs).get("id") or self._section

    def handle_data(self, data: Any) -> None:
        self.text[self._section] = self.text.get(self._section, "") + data


@pytest.fixture(scope="module")
def report(frames: Any, month: Any, tmp_path_factory: Any) -> Path:
    out = tmp_path_factory.mktemp("report") / "a new folder" / "report.html"
    return write_report(frames(month), out, made_at=MADE_AT, source="/data/tables")


def test_every_section_says_what_it_found(report: Any, sections: Any) -> None:
    text = Seen(report.read_text()).text
    assert set(sections) <= set(text)
    assert "48 rebalances moved" in text["summary"]
    assert "would have stopped 520 partitions for 1,300 partition-seconds instead of" in text["what-if"]
    assert "our_rules:Pinning" in text["what-if"], (
        "an assignor that failed is in the table, and not the best one"
    )
    assert "the classes of Kafka's Java client, without racks" in text["what-if"]
    assert re.search(r"payments.settlement made \d+% of the avoidable moves", text["groups"])
    assert all(group in text["groups"] for group in ("payments.settlement", "search-indexer", "audit"))
    assert "The last 12 of 34 rebalances" in text["group-0"]
    assert "lagged by up to" in text["lag"]
    assert "8 times" in text["churn"]


def test_a_rebalance_has_a_chain_of_causes(report: Any) -> None:
    text = Seen(report.read_text()).text["group-0"]
    assert re.search(
        r"payments.settlement-\d did not poll for 312 s \(max.poll.interval.ms is 300 s\) and was removed "
        r"\d+ partitions moved, \d+ of them needlessly [\d.]+ s until every member had its partitions",
        text,
    )
    assert re.search(r"payments.settlement-\d left \d+ partitions moved", text)
    assert re.search(r"payments.settlement-\d joined", text)


def test_it_needs_nothing_but_itself(report: Any) -> None:
    page = report.read_text()
    seen = Seen(page)
    assert all(link.startswith("#") for link in seen.links)
    assert {link[1:] for link in seen.links} <= set(re.findall(r' id="([^"]+)"', page)), (
        "every link leads somewhere"
    )
    assert not {"link", "iframe", "object", "embed", "base", "img"} & set(seen.tags)
    assert seen.tags.count("script") == 1
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")


@pytest.mark.endurance
def test_the_same_tables_make_the_same_page(frames: Any, month: Any, report: Any, tmp_path: Path) -> None:
    again = write_report(frames(month), tmp_path / "again.html", made_at=MADE_AT, source="/data/tables")
    assert again.read_text() == report.read_text()


@pytest.mark.endurance
@pytest.mark.integration
def test_a_browser_draws_every_section_in_light_and_dark(report: Any, sections: Any, tmp_path: Path) -> None:
    chromium = find_program("chromium", "chromium-browser", "google-chrome", hint="Debian package chromium")

    def browse(*options: str) -> Any:
        command = [
            chromium,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            f"--user-data-dir={tmp_path}/profile",
        ]
        network = [
            "--host-resolver-rules=MAP * ~NOTFOUND",
            "--enable-logging=stderr",
            "--window-size=1280,4400",
        ]
        return subprocess.run(
            [*command, *network, *options, report.as_uri()], capture_output=True, check=True, timeout=120
        )

    shown = browse("--dump-dom")
    assert b"CONSOLE" not in shown.stderr, "the browser has nothing to say to the console"
    dom = shown.stdout.decode()
    assert '<div class="tools" id="tools">' in dom, "the script ran: without it the search is hidden"
    for section in (*sections, "group-0"):
        body = dom.split(f'<section id="{section}"')[1].split("</section>")[0]
        drawn = body.count("<rect") + body.count("<path") + body.count("<td")
        assert drawn > 5, f"{section} is drawn"
    pictures = [tmp_path / "light.png", tmp_path / "dark.png"]
    for scheme, picture in zip((1, 0), pictures, strict=True):
        browse(f"--blink-settings=preferredColorScheme={scheme}", f"--screenshot={picture}")
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size > 50_000, "a blank page is far smaller"
    assert pictures[0].read_bytes() != pictures[1].read_bytes()


def test_hostile_names_stay_text(frames: Any, month: Any, tmp_path: Path) -> None:
    names = {"group_id", "client_id", "member_id", "cause", "assignor", "error"}
    hostile = {
        table: [
            {name: HOSTILE if name in names else value for name, value in row.items()} for row in rows[:40]
        ]
        for table, rows in month.items()
    }
    for row in hostile["rebalances"]:
        row["joined"] = row["left"] = [HOSTILE]
    page = write_report(
        frames(hostile), tmp_path / "hostile.html", made_at=MADE_AT, source=HOSTILE
    ).read_text()
    seen = Seen(page)
    assert "img" not in seen.tags
    assert seen.tags.count("script") == 1, "the page's own"
    assert all(re.fullmatch(r"#[a-z0-9-]+", link) for link in seen.links)
    assert "\u202e" not in page
    assert "\x00" not in page
    assert "alert('owned')" in "".join(seen.text.values()), "it is shown, as the text that it is"
    assert "{{ 7*7 }}" in "".join(seen.text.values()), "nothing in it is a template"


def test_without_tables_every_section_says_why_it_is_empty(sections: Any, tmp_path: Path) -> None:
    text = Seen(write_report({}, tmp_path / "none.html", made_at=MADE_AT).read_text()).text
    assert "The table rebalances is missing: run the batch or the streaming job first." in text["summary"]
    assert "groupwright pipeline what-if" in text["what-if"]
    for section in sections:
        assert "is missing" in text[section] or section == "what-if"
    assert "group-0" not in text


def test_empty_tables_have_reasons_of_their_own(frames: Any, sections: Any, tmp_path: Path) -> None:
    names = ("rebalances", "group_members", "client_events", "lag", "churn", "what_if")
    tables = frames({name: [] for name in names})
    text = Seen(write_report(tables, tmp_path / "empty.html", made_at=MADE_AT).read_text()).text
    assert "no group entered a new generation" in text["summary"]
    for section in sections:
        assert "is empty" in text[section]


def test_what_is_unknown_is_never_zero(frames: Any, month: Any, tmp_path: Path) -> None:
    rows = {name: month[name] for name in ("rebalances", "group_members")}
    rows["rebalances"] = [{**row, "duration_seconds": None, "moved": None} for row in rows["rebalances"]]
    rows["lag"] = [{**row, "lag_seconds": None if row["lag_messages"] else 0.0} for row in month["lag"]]
    text = Seen(write_report(frames(rows), tmp_path / "plain.html", made_at=MADE_AT).read_text()).text
    assert "the durations are unknown" in text["group-0"]
    assert "moves unknown duration unknown" in text["group-0"]
    assert "The phases are unknown: the table client_events is missing" in text["group-0"]
    assert "left or timed out (without client events it is unknown which)" in text["group-0"]
    assert "unknown" in text["groups"]
    assert "of unknown age" in text["lag"]
    assert not re.search(r"\b0 ms\b", "".join(text.values()))


def test_totals_say_for_how_many_rebalances_they_are_known(frames: Any, month: Any, tmp_path: Path) -> None:
    unknown = {"moved": None, "min_moves": None, "messages_reprocessed": None}
    rows = [{**row, **(unknown if row["group_id"] == "audit" else {})} for row in month["rebalances"]]
    page = write_report(frames({"rebalances": rows}), tmp_path / "partly.html", made_at=MADE_AT).read_text()
    assert "in the 46 rebalances with known moves" in Seen(page).text["summary"]
    (audit,) = re.findall(r'<tr data-text="audit .*?</tr>', page)
    assert audit.count("unknown") >= 4, "moved, avoidable, reprocessed, lag"
    assert ">0<" not in audit
    rows = [{**row, **unknown} for row in month["rebalances"]]
    compared = Compared.around(rows[20]["completed"] + timedelta(seconds=1), 240)
    none = write_report(
        frames({"rebalances": rows}), tmp_path / "none.html", made_at=MADE_AT, compared=compared
    )
    text = Seen(none.read_text()).text
    assert "48 rebalances moved an unknown number of partitions" in text["summary"]
    assert "The number of avoidable moves is unknown" in text["groups"]
    assert "Partitions movedunknownunknown" in re.sub(r"\n", "", text["comparison"])


def as_event(row: dict[str, Any]) -> dict[str, Any]:
    """The rebalance as the page's queries have it."""
    times = {"at": row["completed"], "start": row["started"]}
    return {**row, "handovers": 0, **{name: int(time.timestamp() * 1e6) for name, time in times.items()}}


def test_reports_of_lost_partitions_are_limited(frames: Any, month: Any) -> None:
    """A member that loses its partitions all the time does not fill the driver's memory."""
    rebalances = [row for row in month["rebalances"] if row["group_id"] == "audit"]
    lost = [
        {"id": str(number), "group_id": "audit", "client_id": f"client-{number}", "outcome": "lost",
         "ended_at": rebalances[0]["completed"] + timedelta(seconds=number)}
        for number in range(400)
    ]  # fmt: skip
    limits = Limits(rebalances=2, lanes=3)
    tables = frames({"rebalances": rebalances, "client_events": lost})
    reported = _Reported(tables["client_events"], {"audit": [as_event(row) for row in rebalances]}, limits)
    assert [loss.client for loss in reported.losses["audit"]] == [f"client-{n}" for n in range(394, 400)]


def test_events_are_those_of_the_group_that_had_the_generation_then(frames: Any, month: Any) -> None:
    """A group of the same name was deleted half an hour before; it had more members than are shown."""
    row = next(row for row in month["rebalances"] if row["group_id"] == "audit")
    former = {**row, **{name: row[name] - timedelta(minutes=30) for name in ("started", "completed")}}
    events = [
        {"id": f"{client}-{number}", "group_id": "audit", "client_id": client, "outcome": "completed",
         "generation": row["generation"], "started_at": at, "ended_at": at}
        for client, at, count in (
            ("deleted", former["completed"], 10),
            ("of last week", row["completed"] - timedelta(days=7), 10),
            ("new", row["completed"], 2),
        )
        for number in range(count)
    ]  # fmt: skip
    tables = frames({"client_events": events})
    shown = [as_event(former), as_event(row)]
    reported = _Reported(tables["client_events"], {"audit": shown}, Limits(lanes=1))
    found = [reported.events["audit", row["generation"], each["at"]] for each in shown]
    assert [[event.client for event in of_one] for of_one in found] == [["deleted"] * 4, ["new"] * 2]


def test_a_recreated_share_group_owns_what_its_last_epoch_says(frames: Any) -> None:
    epochs = [
        {"group_id": "queue", "group_type": "share", "generation": 1, "completed": MADE_AT + age,
         "members": [{"member_id": id_, "client_id": id_, "subscribed": [], "assigned": []}]}
        for id_, age in (("a", timedelta(0)), ("b", timedelta(days=1)))
    ]  # fmt: skip
    members = with_epoch_members(frames({"group_epochs": epochs}))
    owners = _ownership(members, ["queue"], Limits())["queue"]
    assert [id_ for id_, _ in owners.members] == ["b"]


def test_an_empty_group_is_not_called_balanced(frames: Any, month: Any, tmp_path: Path) -> None:
    rows = {
        name: [row for row in month[name] if row["group_id"] == "audit"]
        for name in ("rebalances", "group_members")
    }
    last = rows["rebalances"][-1]
    time = last["completed"] + timedelta(minutes=1)
    rows["rebalances"].append(
        {**last, "generation": 3, "members_after": 0, "cause": "leave", "completed": time}
    )
    rows["group_generations"] = [{"group_id": "audit", "generation": 3, "tombstone": True, "log_time": time}]
    text = Seen(write_report(frames(rows), tmp_path / "empty.html", made_at=MADE_AT).read_text()).text
    assert "No members now; the last" in text["group-0"]
    assert "deleted or expired" in text["groups"]


def test_the_index_has_groups_of_all_types_and_those_that_have_ended(
    frames: Any, month: Any, tmp_path: Path
) -> None:
    """Such as a group that only commits, and one that rebalanced before this range."""
    time = month["rebalances"][-1]["completed"]
    rows = {"rebalances": [row for row in month["rebalances"] if row["group_id"] == "audit"]}
    rows["group_epochs"] = [
        {"group_id": group, "group_type": type_, "generation": 1, "cause": "first", "members_after": 1,
         "duration_seconds": None, "completed": time}
        for group, type_ in (("queue", "share"), ("flow", "streams"))
    ]  # fmt: skip
    day = timedelta(days=1)
    rows["group_generations"] = [
        {"group_id": group, "group_type": type_, "generation": 1, "tombstone": tombstone, "log_time": at}
        for group, type_, tombstone, at in (
            ("queue", "share", False, time),
            ("queue", "share", True, time + 2 * day),
            ("flow", "streams", False, time),
            ("old", "classic", False, time),
            ("old", "classic", True, time + 7 * day),
            ("older", "consumer", True, time + day),
        )
    ]
    page = write_report(frames(rows), tmp_path / "types.html", made_at=MADE_AT).read_text()
    found = dict(re.findall(r'<tr data-text="(\w+) .*?>(.*?</tr>)', page))
    assert list(found) == ["audit", "flow", "queue", "old", "older"]

    def ended(after: int) -> str:
        at = time + after * day
        return f"{at.day} {at:%b %H:%M}"

    assert f">deleted {ended(2)}</span>" in found["queue"], "a share group does not expire"
    assert f">deleted or expired {ended(7)}</span>" in found["old"]
    assert "Its record before is 7.0 d older." in found["old"]
    assert "Its record before is not in this range." in found["older"]
    assert ">share</td>" in found["queue"]
    assert ">streams</td>" in found["flow"]
    assert "badge" not in found["flow"]
    assert found["flow"].count("\N{EN DASH}") == 3, "moved, avoidable, reprocessed"
    assert "first 1" in found["flow"]
    assert "unknown" in found["flow"], "its duration"
    assert ">0<" not in found["old"].replace(">0</td>", "", 1), "rebalances alone"


def test_share_and_streams_groups_have_sections(frames: Any, month: Any, tmp_path: Path) -> None:
    """Of their epochs, without moves; a group of which there are none is named."""
    time = month["rebalances"][-1]["completed"]
    first, second = ("a-1", "worker-1"), ("b-2", "worker-2")

    def epoch(group: str, number: int, **known: Any) -> dict[str, Any]:
        owners = [first] if number == 1 else [first, second]
        members = [
            {"member_id": id_, "client_id": client, "subscribed": ["jobs"],
             "assigned": [{"topic": "jobs", "partitions": list(range(3))}]}
            for id_, client in owners
        ]  # fmt: skip
        return {
            "group_id": group,
            "generation": number,
            "completed": time + timedelta(minutes=number),
            "members_after": len(members),
            "members": members,
            "cause": "first" if number == 1 else "join",
            "joined": [owners[-1][0]],
            "left": [],
            **known,
        }

    rows = {
        "rebalances": [],
        "group_epochs": [
            *(epoch("queue", number, group_type="share", duration_seconds=2.5) for number in (1, 2)),
            *(epoch("flow", number, group_type="streams") for number in (1, 2)),
        ],
        "lag": [
            {"group_id": "flow", "topic": "jobs", "partition": 0, "lag_messages": lag, "time": at}
            for at, lag in ((time, 40), (time + timedelta(minutes=1), 7))
        ],
    }
    out = tmp_path / "epochs.html"
    asked = ("queue", "flow", "biling")
    text = Seen(write_report(frames(rows), out, made_at=MADE_AT, groups=asked).read_text()).text
    assert re.search(r"worker-2 joined 2.5 s until every member had its partitions", text["group-0"])
    assert "2 members share partitions, 3 each" in text["group-0"]
    assert "Active tasks of each member by epoch" in text["group-1"]
    assert "Balanced: 2 members with 3 active tasks each" in text["group-1"]
    assert "peak 40, at the last sample 7 \N{MIDDLE DOT} of unknown age" in text["group-1"]
    assert "moves" not in text["group-0"] + text["group-1"]
    assert "biling" in text["absent-0"]
    assert "No rebalance of this group is in the tables" in text["absent-0"]


def test_handovers_belong_to_their_rebalance(frames: Any, month: Any, tmp_path: Path) -> None:
    started = month["rebalances"][0]["started"]
    first = {
        **month["rebalances"][0],
        "completed": started + timedelta(seconds=4),
        "moved": 3,
        "min_moves": 3,
        "duration_seconds": 4.0,
        "cause": "join",
    }
    second = {
        **first,
        "generation": 2,
        "started": started + timedelta(seconds=5),
        "completed": started + timedelta(seconds=9),
        "moved": 0,
        "min_moves": 0,
        "cause": "handover",
    }
    event = {
        **month["client_events"][0],
        "generation": 2,
        "started_at": started,
        "ended_at": second["completed"],
        "phases": {"join": 4.0, "assign": 0.5},
    }
    tables = frames({"rebalances": [first, second], "client_events": [event]})
    page = write_report(tables, tmp_path / "two.html", made_at=MADE_AT)
    text = Seen(page.read_text()).text
    assert ": join 4.0 s" in page.read_text(), "the member reported both with the generation of the handover"
    assert "1 rebalance moved 3 partitions" in text["summary"]
    assert "with 1 handover" in text["summary"]
    assert "9.0 s until every member had its partitions in 2 rounds" in text["group-0"]


@pytest.mark.parametrize(
    "generation",
    [
        pytest.param(2, id="the same group"),
        pytest.param(1, id="deleted and created again"),
    ],
)
def test_a_chain_ends_with_the_lag_until_the_next_rebalance(
    frames: Any, month: Any, tmp_path: Path, generation: int
) -> None:
    first = {**month["rebalances"][0], "duration_seconds": 4.0}
    started = first["started"]
    second = {
        **first,
        "generation": generation,
        "started": started + timedelta(minutes=5),
        "completed": started + timedelta(minutes=5, seconds=4),
    }
    lag = [
        {
            "group_id": first["group_id"],
            "topic": "orders",
            "partition": partition,
            "time": at,
            "lag_messages": half,
        }
        for minutes, half in ((-90, 5), (-1, 0), (1, 450), (2, 0), (4, 30), (6, 100), (7, 90))
        for at in [started + timedelta(minutes=minutes)]
        for partition in (0, 1)
    ]
    page = write_report(
        frames({"rebalances": [first, second], "lag": lag}), tmp_path / "lag.html", made_at=MADE_AT
    )
    text = Seen(page.read_text()).text["group-0"]
    assert "the lag rose to 900 messages, and within 120 s all was consumed" in text
    assert "the lag rose from 60 to 200 messages, and was not back after 120 s" in text


@pytest.mark.endurance
def test_ranges_are_shown_and_compared(frames: Any, month: Any, tmp_path: Path) -> None:
    times = sorted(row["completed"] for row in month["rebalances"])
    deploy, hours = times[20], 24.0
    compared = Compared.around(deploy, hours)
    shown = TimeRange(times[10], times[30])
    page = write_report(
        frames(month), tmp_path / "ranges.html", made_at=MADE_AT, shown=shown, compared=compared
    ).read_text()
    text = Seen(page).text
    assert "20 rebalances moved" in text["summary"]
    day = timedelta(hours=hours)
    before = sum(deploy - day <= time < deploy for time in times)
    after = sum(deploy <= time < deploy + day for time in times)
    assert f"Rebalances{before}{after}" in re.sub(r"\s", "", text["comparison"])
    assert "after the deploy" in text["comparison"]
    assert 'class="deploy"' in page, "charts mark it"
    nothing = TimeRange(MADE_AT, MADE_AT + day)
    text = Seen(
        write_report(
            frames(month),
            tmp_path / "none.html",
            made_at=MADE_AT,
            shown=nothing,
            compared=Compared(nothing, nothing),
        ).read_text()
    ).text
    assert "0 rebalances moved no partitions" in text["summary"]
    assert "No rebalances in either range" in text["comparison"]


def test_a_large_history_makes_a_small_page_that_says_what_it_leaves_out(
    frames: Any, month: Any, tmp_path: Path
) -> None:
    row = month["rebalances"][0]
    many = [{**row, "group_id": f"group-{n % 400}", "generation": n, "moved": n} for n in range(4_000)]
    limits = Limits(index=20, groups=5, details=2)
    out = write_report(frames({"rebalances": many}), tmp_path / "large.html", made_at=MADE_AT, limits=limits)
    text = Seen(out.read_text()).text
    assert "The 20 groups with the most avoidable moves, of 400." in text["groups"]
    assert "The 5 groups with the most rebalances, of 400." in text["churn"]
    assert "group-1" in text
    assert "group-2" not in text
    assert out.stat().st_size < 100_000
