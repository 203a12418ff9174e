"""Member and producer processes of a run, and faults of members. All end with this process."""

import dataclasses
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from groupwright.testing._kafka.process import GuardedProcess
from soak import producer, schedule
from soak.events import FaultInjected, HistoryWriter, now
from soak.member import STACKS, Order, Role
from soak.tally import Tally
from soak.timing import Timing

PRODUCER = "producer"
_LEAVE_SECONDS = 30.0
_PRODUCER_SECONDS = 250.0
_HERE = Path(__file__).parent


@dataclass(slots=True, eq=False)
class Worker:
    """One process."""

    role: Role
    process: GuardedProcess
    frozen: bool = False
    leaving: bool = False
    busy_until: float = 0.0

    @property
    def guest(self) -> bool:
        """True if the member may not read the forbidden topic; no other fault is injected into it."""
        return bool(self.role.secured)

    @property
    def free(self) -> bool:
        """True if the process runs and no fault is in progress."""
        return self.process.running and not self.frozen and not self.leaving and now() > self.busy_until


class Fleet:
    """Starts members, injects faults, and records both in `faults.jsonl`."""

    def __init__(
        self,
        bootstrap_servers: str,
        topics: Sequence[str],
        directory: Path,
        seed: int,
        timing: Timing,
        secured: dict[str, str],
    ) -> None:
        """Create an empty fleet; `directory` is for histories and logs, `secured` configures guests."""
        self.faults: list[FaultInjected] = []
        self.workers: list[Worker] = []
        self.tally = Tally()
        self._servers = bootstrap_servers
        self._topics = list(topics)
        self._directory = directory
        self._seed = seed
        self._timing = timing
        self._secured = secured
        self._behaviors: dict[str, Iterator[schedule.Behavior]] = {}
        self._producers: dict[str, GuardedProcess] = {}
        self._journal = HistoryWriter(directory / "faults.jsonl")

    # --- Members ------------------------------------------------------------------------------------

    def alive(self, group: str) -> list[Worker]:
        """Return the group's running members that are not leaving, in the order of their start; no guests."""
        return [w for w in self.running() if w.role.group == group and not w.leaving and not w.guest]

    def running(self) -> list[Worker]:
        """Return all members with a running process."""
        return [worker for worker in self.workers if worker.process.running]

    def free(self, group: str) -> list[Worker]:
        """Return the group's members into which a fault may be injected."""
        return [w for w in self.alive(group) if w.free and self.tally.up(w.role.name)]

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

    def start(self, group: str, heir_of: Role | None = None, *, guest: bool = False) -> Worker:
        """Start a new member, or the successor of a static one."""
        number = sum(worker.role.group == group for worker in self.workers) + 1
        name = f"{group}-{number}"
        history = self._directory / f"{name}.jsonl"
        if heir_of is not None and heir_of.instance is not None:
            role = dataclasses.replace(heir_of, name=name, history=str(history))
        else:
            behavior = next(self._behaviors.setdefault(group, schedule.behaviors(self._seed, group)))
            instance = f"{name}-static" if behavior.static and not guest else None
            role = Role(
                self._servers,
                group,
                self._topics,
                name,
                instance,
                group,
                behavior.commits,
                str(history),
                behavior.eof,
                behavior.seeks,
                behavior.calls,
                self._secured if guest else {},
            )
        process = self._process(role.command(), name)
        self.tally.add(name, group, history)
        with self.injecting("start", name):
            process.start()
        worker = Worker(role, process)
        self.workers.append(worker)
        return worker

    def leave(self, worker: Worker) -> None:
        """Signal a member to close its consumer between two polls."""
        worker.leaving = True
        self.order(worker, "leave", Order.LEAVE)

    def close_elsewhere(self, worker: Worker) -> None:
        """Signal a member to close its consumer from another thread."""
        worker.leaving = True
        self.order(worker, "close", Order.CLOSE)

    def order(self, worker: Worker, what: str, order: Order) -> None:
        """Send a member the signal of an order."""
        with self.injecting(what, worker.role.name):
            pid = worker.process.pid
            if pid is not None and worker.process.running:
                os.kill(pid, order)

    def kill(self, worker: Worker) -> None:
        """Kill a member's process (SIGKILL)."""
        with self.injecting("kill", worker.role.name):
            worker.process.kill()

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

    # --- Producers ----------------------------------------------------------------------------------

    def start_producer(self, topics: Sequence[str], rate: int, name: str = PRODUCER) -> None:
        """Start a producer of `rate` messages a second; its name must begin with `PRODUCER`."""
        history = self._directory / f"{name}.jsonl"
        process = self._process(producer.command(self._servers, list(topics), rate, history), name)
        self._producers[name] = process
        self.tally.add(name, PRODUCER, history)
        process.start()

    def end_producer(self, name: str) -> None:
        """Signal a producer to flush and end."""
        process = self._producers[name]
        if process.pid is not None and process.running:
            os.kill(process.pid, signal.SIGTERM)

    def produces(self, name: str) -> bool:
        """Return whether a producer still runs."""
        return self._producers[name].running

    def stop_producers(self) -> None:
        """Let all producers flush and end."""
        for process in self._producers.values():
            process.stop(_PRODUCER_SECONDS)

    # --- The end ------------------------------------------------------------------------------------

    def disband(self) -> None:
        """Let all members leave; one that does not is recorded as hung, writes its stacks, and is killed."""
        for worker in self.workers:
            if worker.process.running and not worker.leaving:
                self.leave(worker)
        deadline = now() + _LEAVE_SECONDS
        for worker in self.workers:
            if worker.process.wait(max(0.0, deadline - now())) is None:
                with self.injecting("hang", worker.role.name):
                    if worker.process.pid is not None:
                        os.kill(worker.process.pid, STACKS)
                    worker.process.wait(1.0)
                    worker.process.kill()
            worker.process.kill()  # releases the ended process
        self.tally.read()

    def close(self) -> None:
        """Kill all remaining processes."""
        for process in [worker.process for worker in self.workers] + list(self._producers.values()):
            process.kill()
        self._journal.close()

    # --- Parts --------------------------------------------------------------------------------------

    def _process(self, command: Sequence[str], name: str) -> GuardedProcess:
        # Members must find the package whatever the working directory of the run.
        path = os.pathsep.join(filter(None, [str(_HERE.parent), os.environ.get("PYTHONPATH", "")]))
        environment = ["/usr/bin/env", f"PYTHONPATH={path}"]
        return GuardedProcess(
            [*environment, *command], log_path=self._directory / f"{name}.log", remove_if_orphaned=None
        )
