"""The processes of a run: members and the producer. All end with this process, whatever ends it."""

import dataclasses
import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from groupwright.testing._kafka.process import GuardedProcess
from soak import producer, schedule
from soak.events import HistoryWriter, Struck, now
from soak.member import Order, Role
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
        """Whether it may not read the forbidden topic; it is struck by nothing else."""
        return bool(self.role.secured)

    @property
    def free(self) -> bool:
        """Whether nothing is being done to it."""
        return self.process.running and not self.frozen and not self.leaving and now() > self.busy_until


class Fleet:
    """Starts and strikes members; what is done is written down like a history."""

    def __init__(
        self,
        bootstrap_servers: str,
        topics: Sequence[str],
        directory: Path,
        seed: int,
        timing: Timing,
        secured: dict[str, str],
    ) -> None:
        """Start with no processes; histories and logs go to the directory, and guests connect as `secured` says."""
        self.strikes: list[Struck] = []
        self.workers: list[Worker] = []
        self.tally = Tally()
        self._servers = bootstrap_servers
        self._topics = list(topics)
        self._directory = directory
        self._seed = seed
        self._timing = timing
        self._secured = secured
        self._characters: dict[str, Iterator[schedule.Character]] = {}
        self._producers: dict[str, GuardedProcess] = {}
        self._journal = HistoryWriter(directory / "strikes.jsonl")

    # --- Who there is -------------------------------------------------------------------------------

    def alive(self, group: str) -> list[Worker]:
        """Return the group's members that run and are to stay, in the order in which they came; no guests."""
        return [w for w in self.running() if w.role.group == group and not w.leaving and not w.guest]

    def running(self) -> list[Worker]:
        """Return all members whose process runs."""
        return [worker for worker in self.workers if worker.process.running]

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

    def start(self, group: str, heir_of: Role | None = None, *, guest: bool = False) -> Worker:
        """Start a new member, of a character of its own or in the place of a static one."""
        number = sum(worker.role.group == group for worker in self.workers) + 1
        name = f"{group}-{number}"
        history = self._directory / f"{name}.jsonl"
        if heir_of is not None and heir_of.instance is not None:
            role = dataclasses.replace(heir_of, name=name, history=str(history))
        else:
            character = next(self._characters.setdefault(group, schedule.characters(self._seed, group)))
            instance = f"{name}-static" if character.static and not guest else None
            role = Role(
                self._servers,
                group,
                self._topics,
                name,
                instance,
                group,
                character.commits,
                str(history),
                character.eof,
                character.seeks,
                character.calls,
                self._secured if guest else {},
            )
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
        self.order(worker, "leave", Order.LEAVE)

    def close_elsewhere(self, worker: Worker) -> None:
        """Have another thread of a member close its consumer."""
        worker.leaving = True
        self.order(worker, "close", Order.CLOSE)

    def order(self, worker: Worker, what: str, order: Order) -> None:
        """Signal a member what it is to do."""
        with self.striking(what, worker.role.name):
            pid = worker.process.pid
            if pid is not None and worker.process.running:
                os.kill(pid, order)

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
        self.order(worker, "busy", Order.BUSY)

    # --- Producers ----------------------------------------------------------------------------------

    def start_producer(self, topics: Sequence[str], rate: int, name: str = PRODUCER) -> None:
        """Start to write so many messages a second; the name begins with `PRODUCER`."""
        history = self._directory / f"{name}.jsonl"
        process = self._process(producer.command(self._servers, list(topics), rate, history), name)
        self._producers[name] = process
        self.tally.add(name, PRODUCER, history)
        process.start()

    def end_producer(self, name: str) -> None:
        """Ask a producer to write what it still has, and end."""
        process = self._producers[name]
        if process.pid is not None and process.running:
            os.kill(process.pid, signal.SIGTERM)

    def produces(self, name: str) -> bool:
        """Return whether a producer still runs."""
        return self._producers[name].running

    def stop_producers(self) -> None:
        """Have all write what they still have, and end."""
        for process in self._producers.values():
            process.stop(_PRODUCER_SECONDS)

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
        for process in [worker.process for worker in self.workers] + list(self._producers.values()):
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


def wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    """Return whether the condition came true within so many seconds."""
    pause, deadline = threading.Event(), now() + seconds
    while not condition():
        if now() > deadline:
            return False
        pause.wait(0.1)
    return True
