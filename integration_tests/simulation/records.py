"""The parts of members that guarantees need, and the error of a broken guarantee."""

from collections.abc import Callable
from typing import Protocol

from groupwright.core import TopicPartitionKey as Key
from groupwright.testing._simulation.scheduler import Process, Scheduler
from integration_tests.simulation.guarantee import GUARANTEES
from integration_tests.simulation.scenario import MemberPlan


class BrokenGuaranteeError(Exception):
    """A guarantee was broken. `at` is the time in microseconds."""

    def __init__(self, guarantee: str, detail: str, at: int) -> None:
        """Describe what was guaranteed, one of `GUARANTEES`, and what has happened."""
        if guarantee not in GUARANTEES:
            raise KeyError(f"{guarantee!r} is not in the list of guarantees")
        super().__init__(f"{guarantee}: {detail}")
        self.guarantee = guarantee
        self.detail = detail
        self.at = at


class Member(Protocol):
    """The part of a member that the checks need."""

    name: str
    ended: bool
    commits_late: bool
    """True if it has asked for an asynchronous commit while another thread closed its consumer."""
    plan: MemberPlan

    @property
    def group(self) -> str: ...

    @property
    def process(self) -> Process: ...

    @property
    def session_until(self) -> int | None: ...


class StoppableProcess(Protocol):
    """The part of a member's process that checks of its calls and requests need."""

    scheduler: Scheduler
    stops: int
    """How often it was stopped."""

    def call_in(self, delay: int, action: Callable[[], object]) -> object: ...


class CheckedMember(Protocol):
    """The part of a member that checks of its calls and requests need."""

    @property
    def process(self) -> StoppableProcess: ...

    @property
    def session_timeout(self) -> int: ...

    @property
    def generation(self) -> int: ...

    @property
    def is_in_round(self) -> bool: ...

    @property
    def is_parked(self) -> bool: ...

    @property
    def is_unconfirmed(self) -> bool: ...

    @property
    def is_replaced(self) -> bool: ...

    @property
    def needs_coordinator(self) -> bool: ...

    def broken(self, guarantee: str, detail: str) -> None: ...

    def must_return(self, why: str, since: int | None = None) -> None: ...


def name_of(key: Key) -> str:
    """Return a partition's name."""
    return f"{key[0]}[{key[1]}]"
