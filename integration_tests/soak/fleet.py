"""The processes of a run: members and the producer. All end with this process, whatever ends it."""

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from groupwright.testing.process import GuardedProcess
from soak import producer, schedule
from soak.events import HistoryWriter, Struck, now
from soak.member import Role
from soak.tally import Tally
from soak.timing import Timing

PRODUCER = "producer"
_LEAVE_SECONDS = 30.0
_PRODUCER_SECONDS = 70.0
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
    def free(self) -> bool:
        """Whether nothing is being done to it."""
        return self.process.running and not self.frozen and not self.leaving and now() > self.busy_until


class Fleet:
    """Starts and strikes members; what is done is written down like a history."""

    def __init__(
        self, bootstrap_servers: str, topics: Sequence[str], directory: Path, seed: int, timing: Timing
    ) -> None:
        """Start with no processes; histories and logs go to the directory."""
        self.strikes: list[Struck] = []
        self.workers: list[Worker] = []
        self.tally = Tally()
        self._servers = bootstrap_servers
        self._topics = list(topics)
        self._directory = directory
        self._seed = seed
        self._timing = timing
        self._characters: dict[str, Iterator[schedule.Character]] = {}
        self._producer: GuardedProcess | None = None
        self._journal = HistoryWriter(directory / "strikes.jsonl")

    # --- Who there is -------------------------------------------------------------------------------

    def alive(self, group: str) -> list[Worker]:
        """Return the group's members that run and are to stay, in the order in which they came."""
        return [w for w in self.workers if w.role.group == group and w.process.running and not w.leaving]

    def free(self, group: str) -> list[Worker]:
        """Return those that may be struck."""
        return [w for w in self.alive(group) if w.free and self.tally.up(w.role.name)]

    # --- What is done -------------------------------------------------------------------------------

    @contextmanager
    def striking(self, what: str, whom: str = "") -> Iterator[None]:
        """Write down what the body does, and how long it took."""
        begun = now()
        try:
            yield
        finally:
            strike = Struck(begun, what, whom, now())
            self.strikes.append(strike)
            self._journal.write(strike)

    def start(self, group: str, heir_of: Role | None = None) -> Worker:
        """Start a new member, of a character of its own or in the place of a static one."""
        number = sum(worker.role.group == group for worker in self.workers) + 1
        name = f"{group}-{number}"
        instance: str | None
        if heir_of is not None and heir_of.instance is not None:
            instance, commits = heir_of.instance, heir_of.commits
        else:
            character = next(self._characters.setdefault(group, schedule.characters(self._seed, group)))
            instance, commits = f"{name}-static" if character.static else None, character.commits
        history = self._directory / f"{name}.jsonl"
        role = Role(self._servers, group, self._topics, name, instance, group, commits, str(history))
        process = self._process(role.command(), name)
        self.tally.add(name, group, history)
        with self.striking("start", name):
            process.start()
        worker = Worker(role, process)
        self.workers.append(worker)
        return worker

    def leave(self, worker: Worker) -> None:
        """Ask a member to close its consumer; it does so in its own time."""
        worker.leaving = True
        with self.striking("leave", worker.role.name):
            self._signal(worker, signal.SIGTERM)

    def kill(self, worker: Worker) -> None:
        """Kill a member."""
        with self.striking("kill", worker.role.name):
            worker.process.kill()

    def stop(self, worker: Worker) -> None:
        """Freeze a member."""
        worker.frozen = True
        with self.striking("stop", worker.role.name):
            worker.process.suspend()

    def go_on(self, worker: Worker) -> None:
        """Let a frozen member go on; it is left alone until it has had time to find out."""
        worker.frozen = False
        worker.busy_until = now() + self._timing.grace
        with self.striking("continue", worker.role.name):
            worker.process.resume()

    def distract(self, worker: Worker) -> None:
        """Have a member not poll for a while."""
        worker.busy_until = now() + self._timing.silence + self._timing.grace
        with self.striking("busy", worker.role.name):
            self._signal(worker, signal.SIGUSR1)

    # --- The producer -------------------------------------------------------------------------------

    def start_producer(self, rate: int) -> None:
        """Start to write so many messages a second."""
        history = self._directory / f"{PRODUCER}.jsonl"
        self._producer = self._process(producer.command(self._servers, self._topics, rate, history), PRODUCER)
        self.tally.add(PRODUCER, PRODUCER, history)
        self._producer.start()

    def stop_producer(self) -> None:
        """Have it write what it still has, and end."""
        if self._producer is not None:
            self._producer.stop(_PRODUCER_SECONDS)

    # --- The end ------------------------------------------------------------------------------------

    def disband(self) -> None:
        """Have all members leave; one that does not is written down as hung, and killed."""
        for worker in self.workers:
            if worker.process.running and not worker.leaving:
                self.leave(worker)
        deadline = now() + _LEAVE_SECONDS
        for worker in self.workers:
            if worker.process.wait(max(0.0, deadline - now())) is None:
                with self.striking("hang", worker.role.name):
                    worker.process.kill()
            worker.process.kill()  # lets go of what has ended
        self.tally.read()

    def close(self) -> None:
        """Kill whatever still runs."""
        for process in [worker.process for worker in self.workers] + [self._producer]:
            if process is not None:
                process.kill()
        self._journal.close()

    # --- Parts --------------------------------------------------------------------------------------

    def _process(self, command: Sequence[str], name: str) -> GuardedProcess:
        # The package is found from wherever the run was started.
        path = os.pathsep.join(filter(None, [str(_HERE.parent), os.environ.get("PYTHONPATH", "")]))
        environment = ["/usr/bin/env", f"PYTHONPATH={path}"]
        return GuardedProcess(
            [*environment, *command], log_path=self._directory / f"{name}.log", remove_if_orphaned=None
        )

    @staticmethod
    def _signal(worker: Worker, number: signal.Signals) -> None:
        pid = worker.process.pid
        if pid is not None and worker.process.running:
            os.kill(pid, number)


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Return whether the condition came true within so many seconds."""
    pause, deadline = threading.Event(), now() + seconds
    while not condition():
        if now() > deadline:
            return False
        pause.wait(0.1)
    return True
