"""The page as a reader has it: alone, offline, in a browser; whatever the tables hold."""

import re
import subprocess
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from groupwright.pipeline.report import Limits, write_report
from harness.tools import find_program

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
    assert "would have moved 398 partitions instead of" in text["what-if"]
    assert "our_rules:Pinning" in text["what-if"], (
        "an assignor that failed is in the table, and not the best one"
    )
    assert re.search(r"payments.settlement made \d+% of the avoidable moves", text["offenders"])
    assert "The last 8 of 34 rebalances of payments.settlement" in text["timeline"]
    assert "lagged by up to" in text["lag"]
    assert "8 times" in text["churn"]


def test_it_needs_nothing_but_itself(report: Any) -> None:
    page = report.read_text()
    seen = Seen(page)
    assert not seen.links
    assert not {"script", "link", "iframe", "object", "embed", "base", "img"} & set(seen.tags)
    assert "default-src 'none'" in page
    assert "http" not in page.replace("http-equiv", "")


def test_the_same_tables_make_the_same_page(frames: Any, month: Any, report: Any, tmp_path: Path) -> None:
    again = write_report(frames(month), tmp_path / "again.html", made_at=MADE_AT, source="/data/tables")
    assert again.read_text() == report.read_text()


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
            "--window-size=1280,3400",
        ]
        return subprocess.run(
            [*command, *network, *options, report.as_uri()], capture_output=True, check=True, timeout=120
        )

    shown = browse("--dump-dom")
    assert b"CONSOLE" not in shown.stderr, "the browser has nothing to say to the console"
    dom = shown.stdout.decode()
    for section in sections:
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
    names = {"group_id", "client_id", "member_id", "trigger", "assignor", "error"}
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
    assert not {"script", "img"} & set(seen.tags)
    assert not seen.links
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


def test_empty_tables_have_reasons_of_their_own(frames: Any, sections: Any, tmp_path: Path) -> None:
    names = ("rebalances", "group_members", "client_events", "lag", "churn", "what_if")
    tables = frames({name: [] for name in names})
    text = Seen(write_report(tables, tmp_path / "empty.html", made_at=MADE_AT).read_text()).text
    assert "no group entered a new generation" in text["summary"]
    for section in sections:
        assert "is empty" in text[section] or "has no members of this group" in text[section]


def test_without_client_events_the_timeline_stands_and_says_what_it_lacks(
    frames: Any, month: Any, tmp_path: Path
) -> None:
    rows = {name: month[name] for name in ("rebalances", "group_members")}
    rows["rebalances"] = [{**row, "duration_seconds": None} for row in rows["rebalances"]]
    text = Seen(write_report(frames(rows), tmp_path / "plain.html", made_at=MADE_AT).read_text()).text
    assert "the durations are unknown" in text["timeline"]
    assert "The phases are unknown: the table client_events is missing" in text["timeline"]
    assert "unknown" in text["offenders"]


def test_a_large_history_makes_a_small_page_that_says_what_it_leaves_out(
    frames: Any, month: Any, tmp_path: Path
) -> None:
    row = month["rebalances"][0]
    many = [{**row, "group_id": f"group-{n % 400}", "generation": n, "moved": n} for n in range(4_000)]
    out = write_report(
        frames({"rebalances": many}), tmp_path / "large.html", made_at=MADE_AT, limits=Limits(groups=5)
    )
    text = Seen(out.read_text()).text
    assert "The 5 groups with the most avoidable moves, of 400." in text["offenders"]
    assert out.stat().st_size < 60_000
