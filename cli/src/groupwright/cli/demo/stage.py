"""The demo while it runs: takes events in, makes the story's changes, and waits for what must come of them."""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from queue import Empty

from groupwright.cli.demo.cluster import Cluster
from groupwright.cli.demo.errors import DemoError
from groupwright.cli.demo.events import Event, Events, FeedEnded, MemberEnded, MemberReported, Produced
from groupwright.cli.demo.feed import Feed
from groupwright.cli.demo.group import Group
from groupwright.cli.demo.interrupts import Interrupts
from groupwright.cli.demo.ledger import Ledger
from groupwright.cli.demo.member import COMMIT_SECONDS
from groupwright.cli.demo.reports import Committed, Consumed, Failed, Rebalanced, Report, Started
from groupwright.cli.demo.roster import Roster, Status, compact, moved
from groupwright.cli.demo.script import Act
from groupwright.cli.demo.summary import Change, Summary, summarize
from groupwright.cli.demo.view import ActState, Progress, Scene, View

_START_SECONDS = 30.0
_SETTLE_SECONDS = 60.0
_DRAIN_SECONDS = 30.0
_END_SECONDS = 20.0
_SLICE = 0.1


class Stage:
    """One run of the demo. Everything here happens in one thread."""

    def __init__(
        self,
        *,
        title: str,
        kafka: str,
        topic: str,
        group_id: str,
        partitions: int,
        acts: Sequence[Act],
        cluster: Cluster,
        group: Group,
        feed: Feed,
        events: Events,
        view: View,
        interrupts: Interrupts,
    ) -> None:
        """Put the parts together; `play` begins."""
        self.roster = Roster(partitions)
        self.ledger = Ledger()
        self._title = title
        self._kafka = kafka
        self._topic = topic
        self._group_id = group_id
        self._partitions = partitions
        self._acts = acts
        self._states = [ActState(act.title) for act in acts]
        self._cluster = cluster
        self._group = group
        self._feed = feed
        self._feed_ended = False
        self._events = events
        self._view = view
        self._interrupts = interrupts
        self._changes: list[Change] = []
        self._changed_at = 0.0
        self._next_show = 0.0

    # --- The course of things -----------------------------------------------------------------------

    def play(self, pause: float) -> None:
        """Play the acts, with so many seconds to look at what came of each.

        Raises:
            DemoError: A member failed, Kafka did, or a partition has not exactly one owner in time.
            InterruptedDemo: The user wants an end.
        """
        for act, state in zip(self._acts, self._states, strict=True):
            before, ownership = self.roster.generation, self.roster.ownership()
            state.progress, state.note = Progress.NOW, act.what
            self._view.tell(f"{act.title}: {act.what}")
            act.perform(self)
            self._await_settled(act, after=before)
            change = Change(
                title=act.title,
                seconds=time.monotonic() - self._changed_at,
                generation=self.roster.generation,
                moved=moved(ownership, self.roster.ownership()),
            )
            self._changes.append(change)
            state.progress, state.note = Progress.DONE, _short(change)
            self._view.tell(_long(change), good=True)
            self._until(lambda: False, pause)

    def play_on(self) -> None:
        """Go on until the user wants an end."""
        self._keep(ActState("everything goes on", "Ctrl-C ends it, with a summary", Progress.NOW))
        while not self._interrupts.pending:
            self._step()
        self._interrupts.heed()
        self._states[-1].progress, self._states[-1].note = Progress.DONE, ""

    def finish(self) -> Summary:
        """Produce no more, have everything consumed and all members leave, and return the result.

        Raises:
            DemoError: A member or Kafka failed.
            InterruptedDemo: The user wants an end.
        """
        self._keep(ActState("the end", "the producer stops, and what it produced is consumed", Progress.NOW))
        self._feed.stop()
        self._require(lambda: self._feed_ended, _DRAIN_SECONDS, "the producer does not end")
        self._until(lambda: not self.ledger.waiting, _DRAIN_SECONDS)  # what is not consumed by then is lost
        live = [member.name for member in self.roster.live]
        for name in live:
            self._start_leaving(name)
        for name in live:
            self._await_end(name, Status.LEFT)
        self._states[-1].progress, self._states[-1].note = Progress.DONE, "all members have left"
        self._show()
        return summarize(self.roster.members.values(), self._changes, self.ledger.account())

    # --- What the script asks for -------------------------------------------------------------------

    def join(self, *names: str) -> None:
        """Start members, and return when their processes are up, just before they join."""
        for name in names:
            self.roster.enter(name)
            self._group.start(name)
        for name in names:
            self._require(
                partial(self._has_started, name), _START_SECONDS, f"the process of {name} does not start"
            )
        self._changed_at = time.monotonic()

    def kill(self, name: str) -> None:
        """Kill a member halfway between two commits, so that there is something to come twice.

        The coordinator is asked what the member had committed, before anyone inherits from it.
        """
        commits = self.ledger.commits(name)
        self._until(lambda: self.ledger.commits(name) > commits, 2 * COMMIT_SECONDS)
        self._until(lambda: False, COMMIT_SECONDS / 2)
        self.roster.become(name, Status.KILLED)
        self._group.kill(name)
        self._changed_at = time.monotonic()
        self._await_end(name, Status.KILLED)
        self.ledger.killed(name, self._cluster.committed(self._group_id, self._topic, self._partitions))

    def leave(self, name: str) -> None:
        """Have a member leave, and return when its process has ended."""
        self._changed_at = time.monotonic()
        self._start_leaving(name)
        self._await_end(name, Status.LEFT)

    def _has_started(self, name: str) -> bool:
        return self.roster.members[name].metrics is not None

    # --- Waiting ------------------------------------------------------------------------------------

    def _await_settled(self, act: Act, *, after: int) -> None:
        if not self._until(lambda: self.roster.settled(after=after), _SETTLE_SECONDS):
            raise DemoError(
                f"{_SETTLE_SECONDS:g} s after {act.title!r}, not every partition has exactly one owner: "
                f"{self.roster.unsettled(after=after)}"
            )

    def _start_leaving(self, name: str) -> None:
        self.roster.become(name, Status.LEAVING)
        self._group.leave(name)

    def _await_end(self, name: str, status: Status) -> None:
        member = self.roster.members[name]
        self._require(lambda: member.ended, _END_SECONDS, f"the process of {name} does not end")
        self.roster.become(name, status)

    def _require(self, condition: Callable[[], bool], seconds: float, problem: str) -> None:
        if not self._until(condition, seconds):
            raise DemoError(f"{problem} within {seconds:g} s")

    def _until(self, condition: Callable[[], bool], seconds: float) -> bool:
        """Take events in until the condition holds; return False if it does not within so many seconds."""
        deadline = time.monotonic() + seconds
        while not condition():
            if time.monotonic() >= deadline:
                return False
            self._interrupts.check()
            self._step()
        return True

    def _step(self) -> None:
        with suppress(Empty):
            self._take(self._events.get(timeout=_SLICE))
        if time.monotonic() >= self._next_show:
            self._show()

    # --- Events -------------------------------------------------------------------------------------

    def _take(self, event: Event) -> None:
        match event:
            case MemberReported(name, Failed(reason)):
                raise DemoError(f"{name} cannot go on: {reason}")
            case MemberReported(name, report):
                self._reported(name, report)
            case MemberEnded(name, exit_code):
                self._ended(name, exit_code)
            case Produced(spans):
                self.ledger.produced(spans)
            case FeedEnded(None):
                self._feed_ended = True
            case FeedEnded(error):
                raise DemoError(f"a message could not be produced to {self._topic}: {error}")

    def _reported(self, name: str, report: Report) -> None:
        self.roster.report(name, report)
        match report:
            case Consumed(spans):
                self.ledger.consumed(name, spans)
            case Committed(offsets):
                self.ledger.committed(name, offsets)
            case Started(metrics):
                self._view.note(f"{name} is up; its metrics: {metrics}")
            case Rebalanced(generation, seconds, owned):
                revoked = self.roster.members[name].rebalances[-1].revoked
                self._view.note(
                    f"{name} rebalanced in {seconds:.3f} s: generation {generation}, gave up {revoked}, "
                    f"owns {compact(owned)}"
                )

    def _ended(self, name: str, exit_code: int) -> None:
        member = self.roster.members[name]
        member.ended = True
        if member.live:
            raise DemoError(
                f"{name} ended by itself, with exit status {exit_code}; its log ends:\n{self._group.log_tail(name)}"
            )
        if member.status is Status.LEAVING and exit_code:
            raise DemoError(
                f"{name} did not leave in good order: its exit status is {exit_code}; its log ends:\n"
                f"{self._group.log_tail(name)}"
            )

    # --- Showing ------------------------------------------------------------------------------------

    def _keep(self, state: ActState) -> None:
        self._states.append(state)
        self._view.tell(f"{state.title}: {state.note}")

    def _show(self) -> None:
        self._next_show = time.monotonic() + _SLICE
        ledger = self.ledger
        self._view.show(
            Scene(
                title=self._title,
                kafka=self._kafka,
                acts=self._states,
                members=list(self.roster.members.values()),
                produced=ledger.produced_count,
                consumed=ledger.consumed_count,
                redelivered=ledger.redelivered_count,
                waiting=ledger.waiting,
            )
        )


def _long(change: Change) -> str:
    moves = f", {change.moved} moved" if change.moved else ""
    owners = f"every partition has exactly one owner after {change.seconds:.1f} s"
    return f"{owners} (generation {change.generation}{moves})"


def _short(change: Change) -> str:
    moves = f", {change.moved} partitions moved" if change.moved else ""
    return f"one owner each after {change.seconds:.1f} s{moves}"
