"""Members of a group under load: threads of this process, or processes of their own."""

import os
import signal
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from groupwright.core import TopicPartitionKey
from groupwright.testing._groups.events import Consumed, Died, Faulted, HistoryReader, Revoked, Started, now
from groupwright.testing._groups.ledger import Ledger
from groupwright.testing._groups.member_loop import ConsumerFactory, Hooks, MemberLoop
from groupwright.testing._groups.member_process import Specification
from groupwright.testing._kafka.process import GuardedProcess
from groupwright.testing.errors import LoadedGroupError

PATIENCE_SECONDS = 60.0
_STEP_SECONDS = 0.02


class Member(ABC):
    """A member of a group under load, with methods that inject faults.

    Attributes:
        name: Its name, which is its ``client.id``.
    """

    def __init__(self, name: str, ledger: Ledger, patience: float = PATIENCE_SECONDS) -> None:
        """Create the member.

        Args:
            name: Its name.
            ledger: Records its events.
            patience: Timeout in seconds for its leaving.
        """
        self.name = name
        self._ledger = ledger
        self._patience = patience
        self._open_faults: set[str] = set()
        self._is_leaving = False

    # --- State

    @property
    def is_active(self) -> bool:
        """True if it polls: it is not leaving, ended, suspended or paused."""
        return not (self._open_faults or self._is_leaving or self.has_ended)

    @property
    def was_asked_to_leave(self) -> bool:
        """True if it was asked to leave, or killed, so that its end is expected."""
        return self._is_leaving

    @property
    @abstractmethod
    def has_ended(self) -> bool:
        """True if its thread or process has ended."""

    @property
    def owned(self) -> set[TopicPartitionKey]:
        """The partitions that it owns, according to its callbacks."""
        return self._ledger.owned_by(self.name)

    @property
    def generation(self) -> int:
        """The generation of its last completed rebalance; -1 before one, or if its consumer reports none."""
        return self._ledger.generations.get(self.name, -1)

    @property
    def losses(self) -> int:
        """Number of calls of on_lost."""
        history = list(self._ledger.histories[self.name])
        return sum(isinstance(event, Revoked) and event.lost for event in history)

    @property
    def consumed(self) -> list[tuple[str, int, int]]:
        """The topic, partition and offset of each message that it consumed, in order."""
        return [
            (span.topic, span.partition, offset)
            for event in list(self._ledger.histories[self.name])
            if isinstance(event, Consumed)
            for span in event.spans
            for offset in range(span.start, span.stop)
        ]

    @property
    def details(self) -> dict[str, str]:
        """Details that the consumer's factory reported (`WithDetails`); empty until the consumer exists."""
        started = (event for event in list(self._ledger.histories[self.name]) if isinstance(event, Started))
        return next((event.details for event in started), {})

    # --- Faults

    def pause_polling(self) -> None:
        """Stop polling until `resume_polling`; heartbeats continue for `max.poll.interval.ms`.

        Raises:
            LoadedGroupError: The member is a process that does not start in time.
        """
        self._fault("pause polling", begins=True)
        self._pause_polling()

    def resume_polling(self) -> None:
        """Resume polling.

        Raises:
            LoadedGroupError: The member is a process that does not start in time.
        """
        self._resume_polling()
        self._fault("pause polling", begins=False)

    @abstractmethod
    def request_leave(self) -> None:
        """Make it close its consumer, which leaves the group, and end; return at once."""

    @abstractmethod
    def leave(self) -> None:
        """Make it close its consumer, which leaves the group, and wait until it has ended.

        Raises:
            LoadedGroupError: It does not end in time, or ends with an error.
        """

    def _fault(self, fault: str, *, begins: bool) -> None:
        if begins:
            self._open_faults.add(fault)
        else:
            self._open_faults.discard(fault)
        self._ledger.record(self.name, Faulted(now(), fault, begins))

    @abstractmethod
    def _pause_polling(self) -> None: ...

    @abstractmethod
    def _resume_polling(self) -> None: ...


class ThreadMember(Member):
    """A member that a thread of this process polls. It cannot be killed or suspended.

    Attributes:
        consumer: The consumer.
        hooks: Callbacks of its application; may be changed while it runs.
        errors: Exceptions of its polls, and errors of the group that they returned.
        rebalances: The rebalances that its consumer reported; empty if the consumer takes no listener.
        callbacks: Its rebalance callbacks: ``assign``, ``revoke`` or ``lost``, and the partitions, sorted.
    """

    def __init__(
        self,
        make: ConsumerFactory,
        config: Mapping[str, Any],
        topics: Sequence[str],
        ledger: Ledger | None = None,
        *,
        batch: int = 1,
        hooks: Hooks | None = None,
        patience: float = PATIENCE_SECONDS,
    ) -> None:
        """Create the consumer, subscribe, and start the thread that polls.

        Args:
            make: Creates the consumer from its configuration.
            config: The configuration, with a `client.id`.
            topics: The topics to subscribe to.
            ledger: Records its events; by default, one of its own.
            batch: Maximum number of messages per call: 1 for `poll`, more for `consume`.
            hooks: Callbacks of its application.
            patience: Timeout in seconds for its leaving.
        """
        ledger = Ledger() if ledger is None else ledger
        name = str(config["client.id"])
        super().__init__(name, ledger, patience)
        self._failure: BaseException | None = None
        self._loop = MemberLoop(
            make, config, topics, lambda *events: ledger.record(name, *events), batch=batch, hooks=hooks
        )
        self.consumer = self._loop.consumer
        self.hooks = self._loop.hooks
        self.errors = self._loop.errors
        self.rebalances = self._loop.rebalances
        self.callbacks = self._loop.callbacks
        self._loop.start()
        self._thread = threading.Thread(target=self._run, name=f"member {name}", daemon=True)
        self._thread.start()

    @property
    def has_ended(self) -> bool:
        """True if its thread has ended."""
        return not self._thread.is_alive()

    @property
    def owned(self) -> set[TopicPartitionKey]:
        """The partitions that it owns. With a listener, new ones count once the rebalance has ended."""
        return self._loop.owned

    @property
    def failure(self) -> BaseException | None:
        """The exception that ended its thread; None if there is none."""
        return self._failure

    def subscribe(self, topics: Sequence[str]) -> None:
        """Subscribe to other topics, before the next poll."""
        self._loop.subscribe(topics)

    def request_leave(self) -> None:
        """Make its thread close the consumer; return at once."""
        self._is_leaving = True
        self._loop.leave()

    def leave(self) -> None:
        """Make its thread close the consumer, and wait until it has.

        Raises:
            LoadedGroupError: It does not close in time, or its thread failed.
        """
        self.request_leave()
        self._thread.join(self._patience)
        if self._thread.is_alive():
            raise LoadedGroupError(f"{self.name} did not close within {self._patience:g} s")
        if self._failure is not None:
            raise LoadedGroupError(f"{self.name} failed: {self._failure!r}") from self._failure

    def _run(self) -> None:
        try:
            self._loop.run()
        except BaseException as error:  # noqa: BLE001 - `leave` raises it
            self._failure = error
            self._ledger.record(self.name, Died(now(), repr(error)))

    def _pause_polling(self) -> None:
        self._loop.pause_polling()

    def _resume_polling(self) -> None:
        self._loop.resume_polling()


class ProcessMember(Member):
    """A member in a process of its own, which ends with this process even if it is killed. POSIX only."""

    def __init__(
        self,
        make: ConsumerFactory | str,
        config: Mapping[str, Any],
        topics: Sequence[str],
        ledger: Ledger,
        directory: Path,
        *,
        batch: int = 500,
        patience: float = PATIENCE_SECONDS,
        remove_if_orphaned: Path | None = None,
    ) -> None:
        """Start the process.

        Args:
            make: Creates the consumer. The process imports it: a class or function of a module, or a
                reference ``module:name``.
            config: The configuration, with a `client.id`; its values must be serializable as JSON.
            topics: The topics to subscribe to.
            ledger: Records its events on `refresh`.
            directory: Folder for its specification, history and log. An earlier history of this name is
                removed.
            batch: Maximum number of messages per call: 1 for `poll`, more for `consume`.
            patience: Timeout in seconds for its leaving, and for its start if its polling is paused before.
            remove_if_orphaned: A directory to remove if this process dies before the member ends.

        Raises:
            LoadedGroupError: The process could not import `make`, or the configuration is not serializable.
        """
        name = str(config["client.id"])
        super().__init__(name, ledger, patience)
        history = directory / f"{name}.jsonl"
        self._log_path = directory / f"{name}.log"
        specification = Specification(
            _reference(make), dict(config), list(topics), batch, str(history), sys.path
        )
        try:
            command = specification.write(directory / f"{name}.json")
        except TypeError as error:
            raise LoadedGroupError(
                f"the configuration of {name} is not serializable as JSON: {error}"
            ) from error
        history.unlink(missing_ok=True)
        self._reader = HistoryReader(history)
        self._has_started = False
        self._process = GuardedProcess(
            command, log_path=self._log_path, remove_if_orphaned=remove_if_orphaned
        )
        self._process.start()

    @property
    def has_ended(self) -> bool:
        """True if its process has ended."""
        return not self._process.running

    @property
    def pid(self) -> int | None:
        """Its process id."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Its process's exit code, negative for a signal; None before the end."""
        return self._process.exit_code

    def log_tail(self, lines: int = 15) -> str:
        """Return the last lines that it wrote to its standard output and error."""
        return "\n".join(self._log_path.read_text(errors="replace").splitlines()[-lines:])

    def refresh(self) -> None:
        """Record the events written to its history since the last call."""
        events = list(self._reader.read())
        self._has_started = self._has_started or any(isinstance(event, Started) for event in events)
        self._ledger.record(self.name, *events)

    def request_leave(self) -> None:
        """Make it close its consumer and end (SIGTERM); return at once."""
        self._is_leaving = True
        self.signal(signal.SIGTERM)

    def leave(self) -> None:
        """Make it close its consumer and end (SIGTERM), and wait until it has.

        Raises:
            LoadedGroupError: It does not end in time, or ends with an error.
        """
        self.request_leave()
        if self._process.wait(self._patience) is None:
            raise LoadedGroupError(f"{self.name} did not end within {self._patience:g} s")
        self._process.kill()  # releases the ended process
        self.refresh()
        # A process that has not started its loop has no handler for SIGTERM yet.
        if self.exit_code and (self._ledger.histories[self.name] or self.exit_code != -signal.SIGTERM):
            raise LoadedGroupError(
                f"{self.name} left with exit status {self.exit_code}; its log ends:\n{self.log_tail()}"
            )

    def kill(self) -> None:
        """Kill the process (SIGKILL), and record the events it has written."""
        self._is_leaving = True
        self._process.kill()
        self.refresh()

    def suspend(self) -> None:
        """Suspend the process (SIGSTOP): its connections stay open, but it does not respond."""
        self._fault("suspend", begins=True)
        self._process.suspend()

    def resume(self) -> None:
        """Resume the suspended process (SIGCONT)."""
        self._process.resume()
        self._fault("suspend", begins=False)

    def _pause_polling(self) -> None:
        self._wait_until_started()
        self.signal(signal.SIGUSR1)

    def _resume_polling(self) -> None:
        self._wait_until_started()
        self.signal(signal.SIGUSR2)

    def _wait_until_started(self) -> None:
        """Wait until it has recorded its start or ended: a signal without a handler would kill it."""
        deadline = now() + self._patience
        while not (self._has_started or self.has_ended):
            if now() >= deadline:
                raise LoadedGroupError(f"{self.name} did not start within {self._patience:g} s")
            time.sleep(_STEP_SECONDS)
            self.refresh()

    def signal(self, number: int) -> None:
        """Send its process a signal, if it runs; SIGTERM, SIGUSR1 and SIGUSR2 are the group's own."""
        if self.pid is not None and self._process.running:
            os.kill(self.pid, number)


def _reference(make: ConsumerFactory | str) -> str:
    if isinstance(make, str):
        return make
    module, name = getattr(make, "__module__", ""), getattr(make, "__qualname__", "<lambda>")
    module = "confluent_kafka" if module == "cimpl" else module  # its extension module names itself so
    if module in {"", "__main__"} or "<" in name:
        raise LoadedGroupError(
            f"a member's process cannot import {make!r}: "
            "give a class or function of a module, or 'module:name'"
        )
    return f"{module}:{name}"
