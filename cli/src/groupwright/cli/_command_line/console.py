"""A console to which names of groups and clients may be printed, whatever characters they have."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from groupwright.cli._command_line.text import harmless


class HarmlessConsole(Console):
    """A console that replaces control characters in what it prints; rich itself lets ESC through."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Return the segments of a renderable."""
        for segment in super().render(renderable, options):
            text, style, control = segment
            yield segment if control else Segment(harmless(text), style)
