"""Shrinking of a program that shows a difference."""

from collections.abc import Callable, Iterator
from dataclasses import replace

from integration_tests.parity.fuzz.programs import Program

_SIMPLEST = {
    "partition_assignment_strategy": "range",
    "enable_auto_commit": False,
    "enable_auto_offset_store": True,
    "auto_offset_reset": "earliest",
    "enable_partition_eof": False,
}


def shrink(program: Program, still_differs: Callable[[Program], bool], tries: int) -> Program:
    """Return a smaller program for which `still_differs` holds, after at most so many calls of it."""
    left = tries
    smaller = True
    while smaller and left > 0:
        smaller = False
        for candidate in _candidates(program):
            if left <= 0:
                break
            left -= 1
            if still_differs(candidate):
                program, smaller = candidate, True
                break
    return program


def _candidates(program: Program) -> Iterator[Program]:
    """Yield smaller programs: without half of the steps, without single steps, with simpler settings."""
    steps = program.steps
    size = len(steps) // 2
    while size:
        for start in range(0, len(steps), size):
            rest = steps[:start] + steps[start + size :]
            if rest:
                yield replace(program, steps=rest)
        size //= 2
    for key, simplest in _SIMPLEST.items():
        if program.settings.get(key, simplest) != simplest:
            settings = {**program.settings, key: simplest}
            if key == "enable_auto_commit":
                settings.pop("auto_commit_interval_ms", None)
            yield replace(program, settings=settings)
    for key in ("group_instance_id", "auto_commit_interval_ms"):
        if key in program.settings:
            yield replace(program, settings={k: v for k, v in program.settings.items() if k != key})
    if len(program.partitions) > 1 or program.partitions[0] > 1:
        yield replace(program, partitions=tuple(1 for _ in program.partitions))
