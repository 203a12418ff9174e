"""The documentation's site: it builds without a warning, and its pages agree with the code."""

import ast
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from groupwright.consumer._protocol.transitions import TRANSITIONS
from groupwright.core.assignor_traits import ASSIGNORS
from integration_tests.harness.patience import PATIENCE
from tools import assignor_pictures, demo_picture, membership_states, references
from tools.site_pages import rewritten, site_files

ROOT = Path(__file__).parents[2]
SOURCES = ("assignors/src", "consumer/src", "core/src", "instrumentation/src")
VARIABLE = "…"
# Of `%` and of `str.format`.
PLACEHOLDER = re.compile(r"%\.?\d*[sdrfg]|\{\w*(?:![rs])?(?::[^}]*)?\}")


@pytest.mark.parametrize(
    ("default", "shown"), [(0, "`0`"), (0.0, "`0.0`"), (False, ""), (None, ""), ([], "")], ids=repr
)
def test_the_reference_shows_each_default_but_those_of_flags(default: object, shown: str) -> None:
    assert references._default(SimpleNamespace(default=default)) == shown


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    build = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", tmp_path],
        cwd=ROOT,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert build.returncode == 0, build.stderr
    _check_pages(tmp_path)
    _check_lists_and_tables(tmp_path)
    _check_api(tmp_path)
    _check_that_nothing_is_fetched(tmp_path)


def _check_pages(site: Path) -> None:
    """Check that each page and asset of the repository is in the site, and that the search knows them."""
    for path in map(Path, site_files()):
        folder = path.parent if path.name == "README.md" else path.with_suffix("")
        assert (site / (folder / "index.html" if path.suffix == ".md" else path)).is_file(), path
    assert "Eager and cooperative" in (site / "search" / "search_index.json").read_text(encoding="utf-8")


def _check_lists_and_tables(site: Path) -> None:
    """Check that none is shown as text, as MkDocs does with a list that has no blank line before it."""
    paragraph = re.compile(r"<p>(?:(?!</p>).)*", re.DOTALL)
    item = re.compile(r"^\s*(?:\d+\.|[-*|]|```)\s", re.MULTILINE)
    for page in site.rglob("index.html"):
        content = page.read_text(encoding="utf-8").partition("md-content")[2]
        shown = [re.sub("<[^>]+>", "", found) for found in paragraph.findall(content)]
        assert [text for text in shown if item.search(text)] == [], page


def _check_api(site: Path) -> None:
    """Check that the reference has exported names, those in modules of their own included."""
    for part, names in {
        "consumer": ("Consumer.poll", "Consumer.enforce_rebalance", "AIOConsumer"),
        "assignors": ("Assignor.assign", "Group", "simulate"),
        "instrumentation": ("instrument", "create_instrumented"),
        "testing": ("LocalKafka.start", "Kafka.create_topic"),
    }.items():
        page = (site / "docs" / "api" / part / "index.html").read_text(encoding="utf-8")
        for name in names:
            assert f'id="groupwright.{part}.{name}"' in page


def _check_that_nothing_is_fetched(site: Path) -> None:
    """Check that pages and style sheets load nothing from other servers.

    The theme's scripts fetch two things: facts about the repository, and a library for Mermaid's diagrams.
    The pages use neither.
    """
    loaded = re.compile(r"<(?:script|img|iframe|link)\b[^>]*\b(?:src|href)=[\"']?(?:https?:)?//[^>]*>")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        assert [tag for tag in loaded.findall(text) if "canonical" not in tag] == [], page
        assert not re.search(r'data-md-component="?source"?[ >]|class="?mermaid', text), page
    for sheet in site.rglob("*.css"):
        assert not re.search(r"(?:@import|url\()\s*[\"']?https?:", sheet.read_text(encoding="utf-8")), sheet


def test_links_to_folders_and_to_other_files_are_followed() -> None:
    published = {"README.md", "consumer/README.md", "docs/concepts.md"}
    page = (
        "[a](../consumer/) [`b`](../examples/metrics.py) [c](../docs/tests) [d](concepts.md#x) [e](#x)\n"
        "```\n[f](../LICENSE)\n```\n[g](../nothing.md) [h](../LICENSE)"
    )

    assert rewritten(page, "docs/page.md", published, "https://host/it") == (
        "[a](../consumer/README.md) [`b`](https://host/it/blob/main/examples/metrics.py) "
        "[c](https://host/it/tree/main/docs/tests) [d](concepts.md#x) [e](#x)\n"
        "```\n[f](../LICENSE)\n```\n[g](../nothing.md) [h](https://host/it/blob/main/LICENSE)"
    )


def test_bars_in_code_of_tables_are_shown_without_their_escapes() -> None:
    page = "| `a\\|b` | c\\|d |\n`e\\|f`\n```\n| `g\\|h` |\n```\n"

    assert rewritten(page, "page.md", set(), "https://host/it") == (
        "| `a|b` | c\\|d |\n`e\\|f`\n```\n| `g\\|h` |\n```\n"
    )


def test_the_pictures_of_the_assignors_are_up_to_date() -> None:
    page = assignor_pictures.PAGE.read_text(encoding="utf-8")

    assert assignor_pictures.drawn(page) == page


def test_the_page_of_the_pictures_says_which_assignors_are_cooperative() -> None:
    page = assignor_pictures.PAGE.read_text(encoding="utf-8")
    eager, cooperative = (
        ", ".join(f"`{name}`" for name, traits in ASSIGNORS.items() if traits.cooperative is wanted)
        for wanted in (False, True)
    )

    assert f"| assignors | {eager} | {cooperative} |" in page


def test_the_states_of_a_membership_are_up_to_date() -> None:
    made = dict(membership_states.outputs())

    assert [path.name for path, text in made.items() if path.read_text(encoding="utf-8") != text] == []
    pictures = [membership_states.picture(machine) for machine in membership_states.MACHINES]
    arrows = sum(picture.count('class="arrow"') for picture in pictures) - len(
        pictures
    )  # each has one to its start
    assert arrows == sum(len(set(row.values())) for row in TRANSITIONS.values())


def test_the_references_are_up_to_date() -> None:
    pages = references.outputs()

    assert [path.name for path, text in pages.items() if path.read_text(encoding="utf-8") != text] == []


def test_the_picture_of_the_demo_is_drawn_from_its_recording() -> None:
    """It is shown as an image, where neither scripts nor files of other servers are loaded."""
    recording = json.loads(demo_picture.RECORDING.read_text(encoding="utf-8"))
    picture = demo_picture.PICTURE.read_text(encoding="utf-8")

    assert demo_picture.picture(recording) == picture
    messages = recording["summary"]["messages"]
    texts = set(re.findall(r"<text [^>]*>([^<]*)</text>", picture))
    assert f"{messages['produced']:,} messages: 0 lost, {messages['duplicates']} consumed twice" in texts
    assert {step["step"] for step in recording["summary"]["changes"]} <= texts
    assert not re.search(r"<script|url\(|href", picture)


def test_pictures_are_small() -> None:
    pictures = [path for path in demo_picture.PICTURE.parent.rglob("*.*") if path.suffix in {".svg", ".png"}]
    assert pictures
    assert [path.name for path in pictures if path.stat().st_size > 60_000] == []


@pytest.mark.medium
def test_each_quoted_message_is_in_the_sources() -> None:
    page = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
    _, errors = page.split("## Errors\n")
    quoted = re.findall(r"^\| `([^`]+)` \|", errors, re.MULTILINE)
    texts = [text for folder in SOURCES for path in (ROOT / folder).rglob("*.py") for text in _texts(path)]

    assert len(quoted) > 20
    assert [message for message in quoted if not any(_has(text, message) for text in texts)] == []


def _has(text: str, message: str) -> bool:
    """Tell whether a text of the sources has the message, with something at each of its variable parts."""
    return re.search(".*".join(map(re.escape, message.split(VARIABLE))), text) is not None


def _texts(path: Path) -> list[str]:
    """Return the string literals of a module, with `VARIABLE` for each variable part."""
    texts = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else VARIABLE for part in node.values)
            texts.append("".join(map(str, parts)))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            texts.append(PLACEHOLDER.sub(VARIABLE, node.value))
    return texts
