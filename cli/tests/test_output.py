"""Output for terminals."""

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
def test_a_table_that_does_not_fit_cuts_no_value(
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
