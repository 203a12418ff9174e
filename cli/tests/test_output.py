"""Output for terminals."""

import re

import pytest
import typer

from groupwright.cli._command_line.exit import CommandError, ExitStatus, errors_reported
from groupwright.cli._command_line.output import Column, OutputFormat, console, print_rows

HOSTILE = "a\x1b[2J\x07\x9b2J\u202eb"
SHOWN = "a\ufffd[2J\ufffd\ufffd2J\ufffdb"


def test_a_name_does_not_control_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_rows([{"name": HOSTILE}], [Column("name", "NAME")], OutputFormat.TABLE)
    console().print(HOSTILE, style="bold")
    with pytest.raises(typer.Exit), errors_reported("x"):
        raise CommandError(f"no {HOSTILE}\nsecond line", ExitStatus.NOT_FOUND)

    out, err = capsys.readouterr()
    shown = [line.strip() for line in out.splitlines()]
    assert shown == ["NAME", SHOWN, SHOWN.replace("\ufffd\ufffd", "\ufffd")]  # rich itself drops the bell
    assert err == f"groupwright x: no {SHOWN}\nsecond line\n"


@pytest.mark.parametrize("width", [200, 40, 20])
def test_a_table_that_does_not_fit_cuts_no_value_but_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    row = {"group": "billing", "members": 12, "share": "9: orders 0-8", "lag": 1_234_567}
    columns = [
        Column("group", "GROUP"),
        Column("members", "MEMBERS", is_number=True),
        Column("share", "cooperative-sticky"),
        Column("lag", "LAG", is_number=True),
    ]
    print_rows([row], columns, OutputFormat.TABLE)

    header, *lines = capsys.readouterr().out.splitlines()
    assert header.split() == [column.header for column in columns]
    text = " ".join(" ".join(lines).split())
    assert all(each in text for each in ("12", "9: orders 0-8", "1234567"))


@pytest.mark.parametrize("width", [80, 120])
def test_long_names_are_cut_with_an_ellipsis_on_terminals_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    long = {"group": "g" * 200, "topic": "orders", "partition": 3, "member": "m" * 200, "lag": 1_234_567}
    columns = [
        *(Column(each, each.upper(), is_name=True) for each in ("group", "topic")),
        Column("partition", "PARTITION", is_number=True),
        Column("member", "MEMBER", is_name=True),
        Column("lag", "LAG", is_number=True),
    ]

    def printed() -> list[str]:
        print_rows([long, {**long, "group": "é" * 200}], columns, OutputFormat.TABLE)
        return capsys.readouterr().out.splitlines()

    monkeypatch.setenv("COLUMNS", str(width))
    header, *lines = printed()
    assert header.split() == [column.header for column in columns]
    assert len(lines) == 2
    assert max(map(len, (header, *lines))) <= width
    assert all(re.fullmatch(r"[gé]+…  orders +3  m+… +1234567", line.strip()) for line in lines)

    monkeypatch.delenv("COLUMNS")
    assert printed()[1].split() == ["g" * 200, "orders", "3", "m" * 200, "1234567"]
