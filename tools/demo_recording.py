"""Runs the demo, and records it in docs/demo.json, from which `demo_picture` draws the README's picture.

Run by ``make demo-picture``. It starts a real Kafka, as the demo does.
"""

import json
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from types import TracebackType
from typing import Any, Self

from groupwright.cli.demo.interrupts import Interrupts
from groupwright.cli.demo.runner import Options, run
from groupwright.cli.demo.summary import Summary
from groupwright.cli.demo.view_model import Progress, ViewModel
from tools.demo_picture import RECORDING

_SAMPLE_SECONDS = 0.5
_PAUSE_SECONDS = 4.0


class RecordingView:
    """Records a frame when an owner, a status or a step changes, and every `_SAMPLE_SECONDS`."""

    def __init__(self) -> None:
        """Record from the first frame on."""
        self.frames: list[dict[str, Any]] = []
        self._started: float | None = None
        self._shape: object = None

    def __enter__(self) -> Self:
        """Return the view itself."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Keep the frames."""

    def watching(self, connection: Mapping[str, Any], group: str) -> AbstractContextManager[None]:  # noqa: ARG002 - View's
        """Ask no broker: the frames have what the members tell."""
        return nullcontext()

    def show_activity(self, text: str, detail: str = "") -> None:
        """Print what is done."""
        sys.stdout.write(f"{text} {detail}\n")

    def announce(self, text: str, *, passed: bool = False) -> None:
        """Print the step, or its result."""
        sys.stdout.write(f"{'  ' if passed else ''}{text}\n")

    def report(self, text: str) -> None:
        """Leave out events of members: they are in the frames."""

    def warn(self, text: str) -> None:
        """Print the warning."""
        sys.stdout.write(f"{text}\n")

    def show(self, model: ViewModel) -> None:
        """Record the state of the demo."""
        now = time.monotonic()
        if self._started is None:
            self._started = now
        step = [step for step in model.steps if step.progress is not Progress.TO_COME][-1]
        shape = [step.title, step.note, *((row.name, row.status, row.owned) for row in model.rows)]
        at = round(now - self._started, 2)
        if shape == self._shape and at < self.frames[-1]["at"] + _SAMPLE_SECONDS:
            return
        self._shape = shape
        self.frames.append(
            {
                "at": at,
                "step": step.title,
                "note": step.note,
                "members": {
                    row.name: {
                        "status": row.status,
                        "owned": list(row.owned),
                        "consumed": row.consumed,
                        "seconds": row.seconds[-1] if row.seconds else None,
                    }
                    for row in model.rows
                },
                "produced": model.produced,
                "consumed": model.consumed,
                "twice": model.redelivered,
            }
        )

    def conclude(self, summary: Summary) -> None:
        """Write the recording.

        Raises:
            RuntimeError: The demo did not pass.
        """
        if not summary.passed:
            raise RuntimeError(f"the demo did not pass: {summary.lines()}")
        document = {"frames": self.frames, "summary": summary.document()}
        RECORDING.write_text(json.dumps(document, separators=(",", ":")) + "\n", encoding="utf-8")
        sys.stdout.write(f"{RECORDING.name}: {len(self.frames)} frames\n")


def main() -> None:
    """Run the demo and record it."""
    view = RecordingView()
    options = Options("cooperative-sticky", None, messages_per_second=300, keep=False, pause=_PAUSE_SECONDS)
    with Interrupts() as interrupts:
        summary = run(options, view, interrupts)
    view.conclude(summary)


if __name__ == "__main__":
    main()
