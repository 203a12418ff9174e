"""Diagnostics that need no network; the others are tested with the driver and on a broker."""

import traceback
from types import TracebackType

import pytest

from groupwright.assignors import Assignor, AssignorError, Group, Member, assign
from groupwright.consumer._coordinator.diagnostics import application_traceback


class _Failing(Assignor):
    name = "failing"

    def assign(self, group: Group) -> dict[str, dict[str, list[int]]]:
        raise ValueError(f"no luck with {len(group.members)} members")


class _Wrong(Assignor):
    name = "wrong"

    def assign(self, group: Group) -> dict[str, dict[str, list[int]]]:
        return {group.members[0].id: {"unknown": [0]}}


def raised(error: type[Exception], assignor: Assignor) -> Exception:
    """Return the error of an assignor, with a traceback that begins in the library, as in the driver."""
    with pytest.raises(error) as caught:
        assign(assignor, Group([Member("c-1", ["orders"])], {"orders": 1}))
    tb = caught.value.__traceback__
    assert tb is not None
    return caught.value.with_traceback(tb.tb_next)


def functions(found: TracebackType | None) -> list[str]:
    return [f"{frame.f_globals['__name__']}.{frame.f_code.co_name}" for frame, _ in traceback.walk_tb(found)]


def test_the_traceback_of_an_assignor_that_raises_begins_in_its_own_code() -> None:
    error = raised(ValueError, _Failing())

    assert len(functions(error.__traceback__)) > 1
    assert functions(application_traceback(error)) == [f"{__name__}.assign"]


def test_a_traceback_without_code_of_the_application_stays_whole() -> None:
    error = raised(AssignorError, _Wrong())

    assert application_traceback(error) is error.__traceback__ is not None
