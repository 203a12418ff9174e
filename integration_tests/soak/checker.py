"""Checker of a run's histories against the guarantees of a consumer group (see README.md). Pure."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from groupwright.core import TopicPartitionKey
from groupwright.testing.groups import (
    Committed,
    Consumed,
    Died,
    End,
    EndReached,
    ErrorReturned,
    Event,
    Failed,
    Produced,
    Revoked,
    Sought,
    Window,
)
from integration_tests.soak.events import FaultInjected, WakeupRaised
from integration_tests.soak.member_history import (
    Interval,
    MemberHistory,
    Message,
    Move,
    merged,
    messages,
    read_history,
)
from integration_tests.soak.stored import StoredCommit, StoredGeneration, StoredRecord, StoredRemoval
from integration_tests.soak.timing import Timing

Lost = tuple[TopicPartitionKey, int, int]
"""A message that an interruption may have lost: its partition, the incarnation of the topic, its offset."""
Interruption = tuple[str, float]
"""The member's name, and the time."""

_OUTAGES = frozenset({"restart broker", "crash broker", "pause broker"})
_RECOVERY_SECONDS = 3.0
"""The longest time after an outage at which its effects may still show."""
_NEWS_SECONDS = 15.0
"""The longest time for which members may still get errors of a deleted topic after its re-creation."""
_FORBIDDEN_SECONDS = 8.0
"""The longest time for which a guest may poll without an authorization error, in the absence of faults."""
_MISSING = frozenset({"UNKNOWN_TOPIC_OR_PART", "UNKNOWN_TOPIC_ID", "_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION"})
_UNAUTHORIZED = "TOPIC_AUTHORIZATION_FAILED"


@dataclass(frozen=True, slots=True)
class Violation:
    """A violated guarantee."""

    rule: str
    group: str
    text: str
    partition: TopicPartitionKey | None = None
    """The partition concerned."""
    members: tuple[str, ...] = ()
    """The members whose histories show the violation."""
    time: float = math.nan


@dataclass(slots=True)
class Records:
    """Everything recorded of a run."""

    histories: Mapping[str, Mapping[str, Sequence[Event]]]
    """The history of each member process, by group and by the member's name."""
    produced: Sequence[Event]
    """The history of the producers."""
    faults: Sequence[FaultInjected]
    """The injected faults, in order of time."""
    stored: Sequence[StoredRecord]
    """The records of `__consumer_offsets`, in log order within each group."""
    settled: float | None = None
    """A time without faults, at which every partition with messages must have exactly one owner."""


@dataclass(slots=True)
class Findings:
    """The checker's findings: violations and counts."""

    violations: list[Violation] = field(default_factory=list)
    members: list[MemberHistory] = field(default_factory=list)
    messages: int = 0
    """Messages acknowledged to the producer."""
    deliveries: int = 0
    """Messages delivered over all groups, duplicates included."""
    duplicates: int = 0
    """Repeated deliveries within a group; each has an accepted reason or is a violation."""
    excused: int = 0
    """Messages lost because a signal handler's exception interrupted the poll that was to return them."""
    commits: int = 0
    """Commits that were acknowledged to members."""
    refused: int = 0
    """Commits that were rejected or not answered."""
    losses: int = 0
    """The number of `on_lost` calls with partitions."""
    overlaps: int = 0
    """The number of partitions assigned to a new owner before the stalled owner learned of it."""


def check(records: Records, timing: Timing) -> Findings:
    """Check a run against every rule."""
    findings = Findings()
    outages = [(fault.time, fault.until) for fault in records.faults if fault.what in _OUTAGES]
    produced = [each for event in records.produced if isinstance(event, Produced) for each in messages(event)]
    findings.messages = len(produced)
    findings.violations += _failures("producer", "", records.produced)
    findings.violations += (
        Violation("hung", "", f"{fault.target} did not end when signalled", None, (fault.target,), fault.time)
        for fault in records.faults
        if fault.what == "hang"
    )
    findings.violations += (
        Violation("kept", "", f"{fault.target} kept a deleted topic", None, (fault.target,), fault.time)
        for fault in records.faults
        if fault.what == "keep deleted topic"
    )
    for group, histories in records.histories.items():
        read = (read_history(name, events) for name, events in histories.items())
        members = [member for member in read if member]
        findings.members += members
        stored = [record for record in records.stored if record.group == group]
        rules = _Group(group, members, outages, records.faults, timing, findings)
        rules.check(produced, stored, records.settled)
    findings.violations.sort(key=lambda violation: violation.time)
    return findings


class Incarnations:
    """Incarnations of the deleted and re-created topics, by time."""

    def __init__(self, faults: Sequence[FaultInjected]) -> None:
        """Collect the times of deletion and re-creation."""
        self._made: defaultdict[str, list[float]] = defaultdict(list)
        self._gone: defaultdict[str, list[Interval]] = defaultdict(list)
        self._left_deleted = {fault.target for fault in faults if fault.what == "leave topic deleted"}
        for fault in faults:
            if fault.what == "make topic":
                self._made[fault.target].append(fault.time)
            elif fault.what == "delete topic":
                self._gone[fault.target].append((fault.time, math.inf))
        for topic, made in self._made.items():
            self._gone[topic] = [
                (begin, min((time for time in made if time > begin), default=math.inf))
                for begin, _ in self._gone[topic]
            ]

    def at(self, topic: str, time: float) -> int:
        """Return the number of the topic's incarnation at a time, or the last one before it."""
        return bisect_right(self._made[topic], time)

    def is_kept(self, topic: str, time: float) -> bool:
        """Return whether the topic's incarnation at that time is never deleted."""
        return topic not in self._left_deleted and self.at(topic, time) == len(self._made[topic])

    def is_missing(self, topic: str | None, time: float) -> bool:
        """Return whether a member may get an unknown-topic error at that time."""
        return topic is not None and any(
            begin <= time <= end + _NEWS_SECONDS for begin, end in self._gone[topic]
        )


class _Group:
    """The rules, applied to one group."""

    def __init__(
        self,
        group: str,
        members: Sequence[MemberHistory],
        outages: Sequence[Interval],
        faults: Sequence[FaultInjected],
        timing: Timing,
        findings: Findings,
    ) -> None:
        self._name = group
        self._members = {member.name: member for member in members}
        self._outages = outages
        self._faults = faults
        self._hung = {fault.target for fault in faults if fault.what == "hang"}
        self._incarnations = Incarnations(faults)
        self._suspects: dict[Lost, list[Interruption]] = {}
        """The interruptions that may have lost a message."""
        self._blamed: dict[Interruption, Lost] = {}
        self._excused: set[Lost] = set()
        """Messages that interruptions may have lost: partition, incarnation and offset."""
        self._timing = timing
        self._findings = findings
        self._windows: defaultdict[TopicPartitionKey, list[Window]] = defaultdict(list)
        windows = (window for member in members for window in member.windows)
        for window in sorted(windows, key=lambda window: window.begin):
            self._windows[window.partition].append(window)

    def check(
        self, produced: Sequence[Message], stored: Sequence[StoredRecord], settled: float | None
    ) -> None:
        for member in self._members.values():
            self._check_member(member)
            self._check_losses(member)
            self._check_errors(member)
            self._check_wakeups(member)
        for windows in self._windows.values():
            self._check_owners(windows)
        for windows in self._by_incarnation().values():
            self._check_deliveries(windows)
        self._check_completeness(produced)
        self._check_stored(stored)
        if settled is not None:
            last = {
                message.partition
                for message in produced
                if self._incarnations.is_kept(message.partition[0], message.time)
            }
            self._check_settled(last, settled)
        self._findings.excused += len(self._excused)

    def _by_incarnation(self) -> dict[tuple[TopicPartitionKey, int], list[Window]]:
        found: defaultdict[tuple[TopicPartitionKey, int], list[Window]] = defaultdict(list)
        for partition, windows in self._windows.items():
            for window in windows:
                found[partition, self._incarnations.at(partition[0], window.begin)].append(window)
        return dict(found)

    def _received(self, window: Window) -> list[Message]:
        return self._members[window.member].received(window)

    # --- One member ---------------------------------------------------------------------------------

    def _check_member(self, member: MemberHistory) -> None:
        self._findings.violations += _failures(member.name, self._name, member.events)
        if member.killed == math.inf and not member.ended and member.name not in self._hung:
            self._report("died", "the process ended by itself", member.events[-1].time, member.name)
        for assigned in member.repeated:
            self._report("assigned twice", "was assigned what it owned already", assigned.time, member.name)
        for time, span in member.strays:
            text = f"received {span} without owning the partition"
            self._report("not owned", text, time, member.name, partition=(span.topic, span.partition))
        for end in member.stray_ends:
            text = f"received the end at offset {end.offset} without owning the partition"
            self._report("not owned", text, end.time, member.name, partition=end.partition)
        self._findings.deliveries += sum(
            span.size for event in member.events if isinstance(event, Consumed) for span in event.spans
        )
        for commit in member.commits():
            if commit.error is None:
                self._findings.commits += 1
            else:
                self._findings.refused += 1

    def _check_errors(self, member: MemberHistory) -> None:
        """Each error that a poll returns has a reason, and a guest gets its authorization error."""
        forbidden: str | None = None
        for event in member.events:
            if not isinstance(event, ErrorReturned):
                continue
            if event.code == _UNAUTHORIZED and member.guest:
                forbidden = event.topic or forbidden
                continue
            known = event.code == "_MAX_POLL_EXCEEDED" or (
                event.code in _MISSING and self._incarnations.is_missing(event.topic, event.time)
            )
            if not known:
                text = f"a poll returned {event.code} of {event.topic}: {event.error}"
                self._report("unexplained error", text, event.time, member.name)
        if not member.guest:
            return
        read = [w for w in member.windows if w.partition[0] == forbidden and w.consumed]
        if read:
            text = f"consumed {forbidden}, which it may not read"
            self._report("forbidden", text, read[0].begin, member.name, partition=read[0].partition)
        begin, end = member.started.time, member.events[-1].time
        faulty = [*self._outages, *member.frozen, *member.silent]
        longest = max(_gaps(begin, end, merged(faulty)))
        if forbidden is None and longest > _FORBIDDEN_SECONDS:
            text = "polled without an authorization error of the forbidden topic"
            self._report("no error", text, end, member.name)

    def _check_wakeups(self, member: MemberHistory) -> None:
        """Each WakeupError follows a wakeup, and each wakeup leads to one, unless one was pending already."""
        asked = [
            fault.time for fault in self._faults if fault.what == "wakeup" and fault.target == member.name
        ]
        raised = [event.time for event in member.events if isinstance(event, WakeupRaised)]
        for number, time in enumerate(raised):
            if bisect_right(asked, time) <= number:
                text = "WakeupError was raised without wakeup()"
                self._report("wakeup without a call", text, time, member.name)
        for time in asked:
            later = [
                event.time
                for event in member.events
                if isinstance(event, Consumed | EndReached) and event.polled > time + self._timing.grace
            ]
            if later and not any(time <= when <= later[0] for when in raised):
                text = f"wakeup() at {time:.3f} ended no poll"
                self._report("wakeup without effect", text, later[0], member.name)

    def _check_losses(self, member: MemberHistory) -> None:
        """Only a member whose session expired, or that did not poll, may lose partitions."""
        for loss in member.events:
            if not isinstance(loss, Revoked) or not loss.lost or not loss.partitions:
                continue
            self._findings.losses += 1
            began = loss.time if loss.began is None else loss.began
            if not self._explains_loss(member, began):
                parts = ", ".join(f"{topic} [{number}]" for topic, number in loss.partitions)
                self._report("unexplained loss", f"lost {parts} with no reason to", began, member.name)
            for commit in member.commits():
                if commit.began is None or not began <= commit.began <= loss.time:
                    continue
                if commit.error is None:
                    self._report("commit after loss", "committed what it had lost", commit.time, member.name)

    def _explains_loss(self, member: MemberHistory, when: float) -> bool:
        since = when - self._timing.session - _RECOVERY_SECONDS
        if any(begin <= when and end >= since for begin, end in self._outages):
            return True
        away = [pause for pause in member.frozen if _length(pause) >= self._timing.forgotten_after]
        mute = [pause for pause in member.silent if _length(pause) >= self._timing.expelled_after]
        return any(begin <= when and end >= since for begin, end in away + mute)

    # --- One partition ------------------------------------------------------------------------------

    def _check_owners(self, windows: Sequence[Window]) -> None:
        """No partition has two owners, except while a stalled owner cannot know that it was replaced."""
        former: list[Window] = []
        for window in windows:
            former = [earlier for earlier in former if self._ends(earlier) > window.begin]
            for earlier in former:
                self._check_overlap(earlier, window)
            former.append(window)

    def _ends(self, window: Window) -> float:
        """Return the time up to which another owner is a violation or, for a stalled member, an overlap."""
        if window.ended_by is not End.KILLED:
            return window.end
        # The coordinator learns of a killed member only when its session expires.
        instance = self._members[window.member].instance
        successors = (
            member.started.time
            for member in self._members.values()
            if instance is not None and member.instance == instance and member.started.time >= window.end
        )
        return min(self._forgotten(window), *successors, math.inf)

    def _forgotten(self, window: Window) -> float:
        """Return the earliest time at which the coordinator may have reassigned the partition."""
        member = self._members[window.member]
        entered = member.entered(window)
        limits = (
            (member.frozen, self._timing.forgotten_after),
            (member.silent, self._timing.expelled_after),
        )
        times = [
            begin + limit
            for pauses, limit in limits
            for begin, end in pauses
            if end - begin >= limit and end >= entered
        ]
        times += self._cut_off(window)
        return min(times, default=math.inf)

    def _cut_off(self, window: Window) -> Iterator[float]:
        """Yield the times at which an outage may have expired the session of an application not polling."""
        for outage, _ in self._outages:
            ended = outage + self._timing.forgotten_after
            for begin, end in self._members[window.member].silent:
                if window.begin <= end and ended <= end and begin <= ended + _RECOVERY_SECONDS:
                    yield max(begin, ended)

    def _check_overlap(self, earlier: Window, later: Window) -> None:
        if later.ended_by is End.LOST and self._members[later.member].entered(later) < earlier.begin:
            earlier, later = later, earlier  # stopped at the entry of on_assign, and replaced meanwhile
        both = (earlier.member, later.member)
        self._findings.overlaps += 1
        if later.begin < self._forgotten(earlier):
            text = f"{earlier}, and {later}"
            self._report("two owners", text, later.begin, *both, partition=later.partition)
            return
        # A member that was stopped inside on_revoke had been called in time.
        if earlier.ended_by is End.REVOKED and earlier.revoking > later.begin:
            text = f"{earlier}: on_revoke was called for a partition that had another owner: {later}"
            self._report("revoked, not lost", text, earlier.end, *both, partition=later.partition)
        stale = [message for message in self._received(earlier) if message.polled > later.begin]
        if stale:
            text = f"{earlier.member} received {len(stale)} messages from offset {stale[0].offset} on; "
            text += f"the last poll began {stale[-1].polled - later.begin:.3f} s after {later.member} "
            text += "had become the owner"
            self._report("stale delivery", text, stale[0].time, *both, partition=later.partition)
        for commit in self._members[earlier.member].commits():
            if commit.error is None and commit.began is not None and later.begin < commit.began < earlier.end:
                offset = commit.offsets.get(later.partition)
                if offset is not None:
                    text = f"{earlier.member} committed {offset}, and {later.member} was the owner"
                    self._report(
                        "commit by a former owner", text, commit.time, *both, partition=later.partition
                    )

    def _check_deliveries(self, windows: Sequence[Window]) -> None:
        """Each owner resumes where the last one ended; each duplicate has an accepted reason."""
        partition = windows[0].partition
        commits = self._commits_of(partition, self._incarnations.at(partition[0], windows[0].begin))
        # A poll that another thread's close overtook returns messages fetched before the close.
        moves = [
            (min(move.time, window.end), move, window)
            for window in windows
            for move in self._members[window.member].moves[window]
        ]
        moves.sort(key=lambda move: move[0])
        delivered: dict[int, tuple[Message, Window]] = {}
        place: dict[Window, int] = {}
        highest = -1
        for _, event, window in moves:
            offset, expected = event.offset, place.get(window)
            if isinstance(event, Sought):
                self._check_limit(event, window, highest, "sought")
                place[window] = offset
                continue
            if expected is None:
                self._check_limit(event, window, highest, "began at")
                if isinstance(event, Message):
                    self._check_start(event, window, commits)
            elif offset != expected and not self._excuses(window, expected, offset):
                self._report_gap(event, expected, window)
            if isinstance(event, EndReached):
                place[window] = offset
                continue
            before = delivered.get(offset)
            if before is not None:
                self._findings.duplicates += 1
                self._check_duplicate(event, *before, window)
            delivered[offset] = event, window
            place[window] = offset + 1
            highest = max(highest, offset)

    def _report_gap(self, event: Message | EndReached, expected: int, window: Window) -> None:
        offset = event.offset
        if isinstance(event, EndReached):
            text = f"polled the end of the partition at offset {offset}; the next offset is {expected}"
            self._report("wrong end", text, event.time, window.member, partition=window.partition)
        else:
            rule = "skipped" if offset > expected else "duplicate"
            text = f"received offset {offset} after {expected - 1}"
            self._report(rule, text, event.time, window.member, partition=window.partition)

    def _check_limit(self, event: Move, window: Window, highest: int, what: str) -> None:
        """No owner begins beyond the highest delivered offset plus one."""
        if event.offset > highest + 1 and not self._excuses(window, highest + 1, event.offset):
            text = f"{what} offset {event.offset}; no member had received {highest + 1}"
            self._report("skipped", text, event.time, window.member, partition=window.partition)

    def _check_start(self, message: Message, window: Window, commits: Sequence[Committed]) -> None:
        stored = [commit.offsets[window.partition] for commit in commits if commit.time < window.begin]
        if stored and message.offset < max(stored):
            text = f"began at offset {message.offset}, although {max(stored)} had been committed before"
            self._report("behind the commit", text, message.time, window.member, partition=window.partition)

    def _excuses(self, window: Window, expected: int, offset: int) -> bool:
        """Return whether interruptions, of one message each, explain the gap from `expected` to `offset`."""
        partition = window.partition
        incarnation = self._incarnations.at(partition[0], window.begin)
        if offset <= expected:
            return False
        found: list[Interruption] = []
        for owned in self._windows[partition]:
            if owned.begin > window.begin or self._incarnations.at(partition[0], owned.begin) != incarnation:
                continue
            received = self._received(owned)
            found += (
                (owned.member, event.time)
                for event in self._members[owned.member].interruptions()
                if owned.begin <= event.time
                and event.polled <= owned.end
                # The interruption lies between the deliveries before and after the gap.
                and not any(
                    message.polled < event.polled
                    if message.offset >= expected
                    else message.offset == expected - 1 and message.polled > event.time
                    for message in received
                )
            )
        places = ((partition, incarnation, each) for each in range(expected, offset))
        gap = [lost for lost in places if lost not in self._excused]
        self._suspects.update(dict.fromkeys(gap, found))
        if not all(self._blame(lost, set()) for lost in gap):
            return False
        self._excused.update(gap)
        return True

    def _blame(self, lost: Lost, tried: set[Interruption]) -> bool:
        """Match a lost message to an interruption, re-matching other messages where necessary."""
        for interruption in self._suspects[lost]:
            if interruption in tried:
                continue
            tried.add(interruption)
            other = self._blamed.get(interruption)
            if other is None or self._blame(other, tried):
                self._blamed[interruption] = lost
                return True
        return False

    def _check_duplicate(self, message: Message, first: Message, before: Window, again: Window) -> None:
        if before is again or again.begin < before.begin:
            return  # reported already, as a duplicate within one window or a stale delivery
        if before.ended_by in {End.LOST, End.KILLED, End.DIED} or self._commit_failed(message, before):
            return
        moves = self._members[again.member].moves[again]
        if any(isinstance(move, Sought) and move.offset <= message.offset for move in moves):
            return
        if first.time > before.revoking:
            return  # not yet processed when another thread's close revoked the partition
        text = f"offset {message.offset} came again to {again.member}, although {before}"
        self._report("duplicate", text, message.time, before.member, again.member, partition=again.partition)

    def _commit_failed(self, message: Message, window: Window) -> bool:
        """Return whether the window's owner tried to commit the message and failed."""
        member, partition = self._members[window.member], window.partition
        again = (other.begin for other in member.windows if other.partition == partition)
        until = min((begin for begin in again if begin > window.begin), default=math.inf)
        tries = [
            commit.error is None
            for commit in member.commits()
            if window.begin <= commit.time <= until and commit.offsets.get(partition, -1) > message.offset
        ]
        if tries:
            return not any(tries)
        # The automatic commit of close() is not reported to on_commit.
        waits = self._timing.session + _RECOVERY_SECONDS
        return any(begin <= window.end <= end + waits for begin, end in self._outages)

    def _commits_of(self, partition: TopicPartitionKey, incarnation: int) -> list[Committed]:
        return [
            commit
            for member in self._members.values()
            for commit in member.commits()
            if commit.error is None and partition in commit.offsets
            if self._incarnations.at(partition[0], commit.time) == incarnation
        ]

    # --- The whole ----------------------------------------------------------------------------------

    def _check_completeness(self, produced: Iterable[Message]) -> None:
        """Every acknowledged message is consumed with its value, except in deleted topics."""
        values: defaultdict[tuple[TopicPartitionKey, int], dict[int, str]] = defaultdict(dict)
        for place, windows in self._by_incarnation().items():
            for window in windows:
                values[place].update({message.offset: message.value for message in self._received(window)})
        for message in produced:
            incarnation = self._incarnations.at(message.partition[0], message.time)
            consumed = values[message.partition, incarnation]
            value = consumed.get(message.offset)
            if value is None:
                self._check_lost(message, incarnation, max(consumed, default=-1))
            elif value != message.value:
                text = f"offset {message.offset} holds {message.value!r}, and {value!r} was consumed"
                self._report("wrong message", text, message.time, partition=message.partition)

    def _check_lost(self, message: Message, incarnation: int, highest: int) -> None:
        partition, offset = message.partition, message.offset
        if (
            not self._incarnations.is_kept(partition[0], message.time)
            or (partition, incarnation, offset) in self._excused
        ):
            return
        # No delivery follows the last message, so an interruption may explain it too.
        windows = self._windows[partition]
        if windows and offset == highest + 1 and self._excuses(windows[-1], offset, offset + 1):
            return
        text = f"offset {offset} ({message.value}) was acknowledged and never consumed"
        when = max([message.time, *(window.begin for window in windows[-1:])])
        owners = (window.member for window in windows[-1:])
        self._report("lost message", text, when, *owners, partition=partition)

    def _check_stored(self, records: Sequence[StoredRecord]) -> None:
        """Stored offsets never go back, and only the owner in the stored generation commits."""
        generation = -1
        owners: dict[TopicPartitionKey, str] = {}
        last: dict[TopicPartitionKey, int] = {}
        highest: dict[TopicPartitionKey, int] = {}
        for record in records:
            if isinstance(record, StoredRemoval):
                last.pop(record.partition, None)
                continue
            if isinstance(record, StoredGeneration):
                # A partition that a cooperative leader leaves unassigned stays with its owner until revoked.
                owners |= record.owners
                generation = record.generation
                continue
            partition = record.partition
            self._check_author(record, generation, owners.get(partition))
            before = last.get(partition, -1)
            if record.offset < before:
                text = f"{record.metadata or 'a member'} committed {record.offset} after {before}"
                self._report("commit went back", text, math.nan, partition=partition)
            last[partition] = max(record.offset, before)
            highest[partition] = max(record.offset, highest.get(partition, -1))
        for member in self._members.values():
            for commit in member.commits():
                # Queued commits are merged, so that only the last of them is stored.
                missing = [(p, offset) for p, offset in commit.offsets.items() if offset > highest.get(p, -1)]
                if commit.error is None and missing:
                    partition, offset = missing[0]
                    text = f"{offset} was acknowledged; the highest stored offset is {highest.get(partition)}"
                    self._report("commit not stored", text, commit.time, member.name, partition=partition)

    def _check_author(self, commit: StoredCommit, generation: int, owner: str | None) -> None:
        if commit.metadata and commit.metadata != owner:
            text = f"{commit.metadata} committed {commit.offset}; in generation {generation} "
            text += f"the partition {f'belongs to {owner}' if owner else 'is unassigned'}"
            self._report("commit by another", text, math.nan, partition=commit.partition)

    def _check_settled(self, partitions: Iterable[TopicPartitionKey], when: float) -> None:
        for partition in sorted(partitions):
            owners = [window for window in self._windows[partition] if window.begin <= when < window.end]
            if len(owners) != 1:
                names = " and ".join(window.member for window in owners) or "no member"
                self._report("not settled", f"in the end it is owned by {names}", when, partition=partition)

    def _report(
        self, rule: str, text: str, time: float, *members: str, partition: TopicPartitionKey | None = None
    ) -> None:
        names = tuple(dict.fromkeys(members))
        self._findings.violations.append(Violation(rule, self._name, text, partition, names, time))


def _failures(who: str, group: str, history: Iterable[Event]) -> Iterator[Violation]:
    for event in history:
        if isinstance(event, Failed | Died):
            text = f"{who} failed: {event.error}"
            yield Violation("failure", group, text, None, (who,), event.time)


def _length(interval: Interval) -> float:
    return interval[1] - interval[0]


def _gaps(begin: float, end: float, intervals: Sequence[Interval]) -> Iterator[float]:
    """Yield the lengths of the gaps between the intervals, from `begin` to `end`."""
    for first, last in intervals:
        if last > begin:
            yield min(first, end) - begin
            begin = max(begin, last)
    yield end - begin


def summary(violations: Iterable[Violation]) -> Mapping[str, int]:
    """Return the number of violations of each rule."""
    counts: defaultdict[str, int] = defaultdict(int)
    for violation in violations:
        counts[violation.rule] += 1
    return dict(counts)
