"""Assignors of commands, by name and by import path."""

from pathlib import Path

import pytest
import typer

from groupwright.assignors import AssignorError, RangeAssignor
from groupwright.cli._command_line.assignors import load_assignor
from groupwright.cli.demo.command import _loadable


def test_a_name_and_a_path_are_loaded() -> None:
    assert load_assignor("range").name == "range"
    assert isinstance(load_assignor("groupwright.assignors:RangeAssignor"), RangeAssignor)


def test_a_module_in_the_working_directory_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "of_the_directory.py").write_text("from groupwright.assignors import RangeAssignor as Own\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.path", ["/nowhere"])

    assert load_assignor("of_the_directory:Own").name == "range"


def test_members_of_the_demo_have_no_assignor_of_the_broker() -> None:
    assert _loadable("range") == "range"
    with pytest.raises(typer.BadParameter, match="runs in the broker and not in members"):
        _loadable("broker:uniform")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("uniform", "did you mean 'broker:uniform'?"),
        ("cooperativ-sticky", "did you mean 'cooperative-sticky'?"),
        ("zzz", "there are: broker:range, broker:uniform, co-partitioned-sticky"),
        ("nowhere.at_all:Own", "ModuleNotFoundError"),
        ("groupwright.assignors:Own", "AttributeError"),
        ("groupwright.assignors:by_name", "TypeError"),
        ("builtins:dict", "'builtins:dict' is a dict, which is not"),
        (":Own", "cannot be loaded"),
        ("json:", "cannot be loaded"),
    ],
)
def test_what_cannot_be_loaded_is_named(name: str, words: str) -> None:
    with pytest.raises(AssignorError) as caught:
        load_assignor(name)
    assert words in str(caught.value)
    assert name in str(caught.value)
