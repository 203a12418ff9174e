"""Event server: applies the events of the network thread to librdkafka's handle, on the polling thread."""

from __future__ import annotations

import dataclasses
import functools
import time
from collections.abc import Callable
from threading import get_ident
from typing import Any

from confluent_kafka import KafkaError, Message

from groupwright.consumer._coordinator.committed_offsets import CommittedOffsets
from groupwright.consumer._coordinator.diagnostics import explain_topic
from groupwright.consumer._coordinator.driver import Driver
from groupwright.consumer._coordinator.inbox import Failed, Inbox, InboxEvent, LoadChecked, Reported
from groupwright.consumer._membership.assignment_applier import AssignmentApplier
from groupwright.consumer._membership.callbacks import Failures
from groupwright.consumer._membership.committer import Committer
from groupwright.consumer._membership.handle import Handle
from groupwright.consumer._membership.handle_recovery import HandleRecovery
from groupwright.consumer._membership.messages import new_message
from groupwright.consumer._membership.ownership import Ownership
from groupwright.consumer._membership.prefetch import PrefetchBuffer
from groupwright.consumer._membership.rebalance_reporter import RebalanceReporter
from groupwright.consumer._protocol.events import Assign, Closed, MaxPollExceeded, Revoke, TopicUnavailable
from groupwright.consumer._protocol.membership import ROUND_TIMEOUT, Membership
from groupwright.consumer._protocol.model import GroupMembershipOperation, keys

_UNREQUESTED = -1
"""Ticket of a revocation that the membership has not requested."""
_INSTANT = 1e-6
"""Seconds that are no time to wait for: added to the clock's reading, they may not change it."""


class EventServer:
    """Serves what is due on the polling thread: events of the membership, commits, checks of the handle."""

    def __init__(
        self,
        membership: Membership,
        driver: Driver,
        inbox: Inbox,
        ownership: Ownership,
        committed: CommittedOffsets,
        applier: AssignmentApplier,
        committer: Committer,
        reporter: RebalanceReporter,
        recovery: HandleRecovery,
        prefetch: PrefetchBuffer,
        failures: Failures,
        native_config: Callable[[], dict[str, Any]],
        session_timeout: float,
    ) -> None:
        """Create a server with nothing to serve.

        Args:
            membership: State of the member; only read here.
            driver: Passes inputs to the membership, on the network thread.
            inbox: Events from the network thread.
            ownership: What the application owns.
            committed: Where the partitions of an assignment start.
            applier: Applies assignments and revocations, and calls the rebalance callbacks.
            committer: Commits before a revocation, and when an automatic commit is due.
            reporter: Reports failed rebalances and load checks to listeners.
            recovery: Recreates a handle that has lost all its brokers.
            prefetch: Keeps the error that poll returns.
            failures: Exceptions of callbacks, which `serve` raises.
            native_config: Returns the configuration of the handle.
            session_timeout: Seconds to wait for the commit before a revocation.
        """
        self.closing = False
        """True if `leave` was called."""
        self.waited = 0.0
        """Seconds for which `leave` has waited."""
        self._membership = membership
        self._driver = driver
        self._inbox = inbox
        self._ownership = ownership
        self._committed = committed
        self._applier = applier
        self._committer = committer
        self._reporter = reporter
        self._recovery = recovery
        self._prefetch = prefetch
        self._failures = failures
        self._native_config = native_config
        self._session_timeout = session_timeout
        self._holding = False
        """True if `hold_until_revoked` was called, and partitions were owned then."""
        self._resume = False
        """True if an error was returned or raised, after which the member joins at the next poll."""
        self._left = False
        """True if the membership has ended."""
        self._committed_before = 0
        """Ticket of the last assignment before which partitions assigned by hand were committed.

        If an exception interrupts the assignment, the next poll must not commit them again: their positions
        are forgotten by then.
        """

    # --- Before each native poll --------------------------------------------------------------------

    @property
    def due(self) -> bool:
        """True if an event or an exception waits to be served."""
        return bool(self._inbox) or bool(self._committer.ended) or bool(self._failures)

    @property
    def ends_batch(self) -> bool:
        """True if `serve` would revoke or assign partitions, return an error, or raise."""
        event = self._inbox.first
        if isinstance(event, Assign):
            return self._applier.is_prepared(event)
        return bool(self._failures) or not isinstance(event, LoadChecked | None)

    @property
    def fast_path_until(self) -> float:
        """Time until which nothing is due, in monotonic seconds, unless an event or an exception comes."""
        if self.holds_until_revoked:
            return 0.0
        return min(self._committer.clock.next_due, self._ownership.until, self._recovery.next_check)

    def serve(self, handle: Handle) -> Message | None:
        """Apply events and due commits before messages are returned.

        Return an error that poll returns instead.
        """
        self._committer.thread = get_ident()
        if self._resume:
            # The application polls again, so it has received the error.
            self._resume = False
            self._driver.call(self._membership.resume)
        self._raise_failure()  # of a callback of librdkafka
        if self._committer.ended:
            # Before the events: on_revoke may rely on what on_commit has reported.
            self._committer.report_results()
            self._raise_failure()
        message = self._serve_events(handle) if self._inbox else None
        if message is not None:
            return message
        self._raise_failure()
        self._serve_clocks(handle)
        return None

    def _raise_failure(self) -> None:
        """Raise the exception of a callback; as in confluent-kafka, the next call does the rest."""
        error = self._failures.take()
        if error is not None:
            raise error

    def serve_within_batch(self, handle: Handle) -> None:
        """Do what is due while `consume` has messages to return, except for what `ends_batch`."""
        self._committer.thread = get_ident()
        if self._committer.ended:
            self._committer.report_results()
        while isinstance(event := self._inbox.first, LoadChecked):
            self._inbox.take()
            self._serve_event(handle, event)
        if isinstance(event, Assign):
            self._applier.prepare(handle, event)
        self._serve_clocks(handle)

    def _serve_clocks(self, handle: Handle) -> None:
        """Make an automatic commit, or check the handle, if it is time."""
        now = time.monotonic()
        if now >= self._committer.clock.next_due:
            self._committer.auto_commit(handle)
        if now >= self._recovery.next_check:
            self._recovery.check(handle, self._native_config)

    def hold(self, seconds: float) -> bool:
        """Wait up to `seconds` instead of polling if no message may be returned now.

        Return whether it did.
        """
        if self.holds_until_revoked:
            self._inbox.wait(seconds)
        elif self._next_assignment_is_stale or self._ownership.expired:
            self._inbox.wait(seconds, ignore_assignments=True)
        elif self._applier.awaits_first_offsets:
            self._applier.wait_for_offsets(seconds)
        else:
            return False
        return True

    def hold_until_revoked(self) -> None:
        """Return no messages until the revocation that `subscribe` or `unsubscribe` has caused is applied."""
        self._holding = bool(self._ownership)

    @property
    def holds_until_revoked(self) -> bool:
        """True if that revocation is not applied yet."""
        return self._holding and bool(self._ownership)

    @property
    def _next_assignment_is_stale(self) -> bool:
        """True if the next event is an assignment of an expired session; the membership will withdraw it."""
        return self._inbox.next_assignment is not None and self._ownership.session_over

    # --- Events -------------------------------------------------------------------------------------

    def _serve_events(self, handle: Handle) -> Message | None:
        """Take events until the inbox is empty, one is a message for the caller, or a callback has raised."""
        while self._may_take(handle) and (event := self._inbox.take()) is not None:
            message = self._serve_event(handle, event)
            if message is not None:
                return message
            if self._failures and not self.closing:
                break
        return None

    def _may_take(self, handle: Handle) -> bool:
        """Prepare the next event; return whether it may be taken now."""
        coming = self._inbox.next_assignment
        if coming is not None and not self.closing:
            if not self._applier.prepare(handle, coming):
                return False  # the next poll tries again
            if coming.ticket != self._committed_before:
                self._commit_replaced(handle, coming)
                self._committed_before = coming.ticket
        # Nothing that takes time may follow, up to on_assign: the process may be stopped meanwhile. While the
        # consumer closes, assignments are taken only to be withdrawn: `leave` would loop without a pause
        # while one stays in the inbox.
        return self.closing or not self._next_assignment_is_stale

    def _serve_event(self, handle: Handle, event: InboxEvent) -> Message | None:
        match event:
            case Revoke():
                self._revoke(handle, event, lost=self._ownership.has_lost(event))
                return None
            case Assign() if self.closing:
                withdrawn = self._applier.withdraw(event)
                reply = self._membership.withdrawn if withdrawn else self._membership.applied
                self._driver.call(reply, event.ticket)
            case Assign():
                self._driver.call(self._membership.taken, event.ticket)
                self._ownership.identity = event.identity
                self._applier.assign(handle, event, self._committer.offsets_under_way())
                self._committer.restart_interval()
                self._driver.call(self._membership.applied, event.ticket)
            case MaxPollExceeded():
                self._driver.call(self._membership.resume)
                code = KafkaError._MAX_POLL_EXCEEDED  # noqa: SLF001 - public
                return self._return(event, _error(KafkaError(code, event.message)))
            case TopicUnavailable():
                return self._return(event, _error(explain_topic(event.topic, event.error), event.topic))
            case Reported():
                return self._report(event)
            case Failed():
                self._fail(event)
            case LoadChecked():
                self._reporter.load_checked(event)
            case Closed():
                self._left = True
        self._inbox.done(event)
        return None

    def _report(self, event: Reported) -> Message | None:
        self._resume = not self.closing
        is_new = not (self.closing or event.repeated)
        message = self._return(event, _error(event.error) if is_new else None)
        self._reporter.failed(event.timeline, event.error.str())
        return message

    def _fail(self, event: Failed) -> None:
        self._resume = not self.closing
        self._inbox.done(event)
        self._reporter.failed(event.timeline, str(event.error))
        if not self.closing:
            raise event.error

    def _return(self, event: InboxEvent, error: Message | None) -> Message | None:
        """Return an error that ends an event. It is kept first: an exception may end the poll at any call."""
        self._prefetch.error = error
        self._inbox.done(event)
        return error

    def _revoke(self, handle: Handle, event: Revoke, *, lost: bool) -> None:
        """Call on_revoke, commit what was consumed or stored, and unassign, in librdkafka's order.

        Lost partitions go to `on_lost`, and nothing is committed. The membership joins or leaves once the
        commit has ended.
        """
        if not lost:
            self._ownership.identity = event.identity  # a cooperative member's is that of the new generation
        # An eager revocation, and a close, end partitions that were assigned by hand, too.
        is_partial = event.cooperative and not self.closing
        revoked = set(keys(event.partitions)) if is_partial else None
        self._committer.in_on_lost = lost
        try:
            self._applier.revoke(
                handle,
                dataclasses.replace(event, lost=lost),
                lambda _: self._committer.last_commit(handle, revoked, self._session_timeout),
            )
        finally:
            self._committer.in_on_lost = False
        self._holding = self.holds_until_revoked
        self._driver.call(self._membership.applied, event.ticket)
        self._inbox.done(event)

    def _commit_replaced(self, handle: Handle, event: Assign) -> None:
        """Commit what was consumed of partitions assigned by hand, which an eager assignment replaces.

        Those that are assigned again continue there, or at the application's commit that is under way; the
        offsets were fetched before.
        """
        if not event.cooperative:
            self._committed.update(self._committer.offsets_under_way())
            sent = self._committer.last_commit(handle, None, self._session_timeout)
            self._committed.update(sent)
            self._applier.replaced_offsets = sent

    # --- Leaving ------------------------------------------------------------------------------------

    def leave(self, handle: Handle, timeout: float, operation: GroupMembershipOperation) -> None:
        """Commit, have all partitions revoked (callbacks run), and leave the group or stay in it.

        Args:
            handle: The consumer's handle.
            timeout: Seconds to wait for all of that. The time in callbacks, which run however short it is,
                does not count.
            operation: Whether to leave the group.
        """
        self.closing = True
        began = time.monotonic()
        self._committer.busy.end(timeout)
        self.waited = time.monotonic() - began
        if self._committer.ended:
            self._committer.report_results(closing=True)
        if not self._ownership:
            # Nothing revokes partitions that were assigned by hand. The membership waits for the commit
            # before it ends.
            self._committer.last_commit(handle, None, timeout)
        round_timeout = min(ROUND_TIMEOUT, timeout / 2)
        close = functools.partial(self._membership.close, operation=operation, round_timeout=round_timeout)
        self._driver.call(close)
        interrupted = False
        while True:
            try:
                self._serve_events(handle)
                remaining = timeout - self.waited
                if self._left or remaining < _INSTANT:
                    break
                began = time.monotonic()
                try:
                    self._inbox.wait(remaining)
                finally:
                    self.waited += time.monotonic() - began
            except BaseException as error:
                # As in confluent-kafka, a signal handler's exception is raised once the consumer is closed.
                # A second one, such as that of another Ctrl-C, ends this.
                if interrupted:
                    raise
                interrupted = True
                self._failures.record(error)
        self._revoke_the_rest(handle)

    def _revoke_the_rest(self, handle: Handle) -> None:
        """Call on_revoke, or on_lost, if `leave` timed out before the membership requested it."""
        ownership = self._ownership
        if ownership:
            # Not `has_lost`: by now the membership may have left, which loses nothing.
            lost = ownership.session_over or self._membership.has_lost_partitions
            event = Revoke(_UNREQUESTED, ownership.partitions, lost, ownership.identity)
            self._revoke(handle, event, lost=lost)


def _error(error: KafkaError, topic: str | None = None) -> Message:
    """Return an error as librdkafka does: a message whose value is the text of the error."""
    return new_message(topic=topic, partition=0, value=error.str().encode(), error=error)
