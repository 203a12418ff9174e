"""Reports of members and of the coordinator, for the story and the guarantees."""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from groupwright.core import TopicPartitionKey as Key
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.cluster import Cluster
from groupwright.testing._simulation.scheduler import SECOND, Process, Scheduler
from integration_tests.simulation.by_hand import HandMember
from integration_tests.simulation.foreign import ForeignMember, commits_of
from integration_tests.simulation.guarantees import Guarantees
from integration_tests.simulation.records import BrokenGuaranteeError, Member
from integration_tests.simulation.scenario import GROUP
from integration_tests.simulation.story import Story

if TYPE_CHECKING:
    from integration_tests.simulation.guarantees_by_hand import HandGuarantees


class Reports:
    """The observer of all members."""

    def __init__(
        self,
        scheduler: Scheduler,
        cluster: Cluster,
        story: Story,
        guarantees: Guarantees,
        on_closed: Callable[[HandMember], object],
    ) -> None:
        """Begin without members.

        Args:
            scheduler: Virtual time.
            cluster: The cluster.
            story: Gets a line for each report.
            guarantees: Those to the members of the group.
            on_closed: Called when an application that assigns by hand has closed.
        """
        self.group = guarantees
        self.by_hand: dict[str, HandGuarantees] = {}
        """Guarantees to applications that assign by hand, by their names."""
        self._scheduler = scheduler
        self._cluster = cluster
        self._story = story
        self._on_closed = on_closed

    def of(self, member: Member) -> Guarantees:
        """Return the guarantees that are made to a member."""
        return self.by_hand.get(member.name, self.group)

    def answered(self, process: Process, request: msg.Request, response: msg.Response) -> None:
        self.by_hand.get(process.name, self.group).answered(process, request, response)
        match request, response:
            case msg.JoinGroupRequest(), msg.JoinGroupResponse():
                why = getattr(process, "reason", "")
                self._story.record(process.name, f"JoinGroup ({why}): {_join_words(response)}")
            case msg.HeartbeatRequest(), msg.HeartbeatResponse() if not response.error:
                pass
            case msg.OffsetCommitRequest(), msg.OffsetCommitResponse():
                offsets = {key: each.offset for key, each in request.offsets}
                described = ", ".join(
                    f"{key[0]}[{key[1]}]={offsets[key]} {e.name}" for key, e in response.partitions
                )
                self._story.record(process.name, f"OffsetCommit: {described}")
            case msg.LeaveGroupRequest(), _:
                if getattr(process, "stays", False):
                    guarantee = "a static member that closes stays in the group"
                    raise BrokenGuaranteeError(guarantee, process.name, self._scheduler.now)
                self._story.record(process.name, "LeaveGroup")
            case _:
                error = getattr(response, "error", None)
                what = type(request).__name__.removesuffix("Request")
                self._story.record(process.name, f"{what}: {'' if error is None else error.name}")

    def assigned(self, member: Member, partitions: list[Key]) -> None:
        if not member.ended:
            self._story.record(member.name, f"on_assign {_names(partitions)}")
            self.of(member).assigned(member, partitions)

    def revoked(self, member: Member, partitions: list[Key], *, lost: bool) -> None:
        if not member.ended:
            self._story.record(member.name, f"{'on_lost' if lost else 'on_revoke'} {_names(partitions)}")
            self.of(member).revoked(member, partitions, lost=lost, commits=commits_of(member.plan))

    def delivered(
        self, member: Member, topic_id: int, key: Key, offset: int, *, paused: bool = False
    ) -> None:
        if not member.ended:
            del topic_id
            self._story.record(member.name, f"gets {key[0]}[{key[1]}]@{offset}")
            until = member.session_until
            self.of(member).delivered(member, key, offset, session_until=until, paused=paused)

    def reached_end(self, member: Member, key: Key, offset: int, *, paused: bool) -> None:
        if not member.ended:
            self._story.record(member.name, f"gets the end of {key[0]}[{key[1]}]@{offset}")
            self.of(member).reached_end(member, key, offset, paused=paused)

    def sought(self, member: Member, key: Key, offset: int) -> None:
        if not member.ended:
            self._story.record(member.name, f"seeks {key[0]}[{key[1]}] to {offset}")
            self.of(member).sought(member, key, offset)

    def moved(self, member: Member, key: Key, offset: int) -> None:
        if not member.ended:
            self._story.record(
                member.name, f"librdkafka moves {key[0]}[{key[1]}] to {offset}, by a late answer"
            )
            self.of(member).moved(member, key, offset)

    def start_of(self, key: Key) -> int:
        return max(0, self._cluster.coordinator.committed(GROUP, key), self.group.complete(key))

    def asked(self, member: Member, offsets: dict[Key, int] | None = None) -> None:
        if not member.ended:
            self.of(member).asked(member, offsets)

    def changed(self, member: Member, removed: list[Key], starts: dict[Key, int | None]) -> None:
        if not member.ended:
            self._story.record(
                member.name, f"has unassigned {_names(removed)}, and assigned {_starts(starts)}"
            )
            self.by_hand[member.name].changed(member, removed, starts)

    def refusals(self, member: Member) -> int:
        return self.by_hand[member.name].refusals

    def stopped(self, member: Member, duration: int) -> None:
        """Record a fault when the process stops, and when it runs again, maybe without its session."""
        self._story.record(member.name, f"does not run for {duration / SECOND:.3f} s")
        record = functools.partial(self.of(member).record_fault, member.name)
        record()
        self._scheduler.call_in(duration, record)

    def was_busy(self, member: Member, since: int) -> None:
        if not member.ended:
            self.of(member).was_busy(member, since)

    def is_replaced(self, member: Member) -> bool:
        return member.process in self.of(member).replaced

    def broken(self, member: Member, guarantee: str, detail: str) -> None:
        if not member.ended:
            self.of(member).broken(member, guarantee, detail)

    def must_return(self, member: Member, why: str, since: int | None = None) -> None:
        if not member.ended:
            self.of(member).must_return(member, why, since)

    def call_never_ended(self, member: Member) -> None:
        guarantee = "calls of other threads end when the consumer is closed"
        raise BrokenGuaranteeError(guarantee, f"{member.name}: a commit waits still", self._scheduler.now)

    def forked(self, member: Member, wrongs: str) -> None:
        if not member.ended:
            self._story.record(member.name, "has forked")
            self.of(member).forked(member, wrongs)

    def committed_unknown(self, member: Member, error: str | None, duration: int) -> None:
        if not member.ended:
            took = f"{duration / SECOND:.3f} s"
            self._story.record(member.name, f"commit of an unknown topic: {error} after {took}")
            self.of(member).committed_unknown(member, error, duration)

    def committed(self, member: Member, offsets: dict[Key, int], error: str | None) -> None:
        if not member.ended:
            described = error or ", ".join(
                f"{key[0]}[{key[1]}]={offset}" for key, offset in sorted(offsets.items())
            )
            self._story.record(member.name, f"commit ended: {described}")
            self.of(member).committed(member, offsets, error)

    def said(self, member: Member, words: str) -> None:
        if not member.ended:
            self._story.record(member.name, words)

    def closed(self, member: Member, error: str | None) -> None:
        self._story.record(member.name, f"has closed{'' if error is None else f' with {error}'}")
        if error is not None:
            self.group.check()
            guarantee = "an application gets no error that it does not expect"
            raise BrokenGuaranteeError(guarantee, f"{member.name}: {error}", self._scheduler.now)
        self.of(member).closed(member)
        if isinstance(member, HandMember):
            self._on_closed(member)

    def failed(self, member: ForeignMember) -> None:
        """Forget a member of another client that has ended with an error."""
        self.group.killed(member)


def _join_words(response: msg.JoinGroupResponse) -> str:
    if response.error:
        return response.error.name
    return f"{'leads' if response.members else 'joins'} generation {response.generation_id}"


def _names(partitions: list[Key]) -> str:
    return ", ".join(f"{topic}[{number}]" for topic, number in partitions) or "nothing"


def _starts(starts: dict[Key, int | None]) -> str:
    places = (f"{_names([key])}{'' if at is None else f' at {at}'}" for key, at in starts.items())
    return ", ".join(places) or "nothing"
