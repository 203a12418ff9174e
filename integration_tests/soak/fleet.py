"""Groups and producers of a run, and faults of members. All processes end with this one."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from groupwright.core import TopicPartitionKey
from groupwright.testing.groups import (
    Event,
    Failed,
    Faulted,
    HistoryWriter,
    Killed,
    Load,
    LoadedGroup,
    ProcessMember,
    Produced,
    now,
)
from integration_tests.harness.waiting import holds_within
from integration_tests.soak import schedule
from integration_tests.soak.events import FaultInjected
from integration_tests.soak.member import BATCH, STACKS, Order, Role, group_configuration, make_member
from integration_tests.soak.timing import Timing

_LEAVE_SECONDS = 30.0
_STACKS_SECONDS = 1.0
_PRODUCER_SECONDS = 250.0
_PRODUCER_CONFIG = {
    "message.timeout.ms": 20_000,  # longer than any outage of the broker
    "reconnect.backoff.max.ms": 500,
    "topic.metadata.refresh.interval.ms": 2000,
}


@dataclass(slots=True, eq=False)
class Worker:
    """One member."""

    group: str
    role: Role
    process: ProcessMember
    frozen: bool = False
    closing: bool = False
    """True if it was ordered to close from another thread."""
    busy_until: float = 0.0

    @property
    def leaving(self) -> bool:
        """True if it was ordered to end."""
        return self.closing or self.process.was_asked_to_leave


class Fleet:
    """Starts members and producers, injects faults, and records those in `faults.jsonl`."""

    def __init__(
        self,
        bootstrap_servers: str,
        topics: Mapping[str, int],
        groups: Sequence[str],
        directory: Path,
        seed: int,
        timing: Timing,
        guest_config: Mapping[str, Any],
    ) -> None:
        """Create the groups, each with the name of its assignor, without members.

        Args:
            bootstrap_servers: The broker's address.
            topics: The topics, which exist, with their numbers of partitions.
            groups: The groups' names.
            directory: Folder for histories and logs.
            seed: Determines the members' behavior.
            timing: The members' timeouts.
            guest_config: Connection settings of guests.
        """
        self.faults: list[FaultInjected] = []
        self.workers: list[Worker] = []
        self.partitions = dict(topics)
        """The present number of partitions of each topic; 0 for a deleted one."""
        self._producer_config = {"bootstrap.servers": bootstrap_servers, **_PRODUCER_CONFIG}
        self._timing = timing
        self._guest_config = guest_config
        self._behaviors = {group: schedule.behaviors(seed, group) for group in groups}
        self._loads: list[Load] = []
        self._journal = HistoryWriter(directory / "faults.jsonl")
        self._produced = HistoryWriter(directory / "producer.jsonl")
        self.groups = {
            group: LoadedGroup(
                bootstrap_servers,
                topics,
                make_member,
                group_id=group,
                config=group_configuration(group, timing),
                processes=True,
                messages_per_second=0,
                directory=directory,
            ).__enter__()
            for group in groups
        }
        self._ledgers = [group.ledger for group in self.groups.values()]

    # --- Members ------------------------------------------------------------------------------------

    def alive(self, group: str) -> list[Worker]:
        """Return the group's running members that are not leaving, in the order of their start; no guests."""
        return [w for w in self.running() if w.group == group and not w.leaving and not w.role.guest]

    def running(self) -> list[Worker]:
        """Return all members with a running process."""
        return [worker for worker in self.workers if not worker.process.has_ended]

    def free(self, group: str) -> list[Worker]:
        """Return the group's members into which a fault may be injected."""
        started = self.groups[group].ledger.histories
        idle = [w for w in self.alive(group) if not w.frozen and now() > w.busy_until]
        return [worker for worker in idle if started[worker.role.name]]

    def start(self, group: str, heir_of: Role | None = None, *, guest: bool = False) -> Worker:
        """Start a new member, or the successor of a static one."""
        name = f"{group}-{sum(worker.group == group for worker in self.workers) + 1}"
        if heir_of is not None and heir_of.instance is not None:
            role = dataclasses.replace(heir_of, name=name)
        else:
            behavior = next(self._behaviors[group])
            role = Role(name, f"{name}-static" if behavior.static and not guest else None, behavior, guest)
        config = {**role.configuration(), **(self._guest_config if guest else {})}
        batch = BATCH if role.behavior.calls == "consume" else 1
        with self.injecting("start", name):
            process = self.groups[group].start_member(name, config, batch=batch)
        assert isinstance(process, ProcessMember)
        worker = Worker(group, role, process)
        self.workers.append(worker)
        return worker

    # --- Faults -------------------------------------------------------------------------------------

    @contextmanager
    def injecting(self, what: str, target: str = "") -> Iterator[None]:
        """Record the fault that the body injects, with its duration."""
        begun = now()
        try:
            yield
        finally:
            fault = FaultInjected(begun, what, target, now())
            self.faults.append(fault)
            self._journal.write(fault)

    def leave(self, worker: Worker) -> None:
        """Signal a member to close its consumer between two polls."""
        with self.injecting("leave", worker.role.name):
            worker.process.request_leave()

    def close_elsewhere(self, worker: Worker) -> None:
        """Signal a member to close its consumer from another thread."""
        worker.closing = True
        self.order(worker, "close", Order.CLOSE)

    def order(self, worker: Worker, what: str, order: Order) -> None:
        """Send a member the signal of an order."""
        with self.injecting(what, worker.role.name):
            worker.process.signal(order)

    def kill(self, worker: Worker) -> None:
        """Kill a member's process (SIGKILL)."""
        # Not by `LoadedGroup.kill`, which waits for the coordinator.
        ledger = self.groups[worker.group].ledger
        ledger.record(worker.role.name, Faulted(now(), "kill", begins=True))
        with self.injecting("kill", worker.role.name):
            worker.process.kill()
        ledger.record(worker.role.name, Killed(now(), {}))

    def stop(self, worker: Worker) -> None:
        """Stop a member's process (SIGSTOP)."""
        worker.frozen = True
        with self.injecting("stop", worker.role.name):
            worker.process.suspend()

    def go_on(self, worker: Worker) -> None:
        """Resume a stopped member (SIGCONT); no fault follows within `Timing.grace`."""
        worker.frozen = False
        worker.busy_until = now() + self._timing.grace
        with self.injecting("continue", worker.role.name):
            worker.process.resume()

    def distract(self, worker: Worker) -> None:
        """Signal a member not to poll for `Timing.silence`."""
        worker.busy_until = now() + self._timing.silence + self._timing.grace
        self.order(worker, "busy", Order.BUSY)

    # --- Topics and producers -----------------------------------------------------------------------

    def resize(self, topic: str, partitions: int) -> None:
        """Set the number of a topic's partitions: it has grown, or was deleted (0) or created again."""
        self.partitions[topic] = partitions
        for group in self.groups.values():
            group.topics[topic] = partitions

    def forget(self, topic: str) -> None:
        """Forget the messages of a deleted topic."""
        for group in self.groups.values():
            group.ledger.forget(topic)

    def start_producer(self, topics: Sequence[str], rate: int) -> Load:
        """Start a producer of `rate` messages a second."""

        def partitions() -> list[TopicPartitionKey]:
            return [(topic, number) for topic in topics for number in range(self.partitions[topic])]

        load = Load(partitions, rate, self._producer_config, self._record_produced, values=True)
        self._loads.append(load)
        return load.__enter__()

    def stop_producers(self) -> None:
        """Let all producers deliver their messages and end."""
        for load in self._loads:
            load.stop()
        holds_within(lambda: all(load.ended for load in self._loads), _PRODUCER_SECONDS)

    def produced(self) -> list[Event]:
        """Return the history of the producers: acknowledged messages, and failures."""
        errors = [load.error or ("" if load.ended else "it did not end in time") for load in self._loads]
        return [*self._ledgers[0].produced, *(Failed(now(), error) for error in errors if error)]

    def _record_produced(self, event: Produced) -> None:
        self._produced.write(event)
        for ledger in self._ledgers:
            ledger.record_produced(event)

    # --- The end ------------------------------------------------------------------------------------

    def disband(self) -> None:
        """Let all members leave; one that does not is recorded as hung, writes its stacks, and is killed."""
        for worker in self.running():
            if not worker.leaving:
                self.leave(worker)
        holds_within(lambda: not self.running(), _LEAVE_SECONDS)
        for worker in self.running():
            with self.injecting("hang", worker.role.name):
                worker.process.signal(STACKS)
                holds_within(lambda: worker.process.has_ended, _STACKS_SECONDS)  # noqa: B023 - called at once
                worker.process.kill()

    def close(self) -> None:
        """Kill all remaining processes."""
        for load in self._loads:
            load.__exit__(None, None, None)
        for group in self.groups.values():
            group.close(hurry=lambda: True)
        self._journal.close()
        self._produced.close()
