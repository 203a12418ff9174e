"""Checker of a run's histories against the guarantees of a consumer group (see README.md). Pure."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from groupwright.core import TopicPartitionKey
from groupwright.testing.groups import (
    Breach,
    Consumed,
    Died,
    End,
    EndReached,
    ErrorReturned,
    Event,
    Failed,
    Judge,
    Killed,
    PartitionLog,
    Produced,
    Revoked,
    Rule,
    Window,
)
from integration_tests.soak.events import Closing, FaultInjected, WakeupRaised
from integration_tests.soak.member_history import (
    Interval,
    MemberHistory,
    Message,
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
        self._commits: defaultdict[tuple[TopicPartitionKey, int], list[tuple[float, int]]] = defaultdict(list)
        """Times and offsets of acknowledged commits, by partition and incarnation."""
        for member in members:
            for commit in member.commits():
                if commit.error is None:
                    for partition, offset in commit.offsets.items():
                        place = partition, self._incarnations.at(partition[0], commit.time)
                        self._commits[place].append((commit.time, offset))
        self._judge = Judge(self._starts, self._members.__getitem__)
        self._windows: defaultdict[TopicPartitionKey, list[Window]] = defaultdict(list)

    def check(
        self, produced: Sequence[Message], stored: Sequence[StoredRecord], settled: float | None
    ) -> None:
        breaches = list(self._breaches())
        for window in sorted(self._judge.windows(), key=lambda window: window.begin):
            self._windows[window.partition].append(window)
        for breach in breaches:
            self._take(breach)
        for member in self._members.values():
            self._check_member(member)
            self._check_losses(member)
            self._check_errors(member)
            self._check_wakeups(member)
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

    # --- The rules of groupwright.testing.groups ---------------------------------------------------

    def _breaches(self) -> Iterator[Breach]:
        told = sorted((each for member in self._members.values() for each in self._told(member)), key=_time)
        made = [(fault.time, fault.target) for fault in self._faults if fault.what == "make topic"]
        for time, member, event in told:
            while made and made[0][0] <= time:
                self._judge.create_again(made.pop(0)[1])
            yield from self._judge.apply(member, event)

    def _told(self, member: MemberHistory) -> Iterator[tuple[float, str, Event]]:
        """Yield a member's events, each with the time at which it counts."""
        closing = False
        closed = revoking = -math.inf
        for event in member.events:
            time = event.time
            match event:
                case Closing():
                    closing = True
                case Revoked(began=began):
                    closed, revoking = time, time if began is None else began
                case Consumed(polled=polled) | EndReached(polled=polled) if closing and polled <= revoking:
                    time = closed  # a poll that a close overtook returns messages fetched before the close
                case Killed(offsets=offsets):
                    # The coordinator learns of a killed member only when its session expires.
                    time += self._timing.forgotten_after
                    event = Killed(time, offsets)  # noqa: PLW2901 - the same event
                case _:
                    pass
            yield time, member.name, event

    def _starts(self, window: Window, log: PartitionLog) -> range:
        """Return the offsets from the last commit to the one after the highest that was delivered."""
        return range(self._committed(window), log.consumed.end + 1)

    def _committed(self, window: Window) -> int:
        """Return the highest offset that was acknowledged before the window."""
        place = window.partition, self._incarnations.at(window.partition[0], window.begin)
        return max((offset for time, offset in self._commits[place] if time < window.begin), default=0)

    def _take(self, breach: Breach) -> None:
        """Excuse or report a breach."""
        window, other = breach.window, breach.other
        match breach.rule:
            case Rule.COMMIT_WENT_BACK | Rule.COMMIT_BEYOND:
                return  # the coordinator's order of commits is that of the stored records
            case Rule.TWO_OWNERS if window and other:
                self._check_overlap(other, window)
            case Rule.CONSUMED_TWICE if window and other:
                self._check_duplicates(breach, other, window)
            case Rule.STARTED_ELSEWHERE if window and breach.start < (stored := self._committed(window)):
                self._report_breach(breach, f"{stored} had been committed before", rule="behind the commit")
            case _ if window is None or not self._excuses(window, breach.expected, breach.start):
                self._report_breach(breach)
            case _:
                pass

    def _report_breach(self, breach: Breach, *why: str, rule: str = "") -> None:
        text = "; ".join((str(breach), *why))
        self._report(rule or breach.rule, text, breach.time, breach.member, partition=breach.partition)

    # --- One member ---------------------------------------------------------------------------------

    def _check_member(self, member: MemberHistory) -> None:
        self._findings.violations += _failures(member.name, self._name, member.events)
        if member.killed == math.inf and not member.ended and member.name not in self._hung:
            self._report("died", "the process ended by itself", member.events[-1].time, member.name)
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

    def _is_gone(self, window: Window, when: float) -> bool:
        """Return whether the coordinator may know at that time that the window's owner was killed."""
        instance = self._members[window.member].instance
        successors = (
            member.started.time
            for member in self._members.values()
            if instance is not None
            and member.instance == instance
            and member.started.time >= self._members[window.member].killed
        )
        return min(self._forgotten(window), *successors, math.inf) <= when

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
        """Allow two owners only while a stalled one cannot know that it was replaced."""
        if later.ended_by is End.LOST and self._members[later.member].entered(later) < earlier.begin:
            earlier, later = later, earlier  # stopped at the entry of on_assign, and replaced meanwhile
        if earlier.end <= later.begin or (
            earlier.ended_by is End.KILLED and self._is_gone(earlier, later.begin)
        ):
            return
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
        stale = [
            message
            for message in self._members[earlier.member].received[earlier]
            if message.polled > later.begin
        ]
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
            received = self._members[owned.member].received[owned]
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

    def _check_duplicates(self, breach: Breach, before: Window, again: Window) -> None:
        """Each duplicate has an accepted reason."""
        self._findings.duplicates += breach.span.size
        if before is again or again.begin < before.begin:
            return  # reported already, as a step back or a stale delivery
        if before.ended_by in {End.LOST, End.KILLED, End.DIED}:
            return
        sought = min(self._members[again.member].sought[again], default=math.inf)
        # A message that came while another thread's close revoked the partition was not yet processed.
        late = {
            each.offset
            for each in self._members[before.member].received[before]
            if each.time > before.revoking
        }
        left = [
            offset
            for offset in range(breach.start, breach.stop)
            if not (offset >= sought or offset in late or self._commit_failed(offset, before))
        ]
        if left:
            span = breach.span._replace(start=left[0], stop=left[-1] + 1)
            text = f"{span} came again to {again.member}, although {before}"
            both = (before.member, again.member)
            self._report(breach.rule, text, breach.time, *both, partition=again.partition)

    def _commit_failed(self, offset: int, window: Window) -> bool:
        """Return whether the window's owner tried to commit the message and failed."""
        member, partition = self._members[window.member], window.partition
        again = (other.begin for other in member.windows if other.partition == partition)
        until = min((begin for begin in again if begin > window.begin), default=math.inf)
        tries = [
            commit.error is None
            for commit in member.commits()
            if window.begin <= commit.time <= until and commit.offsets.get(partition, -1) > offset
        ]
        if tries:
            return not any(tries)
        # The automatic commit of close() is not reported to on_commit.
        waits = self._timing.session + _RECOVERY_SECONDS
        return any(begin <= window.end <= end + waits for begin, end in self._outages)

    # --- The whole ----------------------------------------------------------------------------------

    def _check_completeness(self, produced: Iterable[Message]) -> None:
        """Every acknowledged message is consumed with its value, except in deleted topics."""
        values: defaultdict[tuple[TopicPartitionKey, int], dict[int, str]] = defaultdict(dict)
        for partition, windows in self._windows.items():
            for window in windows:
                place = partition, self._incarnations.at(partition[0], window.begin)
                received = self._members[window.member].received[window]
                values[place].update({message.offset: message.value for message in received})
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
        logs: dict[TopicPartitionKey, PartitionLog] = {}
        highest: dict[TopicPartitionKey, int] = {}
        for record in records:
            if isinstance(record, StoredRemoval):
                logs.pop(record.partition, None)
                continue
            if isinstance(record, StoredGeneration):
                # A partition that a cooperative leader leaves unassigned stays with its owner until revoked.
                owners |= record.owners
                generation = record.generation
                continue
            partition = record.partition
            self._check_author(record, generation, owners.get(partition))
            log = logs.setdefault(partition, PartitionLog(partition))
            for breach in log.commit(record.metadata, None, record.offset, math.nan):
                if breach.rule is Rule.COMMIT_WENT_BACK:
                    text = f"{breach.member or 'a member'} committed {breach.start} after {breach.expected}"
                    self._report(breach.rule, text, math.nan, partition=partition)
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


def _time(told: tuple[float, str, Event]) -> float:
    return told[0]


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
