"""Diagnostics that need no network; the others are tested with the driver and on a broker."""

import asyncio
import traceback
from types import TracebackType
from typing import Any

import pytest
from confluent_kafka import KafkaError

from groupwright.assignors import Assignor, AssignorError, Group, Member, assign
from groupwright.consumer._coordinator.diagnostics import application_traceback, explain
from groupwright.consumer._coordinator.inbox import Reported
from groupwright.consumer._protocol.actions import ReportError
from groupwright.consumer._protocol.model import GroupDescription


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


class _OtherType:
    """The network of a coordinator whose group of this name is not a classic one."""

    group_id = "jobs"

    async def describe_group(self) -> GroupDescription:
        return GroupDescription("Dead", "", {}, {})


def test_a_name_that_belongs_to_another_type_of_group_is_said_to_be_taken() -> None:
    network: Any = _OtherType()
    refusal = ReportError(KafkaError.INCONSISTENT_GROUP_PROTOCOL, "JoinGroup failed", None)
    found = asyncio.run(explain(refusal, ["range"], network))

    assert isinstance(found, Reported)
    assert found.error.code() == KafkaError.INCONSISTENT_GROUP_PROTOCOL
    assert "'jobs' belongs to a group of another type" in found.error.str()
    assert found.error.str().endswith("Choose another group.id")
