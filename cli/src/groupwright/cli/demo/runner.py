"""One run of the demo, from Kafka's start to the summary."""

import time
import uuid
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

from groupwright.cli.demo.cluster import Cluster
from groupwright.cli.demo.errors import DemoError
from groupwright.cli.demo.interrupts import InterruptedDemo, Interrupts
from groupwright.cli.demo.member import make_consumer
from groupwright.cli.demo.scenario import SESSION_SECONDS, STEPS, Step
from groupwright.cli.demo.summary import Change, Summary, summarize
from groupwright.cli.demo.view import View
from groupwright.cli.demo.view_model import MemberRow, Progress, Status, StepState, ViewModel
from groupwright.core import TopicPartitionKey
from groupwright.testing.groups import LoadedGroup, LoadedGroupError, Member

PARTITIONS = 12
COMMIT_SECONDS = 1
"""Interval of automatic commits, in seconds."""
_DRAIN_SECONDS = 30.0
_SHOW_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Options:
    """The user's choices.

    Attributes:
        assignor: The members' assignor.
        connection: Settings of the connections to the user's own Kafka; None for a local one.
        messages_per_second: The producer's rate.
        keep: Whether to keep running after the last step, until Ctrl-C.
        pause: Pause after each step, in seconds.
    """

    assignor: str
    connection: Mapping[str, Any] | None
    messages_per_second: int
    keep: bool
    pause: float


def run(options: Options, view: View, interrupts: Interrupts) -> Summary:
    """Run the demo. All processes and topics are removed, however it ends.

    Raises:
        GroupwrightError: The demo cannot start or continue.
        InterruptedDemo: A signal asked the demo to end.
    """
    name = f"groupwright-demo-{uuid.uuid4().hex[:8]}"
    with ExitStack() as cleanup:
        try:
            cluster = _cluster(options, view, interrupts, cleanup)
            cluster.create_topic(name, PARTITIONS)
            if options.connection is not None:
                cleanup.callback(_delete, cluster, name, view)
            view.announce(f"Kafka is at {cluster.bootstrap_servers}, and the topic is {name}")
            cleanup.enter_context(view.watching(cluster.connection, name))
            runner = Runner(options, cluster, name, view, interrupts)
            cleanup.callback(runner.group.close, lambda: interrupts.pending)
            runner.perform_steps(options.pause)
            if options.keep:
                runner.keep_running()
            return runner.finish()
        except InterruptedDemo:
            view.show_activity("stopping: the members leave, then Kafka stops (again to kill them)")
            raise


class Runner:
    """Performs the scenario with a group under load, and updates the view; in one thread."""

    def __init__(
        self, options: Options, cluster: Cluster, name: str, view: View, interrupts: Interrupts
    ) -> None:
        """Start producing to the topic `name`, which is also the group's id."""
        rate = options.messages_per_second
        title = f"Groupwright demo: {options.assignor}, {PARTITIONS} partitions, {rate:,} messages/s"
        self.model = ViewModel(title, cluster.bootstrap_servers, [StepState(step.title) for step in STEPS])
        self._view = view
        self._interrupts = interrupts
        self._members: dict[str, Member] = {}
        self._changes: list[Change] = []
        self._changed_at = 0.0
        self._next_show = 0.0
        self.group = LoadedGroup(
            cluster.bootstrap_servers,
            {name: PARTITIONS},
            make_consumer,
            group_id=name,
            config={
                "partition.assignment.strategy": options.assignor,
                "auto.commit.interval.ms": COMMIT_SECONDS * 1000,
                "session.timeout.ms": SESSION_SECONDS * 1000,
                "heartbeat.interval.ms": 500,
            },
            client_config=cluster.connection,
            processes=True,
            batch=500,
            messages_per_second=rate,
            producer_config={"client.id": "producer", "message.timeout.ms": 20_000},
            on_wait=self._on_wait,
        )
        self.group.__enter__()

    # --- The course of the demo

    def perform_steps(self, pause: float) -> None:
        """Perform the steps, with a pause of so many seconds after each.

        Raises:
            GroupwrightError: A member or Kafka failed, or the group does not settle in time.
            InterruptedDemo: A signal asked the demo to end.
        """
        for step, state in zip(STEPS, self.model.steps, strict=True):
            self._perform_step(step, state)
            self._pause(pause)

    def keep_running(self) -> None:
        """Keep the group running until a signal arrives."""
        self._start_step(StepState("everything goes on", "Ctrl-C ends it, with a summary"))
        try:
            self._pause(float("inf"))
        except InterruptedDemo:
            self._end_step("")

    def finish(self) -> Summary:
        """Stop producing, wait until all is consumed and all members have left, and return the result.

        Raises:
            GroupwrightError: A member or Kafka failed.
            InterruptedDemo: A signal asked the demo to end.
        """
        self._start_step(StepState("the end", "the producer stops, and what it produced is consumed"))
        self.group.stop_producing()
        with suppress(LoadedGroupError):  # messages not consumed by then are reported as lost
            self.group.wait_until_consumed(_DRAIN_SECONDS)
        self._leave(*(member.name for member in self.group.members))
        self._end_step("all members have left")
        self._show()
        return summarize(self.model.rows, self._changes, self.group.ledger.check())

    def _perform_step(self, step: Step, state: StepState) -> None:
        before, generation = self._owners(), self._generation()
        state.progress, state.note = Progress.NOW, step.what
        self._view.announce(f"{step.title}: {step.what}")
        step.perform(self)
        # If a member without partitions is killed, the others stay settled until its session ends.
        self.group.wait_until(lambda: self._generation() > generation, f"a rebalance after: {step.title}")
        self.group.wait_until_settled()
        after = self._owners()
        change = Change(
            title=step.title,
            seconds=time.monotonic() - self._changed_at,
            generation=self._generation(),
            moved=sum(before.get(partition, owner) != owner for partition, owner in after.items()),
        )
        self._changes.append(change)
        self._show()
        state.progress, state.note = Progress.DONE, change.short_text()
        self._view.announce(str(change), passed=True)

    # --- GroupControl

    def join(self, *names: str) -> None:
        """Start members, and return when their processes are up, just before they join the group."""
        for name in names:
            self.model.members[name] = MemberRow(name)
            self._members[name] = self.group.start_member(name)
        self.group.wait_until(
            lambda: all(self._members[name].details for name in names), f"the start of {', '.join(names)}"
        )
        self._changed_at = time.monotonic()

    def kill(self, name: str) -> None:
        """Kill a member halfway between two commits, so that some messages are consumed twice."""
        if name in self._owners().values():  # a member without partitions commits nothing
            commits = self.group.ledger.commits[name]
            self.group.wait_until(lambda: self.group.ledger.commits[name] > commits, f"a commit of {name}")
        self._pause(COMMIT_SECONDS / 2)
        self._changed_at = time.monotonic()
        self.group.kill(self._members[name])
        self._show()
        self.model.end(name, Status.KILLED)

    def leave(self, name: str) -> None:
        """Make a member leave, and return when its process has ended."""
        self._changed_at = time.monotonic()
        self._leave(name)

    def _leave(self, *names: str) -> None:
        for name in names:
            self.model.members[name].status = Status.LEAVING
        self.group.leave(*(self._members[name] for name in names))
        self._show()
        for name in names:
            self.model.end(name, Status.LEFT)

    # --- Waiting and showing

    def _owners(self) -> dict[TopicPartitionKey, str]:
        return {partition: names[0] for partition, names in self.group.ledger.owners().items()}

    def _generation(self) -> int:
        return max(self.group.ledger.generations.values(), default=-1)

    def _pause(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        self.group.wait_until(lambda: time.monotonic() >= end, "the end of a pause", seconds + 1)

    def _on_wait(self) -> None:
        self._interrupts.check()
        if time.monotonic() >= self._next_show:
            self._show()

    def _show(self) -> None:
        self._next_show = time.monotonic() + _SHOW_SECONDS
        for line in self.model.update(self.group.ledger):
            self._view.report(line)
        self._view.show(self.model)

    def _start_step(self, state: StepState) -> None:
        state.progress = Progress.NOW
        self.model.steps.append(state)
        self._view.announce(f"{state.title}: {state.note}")

    def _end_step(self, note: str) -> None:
        self.model.steps[-1].progress, self.model.steps[-1].note = Progress.DONE, note


def _cluster(options: Options, view: View, interrupts: Interrupts, cleanup: ExitStack) -> Cluster:
    connection = options.connection
    with interrupts.at_once():
        if connection is None:
            from groupwright.testing import LocalKafka  # needs the extra

            view.show_activity("starting Kafka")
            kafka = LocalKafka(
                on_download=lambda file: view.show_activity("downloading Kafka, the first time only", file)
            )
            connection = {"bootstrap.servers": cleanup.enter_context(kafka).bootstrap_servers}
        else:
            view.show_activity(f"connecting to Kafka at {connection['bootstrap.servers']}")
        cluster = Cluster(connection)
        cluster.wait_until_ready()
    return cluster


def _delete(cluster: Cluster, name: str, view: View) -> None:
    view.show_activity(f"deleting the topic {name}")
    cluster.delete_group(name)
    try:
        cluster.delete_topic(name)
    except DemoError as error:
        view.warn(str(error))
