"""Checker of a run's histories against the guarantees of a consumer group (see README.md). Pure."""

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from soak.events import (
    Committed,
    Consumed,
    Event,
    Failed,
    FaultInjected,
    Key,
    Produced,
    Reached,
    Sought,
    Told,
    Woken,
)
from soak.member_history import End, Interval, Life, Window, by_group, life, merged
from soak.stored import StoredCommit, StoredGeneration, StoredRecord, StoredRemoval
from soak.timing import Timing

Lost = tuple[Key, int, int]
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
    key: Key | None = None
    """The partition concerned."""
    members: tuple[str, ...] = ()
    """The members whose histories show the violation."""
    time: float = math.nan


@dataclass(slots=True)
class Records:
    """Everything recorded of a run."""

    histories: Sequence[Sequence[Event]]
    """One history for each member process."""
    produced: Sequence[Event]
    """The producer's history."""
    faults: Sequence[FaultInjected]
    """The injected faults, in order of time."""
    stored: Sequence[StoredRecord]
    """The records of `__consumer_offsets`, in log order within each group."""
    settled: float | None = None
    """A time without faults, at which every partition with messages must have exactly one owner."""


@dataclass(slots=True)
class Verdict:
    """The checker's findings: violations and counts."""

    violations: list[Violation] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
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


def check(records: Records, timing: Timing) -> Verdict:
    """Check a run against every rule."""
    verdict = Verdict()
    outages = [(fault.time, fault.until) for fault in records.faults if fault.what in _OUTAGES]
    verdict.lives = [it for history in records.histories if (it := life(history, records.faults))]
    produced = [event for event in records.produced if isinstance(event, Produced)]
    verdict.messages = len(produced)
    verdict.violations += _failures("producer", "", records.produced)
    verdict.violations += (
        Violation("hung", "", f"{fault.whom} did not end when signalled", None, (fault.whom,), fault.time)
        for fault in records.faults
        if fault.what == "hang"
    )
    verdict.violations += (
        Violation("kept", "", f"{fault.whom} kept a deleted topic", None, (fault.whom,), fault.time)
        for fault in records.faults
        if fault.what == "keep deleted topic"
    )
    for group, lives in by_group(verdict.lives).items():
        stored = [record for record in records.stored if record.group == group]
        judged = _Group(group, lives, outages, records.faults, timing, verdict)
        judged.check(produced, stored, records.settled)
    verdict.violations.sort(key=lambda violation: violation.time)
    return verdict


class Incarnations:
    """Incarnations of the deleted and re-created topics, by time."""

    def __init__(self, faults: Sequence[FaultInjected]) -> None:
        """Collect the times of deletion and re-creation."""
        self._made: defaultdict[str, list[float]] = defaultdict(list)
        self._gone: defaultdict[str, list[Interval]] = defaultdict(list)
        self._left_deleted = {fault.whom for fault in faults if fault.what == "leave topic deleted"}
        for fault in faults:
            if fault.what == "make topic":
                self._made[fault.whom].append(fault.time)
            elif fault.what == "delete topic":
                self._gone[fault.whom].append((fault.time, math.inf))
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
        lives: Sequence[Life],
        outages: Sequence[Interval],
        faults: Sequence[FaultInjected],
        timing: Timing,
        verdict: Verdict,
    ) -> None:
        self._name = group
        self._lives = lives
        self._outages = outages
        self._faults = faults
        self._incarnations = Incarnations(faults)
        self._suspects: dict[Lost, list[Interruption]] = {}
        """The interruptions that may have lost a message."""
        self._blamed: dict[Interruption, Lost] = {}
        self._excused: set[Lost] = set()
        """Messages that interruptions may have lost: partition, incarnation and offset."""
        self._timing = timing
        self._verdict = verdict
        self._windows: defaultdict[Key, list[Window]] = defaultdict(list)
        for window in sorted((w for it in lives for w in it.windows), key=lambda window: window.begin):
            self._windows[window.key].append(window)

    def check(
        self, produced: Sequence[Produced], stored: Sequence[StoredRecord], settled: float | None
    ) -> None:
        for it in self._lives:
            self._check_life(it)
            self._check_losses(it)
            self._check_errors(it)
            self._check_wakeups(it)
        for windows in self._windows.values():
            self._check_owners(windows)
        for windows in self._by_incarnation().values():
            self._check_deliveries(windows)
        self._check_completeness(produced)
        self._check_stored(stored)
        if settled is not None:
            last = {event.key for event in produced if self._incarnations.is_kept(event.key[0], event.time)}
            self._check_settled(last, settled)
        self._verdict.excused += len(self._excused)

    def _by_incarnation(self) -> dict[tuple[Key, int], list[Window]]:
        found: defaultdict[tuple[Key, int], list[Window]] = defaultdict(list)
        for key, windows in self._windows.items():
            for window in windows:
                found[key, self._incarnations.at(key[0], window.begin)].append(window)
        return dict(found)

    # --- One member ---------------------------------------------------------------------------------

    def _check_life(self, it: Life) -> None:
        self._verdict.violations += _failures(it.name, self._name, it.events)
        if it.killed == math.inf and not it.ended and not it.hung:
            self._accuse("died", "the process ended by itself", it.events[-1].time, it)
        for assigned in it.repeated:
            self._accuse("assigned twice", "was assigned what it owned already", assigned.time, it)
        for stray in it.strays:
            what = "given" if isinstance(stray, Consumed) else "told of the end at"
            self._accuse(
                "not owned",
                f"was {what} offset {stray.offset} without owning it",
                stray.time,
                it,
                key=stray.key,
            )
        strays = sum(isinstance(stray, Consumed) for stray in it.strays)
        self._verdict.deliveries += strays + sum(len(window.consumed) for window in it.windows)
        for commit in it.commits():
            if commit.error is None:
                self._verdict.commits += 1
            else:
                self._verdict.refused += 1

    def _check_errors(self, it: Life) -> None:
        """Each error that a poll returns has a reason, and a guest gets its authorization error."""
        forbidden: str | None = None
        for event in it.events:
            if not isinstance(event, Told):
                continue
            if event.code == _UNAUTHORIZED and it.started.guest:
                forbidden = event.topic or forbidden
                continue
            known = event.code == "_MAX_POLL_EXCEEDED" or (
                event.code in _MISSING and self._incarnations.is_missing(event.topic, event.time)
            )
            if not known:
                text = f"a poll returned {event.code} of {event.topic}: {event.error}"
                self._accuse("unexplained error", text, event.time, it)
        if not it.started.guest:
            return
        read = [w for w in it.windows if w.key[0] == forbidden and w.consumed]
        if read:
            text = f"consumed {forbidden}, which it may not read"
            self._accuse("forbidden", text, read[0].begin, it, key=read[0].key)
        begin, end = it.started.time, it.events[-1].time
        troubled = [*self._outages, *it.frozen, *it.silent]
        longest = max(_gaps(begin, end, merged(troubled)))
        if forbidden is None and longest > _FORBIDDEN_SECONDS:
            self._accuse("no error", "polled without an authorization error of the forbidden topic", end, it)

    def _check_wakeups(self, it: Life) -> None:
        """Each WakeupError follows a wakeup, and each wakeup leads to one, unless one was pending already."""
        asked = [fault.time for fault in self._faults if fault.what == "wakeup" and fault.whom == it.name]
        woken = [event.time for event in it.events if isinstance(event, Woken)]
        for number, time in enumerate(woken):
            if bisect_right(asked, time) <= number:
                self._accuse("woken for nothing", "WakeupError was raised without wakeup()", time, it)
        for time in asked:
            later = [
                event.time
                for event in it.events
                if isinstance(event, Consumed | Reached) and event.polled > time + self._timing.grace
            ]
            if later and not any(time <= when <= later[0] for when in woken):
                self._accuse("not woken", f"wakeup() at {time:.3f} ended no poll", later[0], it)

    def _check_losses(self, it: Life) -> None:
        """Only a member whose session expired, or that did not poll, may lose partitions."""
        for loss in it.losses():
            self._verdict.losses += 1
            if not self._explains_loss(it, loss.begun):
                parts = ", ".join(f"{topic} [{number}]" for topic, number in loss.partitions)
                self._accuse("unexplained loss", f"lost {parts} with no reason to", loss.begun, it)
            for commit in it.commits():
                if commit.begun is None or not loss.begun <= commit.begun <= loss.time:
                    continue
                if commit.error is None:
                    self._accuse("commit after loss", "committed what it had lost", commit.time, it)

    def _explains_loss(self, it: Life, when: float) -> bool:
        since = when - self._timing.session - _RECOVERY_SECONDS
        if any(begin <= when and end >= since for begin, end in self._outages):
            return True
        away = [pause for pause in it.frozen if _length(pause) >= self._timing.forgotten_after]
        mute = [pause for pause in it.silent if _length(pause) >= self._timing.expelled_after]
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
        heirs = (
            it.started.time
            for it in self._lives
            if it.started.instance is not None
            and it.started.instance == window.life.started.instance
            and it.started.time >= window.end
        )
        return min(self._forgotten(window), *heirs, math.inf)

    def _forgotten(self, window: Window) -> float:
        """Return the earliest time at which the coordinator may have reassigned the partition."""
        limits = (
            (window.life.frozen, self._timing.forgotten_after),
            (window.life.silent, self._timing.expelled_after),
        )
        times = [
            begin + limit
            for pauses, limit in limits
            for begin, end in pauses
            if end - begin >= limit and end >= window.entered
        ]
        times += self._cut_off(window)
        return min(times, default=math.inf)

    def _cut_off(self, window: Window) -> Iterator[float]:
        """Yield the times at which an outage may have expired the session of an application not polling."""
        for outage, _ in self._outages:
            ended = outage + self._timing.forgotten_after
            for begin, end in window.life.silent:
                if window.begin <= end and ended <= end and begin <= ended + _RECOVERY_SECONDS:
                    yield max(begin, ended)

    def _check_overlap(self, earlier: Window, later: Window) -> None:
        if later.ended_by is End.LOST and later.entered < earlier.begin:
            earlier, later = later, earlier  # stopped at the entry of on_assign, and replaced meanwhile
        both = (earlier.life, later.life)
        self._verdict.overlaps += 1
        if later.begin < self._forgotten(earlier):
            self._accuse("two owners", f"{earlier}, and {later}", later.begin, *both, key=later.key)
            return
        # A member that was stopped inside on_revoke had been called in time.
        if earlier.ended_by is End.REVOKED and earlier.asked > later.begin:
            text = f"{earlier}: on_revoke was called for a partition that had another owner: {later}"
            self._accuse("revoked, not lost", text, earlier.end, *both, key=later.key)
        stale = [message for message in earlier.consumed if message.polled > later.begin]
        if stale:
            text = f"{earlier.life.name} received {len(stale)} messages from offset {stale[0].offset} on; "
            text += f"the last poll began {stale[-1].polled - later.begin:.3f} s after {later.life.name} "
            text += "had become the owner"
            self._accuse("stale delivery", text, stale[0].time, *both, key=later.key)
        for commit in earlier.life.commits():
            if commit.error is None and commit.begun is not None and later.begin < commit.begun < earlier.end:
                offset = commit.offsets.get(later.key)
                if offset is not None:
                    text = f"{earlier.life.name} committed {offset}, and {later.life.name} was the owner"
                    self._accuse("commit by a former owner", text, commit.time, *both, key=later.key)

    def _check_deliveries(self, windows: Sequence[Window]) -> None:
        """Each owner resumes where the last one ended; each duplicate has an accepted reason."""
        key = windows[0].key
        commits = self._commits_of(key, self._incarnations.at(key[0], windows[0].begin))
        # A poll that another thread's close overtook returns messages fetched before the close.
        moves: list[tuple[float, Consumed | Reached | Sought, Window]] = []
        for window in windows:
            for events in (window.consumed, window.reached, window.sought):
                moves += ((min(event.time, window.end), event, window) for event in events)
        moves.sort(key=lambda move: move[0])
        delivered: dict[int, tuple[Consumed, Window]] = {}
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
                if isinstance(event, Consumed):
                    self._check_start(event, window, commits)
            elif offset != expected and not self._excuses(window, expected, offset):
                self._accuse_gap(event, expected, window)
            if isinstance(event, Reached):
                place[window] = offset
                continue
            before = delivered.get(offset)
            if before is not None:
                self._verdict.duplicates += 1
                self._check_duplicate(event, *before, window)
            delivered[offset] = event, window
            place[window] = offset + 1
            highest = max(highest, offset)

    def _accuse_gap(self, event: Consumed | Reached, expected: int, window: Window) -> None:
        offset = event.offset
        if isinstance(event, Reached):
            text = f"polled the end of the partition at offset {offset}; the next offset is {expected}"
            self._accuse("wrong end", text, event.time, window.life, key=window.key)
        else:
            rule = "skipped" if offset > expected else "duplicate"
            text = f"was given offset {offset} after {expected - 1}"
            self._accuse(rule, text, event.time, window.life, key=window.key)

    def _check_limit(
        self, event: Consumed | Reached | Sought, window: Window, highest: int, what: str
    ) -> None:
        """No owner begins beyond the highest delivered offset plus one."""
        if event.offset > highest + 1 and not self._excuses(window, highest + 1, event.offset):
            text = f"{what} offset {event.offset}; nobody had been given {highest + 1}"
            self._accuse("skipped", text, event.time, window.life, key=window.key)

    def _check_start(self, message: Consumed, window: Window, commits: Sequence[Committed]) -> None:
        stored = [commit.offsets[window.key] for commit in commits if commit.time < window.begin]
        if stored and message.offset < max(stored):
            text = f"began at offset {message.offset}, although {max(stored)} had been committed before"
            self._accuse("behind the commit", text, message.time, window.life, key=window.key)

    def _excuses(self, window: Window, expected: int, offset: int) -> bool:
        """Return whether interruptions, of one message each, explain the gap from `expected` to `offset`."""
        key, incarnation = window.key, self._incarnations.at(window.key[0], window.begin)
        if offset <= expected:
            return False
        found: list[Interruption] = []
        for owned in self._windows[key]:
            if owned.begin > window.begin or self._incarnations.at(key[0], owned.begin) != incarnation:
                continue
            found += (
                (owned.life.name, event.time)
                for event in owned.life.interruptions()
                if owned.begin <= event.time
                and event.polled <= owned.end
                # The interruption lies between the deliveries before and after the gap.
                and not any(
                    message.polled < event.polled
                    if message.offset >= expected
                    else message.offset == expected - 1 and message.polled > event.time
                    for message in owned.consumed
                )
            )
        gap = [lost for o in range(expected, offset) if (lost := (key, incarnation, o)) not in self._excused]
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

    def _check_duplicate(self, message: Consumed, first: Consumed, before: Window, again: Window) -> None:
        if before is again or again.begin < before.begin:
            return  # reported already, as a duplicate within one window or a stale delivery
        if before.ended_by in {End.LOST, End.KILLED, End.DIED} or self._commit_failed(message, before):
            return
        if any(sought.offset <= message.offset for sought in again.sought):
            return
        if first.time > before.asked:
            return  # not yet processed when another thread's close revoked the partition
        text = f"offset {message.offset} came again to {again.life.name}, although {before}"
        self._accuse("duplicate", text, message.time, before.life, again.life, key=again.key)

    def _commit_failed(self, message: Consumed, window: Window) -> bool:
        """Return whether the window's owner tried to commit the message and failed."""
        again = (other.begin for other in window.life.windows if other.key == window.key)
        until = min((begin for begin in again if begin > window.begin), default=math.inf)
        tries = [
            commit.error is None
            for commit in window.life.commits()
            if window.begin <= commit.time <= until and commit.offsets.get(window.key, -1) > message.offset
        ]
        if tries:
            return not any(tries)
        # The automatic commit of close() is not reported to on_commit.
        waits = self._timing.session + _RECOVERY_SECONDS
        return any(begin <= window.end <= end + waits for begin, end in self._outages)

    def _commits_of(self, key: Key, incarnation: int) -> list[Committed]:
        return [
            commit
            for it in self._lives
            for commit in it.commits()
            if commit.error is None and key in commit.offsets
            if self._incarnations.at(key[0], commit.time) == incarnation
        ]

    # --- The whole ----------------------------------------------------------------------------------

    def _check_completeness(self, produced: Iterable[Produced]) -> None:
        """Every acknowledged message is consumed with its value, except in deleted topics."""
        values: defaultdict[tuple[Key, int], dict[int, str]] = defaultdict(dict)
        for place, windows in self._by_incarnation().items():
            for window in windows:
                values[place].update({message.offset: message.value for message in window.consumed})
        for message in produced:
            incarnation = self._incarnations.at(message.key[0], message.time)
            consumed = values[message.key, incarnation]
            value = consumed.get(message.offset)
            if value is None:
                self._check_lost(message, incarnation, max(consumed, default=-1))
            elif value != message.value:
                text = f"offset {message.offset} holds {message.value!r}, and {value!r} was consumed"
                self._accuse("wrong message", text, message.time, key=message.key)

    def _check_lost(self, message: Produced, incarnation: int, highest: int) -> None:
        key, offset = message.key, message.offset
        if (
            not self._incarnations.is_kept(key[0], message.time)
            or (key, incarnation, offset) in self._excused
        ):
            return
        # No delivery follows the last message, so an interruption may explain it too.
        windows = self._windows[key]
        if windows and offset == highest + 1 and self._excuses(windows[-1], offset, offset + 1):
            return
        text = f"offset {offset} ({message.value}) was acknowledged and never consumed"
        when = max([message.time, *(window.begin for window in windows[-1:])])
        self._accuse("lost message", text, when, *(window.life for window in windows[-1:]), key=key)

    def _check_stored(self, records: Sequence[StoredRecord]) -> None:
        """Stored offsets never go back, and only the owner in the stored generation commits."""
        generation = -1
        owners: dict[Key, str] = {}
        last: dict[Key, int] = {}
        highest: dict[Key, int] = {}
        for record in records:
            if isinstance(record, StoredRemoval):
                last.pop(record.key, None)
                continue
            if isinstance(record, StoredGeneration):
                # A partition that a cooperative leader leaves unassigned stays with its owner until revoked.
                owners |= record.owners
                generation = record.generation
                continue
            self._check_author(record, generation, owners.get(record.key))
            before = last.get(record.key, -1)
            if record.offset < before:
                text = f"{record.metadata or 'a member'} committed {record.offset} after {before}"
                self._accuse("commit went back", text, math.nan, key=record.key)
            last[record.key] = max(record.offset, before)
            highest[record.key] = max(record.offset, highest.get(record.key, -1))
        for it in self._lives:
            for commit in it.commits():
                # Queued commits are merged, so that only the last of them is stored.
                missing = [
                    (key, offset) for key, offset in commit.offsets.items() if offset > highest.get(key, -1)
                ]
                if commit.error is None and missing:
                    key, offset = missing[0]
                    text = f"{offset} was acknowledged; the highest stored offset is {highest.get(key)}"
                    self._accuse("commit not stored", text, commit.time, it, key=key)

    def _check_author(self, commit: StoredCommit, generation: int, owner: str | None) -> None:
        if commit.metadata and commit.metadata != owner:
            text = f"{commit.metadata} committed {commit.offset}; in generation {generation} "
            text += f"the partition {f'belongs to {owner}' if owner else 'is unassigned'}"
            self._accuse("commit by another", text, math.nan, key=commit.key)

    def _check_settled(self, keys: Iterable[Key], when: float) -> None:
        for key in sorted(keys):
            owners = [window for window in self._windows[key] if window.begin <= when < window.end]
            if len(owners) != 1:
                names = " and ".join(window.life.name for window in owners) or "nobody"
                self._accuse("not settled", f"in the end it is owned by {names}", when, key=key)

    def _accuse(self, rule: str, text: str, time: float, *lives: Life, key: Key | None = None) -> None:
        names = tuple(dict.fromkeys(it.name for it in lives))
        self._verdict.violations.append(Violation(rule, self._name, text, key, names, time))


def _failures(who: str, group: str, history: Iterable[Event]) -> Iterator[Violation]:
    for event in history:
        if isinstance(event, Failed):
            text = f"{who} failed in {event.during}: {event.error}"
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


__all__ = ["Records", "Verdict", "Violation", "check", "merged", "summary"]
