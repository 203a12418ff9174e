"""A picture of a simulation: for each member the partitions that it owned, the messages, and the faults."""

import html
import re
from collections.abc import Iterator, Sequence

from groupwright.testing._simulation.scheduler import SECOND
from integration_tests.simulation.story import Line

_WIDTH, _LEFT, _ROW, _TOP = 1200, 110, 14, 30
_COLORS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bb7700", "#555555")
_FONT = 'font-family="sans-serif" font-size="10"'
_PARTITION = re.compile(r"[\w.-]+\[\d+\]")
_DELIVERED = re.compile(r"gets ([\w.-]+\[\d+\])@\d+")
_ENDS = ("has closed", "is killed")


def draw(lines: Sequence[Line]) -> str:
    """Return the picture as SVG: a row for each member and partition that it owned."""
    if not lines:
        return ""
    begin, end = lines[0].at, max(lines[-1].at, lines[0].at + 1)
    scale = (_WIDTH - _LEFT - 10) / (end - begin)
    rows: dict[tuple[str, str], int] = {}
    shapes: list[str] = []

    def place(at: int) -> float:
        return _LEFT + (at - begin) * scale

    def y(who: str, what: str) -> int:
        return _TOP + rows.setdefault((who, what), len(rows)) * _ROW

    for who, partition, since, until in _owned(lines, end):
        color = _COLORS[hash_of(partition) % len(_COLORS)]
        width = max(1.0, (until - since) * scale)
        shapes.append(
            f'<rect x="{place(since):.1f}" y="{y(who, partition) + 2}" width="{width:.1f}" '
            f'height="{_ROW - 4}" fill="{color}" opacity="0.55"><title>{who} owns {partition}</title></rect>'
        )
    for line in lines:
        delivered = _DELIVERED.fullmatch(line.words)
        x = place(line.at)
        if delivered is not None:
            top = y(line.who, delivered[1])
            shapes.append(f'<path d="M{x:.1f} {top + 3}v{_ROW - 6}" stroke="#000" stroke-width="0.6"/>')
        elif line.who in {"cluster", "player", "guarantee"}:
            color = "#cc0000" if line.who == "guarantee" else "#999999"
            shapes.append(f'<path d="M{x:.1f} 20V9999" stroke="{color}" stroke-dasharray="3 3"/>')
            shapes.append(
                f'<text x="{x + 2:.1f}" y="18" fill="{color}">{html.escape(line.words[:60])}</text>'
            )
        elif not line.words.startswith(("on_", "commit ended", "OffsetCommit", "OffsetFetch", "Heartbeat")):
            top = y(line.who, "")
            shapes.append(
                f'<circle cx="{x:.1f}" cy="{top + _ROW / 2}" r="2.5" fill="#222">'
                f"<title>{line.at / SECOND:.4f} {html.escape(line.words)}</title></circle>"
            )
    labels = [
        f'<text x="4" y="{_TOP + row * _ROW + 11}">{html.escape(f"{who} {what}")}</text>'
        for (who, what), row in rows.items()
    ]
    height = _TOP + len(rows) * _ROW + 10
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" {_FONT}>',
            f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
            *labels,
            *shapes,
            "</svg>",
        ]
    )


def _owned(lines: Sequence[Line], end: int) -> Iterator[tuple[str, str, int, int]]:
    """Yield (member, partition, since, until)."""
    since: dict[tuple[str, str], int] = {}
    for line in lines:
        if line.words.startswith("on_assign"):
            for partition in _PARTITION.findall(line.words):
                since[line.who, partition] = line.at
        elif line.words.startswith(("on_revoke", "on_lost")):
            for partition in _PARTITION.findall(line.words):
                yield line.who, partition, since.pop((line.who, partition), line.at), line.at
        elif line.words.startswith(_ENDS):
            for who, partition in [key for key in since if key[0] == line.who]:
                yield who, partition, since.pop((who, partition)), line.at
    for (who, partition), begin in since.items():
        yield who, partition, begin, end


def hash_of(text: str) -> int:
    """Return a number that is the same in each process."""
    return sum(text.encode())
