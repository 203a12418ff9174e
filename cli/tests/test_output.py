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
