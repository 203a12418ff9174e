"""Holds all histories of a run against what a consumer group promises. Pure; README.md says what is claimed, and why so."""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from soak.events import Committed, Consumed, Event, Failed, Key, Produced, Struck
from soak.lives import End, Interval, Life, Window, by_group, life, merged
from soak.stored import StoredCommit, StoredGeneration, StoredRecord
from soak.timing import Timing

_OUTAGES = frozenset({"restart broker", "crash broker", "pause broker"})
_RECOVERY_SECONDS = 3.0
"""How long after an outage its consequences may still come."""


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken."""

    rule: str
    group: str
    text: str
    key: Key | None = None
    """The partition that it is about."""
    members: tuple[str, ...] = ()
    """Whose histories tell of it."""
    time: float = math.nan


@dataclass(slots=True)
class Records:
    """All that is known of a run."""

    histories: Sequence[Sequence[Event]]
    """One for each process of a member."""
    produced: Sequence[Event]
    """The producer's history."""
    strikes: Sequence[Struck]
    """What was done, in the order of time."""
    stored: Sequence[StoredRecord]
    """What the coordinator stored, each group's in its order."""
    settled: float | None = None
    """A time of calm, at which every partition that was produced to must have one owner."""


@dataclass(slots=True)
class Verdict:
    """What came of a run."""

    violations: list[Violation] = field(default_factory=list)
    lives: list[Life] = field(default_factory=list)
    messages: int = 0
    """Acknowledged to the producer."""
    deliveries: int = 0
    """Over all groups, duplicates included."""
    duplicates: int = 0
    """Deliveries of what the group had been delivered before; each with a good reason, or a violation."""
    commits: int = 0
    """Commits that were acknowledged to members."""
    refused: int = 0
    """Commits that were not."""
    losses: int = 0
    """How often a member lost partitions."""
    overlaps: int = 0
    """How often a partition had a new owner before its stalled one had heard of it."""


def check(records: Records, timing: Timing) -> Verdict:
    """Judge a run."""
    verdict = Verdict()
    outages = [(strike.time, strike.until) for strike in records.strikes if strike.what in _OUTAGES]
    verdict.lives = [it for history in records.histories if (it := life(history, records.strikes))]
    produced = [event for event in records.produced if isinstance(event, Produced)]
    verdict.messages = len(produced)
    verdict.violations += _failures("producer", "", records.produced)
    verdict.violations += (
        Violation(
            "hung", "", f"{strike.whom} did not end when it was asked to", None, (strike.whom,), strike.time
        )
        for strike in records.strikes
        if strike.what == "hang"
    )
    for group, lives in by_group(verdict.lives).items():
        stored = [record for record in records.stored if record.group == group]
        _Group(group, lives, outages, timing, verdict).check(produced, stored, records.settled)
    verdict.violations.sort(key=lambda violation: violation.time)
    return verdict


class _Group:
    """The rules, held against one group."""

    def __init__(
        self, group: str, lives: Sequence[Life], outages: Sequence[Interval], timing: Timing, verdict: Verdict
    ) -> None:
        self._name = group
        self._lives = lives
        self._outages = outages
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
        for windows in self._windows.values():
            self._check_owners(windows)
            self._check_deliveries(windows)
        self._check_completeness(produced)
        self._check_stored(stored)
        if settled is not None:
            self._check_settled({event.key for event in produced}, settled)

    # --- One member ---------------------------------------------------------------------------------

    def _check_life(self, it: Life) -> None:
        self._verdict.violations += _failures(it.name, self._name, it.events)
        if it.killed == math.inf and not it.ended and not it.hung:
            self._accuse("died", "the process ended by itself", it.events[-1].time, it)
        for assigned in it.repeated:
            self._accuse("assigned twice", "was assigned what it owned already", assigned.time, it)
        for stray in it.strays:
            self._accuse(
                "not owned",
                f"was given offset {stray.offset} without owning it",
                stray.time,
                it,
                key=stray.key,
            )
        self._verdict.deliveries += len(it.strays) + sum(len(window.consumed) for window in it.windows)
        for commit in it.commits():
            if commit.error is None:
                self._verdict.commits += 1
            else:
                self._verdict.refused += 1

    def _check_losses(self, it: Life) -> None:
        """Only a member that could not keep its session, or did not poll, may lose anything."""
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
        """No partition has two owners, but for one that cannot know of its end, and that does nothing any more."""
        former: list[Window] = []
        for window in windows:
            former = [earlier for earlier in former if self._ends(earlier) > window.begin]
            for earlier in former:
                self._check_overlap(earlier, window)
            former.append(window)

    def _ends(self, window: Window) -> float:
        """Return until when nobody else may own the partition, or may own it only as an overlap."""
        if window.how is not End.KILLED:
            return window.end
        # It cannot speak any more; but until its session ends, the coordinator does not know.
        heirs = (
            it.started.time
            for it in self._lives
            if it.started.instance is not None
            and it.started.instance == window.life.started.instance
            and it.started.time >= window.end
        )
        return min(self._forgotten(window), *heirs, math.inf)

    def _forgotten(self, window: Window) -> float:
        """Return from when the coordinator may have given the partition of a living or dead member away."""
        limits = (
            (window.life.frozen, self._timing.forgotten_after),
            (window.life.silent, self._timing.expelled_after),
        )
        times = [
            begin + limit
            for pauses, limit in limits
            for begin, end in pauses
            if end - begin >= limit and end >= window.begin
        ]
        times += self._cut_off(window)
        return min(times, default=math.inf)

    def _cut_off(self, window: Window) -> Iterator[float]:
        """Yield from when its session may have ended by an outage, while its application did not poll to hear of that."""
        for outage, _ in self._outages:
            ended = outage + self._timing.forgotten_after
            for begin, end in window.life.silent:
                if window.begin <= end and ended <= end and begin <= ended + _RECOVERY_SECONDS:
                    yield max(begin, ended)

    def _check_overlap(self, earlier: Window, later: Window) -> None:
        both = (earlier.life, later.life)
        self._verdict.overlaps += 1
        if later.begin < self._forgotten(earlier):
            self._accuse("two owners", f"{earlier}, and {later}", later.begin, *both, key=later.key)
            return
        if earlier.how is End.REVOKED:
            text = f"{earlier}: it was asked to give up in good order what had another owner: {later}"
            self._accuse("revoked, not lost", text, earlier.end, *both, key=later.key)
        stale = [message for message in earlier.consumed if message.polled > later.begin]
        if stale:
            text = f"{earlier.life.name} was given {len(stale)} messages from offset {stale[0].offset} on by polls, of "
            text += f"which the last began {stale[-1].polled - later.begin:.3f} s after {later.life.name} had become "
            text += "the owner"
            self._accuse("stale delivery", text, stale[0].time, *both, key=later.key)
        for commit in earlier.life.commits():
            if commit.error is None and commit.begun is not None and later.begin < commit.begun < earlier.end:
                offset = commit.offsets.get(later.key)
                if offset is not None:
                    text = f"{earlier.life.name} committed {offset}, and {later.life.name} was the owner"
                    self._accuse("commit by a former owner", text, commit.time, *both, key=later.key)

    def _check_deliveries(self, windows: Sequence[Window]) -> None:
        """Each owner goes on where the last one ended; what comes twice was not committed, for a good reason."""
        commits = self._commits_of(windows[0].key)
        deliveries = sorted(
            ((message, window) for window in windows for message in window.consumed),
            key=lambda delivery: delivery[0].time,
        )
        delivered: dict[int, Window] = {}
        place: dict[Window, int] = {}
        highest = -1
        for message, window in deliveries:
            offset = message.offset
            expected = place.get(window)
            if expected is None:
                self._check_start(message, window, commits, highest)
            elif offset != expected:
                text = f"was given offset {offset} after {expected - 1}"
                rule = "skipped" if offset > expected else "duplicate"
                self._accuse(rule, text, message.time, window.life, key=window.key)
            before = delivered.get(offset)
            if before is not None:
                self._verdict.duplicates += 1
                self._check_duplicate(message, before, window)
            delivered[offset] = window
            place[window] = offset + 1
            highest = max(highest, offset)

    def _check_start(
        self, message: Consumed, window: Window, commits: Sequence[Committed], highest: int
    ) -> None:
        if message.offset > highest + 1:
            text = f"began at offset {message.offset}; nobody had been given {highest + 1}"
            self._accuse("skipped", text, message.time, window.life, key=window.key)
        stored = [commit.offsets[window.key] for commit in commits if commit.time < window.begin]
        if stored and message.offset < max(stored):
            text = f"began at offset {message.offset}, although {max(stored)} had been committed before"
            self._accuse("behind the commit", text, message.time, window.life, key=window.key)

    def _check_duplicate(self, message: Consumed, before: Window, again: Window) -> None:
        if before is again or again.begin < before.begin:
            return  # told already, as a duplicate within one window or a stale delivery
        if before.how in {End.LOST, End.KILLED} or self._commit_failed(message, before):
            return
        text = f"offset {message.offset} came again to {again.life.name}, although {before}"
        self._accuse("duplicate", text, message.time, before.life, again.life, key=again.key)

    def _commit_failed(self, message: Consumed, window: Window) -> bool:
        """Return whether the window's owner tried to commit the message, and did not succeed."""
        again = (other.begin for other in window.life.windows if other.key == window.key)
        until = min((begin for begin in again if begin > window.begin), default=math.inf)
        tries = [
            commit.error is None
            for commit in window.life.commits()
            if window.begin <= commit.time <= until and commit.offsets.get(window.key, -1) > message.offset
        ]
        if tries:
            return not any(tries)
        # An automatic commit that close() makes is not reported any more.
        waits = self._timing.session + _RECOVERY_SECONDS
        return any(begin <= window.end <= end + waits for begin, end in self._outages)

    def _commits_of(self, key: Key) -> list[Committed]:
        return [
            commit
            for it in self._lives
            for commit in it.commits()
            if commit.error is None and key in commit.offsets
        ]

    # --- The whole ----------------------------------------------------------------------------------

    def _check_completeness(self, produced: Iterable[Produced]) -> None:
        """Every message that was acknowledged is consumed, with the value that was written."""
        values: dict[Key, dict[int, str]] = defaultdict(dict)
        for it in self._lives:
            for window in it.windows:
                values[window.key].update({message.offset: message.value for message in window.consumed})
        for message in produced:
            value = values[message.key].get(message.offset)
            if value is None:
                text = f"offset {message.offset} ({message.value}) was acknowledged, and consumed by nobody"
                self._accuse("lost message", text, message.time, key=message.key)
            elif value != message.value:
                text = f"offset {message.offset} holds {message.value!r}, and {value!r} was consumed"
                self._accuse("wrong message", text, message.time, key=message.key)

    def _check_stored(self, records: Sequence[StoredRecord]) -> None:
        """Stored offsets never go back, and only the owner in the stored generation has stored any."""
        generation = -1
        owners: dict[Key, str] = {}
        last: dict[Key, int] = {}
        for record in records:
            if isinstance(record, StoredGeneration):
                # A partition that a cooperative leader gives to nobody is its former owner's until that has let go.
                owners |= record.owners
                generation = record.generation
                continue
            self._check_author(record, generation, owners.get(record.key))
            before = last.get(record.key, -1)
            if record.offset < before:
                text = f"{record.metadata or 'a member'} committed {record.offset} after {before}"
                self._accuse("commit went back", text, math.nan, key=record.key)
            last[record.key] = max(record.offset, before)
        for it in self._lives:
            for commit in it.commits():
                # Commits that wait for each other are merged, so that the last of them alone is stored.
                missing = [
                    (key, offset) for key, offset in commit.offsets.items() if offset > last.get(key, -1)
                ]
                if commit.error is None and missing:
                    key, offset = missing[0]
                    text = f"{offset} was acknowledged as committed; the highest that is stored is {last.get(key)}"
                    self._accuse("commit not stored", text, commit.time, it, key=key)

    def _check_author(self, commit: StoredCommit, generation: int, owner: str | None) -> None:
        if commit.metadata and commit.metadata != owner:
            text = f"{commit.offset} was committed by {commit.metadata}, and the owner in generation {generation} "
            text += f"is {owner or 'nobody'}"
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


def summary(violations: Iterable[Violation]) -> Mapping[str, int]:
    """Return how often each rule was broken."""
    counts: defaultdict[str, int] = defaultdict(int)
    for violation in violations:
        counts[violation.rule] += 1
    return dict(counts)


__all__ = ["Records", "Verdict", "Violation", "check", "merged", "summary"]
