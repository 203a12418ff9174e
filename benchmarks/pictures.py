"""Pictures of results: small SVG files, whose text is text."""

import re
from io import StringIO
from pathlib import Path
from typing import Any


def new_figure(width: float, height: float) -> Any:
    """Return matplotlib's figure of this size in inches.

    Raises:
        ImportError: matplotlib is not installed.
    """
    from matplotlib.figure import Figure  # is optional

    return Figure(figsize=(width, height), layout="constrained")


def save(figure: Any, path: Path) -> None:
    """Write a figure as SVG; the same figure gives the same file."""
    from matplotlib import rc_context  # is optional

    written = StringIO()
    with rc_context({"svg.fonttype": "none", "font.sans-serif": ["DejaVu Sans"], "svg.hashsalt": path.stem}):
        figure.savefig(written, format="svg", metadata={"Date": None})
    # A tenth of a point is finer than a screen shows.
    rounded = re.sub(r"(\.\d)\d+", r"\1", written.getvalue())
    joined = re.sub(r"\n\s*(L )?", lambda found: " L " if found[1] else "\n", rounded)
    path.write_text(joined, encoding="utf-8")
