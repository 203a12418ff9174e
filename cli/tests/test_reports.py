"""Reports survive the pipe, whole or not at all."""

import pytest

from groupwright.cli.demo.offsets import Span
from groupwright.cli.demo.reports import (
    Committed,
    Consumed,
    Failed,
    Rebalanced,
    Report,
    Revoked,
    Started,
    decode,
    encode,
)


@pytest.mark.parametrize(
    "report",
    [
        Started("http://127.0.0.1:1234/metrics"),
        Revoked((0, 3)),
        Revoked((1,), lost=True),
        Rebalanced(generation=4, seconds=0.25, owned=(0, 1, 2)),
        Rebalanced(generation=4, seconds=0.25, owned=()),
        Consumed((Span(0, 5, 8), Span(11, 0, 1))),
        Committed({0: 8, 11: 1}),
        Failed('a "quoted" reason\nin two lines, with ä'),
    ],
    ids=repr,
)
def test_a_report_is_one_line_that_reads_as_the_same_report(report: Report) -> None:
    line = encode(report)
    assert line.count(b"\n") == 1
    assert decode(line) == report


def test_a_line_that_a_kill_cut_short_is_no_report() -> None:
    line = encode(Consumed((Span(0, 5, 8),)))
    assert all(decode(line[:length]) is None for length in range(len(line)))
