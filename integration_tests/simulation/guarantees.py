"""Checks of guarantees to a group, each where it could be broken; `guarantee` lists them.

Owners, deliveries and commits are judged by the rules of `groupwright.testing.groups`; here is what the
coordinator and the faults excuse, and what those rules do not say.
"""

from collections import defaultdict
from collections.abc import Container
from typing import NamedTuple, NoReturn

from groupwright.core import ErrorCode
from groupwright.core import TopicPartitionKey as Key
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.classic_group import State
from groupwright.testing._simulation.cluster import Cluster
from groupwright.testing._simulation.scheduler import SECOND, Process, Scheduler
from groupwright.testing.groups import (
    Assigned,
    Breach,
    Committed,
    Consumed,
    EndReached,
    Judge,
    Killed,
    Left,
    MemberHistory,
    PartitionLog,
    Revoked,
    Rule,
    Sought,
    Span,
    Window,
)
from integration_tests.simulation.records import BrokenGuaranteeError, Member, name_of
from integration_tests.simulation.request_checks import fences
from integration_tests.simulation.scenario import GROUP, Client, Commits

_END = "the end of a partition comes where the application is"

_HALF_OPEN = 60 * SECOND
"""Longest time for which a connection to a leader may stay half open after a cut."""
_ELECTION = 10 * SECOND
"""Time after a fault of the cluster in which another coordinator has begun."""
GENERATIONS_A_FAULT = 8
"""Most generations that one fault may cause: several members rejoin, some of them twice."""


_LOOKED_UP = 60.0
"""Longest time in seconds before an assignment at which its start may have been looked up."""


class _History(MemberHistory):
    """A history of a member whose calls return messages only of what it owns when they return."""

    def window_of(self, partition: Key, polled: float) -> Window | None:
        del polled
        return self.owned.get(partition)


class _Left(NamedTuple):
    """A clean revocation of a partition of a member that commits automatically."""

    at: int
    position: int
    member: str
    member_id: str


class Guarantees:
    """Observes members and the coordinator; raises `BrokenGuaranteeError` when a guarantee is broken."""

    def __init__(self, scheduler: Scheduler, cluster: Cluster, recovery: int) -> None:
        """Begin with no members."""
        self._scheduler = scheduler
        self._cluster = cluster
        self._recovery = recovery
        """How long before a clean revocation ends a fault may have cost the session, in microseconds."""
        self._judge = Judge(self._starts, lambda name: _History(name, ()))
        self._members: dict[str, Member] = {}
        self._left: dict[Key, _Left] = {}
        """The last clean revocation of each partition that was not assigned since."""
        self._over: dict[Window, str] = {}
        """The guarantee that a message breaks before the member has called `on_revoke` or `on_lost`."""
        self._moved_to: dict[Window, int] = {}
        """The offset to which librdkafka's late ListOffsets response moves a partition; see `moved`."""
        self._joined: dict[str, int] = {}
        """Last generation that each client has joined."""
        self._ids: dict[str, str] = {}
        """Member id by client."""
        self._joined_at: dict[str, int] = {}
        """When each client last joined a generation."""
        self.replaced: set[Process] = set()
        """Processes that were fenced, each by another one with its `group.instance.id`."""
        self._leaves: dict[str, int] = {}
        """When each client last left the group."""
        self._confirmed: dict[str, int] = {}
        """When each client last sent a heartbeat, or received an assignment, that was accepted."""
        self._accepted: dict[str, dict[Key, int]] = defaultdict(dict)
        """The largest offset that was accepted, by client and partition."""
        self._asked: dict[str, int] = defaultdict(int)
        self._reported: dict[str, int] = defaultdict(int)
        self._fault_at: dict[str, int] = {}
        self._cut_at: dict[str, int] = {}
        self._generation_at = 0
        """When a member has joined a new generation."""
        self._backwards: set[Key] = set()
        """Partitions of which an application has sought, so that commits may go back."""
        self._renewed: set[str] = set()
        """Topics that were deleted, of which nothing is guaranteed."""
        self.refusals = 0
        """Partitions whose commits were refused because the group does not know the member."""
        self.generations = 0
        self._last_generation = -1
        self.rebalances = 0
        """How often a member has completed a rebalance."""
        self.delivered_count = 0
        self.violation: BrokenGuaranteeError | None = None
        """The first guarantee that was broken; the consumer may have caught the exception."""

    def check(self) -> None:
        """Raise the first violation."""
        if self.violation is not None:
            raise self.violation

    # --- Faults

    def record_fault(self, member: str | None = None, *, cuts: bool = True) -> None:
        """Record that something happens now that may cost a member, or all, their commits.

        Args:
            member: The member's name.
            cuts: Whether requests may take long from now on.
        """
        self._fault_at[member or ""] = self._scheduler.now
        if cuts:
            self._cut_at[member or ""] = self._scheduler.now

    def renewed(self, topic: str) -> None:
        """Record that a topic is deleted."""
        self._renewed.add(topic)
        self._left = {key: left for key, left in self._left.items() if key[0] != topic}

    # --- The coordinator

    def answered(self, process: Process, request: msg.Request, response: msg.Response) -> None:
        """Take a response of the coordinator."""
        name = process.name
        # A new coordinator may know a static member by a former id, and fence it; then it joins again.
        if fences(response) and self._fault_at.get("", -_ELECTION) + _ELECTION < self._joined_at.get(name, 0):
            self.replaced.add(process)
        match request, response:
            case msg.JoinGroupRequest(), msg.JoinGroupResponse():
                if response.member_id:
                    self._ids[name] = response.member_id
                if response.error is ErrorCode.NONE:
                    self._joined[name] = response.generation_id
                    self._joined_at[name] = self._scheduler.now
                if response.error is ErrorCode.NONE and response.generation_id != self._last_generation:
                    self._last_generation = response.generation_id
                    self._generation_at = self._scheduler.now
                    self.generations += 1
            case msg.LeaveGroupRequest(), _:
                self._leaves[name] = self._scheduler.now
            case msg.OffsetCommitRequest(), msg.OffsetCommitResponse():
                offsets = dict(request.offsets)
                for key, error in response.partitions:
                    if error is ErrorCode.NONE:
                        self._commit(name, key, offsets[key].offset)
                    self.refusals += error is ErrorCode.UNKNOWN_MEMBER_ID
            case _:
                pass

    def _commit(self, member: str, key: Key, offset: int) -> None:
        self._accepted[member][key] = max(offset, self._accepted[member].get(key, -1))
        if key[0] in self._renewed:
            return
        before = self._judge.log(key).committed_by
        for breach in self._judge.apply(member, Committed(self._now, {key: offset})):
            if breach.rule is Rule.COMMIT_BEYOND:
                self._broken("no commit is beyond what was delivered", str(breach))
            if key not in self._backwards:
                self._broken("commits never go backwards", str(breach))
            # Another member's last commit may have been accepted after this one has looked up its start.
            if breach.window is not None and before == member:
                self._check_end(breach.window, key, offset)

    def _check_end(self, window: Window, key: Key, offset: int) -> None:
        """Check that an automatic commit goes back, after a seek, only once its partition was revoked."""
        plan = self._members[window.member].plan
        if plan.commits is Commits.AUTO and plan.client is Client.GROUPWRIGHT:
            self._broken(
                "an automatic commit goes back at the end alone",
                f"{window.member} owns {name_of(key)} still, and has committed {offset}",
            )

    # --- Members

    def assigned(self, member: Member, keys: list[Key]) -> None:
        """Check that no other member owns these partitions."""
        self.rebalances += 1
        self._members[member.name] = member
        for breach in self._judge.apply(member.name, Assigned(self._now, tuple(keys))):
            if breach.other is None:
                self._broken("callbacks are paired", str(breach))
            if not (self._is_excused(self._members[breach.other.member]) or self._is_excused(member)):
                self._broken("a partition has one owner", str(breach))
        for key in keys:
            self._check_clean_end(member.name, key)

    def _is_excused(self, member: Member) -> bool:
        """Return whether the group has removed a member, which may not know it yet.

        A static member that misses a generation stays in the group, but its partitions may be assigned to
        others in it (KIP-345).
        """
        group = self._cluster.coordinator.group(GROUP)
        if member.ended or group is None or self._ids.get(member.name) not in group.members:
            return True
        return self._joined.get(member.name) != group.generation_id

    def _check_clean_end(self, member: str, key: Key) -> None:
        """Check that what was consumed before a clean revocation has been committed."""
        left = self._left.pop(key, None)
        if left is None or key[0] in self._renewed:
            return
        last_fault = max(self._fault_at.get(name, -1) for name in ("", left.member, member))
        group = self._cluster.coordinator.group(GROUP)
        is_member = group is not None and left.member_id in group.members
        # If the coordinator has removed it, its rebalance timeout ended before its commit.
        is_removed = not is_member and self._leaves.get(left.member, -1) < left.at
        committed = self._judge.log(key).committed
        if last_fault < left.at - self._recovery and not is_removed and committed != left.position:
            self._broken(
                "what was consumed before a clean revocation is committed",
                f"{left.member} has consumed {name_of(key)} up to {left.position}, but committed {committed}",
            )

    def revoked(self, member: Member, keys: list[Key], *, lost: bool, commits: Commits | None) -> None:
        """Check that the member owns these partitions; `commits` is how it commits, if it is our own."""
        windows = self._owned(member)
        for breach in self._judge.apply(member.name, Revoked(self._now, tuple(keys), lost)):
            self._broken("callbacks are paired", str(breach))
        if lost or commits is not Commits.AUTO or self._is_excused(member):
            return
        member_id = self._ids.get(member.name, "")
        for key in keys:
            position = next_of(windows[key])
            if position is not None:
                self._left[key] = _Left(self._scheduler.now, position, member.name, member_id)

    def must_return(self, member: Member, why: str, since: int | None = None) -> None:
        """Record that a member must call `on_revoke` or `on_lost` before its next message.

        Not if the group has rebalanced `since` then, or was cut off from its coordinator.
        """
        cut = self._last_cut(member)
        if since is not None and (cut >= since or not self._is_calm(member, since)):
            return
        self._over.update(dict.fromkeys(self._owned(member).values(), why))

    def was_busy(self, member: Member, since: int) -> None:
        """Check that a member that did not poll has committed automatically what it had consumed."""
        cut = self._last_cut(member)
        begin = since - self._recovery
        if not self._is_calm(member, since) or cut >= max(0, begin) or self._is_excused(member):
            return
        for key, window in self._owned(member).items():
            consumed, committed = next_of(window), self._judge.log(key).committed
            if consumed is None or key in self._backwards or key[0] in self._renewed:
                continue
            if committed < consumed:
                where = f"{name_of(key)} up to {consumed}, and {committed} is committed"
                self._broken(
                    "automatic commits go on while the application is busy",
                    f"{member.name} has consumed {where}",
                )

    def _last_cut(self, member: Member) -> int:
        """Return when a member, or all, were last cut off; -1 for never."""
        return max(self._cut_at.get(name, -1) for name in ("", member.name))

    def _is_calm(self, member: Member, since: int) -> bool:
        """Return whether a member's group has not rebalanced since then, and does not now."""
        group = self._cluster.coordinator.group(member.group)
        is_stable = group is None or not group.members or group.state is State.STABLE
        return is_stable and self._generation_at < since

    def broken(self, member: Member, guarantee: str, detail: str) -> None:
        """Record a guarantee that a call of a member has broken."""
        self._broken(guarantee, f"{member.name}: {detail}")

    def delivered(
        self, member: Member, key: Key, offset: int, *, session_until: int | None, paused: bool = False
    ) -> None:
        """Check a message; `session_until` is when the session ends as far as the member knows."""
        self.delivered_count += 1
        event = Consumed(self._now, self._now, (Span(*key, offset, offset + 1),))
        breaches = self._judge.apply(member.name, event)
        window = self._judge.owners[key].get(member.name)
        if window is None:
            self._broken("only the owner gets messages", str(breaches[0]))
        over = self._over.get(window)
        if over or paused:
            guarantee = over or "a paused partition returns no message"
            self._broken(guarantee, f"{member.name} gets {offset} of {name_of(key)}")
        if session_until is not None and self._scheduler.now > session_until:
            late = (self._scheduler.now - session_until) / SECOND
            self._broken(
                "only the owner gets messages",
                f"{member.name} gets {offset} of {name_of(key)} {late:.3f} s after its session",
            )
        if key[0] not in self._renewed:
            for breach in breaches:
                self._check_order(breach, window)

    def reached_end(self, member: Member, key: Key, offset: int, *, paused: bool) -> None:
        """Check that a partition's end is returned where the application is."""
        breaches = self._judge.apply(member.name, EndReached(self._now, self._now, key, offset))
        if paused:
            self._broken(_END, f"{member.name} gets the end of {name_of(key)}, which is paused")
        for breach in breaches:
            if breach.window is None or not (breach.window in self._moved_to or key[0] in self._renewed):
                self._broken(_END, str(breach))
            if breach.rule is Rule.WRONG_END:
                self._judge.log(key).positions[breach.window] = breach.expected

    def _check_order(self, breach: Breach, window: Window) -> None:
        key, offset, limit, what = breach.partition, breach.start, breach.expected, str(breach)
        if breach.rule is Rule.CONSUMED_TWICE:
            return  # an owner starts at what was committed, perhaps before what was delivered
        if breach.rule is Rule.STARTED_ELSEWHERE:
            limit = self._judge.log(key).committed
            what += f"; {limit} is committed"
        elif offset == self._moved_to.get(window):
            del self._moved_to[window]
            self._backwards.add(key)
            return
        self._broken("no message is lost" if offset > limit else "none is delivered twice", what)

    def _starts(self, window: Window, log: PartitionLog) -> Container[int]:
        """Return the offsets that were committed from shortly before the assignment until now."""
        return committed_since(window.begin - _LOOKED_UP, log)

    def sought(self, member: Member, key: Key, offset: int) -> None:
        """Record a seek."""
        log, window = self._judge.log(key), self._judge.owners[key].get(member.name)
        if offset < log.committed or (window is not None and offset < log.positions.get(window, 0)):
            self._backwards.add(key)
        self._judge.apply(member.name, Sought(self._now, key, offset))

    def moved(self, member: Member, key: Key, offset: int) -> None:
        """Excuse a move by librdkafka.

        The consumer looks offsets up itself, so that librdkafka need not. If no leader answers for a second,
        it leaves that to librdkafka, whose late response then undoes a seek, as in confluent-kafka.
        """
        window = self._judge.owners[key].get(member.name)
        last_fault = max(self._fault_at.get(name, -1) for name in ("", member.name))
        cut = self._last_cut(member)
        had_fault = last_fault >= 0 and last_fault > self._scheduler.now - self._recovery
        is_cut = cut >= 0 and cut > self._scheduler.now - _HALF_OPEN
        if window is not None and (had_fault or is_cut):
            self._moved_to[window] = offset

    # --- Commits of applications

    def asked(self, member: Member, _offsets: dict[Key, int] | None = None) -> None:
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
                        f"{member.name} gets {offset} of {name_of(key)} as committed, which is false",
                    )

    def committed_unknown(self, member: Member, error: str | None, duration: int) -> None:
        """Check a synchronous commit of a topic that does not exist, which took so many microseconds."""
        guarantee = "a commit of an unknown topic fails soon"
        if error is None:
            self._broken(guarantee, f"{member.name} has committed an offset of a topic that does not exist")
        # A cooperative member's commit waits for the end of a rebalance.
        waits = "cooperative-sticky" in member.plan.strategy
        faults = self._fault_at if waits else self._cut_at
        cut = max(faults.get(name, -1) for name in ("", member.name))
        longest = 2 * self._recovery
        if duration > longest and cut < self._scheduler.now - duration - self._recovery:
            self._broken(guarantee, f"{member.name} has waited {duration / SECOND:.1f} s for {error}")

    def forked(self, member: Member, wrongs: str) -> None:
        """Check that a forked child got errors, and nothing else."""
        if wrongs:
            self._broken("a forked child does its parent no harm", f"the child of {member.name}: {wrongs}")

    def closed(self, member: Member) -> None:
        """Check that nothing is left of a member that has closed."""
        for breach in self._judge.apply(member.name, Left(self._now)):
            self._broken("callbacks are paired", str(breach))
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
        self._judge.apply(member.name, Killed(self._now, {}))
        self.record_fault(member.name)

    # --- In the end

    def unconsumed(self, topics: dict[str, list[int]]) -> list[str]:
        """Return what was not delivered of these topics; their values are the end offsets."""
        return [
            f"{name_of((topic, number))}: {complete} of {end}"
            for topic, ends in topics.items()
            if topic not in self._renewed
            for number, end in enumerate(ends)
            if (complete := self.complete((topic, number))) < end
        ]

    def complete(self, key: Key) -> int:
        """Return the offset below which all messages were delivered; 0 for a topic that was deleted."""
        return 0 if key[0] in self._renewed else self._judge.log(key).consumed.complete

    def owners(self, key: Key) -> list[str]:
        """Return the owners of a partition."""
        return sorted(self._judge.owners[key])

    @property
    def _now(self) -> float:
        return self._scheduler.now / SECOND

    def _owned(self, member: Member) -> dict[Key, Window]:
        history = self._judge.members.get(member.name)
        return {} if history is None else dict(history.owned)

    def _broken(self, guarantee: str, detail: str) -> NoReturn:
        self.violation = self.violation or BrokenGuaranteeError(guarantee, detail, self._scheduler.now)
        raise self.violation


def next_of(window: Window) -> int | None:
    """Return the offset after the last message, which a clean revocation commits even after a seek."""
    return window.consumed[-1][1].stop if window.consumed else None


def committed_since(time: float, log: PartitionLog) -> set[int]:
    """Return the offset that was committed last before a time, and all that were committed since."""
    history = [(0.0, 0), *log.commits]
    before = [offset for when, offset in history if when < time]
    return {*before[-1:], *(offset for when, offset in history if when >= time)}
