"""Scenarios by topic: small programs that run on confluent-kafka's consumer and on ours.

A scenario is a function of a `Lab`, decorated with `scenario`. Its name is a sentence; its docstring states
the behaviour that an application may rely on.
"""

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from integration_tests.parity.lab import Lab

Program = Callable[[Lab], None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A program, and what it needs."""

    name: str
    theme: str
    program: Program
    seconds: float
    """After which it is taken to hang."""
    breaks_kafka: bool
    """True if it needs a separate broker, to stop or to disconnect."""

    @property
    def story(self) -> str:
        return (self.program.__doc__ or "").strip()


_FOUND: dict[str, Scenario] = {}


def scenario(*, seconds: float = 60.0, breaks_kafka: bool = False) -> Callable[[Program], Program]:
    """Mark a function as a scenario."""

    def mark(program: Program) -> Program:
        name = program.__name__
        if name in _FOUND:
            raise ValueError(f"two scenarios are called {name}")
        theme = program.__module__.rpartition(".")[2]
        _FOUND[name] = Scenario(name, theme, program, seconds, breaks_kafka)
        return program

    return mark


@cache
def all_scenarios() -> dict[str, Scenario]:
    """Return every scenario by its name."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return dict(sorted(_FOUND.items(), key=lambda item: (item[1].theme, item[0])))
