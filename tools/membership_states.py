"""Draws the states of a membership and of a group, from their tables of transitions.

docs/membership-states.md shows the picture of each machine of the membership (docs/membership-*.svg), and
docs/concepts.md that of a group's states (docs/group-states.svg). Run by ``make docs``; a test checks that
they are up to date.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from xml.sax.saxutils import escape

from groupwright.consumer._protocol.transitions import TRANSITIONS, Lifecycle, Node, State, Step
from groupwright.testing._simulation.classic_group import PREVIOUS_STATES
from groupwright.testing._simulation.classic_group import State as GroupState

PAGE = Path(__file__).parents[1] / "docs" / "membership-states.md"
MACHINES: tuple[type[Node], ...] = (State, Step, Lifecycle)

Edges = dict[tuple[str, str], list[str]]
"""Causes by the names of the nodes from which and to which they lead."""

GROUP_PICTURE = PAGE.with_name("group-states.svg")
_GROUP_CAUSES = {
    (GroupState.EMPTY, GroupState.PREPARING_REBALANCE): ["a member joins"],
    (GroupState.PREPARING_REBALANCE, GroupState.EMPTY): ["no member is left"],
    (GroupState.PREPARING_REBALANCE, GroupState.COMPLETING_REBALANCE): [
        "all known members",
        "have joined, or the",
        "rebalance timed out",
    ],
    (GroupState.COMPLETING_REBALANCE, GroupState.PREPARING_REBALANCE): [
        "a member joins, leaves",
        "or times out",
    ],
    (GroupState.COMPLETING_REBALANCE, GroupState.STABLE): ["the leader sends", "the assignment"],
    (GroupState.STABLE, GroupState.PREPARING_REBALANCE): ["a rebalance begins"],
    (GroupState.EMPTY, GroupState.DEAD): ["the last offset expires,", "or the group is deleted"],
}
"""Causes of the transitions of a group, without those by which a coordinator unloads it: to Dead."""

_HUB_WIDTH, _SPOKES, _NODE_WIDTH, _NODE_HEIGHT = 150, 300, 220, 46
_NODE_LEFT = 10 + _HUB_WIDTH + _SPOKES
_NODE_RIGHT = _NODE_LEFT + _NODE_WIDTH
_ROW, _TOP, _LANE = 100, 34, 180
_LINE = 15
_LANE_CHARACTERS = 25
_STYLE = """
svg{font:13px ui-sans-serif,system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;
--paper:#fff;--ink:#1f2328;--line:#59636e;--node:#ddf4ff;--edge:#0969da}
@media(prefers-color-scheme:dark){svg{--paper:#0d1117;--ink:#f0f6fc;--line:#9198a1;--node:#0c2d6b;--edge:#4493f8}}
.paper{fill:var(--paper)}.node{fill:var(--node);stroke:var(--edge)}.arrow,.start{fill:var(--line)}
path{fill:none;stroke:var(--line)}path.arrow{fill:var(--line);stroke:none}.name{font-weight:600;text-anchor:middle}
text{fill:var(--ink);stroke:var(--paper);stroke-width:4px;paint-order:stroke}.name{stroke:none}.mid{text-anchor:middle}
"""


def picture_path(machine: type[Node]) -> Path:
    """Return the path of a machine's picture."""
    return PAGE.with_name(f"membership-{machine.__name__.lower()}.svg")


def edges_of(machine: type[Node]) -> Edges:
    """Return the transitions of a machine."""
    edges: Edges = {}
    for source, row in TRANSITIONS.items():
        if isinstance(source, machine):
            for cause, target in row.items():
                edges.setdefault((source.name, target.name), []).append(cause.value)
    return edges


def picture(machine: type[Node]) -> str:
    """Return the picture of a machine as SVG: its first node at the left, the others in a column."""
    return _Picture([node.name for node in machine], edges_of(machine)).svg(
        f"Transitions of {machine.__name__}"
    )


def group_picture() -> str:
    """Return the picture of a group's states as SVG."""
    edges = {
        (source.value, target.value): _GROUP_CAUSES[source, target]
        for target in GroupState
        for source in GroupState
        if source in PREVIOUS_STATES[target] and (target is not GroupState.DEAD or source is GroupState.EMPTY)
    }
    return _Picture([state.value for state in GroupState], edges).svg("States of a consumer group")


class _Picture:
    def __init__(self, nodes: list[str], edges: Edges) -> None:
        self._hub, *self._column = nodes
        self._edges = edges
        self._elements: list[str] = []
        self._ports: dict[str, int] = dict.fromkeys(self._column, 0)

    def svg(self, label: str) -> str:
        lanes = self._lanes()
        width = _NODE_RIGHT + 36 + _LANE * (1 + max(lanes.values(), default=0))
        height = _TOP + _ROW * len(self._column) + 24
        self._add_hub(height)
        for name in self._column:
            self._add_node(name)
        for edge, lane in lanes.items():
            self._add_lane(edge, lane)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" '
            f'height="{height}" role="img" aria-label="{label}">\n<style>{_STYLE}</style>\n'
            f'<rect class="paper" width="{width}" height="{height}" rx="8"/>\n'
            + "\n".join(sorted(self._elements, key=lambda element: element.startswith("<text")))
            + "\n</svg>\n"
        )

    def _lanes(self) -> dict[tuple[str, str], int]:
        """Give edges within the column vertical lanes, the shortest edges the innermost, without overlaps."""
        rows = {name: row for row, name in enumerate(self._column)}
        edges = [edge for edge in self._edges if edge[0] != edge[1] and edge[0] in rows and edge[1] in rows]
        taken: list[set[int]] = []
        lanes = {}
        for edge in sorted(edges, key=lambda edge: abs(rows[edge[0]] - rows[edge[1]])):
            low, high = sorted((rows[edge[0]], rows[edge[1]]))
            needed = set(range(low, high))
            lane = next((lane for lane, rows_ in enumerate(taken) if not rows_ & needed), len(taken))
            taken += [set()] if lane == len(taken) else []
            taken[lane] |= needed
            lanes[edge] = lane
        return lanes

    def _add_hub(self, height: int) -> None:
        bottom = height - 48
        self._elements.append(
            f'<rect class="node" x="10" y="{_TOP}" width="{_HUB_WIDTH}" height="{bottom - _TOP}" rx="6"/>'
        )
        middle = 10 + _HUB_WIDTH // 2
        self._elements.append(f'<circle class="start" cx="{middle}" cy="9" r="6"/>')
        self._add_arrow(f"M{middle} 15V{_TOP - 7}", f"{middle},{_TOP}", "down")
        self._add_name(self._hub, middle, (_TOP + bottom) // 2 + 5)
        if causes := self._edges.get((self._hub, self._hub)):
            self._add_arrow(f"M{middle + 14} {bottom}v16h-28v-9", f"{middle - 14},{bottom}", "up")
            self._add_text(causes, middle + 24, bottom + 18, "")

    def _add_node(self, name: str) -> None:
        y = self._y(name)
        self._elements.append(
            f'<rect class="node" x="{_NODE_LEFT}" y="{y}" width="{_NODE_WIDTH}" '
            f'height="{_NODE_HEIGHT}" rx="6"/>'
        )
        self._add_name(name, _NODE_LEFT + _NODE_WIDTH // 2, y + 28)
        hub_right, middle = 10 + _HUB_WIDTH, 10 + _HUB_WIDTH + _SPOKES // 2
        if causes := self._edges.get((self._hub, name)):
            self._add_arrow(f"M{hub_right} {y + 12}H{_NODE_LEFT - 7}", f"{_NODE_LEFT},{y + 12}", "right")
            self._add_text(causes, middle, y + 6 - _LINE * (len(causes) - 1), "mid")
        if causes := self._edges.get((name, self._hub)):
            self._add_arrow(f"M{_NODE_LEFT} {y + 34}H{hub_right + 7}", f"{hub_right},{y + 34}", "left")
            self._add_text(causes, middle, y + 34 + _LINE, "mid")
        if causes := self._edges.get((name, name)):
            x = _NODE_RIGHT - 60
            self._add_arrow(f"M{x} {y}v-16h28v9", f"{x + 28},{y}", "down")
            self._add_text([", ".join(causes)], x + 36, y - 8, "")

    def _add_lane(self, edge: tuple[str, str], lane: int) -> None:
        source, target = edge
        if long := [line for line in self._edges[edge] if len(line) > _LANE_CHARACTERS]:
            raise ValueError(f"{long} would lie over what is in the next lane: break the lines")
        begin, end = self._port(source), self._port(target)
        x = _NODE_RIGHT + 30 + lane * _LANE
        self._add_arrow(f"M{_NODE_RIGHT} {begin}H{x}V{end}H{_NODE_RIGHT + 7}", f"{_NODE_RIGHT},{end}", "left")
        self._add_text(self._edges[edge], x + 6, min(begin, end) + 36, "")

    def _port(self, name: str) -> int:
        """Return the height of the next free place at a node's right side."""
        self._ports[name] += 1
        return self._y(name) + 10 * self._ports[name] - 2

    def _y(self, name: str) -> int:
        return _TOP + 10 + _ROW * self._column.index(name)

    def _add_arrow(self, path: str, tip: str, direction: str) -> None:
        x, y = map(int, tip.split(","))
        dx, dy = {"down": (0, -1), "up": (0, 1), "right": (-1, 0), "left": (1, 0)}[direction]
        base = (x + 8 * dx, y + 8 * dy)
        first, second = ((base[0] + 4 * sign * dy, base[1] + 4 * sign * dx) for sign in (1, -1))
        self._elements.append(f'<path d="{path}"/>')
        self._elements.append(
            f'<path class="arrow" d="M{x} {y}L{first[0]} {first[1]}L{second[0]} {second[1]}z"/>'
        )

    def _add_name(self, name: str, x: int, y: int) -> None:
        self._elements.append(f'<text class="name" x="{x}" y="{y}">{name}</text>')

    def _add_text(self, lines: list[str], x: int, y: int, style: str) -> None:
        """Draw lines below each other, the first one at this height."""
        for number, line in enumerate(lines):
            self._elements.append(
                f'<text class="{style}" x="{x}" y="{y + number * _LINE}">{escape(line)}</text>'
            )


def outputs() -> Iterator[tuple[Path, str]]:
    """Yield the pictures' files, with their present text."""
    for machine in MACHINES:
        yield picture_path(machine), picture(machine)
    yield GROUP_PICTURE, group_picture()


if __name__ == "__main__":
    for path, text in outputs():
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path.name} is up to date\n")
