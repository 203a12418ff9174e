"""Runner: starts each contestant as a process, reads its output, and enforces the time limits."""

import queue
import subprocess
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

from benchmarks.assignors.cases import GROUPWRIGHT, Case, takes_part, targets
from benchmarks.assignors.contestants import ROOT, Contestant
from benchmarks.assignors.groups import make_group
from benchmarks.assignors.inputs import read_answer, write_inputs
from benchmarks.assignors.quality import measure
from benchmarks.assignors.results import Outcome, Row, Status
from benchmarks.assignors.subscriptions import make_inputs

_OUTSIDE_SECONDS = 120.0
"""Time limit for reading the inputs, and for writing the answer."""

_MARGIN = 1.2


@dataclass(frozen=True)
class Effort:
    """Time limits of a measurement, in seconds.

    Attributes:
        patience: Time for which the step is repeated without becoming faster.
        longest: Time after which no further run begins, once there are three.
        limit: Timeout of one run.
    """

    patience: float
    longest: float
    limit: float


FULL = Effort(patience=1.0, longest=8.0, limit=30.0)
QUICK = Effort(patience=0.3, longest=3.0, limit=5.0)

_LEAST_RUNS = 3

Progress = Callable[[str, str], None]
"""Called with the cell and the contestant that are next."""


def run_case(
    case: Case, contestants: list[Contestant], effort: Effort, folder: Path, progress: Progress
) -> Row:
    """Run the step of a cell with all contestants, one after the other, on the same bytes."""
    group = make_group(case)
    inputs, answer = folder / "inputs", folder / "answer"
    write_inputs(inputs, make_inputs(group))
    outcomes: dict[str, Outcome] = {}
    for contestant in contestants:
        progress(case.name, contestant.name)
        if lacking := contestant.lacks(case):
            outcome = Outcome(Status.LACKING, lacking)
        elif not takes_part(contestant.name, case):
            outcome = Outcome(Status.LEFT_OUT)
        else:
            limit = _limit(case, contestant, effort, outcomes.get(GROUPWRIGHT))
            answer.unlink(missing_ok=True)
            outcome = _run(contestant, replace(effort, limit=limit), inputs, answer)
            if answer.exists():
                outcome = replace(outcome, quality=measure(group, read_answer(answer)))
        outcomes[contestant.name] = outcome
    return Row(case, outcomes)


def _limit(case: Case, contestant: Contestant, effort: Effort, ours: Outcome | None) -> float:
    """Return the timeout of a run: long enough to decide whether the targets are met."""
    own = ours.best if ours else None
    times = [target.times for target in targets(case) if target.than == contestant.name]
    return max([effort.limit, *(_MARGIN * factor * own for factor in times if own is not None)])


def _run(contestant: Contestant, effort: Effort, inputs: Path, answer: Path) -> Outcome:
    seconds = (effort.patience * contestant.patience, effort.longest * contestant.patience)
    nanoseconds = (str(round(time * 1e9)) for time in seconds)
    arguments = (str(inputs), str(answer), *nanoseconds, str(_LEAST_RUNS))
    with tempfile.TemporaryFile() as errors, _started((*contestant.command, *arguments), errors) as lines:
        outcome = _listen(lines, effort.limit)
        if outcome.status is Status.FAILED and not outcome.note:
            errors.seek(0)
            said = errors.read().decode(errors="replace").strip().splitlines()
            outcome = replace(outcome, note=said[-1] if said else "it ended without a word")
    return outcome


def _listen(lines: "queue.Queue[str | None]", limit: float) -> Outcome:
    """Read the contestant's output until it is done or times out."""
    outcome = Outcome(Status.FAILED, limit=limit)
    wait = _OUTSIDE_SECONDS
    while True:
        try:
            line = lines.get(timeout=wait)
        except queue.Empty:
            return replace(outcome, status=Status.OK if outcome.runs else Status.TIMEOUT)
        word, _, rest = (line or "ended").partition(" ")
        match word:
            case "ready":
                wait = limit
            case "run":
                outcome = outcome.with_run(int(rest) / 1e9)
            case "peak":
                outcome = replace(outcome, peak=int(rest))
                wait = _OUTSIDE_SECONDS
            case "done":
                return replace(outcome, status=Status.OK)
            case "lacks":
                return replace(outcome, status=Status.LACKING, note=rest)
            case "failed" | "ended":
                return replace(outcome, note=rest)


@contextmanager
def _started(command: tuple[str, ...], errors: IO[bytes]) -> Iterator["queue.Queue[str | None]"]:
    """Start the command; yield a queue of its output lines, with None at the end; kill it on exit."""
    lines: queue.Queue[str | None] = queue.Queue()
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=errors, text=True) as process:  # noqa: S603 - contestants
        reader = threading.Thread(target=_forward, args=(process.stdout, lines), daemon=True)
        reader.start()
        try:
            yield lines
        finally:
            process.kill()
            reader.join()


def _forward(output: IO[str], lines: "queue.Queue[str | None]") -> None:
    for line in output:
        lines.put(line.strip())
    lines.put(None)
