"""Findings and checks, printed."""

from collections.abc import Sequence
from dataclasses import dataclass
from textwrap import fill
from typing import Any

import typer

from groupwright.cli._command_line.exit import ExitStatus
from groupwright.cli._command_line.output import Column, OutputFormat, console, plural, print_json, print_rows
from groupwright.instrumentation.advice import Finding, Severity

_COLUMNS = tuple(
    Column(key, key.upper()) for key in ("rule", "severity", "evidence", "consequence", "change")
)
_NAME_WIDTH = len("offsets topic")
_FIRST = (ExitStatus.UNREACHABLE, ExitStatus.FORBIDDEN, ExitStatus.NOT_FOUND, ExitStatus.REFUSED)
"""Statuses of checks that were not possible, which come before that of warnings."""


@dataclass(frozen=True, slots=True)
class Check:
    """One part of the examination.

    Attributes:
        subject: `configuration`, `broker`, `group` or `offsets topic`.
        detail: A summary of what was checked, or the reason why it was not.
        failure: The status of a check that was wanted and not possible; None otherwise.
        is_done: Whether it was checked.
    """

    subject: str
    detail: str
    is_done: bool = True
    failure: ExitStatus | None = None


def exit_status(findings: Sequence[Finding], checks: Sequence[Check]) -> ExitStatus:
    """Return the status: why the cluster or the group was not checked, else whether there are warnings."""
    failures = {check.failure for check in checks} - {None}
    for status in _FIRST:
        if status in failures:
            return status
    if any(finding.severity is Severity.WARNING for finding in findings):
        return ExitStatus.FINDINGS
    return ExitStatus.INCOMPLETE if failures else ExitStatus.OK


def document(findings: Sequence[Finding], checks: Sequence[Check]) -> dict[str, Any]:
    """Return the report as a document; see `doctor.schema.json`."""
    return {
        "findings": _rows(findings),
        "checks": [
            {"subject": check.subject, "checked": check.is_done, "detail": check.detail} for check in checks
        ],
    }


def print_report(findings: Sequence[Finding], checks: Sequence[Check], output: OutputFormat) -> None:
    """Print the report. CSV has the findings alone; what was not checked is then on standard error."""
    findings = sorted(findings, key=lambda each: each.severity is Severity.NOTE)
    match output:
        case OutputFormat.JSON:
            print_json(document(findings, checks))
        case OutputFormat.CSV:
            print_rows(_rows(findings), _COLUMNS, output)
            for check in checks:
                if not check.is_done:
                    typer.echo(f"groupwright doctor: not checked: {check.subject}: {check.detail}", err=True)
        case OutputFormat.TABLE:
            _print_text(findings, checks)


def _rows(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    return [{column.key: str(getattr(finding, column.key)) for column in _COLUMNS} for finding in findings]


def _print_text(findings: Sequence[Finding], checks: Sequence[Check]) -> None:
    from rich.text import Text

    out = console()
    for finding in findings:
        style = "yellow" if finding.severity is Severity.WARNING else "cyan"
        out.print(Text(f"{finding.severity}: {finding.rule}", style))
        for key in ("evidence", "consequence", "change"):
            out.print(_wrapped(key, getattr(finding, key), out.width))
        out.print()
    for heading, is_done in (("checked", True), ("not checked", False)):
        some = [check for check in checks if check.is_done is is_done]
        if some:
            out.print(Text(heading, "bold"))
        for check in some:
            out.print(_wrapped(check.subject, check.detail, out.width))
    out.print()
    out.print(summary(findings))


def _wrapped(name: str, text: str, width: int) -> str:
    return fill(
        text,
        width,
        initial_indent=f"  {name:<{_NAME_WIDTH}}  ",
        subsequent_indent=" " * (_NAME_WIDTH + 4),
        break_long_words=False,
        break_on_hyphens=False,
    )


def summary(findings: Sequence[Finding]) -> str:
    """Return the numbers of warnings and notes."""
    warnings = sum(finding.severity is Severity.WARNING for finding in findings)
    return f"{plural(warnings, 'warning')}, {plural(len(findings) - warnings, 'note')}"
