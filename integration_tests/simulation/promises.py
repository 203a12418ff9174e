"""The promises of every simulation, each checked when it could be broken.

| promise | checked |
|---|---|
| A partition has one owner | at each `on_assign`: no other member owns it that the group still has |
| Only the owner gets messages | at each message: the member owns the partition, and its session is not over |
| No message is lost | at each commit: every message before it was delivered; in the end: all were |
| None is delivered twice | at each message: it follows the last one, or the group's committed offset |
| Commits never go backwards, or beyond what was delivered | at each commit that the coordinator accepts |
| A commit is reported as it went | at each `on_commit` without an error: the coordinator has accepted it |
| A commit of an unknown topic fails soon | when it has ended, without troubles before |
| What was asked to be committed ends before `close` returns | when it has returned |
| What was consumed before a clean revocation is committed | at the next assignment, without troubles before |
| The end of a partition comes where the application is | at each PARTITION_EOF: the application is there |
| Callbacks are paired | `on_revoke` and `on_lost` get what `on_assign` got; `close` leaves nothing |
| The group comes to rest | in the end: Stable, every partition has one owner, all is consumed, no rebalance |
| No storms | in the end: no more generations than the troubles can have caused |
"""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import NoReturn, Protocol

from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.cluster import Cluster
from groupwright.testing._simulation.messages import ErrorCode
from groupwright.testing._simulation.messages import TopicPartition as Key
from groupwright.testing._simulation.scheduler import SECOND, Process, Scheduler
from simulation.scenario import Commits

GROUP = "group"

_END = "the end of a partition comes where the application is"

GENERATIONS_A_TROUBLE = 8
"""Most generations that one trouble may cause: several members rejoin, some of them twice."""


class BrokenPromiseError(Exception):
    """A promise was broken. `at` is the time in microseconds."""

    def __init__(self, promise: str, detail: str, at: int) -> None:
        """Describe what was promised, and what has happened."""
        super().__init__(f"{promise}: {detail}")
        self.promise = promise
        self.detail = detail
        self.at = at


@dataclass(slots=True)
class Window:
    """The time in which a member owns a partition."""

    member: "Member"
    since: int
    position: int | None = None
    """The offset after the last message, or that of a seek."""
    consumed: int | None = None
    """The offset after the last message, which is committed at a clean revocation even after a seek."""
    moved_to: int | None = None
    """The offset to which librdkafka's late ListOffsets response moves it; see `Promises.moved`."""


class Member(Protocol):
    """The part of a member that the checks need."""

    name: str
    ended: bool

    @property
    def process(self) -> Process: ...


@dataclass(slots=True)
class _Partition:
    """The record of a partition of one topic id."""

    delivered: set[int] = field(default_factory=set)
    complete: int = 0
    """All offsets below were delivered."""
    owners: dict[str, Window] = field(default_factory=dict)
    committed: int = 0
    history: list[tuple[int, int]] = field(default_factory=lambda: [(0, 0)])
    """Times and offsets of commits."""
    left_at: tuple[int, int, str] | None = None
    """(time, position, member) of the last clean revocation of a member that commits automatically."""


class Promises:
    """Observes members and the coordinator; raises `BrokenPromiseError` when a promise is broken."""

    def __init__(self, scheduler: Scheduler, cluster: Cluster, recovery: int) -> None:
        """Begin with no members."""
        self._scheduler = scheduler
        self._cluster = cluster
        self._recovery = recovery
        """How long before a clean revocation ends a trouble may have cost the session, in microseconds."""
        self._partitions: dict[Key, _Partition] = defaultdict(_Partition)
        self._joined: dict[str, int] = {}
        """Last generation that each client has joined."""
        self._ids: dict[str, str] = {}
        """Member id by client."""
        self._confirmed: dict[str, int] = {}
        """When each client last sent a heartbeat, or received an assignment, that was accepted."""
        self._accepted: dict[str, dict[Key, int]] = defaultdict(dict)
        """The largest offset that was accepted, by client and partition."""
        self._asked: dict[str, int] = defaultdict(int)
        self._reported: dict[str, int] = defaultdict(int)
        self._troubled_at: dict[str, int] = {}
        self._backwards: set[Key] = set()
        """Partitions of which an application has sought, so that commits may go back."""
        self._renewed: set[str] = set()
        """Topics that were deleted, of which nothing is promised."""
        self.generations = 0
        self._last_generation = -1
        self.rebalances = 0
        """How often a member has completed a rebalance."""
        self.delivered_count = 0
        self.violation: BrokenPromiseError | None = None
        """The first promise that was broken; the consumer may have caught the exception."""

    def check(self) -> None:
        """Raise the first violation."""
        if self.violation is not None:
            raise self.violation

    # --- Troubles

    def troubled(self, member: str | None = None) -> None:
        """Record that something happens now that may cost a member, or all, their commits."""
        self._troubled_at[member or ""] = self._scheduler.now

    def renewed(self, topic: str) -> None:
        """Record that a topic is deleted."""
        self._renewed.add(topic)
        for key, partition in self._partitions.items():
            if key[0] == topic:
                partition.left_at = None

    # --- The coordinator

    def answered(self, process: Process, request: msg.Request, response: msg.Response) -> None:
        """Take a response of the coordinator."""
        name = process.name
        match request, response:
            case msg.JoinGroupRequest(), msg.JoinGroupResponse():
                if response.member_id:
                    self._ids[name] = response.member_id
                if response.error is ErrorCode.NONE:
                    self._joined[name] = response.generation_id
                if response.error is ErrorCode.NONE and response.generation_id != self._last_generation:
                    self._last_generation = response.generation_id
                    self.generations += 1
            case msg.OffsetCommitRequest(), msg.OffsetCommitResponse():
                offsets = dict(request.offsets)
                for key, error in response.partitions:
                    if error is ErrorCode.NONE:
                        self._commit(name, key, offsets[key].offset)
            case _:
                pass

    def _commit(self, member: str, key: Key, offset: int) -> None:
        self._accepted[member][key] = max(offset, self._accepted[member].get(key, -1))
        if key[0] in self._renewed:
            return
        partition = self._partitions[key]
        if offset < partition.committed and key not in self._backwards:
            self._broken(
                "commits never go backwards",
                f"{member} has committed {offset} of {_name(key)}, which was at {partition.committed}",
            )
        if offset > partition.complete:
            self._broken(
                "no commit is beyond what was delivered",
                f"{member} has committed {offset} of {_name(key)}, of which {partition.complete} is next",
            )
        partition.committed = offset
        partition.history.append((self._scheduler.now, offset))

    # --- Members

    def assigned(self, member: Member, keys: list[Key]) -> None:
        """Check that nobody else owns these partitions."""
        self.rebalances += 1
        for key in keys:
            partition = self._partitions[key]
            if member.name in partition.owners:
                self._broken("callbacks are paired", f"{member.name} is assigned {_name(key)} a second time")
            for other in partition.owners.values():
                if not (self._is_excused(other.member) or self._is_excused(member)):
                    self._broken(
                        "a partition has one owner",
                        f"{member.name} is assigned {_name(key)}, which {other.member.name} owns",
                    )
            self._check_clean_end(member.name, key, partition)
            partition.owners[member.name] = Window(member, self._scheduler.now)

    def _is_excused(self, member: Member) -> bool:
        """Return whether the group has removed a member, which may not know it yet.

        A static member that misses a generation stays in the group, but its partitions may be assigned to
        others in it (KIP-345).
        """
        group = self._cluster.coordinator.group(GROUP)
        if member.ended or group is None or self._ids.get(member.name) not in group.members:
            return True
        return self._joined.get(member.name) != group.generation_id

    def _check_clean_end(self, member: str, key: Key, partition: _Partition) -> None:
        """Check that what was consumed before a clean revocation has been committed."""
        left, partition.left_at = partition.left_at, None
        if left is None or key[0] in self._renewed:
            return
        when, position, before = left
        troubled = max(self._troubled_at.get(name, -1) for name in ("", before, member))
        if troubled < when - self._recovery and partition.committed != position:
            self._broken(
                "what was consumed before a clean revocation is committed",
                f"{before} has consumed {_name(key)} up to {position}, but committed {partition.committed}",
            )

    def revoked(self, member: Member, keys: list[Key], *, lost: bool, commits: Commits | None) -> None:
        """Check that the member owns these partitions; `commits` is how it commits, if it is our own."""
        for key in keys:
            partition = self._partitions[key]
            window = partition.owners.pop(member.name, None)
            if window is None:
                self._broken(
                    "callbacks are paired", f"{_name(key)} is revoked of {member.name}, which has it not"
                )
            is_clean = not lost and commits is Commits.AUTO and not self._is_excused(member)
            if is_clean and window.consumed is not None:
                partition.left_at = (self._scheduler.now, window.consumed, member.name)

    def delivered(self, member: Member, key: Key, offset: int, *, session_until: int | None) -> None:
        """Check a message; `session_until` is when the session ends as far as the member knows."""
        self.delivered_count += 1
        partition = self._partitions[key]
        window = partition.owners.get(member.name)
        if window is None:
            self._broken(
                "only the owner gets messages", f"{member.name} gets {offset} of {_name(key)}, not its own"
            )
        if session_until is not None and self._scheduler.now > session_until:
            late = (self._scheduler.now - session_until) / SECOND
            self._broken(
                "only the owner gets messages",
                f"{member.name} gets {offset} of {_name(key)} {late:.3f} s after its session",
            )
        if key[0] not in self._renewed:
            self._check_order(member.name, key, offset, partition, window)
        window.position = window.consumed = offset + 1
        partition.delivered.add(offset)
        while partition.complete in partition.delivered:
            partition.delivered.discard(partition.complete)
            partition.complete += 1

    def reached_end(self, member: Member, key: Key, offset: int, *, paused: bool) -> None:
        """Check that a partition's end is returned where the application is."""
        partition = self._partitions[key]
        window = partition.owners.get(member.name)
        if window is None or paused:
            state = "is not its own" if window is None else "is paused"
            self._broken(_END, f"{member.name} gets the end of {_name(key)}, which {state}")
        if window.position not in {None, offset} and window.moved_to is None and key[0] not in self._renewed:
            self._broken(
                _END, f"{member.name} gets the end {offset} of {_name(key)}, and is at {window.position}"
            )

    def _check_order(self, member: str, key: Key, offset: int, partition: _Partition, window: Window) -> None:
        if window.position is not None:
            if offset == window.moved_to:
                window.moved_to = None
                self._backwards.add(key)
            elif offset != window.position:
                what = "no message is lost" if offset > window.position else "none is delivered twice"
                self._broken(what, f"{member} gets {offset} of {_name(key)} after {window.position - 1}")
        elif offset not in self._starts(partition, window.since):
            what = "no message is lost" if offset > partition.committed else "none is delivered twice"
            self._broken(
                what, f"{member} begins {_name(key)} at {offset}, and {partition.committed} is committed"
            )

    def _starts(self, partition: _Partition, since: int) -> set[int]:
        """Return the offsets that were committed from shortly before the assignment until now."""
        begin = since - 60 * SECOND
        found = {offset for when, offset in partition.history if when >= begin}
        before = [offset for when, offset in partition.history if when < begin]
        return found | set(before[-1:])

    def sought(self, member: Member, key: Key, offset: int) -> None:
        """Record a seek."""
        partition = self._partitions[key]
        window = partition.owners.get(member.name)
        if offset < partition.committed or (window is not None and offset < (window.position or 0)):
            self._backwards.add(key)
        if window is not None:
            window.position = offset

    def moved(self, member: Member, key: Key, offset: int) -> None:
        """Excuse a move by librdkafka.

        The consumer looks offsets up itself, so that librdkafka need not. If no leader answers for a second,
        it leaves that to librdkafka, whose late response then undoes a seek, as in confluent-kafka.
        """
        window = self._partitions[key].owners.get(member.name)
        if window is not None:
            window.moved_to = offset

    # --- Commits of applications

    def asked(self, member: Member) -> None:
        """Record an asynchronous commit that the application has asked for."""
        self._asked[member.name] += 1

    def committed(self, member: Member, offsets: dict[Key, int], error: str | None) -> None:
        """Check what is reported of a commit."""
        self._reported[member.name] += 1
        if error is None:
            for key, offset in offsets.items():
                # Commits that wait are sent as one, with the last offset of each partition.
                if offset > self._accepted[member.name].get(key, -1) and key not in self._backwards:
                    self._broken(
                        "a commit is reported as it went",
                        f"{member.name} is told that {offset} of {_name(key)} is committed, which it is not",
                    )

    def committed_unknown(self, member: Member, error: str | None, duration: int) -> None:
        """Check a synchronous commit of a topic that does not exist, which took so many microseconds."""
        promise = "a commit of an unknown topic fails soon"
        if error is None:
            self._broken(promise, f"{member.name} has committed an offset of a topic that does not exist")
        troubled = max(self._troubled_at.get(name, -1) for name in ("", member.name))
        longest = 2 * self._recovery
        if duration > longest and troubled < self._scheduler.now - duration - self._recovery:
            self._broken(promise, f"{member.name} has waited {duration / SECOND:.1f} s for {error}")

    def closed(self, member: Member) -> None:
        """Check that nothing is left of a member that has closed."""
        for key, partition in self._partitions.items():
            if member.name in partition.owners:
                self._broken(
                    "callbacks are paired", f"{member.name} has closed, and {_name(key)} was not revoked"
                )
        asked, reported = self._asked[member.name], self._reported[member.name]
        if reported < asked:
            self._broken(
                "what was asked to be committed ends before close returns",
                f"{member.name} has asked for {asked} commits, and heard of {reported}",
            )

    def killed(self, member: Member) -> None:
        """Record that a member was killed."""
        self._asked.pop(member.name, None)
        self._reported.pop(member.name, None)
        for partition in self._partitions.values():
            partition.owners.pop(member.name, None)
        self.troubled(member.name)

    # --- In the end

    def unconsumed(self, topics: dict[str, list[int]]) -> list[str]:
        """Return what was not delivered of these topics; their values are the end offsets."""
        return [
            f"{_name((topic, number))}: {self._partitions[topic, number].complete} of {end}"
            for topic, ends in topics.items()
            if topic not in self._renewed
            for number, end in enumerate(ends)
            if self._partitions[topic, number].complete < end
        ]

    def owners(self, key: Key) -> list[str]:
        """Return the owners of a partition."""
        return sorted(self._partitions[key].owners)

    def _broken(self, promise: str, detail: str) -> NoReturn:
        self.violation = self.violation or BrokenPromiseError(promise, detail, self._scheduler.now)
        raise self.violation


def _name(key: Key) -> str:
    return f"{key[0]}[{key[1]}]"
