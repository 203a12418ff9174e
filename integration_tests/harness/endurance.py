"""Random histories of which each push plays some, and `make endure` all."""

from typing import Any

import pytest


def first_of(number: int, first: int) -> list[Any]:
    """Return the numbers below `number`, to parametrize a test; all but the `first` are for `make endure`."""
    others = range(first, number)
    return [*range(first), *(pytest.param(each, marks=pytest.mark.endurance) for each in others)]
