"""Checks of guarantees to an application that assigns by hand: also those that are not about members."""

from collections import defaultdict
from collections.abc import Container, Iterable
from typing import NoReturn

from groupwright.core import TopicPartitionKey as Key
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.cluster import Cluster
from groupwright.testing._simulation.scheduler import SECOND, Process, Scheduler
from groupwright.testing.groups import Assigned, PartitionLog, Revoked, Sought, Window
from integration_tests.simulation.guarantees import Guarantees, committed_since, next_of
from integration_tests.simulation.records import Member, name_of
from integration_tests.simulation.scenario import Commits

_NOTHING = "_NO_OFFSET"
"""The error of a commit when there is nothing to commit."""
_DROPPED = "_DESTROY"
"""The error of a commit that had not ended when the consumer was closed."""
_LONGEST_CLOSE = 90 * SECOND
"""Time without faults, before a close has returned, in which its commits can end.

A commit over a connection that is half open ends with its time-out, of 60 s.
"""


class HandGuarantees(Guarantees):
    """Observes one application, and what its group has committed."""

    def __init__(
        self, scheduler: Scheduler, cluster: Cluster, recovery: int, commits: Commits, of_group: Guarantees
    ) -> None:
        """Begin with nothing assigned; violations are recorded in those of the group."""
        super().__init__(scheduler, cluster, recovery)
        self._commits = commits
        self._of_group = of_group
        self._is_automatic = commits in {Commits.AUTO, Commits.STORE}
        self._due: dict[Key, int] = {}
        """The newest offset that is committed, or must be soon, unless an error is reported."""
        self._asked_for: dict[Key, set[int]] = defaultdict(set)
        """All offsets that the application has asked to commit."""
        self._failed_at: int | None = None
        """When a commit was last reported that has failed; None if one has succeeded since.

        One that succeeds at the same time may have been sent before.
        """
        self._heard_at: int | None = None
        """When the coordinator first answered after the last cut."""

    def record_fault(self, member: str | None = None, *, cuts: bool = True) -> None:
        """Record a fault; after a cut, the connection to the coordinator may be half open."""
        super().record_fault(member, cuts=cuts)
        if cuts:
            self._heard_at = None

    def answered(self, process: Process, request: msg.Request, response: msg.Response) -> None:
        """Take a response of the coordinator, whose connection works therefore."""
        super().answered(process, request, response)
        if self._heard_at is None:
            self._heard_at = self._scheduler.now

    def was_busy(self, member: Member, since: int) -> None:
        """Check as of a member, but no heartbeat notices a half-open connection: a commit times out."""
        cut = self._last_cut(member)
        is_silent = self._heard_at is None or self._heard_at > since
        if not (is_silent and cut >= 0 and cut > self._scheduler.now - _LONGEST_CLOSE):
            super().was_busy(member, since)

    def changed(self, member: Member, removed: Iterable[Key], starts: dict[Key, int | None]) -> None:
        """Take a change of the assignment; a start of None is the committed offset."""
        removed = list(removed)
        windows = self._owned(member)
        for key in removed:
            if key in windows:
                self._unassigned(key, windows[key])
        self._judge.apply(member.name, Revoked(self._now, tuple(removed), lost=False))
        self._judge.apply(member.name, Assigned(self._now, tuple(starts)))
        for key, start in starts.items():
            if start is not None:
                self._judge.apply(member.name, Sought(self._now, key, start))
                if start < max(self._judge.log(key).committed, self._due.get(key, 0)):
                    self._backwards.add(key)

    def assigned(self, member: Member, keys: list[Key]) -> None:
        """Take the assignment of the group, which replaces what was assigned by hand."""
        self.changed(member, self._owned(member), dict.fromkeys(keys))

    def revoked(self, member: Member, keys: list[Key], *, lost: bool, commits: Commits | None) -> None:
        """Take a revocation; with it ends what was assigned by hand."""
        del keys, commits
        self.changed(member, self._owned(member), {})
        if lost:
            self._forget_due()

    def _unassigned(self, key: Key, window: Window) -> None:
        """Expect a commit of what was consumed of an unassigned partition, if the consumer commits."""
        consumed = next_of(window)
        if self._is_automatic and consumed is not None:
            self._due[key] = consumed

    def _starts(self, window: Window, log: PartitionLog) -> Container[int]:
        key = window.partition
        since = {offset for when, offset in log.commits if when >= window.begin}
        accepted = committed_since(window.begin, log)
        if key in self._backwards and not self._is_automatic:
            return {0} | {offset for _, offset in log.commits} | self._asked_for[key]
        due = self._due.get(key)
        if due is None and self._is_automatic:
            # After a failure, an earlier automatic commit may be under way, of any offset in between.
            return accepted | set(range(log.committed, max(self._asked_for[key], default=0) + 1))
        if due is None:
            return accepted | self._asked_for[key]
        return {due} | {offset for offset in since if offset > due}

    def moved(self, member: Member, key: Key, offset: int) -> None:
        """Excuse a move by librdkafka, which looks up the offsets of such an assignment itself."""
        window = self._judge.owners[key].get(member.name)
        if window is not None:
            self._moved_to[window] = offset

    def _is_excused(self, _member: Member) -> bool:
        return False

    # --- Commits

    def _check_end(self, window: Window, key: Key, offset: int) -> None:
        """Allow it: an application that changes its assignment commits while it still has the former one."""

    def asked(self, member: Member, offsets: dict[Key, int] | None = None) -> None:
        """Record an asynchronous commit; without offsets, of all that was consumed."""
        super().asked(member)
        if offsets is None:
            consumed = {key: next_of(window) for key, window in self._owned(member).items()}
            offsets = {key: offset for key, offset in consumed.items() if offset is not None}
        self._expect(offsets)

    def committed(self, member: Member, offsets: dict[Key, int], error: str | None) -> None:
        """Check what is reported of a commit."""
        super().committed(member, offsets, error)
        has_failed = error not in {None, _NOTHING}
        if has_failed:
            self._failed_at = self._scheduler.now
        elif self._failed_at != self._scheduler.now:
            self._failed_at = None
        cut = max(self._cut_at.get(name, -_LONGEST_CLOSE) for name in ("", member.name))
        if (
            error == _DROPPED
            and not (self._joined or member.commits_late)
            and cut < self._scheduler.now - _LONGEST_CLOSE
        ):
            self._broken("close drops no commit", f"{member.name}: {error}")
        if error is None and not self._is_automatic:
            self._expect(offsets)
        elif has_failed:
            self._forget_due()

    def committed_unknown(self, member: Member, error: str | None, duration: int) -> None:
        """Check a synchronous commit of a topic that does not exist.

        Without heartbeats, only the time-out of a request, of 60 s, ends a connection that is half open.
        """
        began = self._scheduler.now - duration
        if self._heard_at is not None and self._heard_at <= began:
            super().committed_unknown(member, error, duration)

    def _forget_due(self) -> None:
        for key, due in self._due.items():
            self._asked_for[key].add(due)
        self._due.clear()

    def _expect(self, offsets: dict[Key, int]) -> None:
        for key, offset in offsets.items():
            self._asked_for[key].add(offset)
            if key not in self._backwards:
                self._due[key] = max(offset, self._due.get(key, 0))

    def closed(self, member: Member) -> None:
        """Check that everything is committed that the application has asked for, or consumed."""
        self.changed(member, self._owned(member), {})
        super().closed(member)
        if self._failed_at is not None or self._commits is Commits.STORE:
            self._due.clear()
        for key, due in self._due.items():
            is_exact = self._is_automatic or key not in self._backwards
            committed = self._judge.log(key).committed
            if is_exact and committed != due:
                self._broken(
                    "what was asked to be committed is committed when close returns",
                    f"{member.name} has closed, {due} of {name_of(key)} is to be committed, {committed} is",
                )
        self._due.clear()

    def killed(self, member: Member) -> None:
        """Record that the process was killed: what it had not committed is lost."""
        super().killed(member)
        self._due.clear()

    def _broken(self, guarantee: str, detail: str) -> NoReturn:
        try:
            super()._broken(guarantee, detail)
        finally:
            self._of_group.violation = self._of_group.violation or self.violation
