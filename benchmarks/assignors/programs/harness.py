"""Main loop of the contestants in Python; those in Java and Go follow the same protocol.

Each contestant is a separate process. Its arguments are the paths of the inputs and of the answer, its
patience and its time limit (both in nanoseconds), and the minimum number of runs. It repeats the step until
no run has been faster by 5 % for as long as its patience, since a JIT compiler may need seconds to warm up.
It prints one line for each of: `ready` once the inputs are read; `run` and the nanoseconds of each run;
`peak` and the process's peak memory in bytes; `done` once the last run's answer is written; or `failed` and
the error; or `lacks` and the name of a missing assignor.
"""

import math
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from benchmarks.assignors.inputs import Inputs, read_inputs, write_answer

Step = Callable[[], Iterable[tuple[str, bytes]]]
"""The leader's whole step: it returns member ids with their assignments in bytes."""

_FASTER = 0.95


class LackingError(Exception):
    """The contestant has no such assignor."""


def compete(prepare: Callable[[Inputs], Step]) -> None:
    """Run a contestant; preparing its step is not measured, because it needs no members."""
    inputs_path, answer_path, patience, longest, least = sys.argv[1:]
    inputs = read_inputs(Path(inputs_path))
    try:
        step = prepare(inputs)
        _say("ready")
        answer = _repeat(step, int(patience), int(longest), int(least))
    except LackingError as error:
        _say(f"lacks {error}")
        return
    except Exception as error:  # noqa: BLE001 - whatever a contestant raises is its result
        _say(f"failed {type(error).__name__}: {error}".replace("\n", " "))
        return
    _say(f"peak {_peak()}")
    write_answer(Path(answer_path), answer)
    _say("done")


def _repeat(step: Step, patience: int, longest: int, least: int) -> Iterable[tuple[str, bytes]]:
    """Repeat the step until it no longer becomes faster; return the last result."""
    began = improved = time.perf_counter_ns()
    mark, run = math.inf, 0
    while True:
        run += 1
        answer: Iterable[tuple[str, bytes]] = ()  # nothing of the run before is held during the next
        start = time.perf_counter_ns()
        answer = step()
        end = time.perf_counter_ns()
        _say(f"run {end - start}")
        if end - start < _FASTER * mark:
            mark, improved = end - start, end
        if run >= least and (end - began > longest or end - improved > patience):
            return answer


def _peak() -> int:
    """Return the process's peak memory in bytes; 0 if Linux does not report it.

    `getrusage` would also count the memory of the parent process before exec.
    """
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    peaks = [int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM:")]
    return peaks[0] if peaks else 0


def _say(line: str) -> None:
    print(line, flush=True)
