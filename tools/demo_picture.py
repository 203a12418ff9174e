"""Draws docs/demo.svg, the README's animated picture, from the recording of a real run of the demo.

The recording (docs/demo.json) is made by `demo_recording`. The picture is CSS alone, so that it moves in an
``<img>``; it follows the reader's colour scheme, and stands still for readers who prefer no motion.
"""

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple
from xml.sax.saxutils import escape

RECORDING = Path(__file__).parents[1] / "docs" / "demo.json"
PICTURE = RECORDING.with_suffix(".svg")

_PARTITIONS = 12
_MEMBERS = ("member-1", "member-2", "member-3", "member-4")
_START_SECONDS = 1.0
"""Time before the first partition has an owner. The start of the processes is left out."""
_END_SECONDS = 5.0
"""Duration of the last picture, which has the result."""
_WIDTH, _HEIGHT = 880, 372
_LEFT, _CELL, _TOP, _LANE = 214, 38, 108, 44
_BOX = 31
_STYLE = """
svg{font:14px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
--paper:#fff;--ink:#1f2328;--faint:#59636e;--line:#d1d9e0;--lane:#f6f8fa;--none:#818b98;
--member-1:#0969da;--member-2:#8250df;--member-3:#1a7f37;--member-4:#bc4c00}
@media(prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#f0f6fc;--faint:#9198a1;--line:#3d444d;
--lane:#151b23;--none:#656c76;--member-1:#1f6feb;--member-2:#8957e5;--member-3:#238636;--member-4:#bd561d}}
.paper{fill:var(--paper);stroke:var(--line)}.lane{fill:var(--lane)}
text{fill:var(--ink)}.faint{fill:var(--faint)}
.title{font-size:17px;font-weight:600}.name{font-weight:600}
.box text{fill:#fff;font-weight:600;text-anchor:middle}
.right{text-anchor:end;font-variant-numeric:tabular-nums}
.t{visibility:hidden}.t.still{visibility:visible}
@media(prefers-reduced-motion:reduce){*{animation:none!important}}
"""


class Span(NamedTuple):
    """A value, from one time to another, in seconds."""

    begin: float
    end: float
    value: str


def picture(recording: dict[str, Any]) -> str:
    """Return the picture of a recording, as SVG."""
    frames, end = _frames(recording)
    drawing = _Drawing(end)
    drawing.add_background()
    for lane, name in enumerate(_MEMBERS, start=1):
        drawing.add_member(frames, name, lane)
    for partition in range(_PARTITIONS):
        drawing.add_partition(frames, partition)
    drawing.add_texts(_spans(frames, end, lambda frame: frame["step"]), 24, 40, "title")
    drawing.add_texts(_spans(frames, end, lambda frame: frame["note"]), 24, 62, "faint")
    drawing.add_texts(_spans(frames, end, _counts), 24, _HEIGHT - 20, "faint")
    drawing.add_texts(
        _spans(frames, end, lambda frame: f"{int(frame['at'])} s"), _WIDTH - 24, 40, "right faint"
    )
    return drawing.svg()


def _frames(recording: dict[str, Any]) -> tuple[list[dict[str, Any]], float]:
    """Return the frames of the steps and a last one with the result, and the time when that ends."""
    last = recording["frames"][-1]["step"]
    frames = [frame for frame in recording["frames"] if frame["step"] != last]
    start = next(frame["at"] for frame in frames if _owner(frame, 0)) - _START_SECONDS
    frames = [frame | {"at": round(frame["at"] - start, 2)} for frame in frames if frame["at"] >= start]
    messages, changes = recording["summary"]["messages"], recording["summary"]["changes"]
    at = frames[-1]["at"] + 0.1
    moved = sum(change["moved"] for change in changes)
    result = {
        "at": at,
        "step": f"{messages['produced']:,} messages: {messages['lost']} lost, "
        f"{messages['duplicates']} consumed twice",
        "note": f"{moved} partitions moved. The killed member had not committed what was consumed twice.",
    }
    return [*frames, frames[-1] | result], at + _END_SECONDS


def _spans(frames: Sequence[dict[str, Any]], end: float, value: Any) -> Iterator[Span]:
    """Yield the values of the frames, equal ones in a row as one."""
    begin, current = frames[0]["at"], value(frames[0])
    for frame in frames[1:]:
        if (new := value(frame)) != current:
            yield Span(begin, frame["at"], current)
            begin, current = frame["at"], new
    yield Span(begin, end, current)


def _counts(frame: dict[str, Any]) -> str:
    twice = f", {frame['twice']:,} consumed twice" if frame["twice"] else ""
    return f"{frame['produced']:,} messages produced, {frame['consumed']:,} consumed{twice}"


def _owner(frame: dict[str, Any], partition: int) -> str:
    owners = [name for name, member in frame["members"].items() if partition in member["owned"]]
    return owners[0] if owners else ""


def _y(lane: int) -> int:
    return _TOP + lane * _LANE


class _Drawing:
    """Elements and the key frames of their animations, over so many seconds."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._rules: list[str] = []
        self._elements: list[str] = []
        self._shown: dict[tuple[float, float], str] = {}

    def svg(self) -> str:
        """Return the whole picture."""
        label = (
            "A consumer group of the demo: a member joins, one is killed, one leaves; its 12 partitions move"
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" role="img" aria-label="{label}">\n<style>{_STYLE}'
            + "\n".join(self._rules)
            + "</style>\n"
            + "\n".join(self._elements)
            + "\n</svg>\n"
        )

    def add_background(self) -> None:
        """Draw what does not move."""
        self._elements.append(
            f'<rect class="paper" x=".5" y=".5" width="{_WIDTH - 1}" height="{_HEIGHT - 1}" rx="8"/>'
        )
        for lane, name in enumerate(("no owner", *_MEMBERS)):
            y = _y(lane)
            style = "faint" if lane == 0 else "name"
            self._elements += [
                f'<rect class="lane" x="12" y="{y}" width="{_WIDTH - 24}" height="{_LANE - 4}" rx="5"/>',
                f'<text class="{style}" x="24" y="{y + 25}">{name}</text>',
            ]
        for partition in range(_PARTITIONS):
            x = _LEFT + partition * _CELL + _BOX / 2
            self._elements.append(
                f'<text class="faint" x="{x}" y="98" text-anchor="middle">{partition}</text>'
            )
        columns = (("partition", _LEFT - 12), ("consumed", 764), ("rebalance", _WIDTH - 24))
        self._elements += [f'<text class="right faint" x="{x}" y="98">{text}</text>' for text, x in columns]

    def add_member(self, frames: Sequence[dict[str, Any]], name: str, lane: int) -> None:
        """Draw the changing texts of a member's row."""

        def of(key: str, form: str = "{}") -> Any:
            def value(frame: dict[str, Any]) -> str:
                found = frame["members"].get(name, {}).get(key)
                return "" if found is None else form.format(found)

            return value

        y = _y(lane) + 25
        self.add_texts(_spans(frames, self._seconds, of("status")), 116, y, "faint")
        self.add_texts(_spans(frames, self._seconds, of("consumed", "{:,}")), 764, y, "right")
        self.add_texts(_spans(frames, self._seconds, of("seconds", "{:.3f} s")), _WIDTH - 24, y, "right")

    def add_partition(self, frames: Sequence[dict[str, Any]], partition: int) -> None:
        """Draw a partition, which moves to the row of its owner."""
        spans = list(_spans(frames, self._seconds, lambda frame: _owner(frame, partition)))
        steps = [f"0%{{{_place(spans[0].value)}}}"]
        for before, after in pairwise(spans):
            moved = min(after.begin + 0.35, after.end)
            steps.append(f"{self._percent(after.begin)}{{{_place(before.value)}}}")
            steps.append(f"{self._percent(moved)}{{{_place(after.value)}}}")
        steps.append(f"100%{{{_place(spans[-1].value)}}}")
        self._rules.append(f"@keyframes p{partition}{{{''.join(steps)}}}")
        self._rules.append(
            f".p{partition}{{{_place(spans[-1].value)};"
            f"animation:p{partition} {self._seconds:.2f}s linear infinite}}"
        )
        x = _LEFT + partition * _CELL
        self._elements.append(
            f'<g class="box p{partition}">'
            f'<rect x="{x}" y="{_TOP + 4}" width="{_BOX}" height="{_BOX + 1}" rx="5"/>'
            f'<text x="{x + _BOX / 2}" y="{_TOP + 25}">{partition}</text></g>'
        )

    def add_texts(self, spans: Iterable[Span], x: int, y: int, style: str) -> None:
        """Draw texts at one place, each in its time; the last one is that of the still picture."""
        for span in spans:
            if span.value:
                still = " still" if span.end == self._seconds else ""
                shown = self._shown_class(span)
                self._elements.append(
                    f'<text class="{style} t{still} {shown}" x="{x}" y="{y}">{escape(span.value)}</text>'
                )

    def _shown_class(self, span: Span) -> str:
        """Return the class of what is shown in a span of time, with its animation."""
        key = (span.begin, span.end)
        if key not in self._shown:
            name = self._shown[key] = f"s{len(self._shown)}"
            begin, end = self._percent(span.begin), self._percent(span.end)
            before = f"0%{{visibility:hidden}}{begin}" if span.begin > 0 else "0%"
            after = (
                "100%{visibility:visible}"
                if span.end >= self._seconds
                else f"{end},100%{{visibility:hidden}}"
            )
            self._rules.append(
                f"@keyframes {name}{{{before}{{visibility:visible}}{after}}}"
                f".{name}{{animation:{name} {self._seconds:.2f}s step-end infinite}}"
            )
        return self._shown[key]

    def _percent(self, seconds: float) -> str:
        return f"{100 * seconds / self._seconds:.2f}%"


def _place(owner: str) -> str:
    lane = _MEMBERS.index(owner) + 1 if owner else 0
    return f"transform:translateY({lane * _LANE}px);fill:var(--{owner or 'none'})"


if __name__ == "__main__":
    drawing = picture(json.loads(RECORDING.read_text(encoding="utf-8")))
    PICTURE.write_text(drawing, encoding="utf-8")
    sys.stdout.write(f"{PICTURE.name}: {len(drawing) // 1000} kB\n")
