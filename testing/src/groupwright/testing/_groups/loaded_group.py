"""A consumer group under load on a real Kafka, with faults for its members and checks of its guarantees."""

import tempfile
import threading
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import confluent_kafka
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient

from groupwright.core import TopicPartitionKey
from groupwright.testing._groups.described_group import described_group
from groupwright.testing._groups.events import Killed, now
from groupwright.testing._groups.ledger import Ledger
from groupwright.testing._groups.load import Load
from groupwright.testing._groups.member_history import End
from groupwright.testing._groups.member_loop import ConsumerFactory, Hooks
from groupwright.testing._groups.members import PATIENCE_SECONDS, Member, ProcessMember, ThreadMember
from groupwright.testing._groups.report import Report, examples
from groupwright.testing._kafka.kafka import Kafka
from groupwright.testing.errors import LoadedGroupError

_STEP_SECONDS = 0.02
_REQUEST_TIMEOUT = 10.0
_METADATA_SECONDS = 5.0
"""Time for which brokers may not know a topic yet that was created just before."""
_CONFIG = {"auto.offset.reset": "earliest"}


class LoadedGroup:
    """Members of one group, a producer that writes to their topics, and a ledger of their events.

    The producer runs from the start of the ``with`` block, which a group has once. Members are threads or
    processes that the block starts. When the block ends, all members leave; a process that does not leave in
    time is killed. On POSIX systems the processes also end with this process, even if it is killed.

    A message is consumed when `poll` or `consume` returns it; a consumer class that overrides `poll` has the
    application's processing checked, too. Commits are seen by `on_commit`, and by what a synchronous `commit`
    returns.

    Attributes:
        group_id: The group's id.
        members: The members that were started and were neither killed nor asked to leave.
        topics: The number of partitions of each topic; set it when a topic grows.
    """

    def __init__(
        self,
        kafka: Kafka | str,
        topics: Mapping[str, int],
        consumer: ConsumerFactory | str = confluent_kafka.Consumer,
        *,
        group_id: str | None = None,
        config: Mapping[str, Any] | None = None,
        client_config: Mapping[str, Any] | None = None,
        processes: bool = False,
        batch: int = 1,
        messages_per_second: float = 100.0,
        producer: Callable[[dict[str, Any]], Any] = confluent_kafka.Producer,
        producer_config: Mapping[str, Any] | None = None,
        directory: Path | None = None,
        patience: float = PATIENCE_SECONDS,
        on_wait: Callable[[], None] = lambda: None,
    ) -> None:
        """Describe the group; producer and members start in the ``with`` block.

        Args:
            kafka: A running Kafka of this package, or any bootstrap address.
            topics: The topics, which exist, with their numbers of partitions.
            consumer: Creates the members' consumers: a class such as `confluent_kafka.Consumer` or
                `groupwright.consumer.Consumer`, or a function of the configuration. Members that are
                processes import it by its module and name, or by a reference ``module:name``.
            group_id: The group id; by default a unique one.
            config: The members' configuration besides `bootstrap.servers`, `group.id` and `client.id`.
            client_config: Configuration of all clients (members, producer, checks), such as security.
            processes: Whether members are processes, which can be killed and suspended, rather than threads.
            batch: Maximum number of messages per call: 1 for `poll`, more for `consume`.
            messages_per_second: The producer's rate, over all partitions; 0 for no producer.
            producer: Creates the producer from its configuration.
            producer_config: The producer's configuration besides `bootstrap.servers`.
            directory: Folder for histories and logs of processes, which is kept; by default a temporary one.
                A member that starts removes an earlier history of its name.
            patience: Timeout in seconds, for conditions and for members that leave.
            on_wait: Called 50 times a second during waits; its exceptions end the wait.
        """
        servers = kafka if isinstance(kafka, str) else kafka.bootstrap_servers
        self.group_id = group_id or f"loaded-group-{uuid.uuid4().hex[:8]}"
        self.topics = dict(topics)
        self.members: list[Member] = []
        self._all_members: list[Member] = []
        self._client_config = {**(client_config or {}), "bootstrap.servers": servers}
        self._consumer = consumer
        self._config = {
            **_CONFIG, **self._client_config, "group.id": self.group_id, **(config or {})
        }  # fmt: skip
        self._processes = processes
        self._batch = batch
        self._patience = patience
        self._on_wait = on_wait
        self._ledger = Ledger()
        self._directory = directory
        self._has_begun = False
        self._has_ended = False
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._admin: AdminClient | None = None
        self._pause = threading.Event()
        self._load: Load | None = None
        if messages_per_second:
            load_config = {**self._client_config, **(producer_config or {})}
            self._load = Load(
                self._partitions, messages_per_second, load_config, self._ledger.record_produced, producer
            )

    def __enter__(self) -> Self:
        """Start the producer.

        Raises:
            LoadedGroupError: A topic does not exist, or has fewer partitions; or the block has begun before.
        """
        if self._has_begun or self._has_ended:
            raise LoadedGroupError("the group's block has begun before: create another LoadedGroup")
        self._require_topics()
        self._has_begun = True
        if self._load is not None:
            self._load.__enter__()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Stop the producer and all members."""
        self.close()

    @property
    def ledger(self) -> Ledger:
        """The ledger, with all events so far."""
        self._refresh()
        return self._ledger

    # --- Members

    def start_member(
        self,
        name: str | None = None,
        config: Mapping[str, Any] | None = None,
        *,
        consumer: ConsumerFactory | str | None = None,
        process: bool | None = None,
        batch: int | None = None,
        hooks: Hooks | None = None,
    ) -> Member:
        """Start a member. `wait_until_settled` waits until it has joined.

        Args:
            name: Its name, unique in this group; only a thread that has left may use its name again. By
                default, ``member-1`` and so on.
            config: Configuration of its own, which overrides the group's.
            consumer: Creates its consumer; by default the group's factory.
            process: Whether it is a process; by default as in the group.
            batch: Maximum number of messages per call; by default the group's.
            hooks: Callbacks of its application, if it is a thread. In a process, the consumer's factory
                returns them (`WithDetails`).

        Returns:
            A `ProcessMember` or a `ThreadMember`.

        Raises:
            LoadedGroupError: The group's block has not begun or has ended, the name is taken, or the member
                cannot be created as a thread or process.
        """
        self._require_open("start_member")
        name = name or f"member-{len(self._all_members) + 1}"
        if any(member.name == name and not _may_be_replaced(member) for member in self._all_members):
            raise LoadedGroupError(f"there is, or was, a member {name!r}: give this one another name")
        settings = {**self._config, "client.id": name, **(config or {})}
        make = consumer or self._consumer
        batch = batch or self._batch
        if self._processes if process is None else process:
            temporary = self._directory is None
            folder = self._folder()
            member: Member = ProcessMember(
                make,
                settings,
                list(self.topics),
                self._ledger,
                folder,
                batch=batch,
                patience=self._patience,
                remove_if_orphaned=folder if temporary else None,
            )
        else:
            if isinstance(make, str):
                raise LoadedGroupError(
                    f"only members that are processes take a reference ({make!r}): pass a class or function"
                )
            member = ThreadMember(
                make,
                settings,
                list(self.topics),
                self._ledger,
                batch=batch,
                hooks=hooks,
                patience=self._patience,
            )
        self.members.append(member)
        self._all_members.append(member)
        return member

    def start_members(self, count: int) -> list[Member]:
        """Start this number of members."""
        return [self.start_member() for _ in range(count)]

    def leave(self, *members: Member) -> None:
        """Make members close their consumers, concurrently, and wait until they have ended.

        Raises:
            LoadedGroupError: A member has left or was killed before, does not end in time, or ends with an
                error.
        """
        self._require_members(*members)
        for member in members:
            self.members.remove(member)
            member.request_leave()
        self._wait(lambda: all(member.has_ended for member in members), self._patience)
        for member in members:
            member.leave()

    def kill(self, member: Member) -> None:
        """Kill a member that is a process (SIGKILL); the coordinator removes it when its session expires.

        The group's committed offsets are read from the coordinator before another member owns the partitions.
        Only messages of the killed member at or after these offsets may be consumed again.

        Raises:
            LoadedGroupError: The member is a thread, or has left or was killed before.
        """
        if not isinstance(member, ProcessMember):
            raise LoadedGroupError(
                f"{member.name} is a thread, which cannot be killed: start it with process=True"
            )
        self._require_members(member)
        self.members.remove(member)
        member.kill()
        killed = now()
        try:
            offsets = self.committed_offsets()
        except KafkaException:
            offsets = self._ledger.committed()  # the coordinator does not respond
        self._ledger.record(member.name, Killed(killed, offsets))

    def committed_offsets(self) -> dict[TopicPartitionKey, int]:
        """Return the group's committed offsets, from its coordinator.

        Raises:
            KafkaException: The coordinator does not respond.
        """
        # A consumer can read any group's offsets without joining it. The admin client can too, but crashes
        # the process (librdkafka 2.16) if the coordinator has moved.
        reader = confluent_kafka.Consumer({**self._client_config, "group.id": self.group_id, "log_level": 0})
        try:
            wanted = [TopicPartition(*partition) for partition in self._partitions()]
            found = reader.committed(wanted, timeout=_REQUEST_TIMEOUT)
        finally:
            reader.close()
        return {(each.topic, each.partition): each.offset for each in found if each.offset >= 0}

    # --- Waiting

    def wait_until(self, condition: Callable[[], bool], what: str, timeout: float | None = None) -> None:
        """Wait until a condition holds.

        Args:
            condition: The condition; called 50 times a second.
            what: Name of the condition, for the error message.
            timeout: Timeout in seconds; by default the group's `patience`.

        Raises:
            LoadedGroupError: The condition timed out, a member ended by itself, or producing failed.
        """
        timeout = self._patience if timeout is None else timeout
        if not self._wait(condition, timeout):
            raise LoadedGroupError(f"timed out after {timeout:g} s: {what}{self._failures()}")

    def wait_until_settled(self, timeout: float | None = None) -> None:
        """Wait until each partition has one owner, and all active members have the same generation.

        Suspended and paused members do not count. If a consumer reports no generations, the group must be
        stable at the coordinator, and the members must own what the coordinator has assigned; all brokers of
        the cluster must respond then. Until the timeout, errors and timeouts of requests are retried.

        Raises:
            LoadedGroupError: As `wait_until` does; the message names the partitions without a single owner.
        """
        timeout = self._patience if timeout is None else timeout
        if not self._wait(lambda: not self.unsettled(), timeout):
            raise LoadedGroupError(
                f"the group has not settled within {timeout:g} s: {self.unsettled()}{self._failures()}"
            )

    def unsettled(self) -> str:
        """Return why the group is not settled, as text; empty if it is settled."""
        ledger = self.ledger
        active = [member for member in self.members if member.is_active]
        generations = {member.name: ledger.generations.get(member.name) for member in active}
        if not active:
            return "no member is active"
        if None not in generations.values() and len(set(generations.values())) > 1:
            return "the members' generations are " + ", ".join(
                f"{number} of {name}" for name, number in generations.items()
            )
        if missing := [member.name for member in active if not ledger.was_assigned(member.name)]:
            return f"on_assign has not been called in {', '.join(missing)}"
        owned = {member.name: member.owned for member in active}
        owners = {each: [name for name, them in owned.items() if each in them] for each in self._partitions()}
        wrong = [
            f"{topic} [{number}] is owned by {' and '.join(names) or 'no member'}"
            for (topic, number), names in owners.items()
            if len(names) != 1
        ]
        if wrong:
            return ", ".join(wrong)
        return "" if None not in generations.values() else self._disagreement(owned)

    def wait_until_consumed(self, timeout: float | None = None) -> None:
        """Wait until all messages produced so far are consumed: returned by a member's `poll` or `consume`.

        Raises:
            LoadedGroupError: As `wait_until` does; the message names the partitions and offsets.
        """
        self._wait_until_consumed(self.ledger.ends(), timeout)

    def wait_until_progress(self, timeout: float | None = None) -> None:
        """Wait until messages produced from now on are consumed and committed, in each partition.

        Raises:
            LoadedGroupError: As `wait_until` does.
        """
        before = self.ledger.ends()

        def reached(offsets: Mapping[TopicPartitionKey, int]) -> bool:
            return all(offsets.get(each, 0) > before.get(each, 0) for each in self._partitions())

        self.wait_until(lambda: reached(self.ledger.ends()), "each partition has new messages", timeout)
        ends = self.ledger.ends()
        self._wait_until_consumed(ends, timeout)
        self.wait_until(
            lambda: all(self.ledger.committed().get(each, 0) >= end for each, end in ends.items()),
            "the consumed messages are committed",
            timeout,
        )

    # --- Stop and check

    def stop_producing(self, timeout: float | None = None) -> None:
        """Stop producing, and wait until all messages are acknowledged.

        Raises:
            LoadedGroupError: A message could not be produced in time.
        """
        load = self._load
        if load is not None:
            load.stop()
            self.wait_until(lambda: load.ended, "all messages are acknowledged", timeout)
            load.raise_for_error()

    def finish(self, duplicates_after: Collection[End] = frozenset({End.KILLED, End.LOST})) -> Report:
        """Stop the producer, wait until everything is consumed, end all members, and check the guarantees.

        Args:
            duplicates_after: The ends of ownership after which uncommitted messages may be consumed again.

        Raises:
            LoadedGroupError: The group's block has not begun or has ended; a member did not end in time, or
                its polls raised or returned an error.
            GuaranteeViolatedError: A guarantee was violated.
        """
        self._require_open("finish")
        self.stop_producing()
        in_time = self._wait(lambda: not self.ledger.unconsumed_count, self._patience)
        self.leave(*self.members)
        if failures := self._failures():
            raise LoadedGroupError(failures.removeprefix("; "))
        report = self.ledger.check(duplicates_after, waited=None if in_time else self._patience)
        report.raise_for_violations()
        return report

    def close(self, hurry: Callable[[], bool] = lambda: False) -> None:
        """Stop the producer, make all members leave, and kill those that do not leave in time.

        Args:
            hurry: Called while members leave; once it returns True, they are killed.
        """
        self._has_ended = True
        try:
            if self._load is not None:
                self._load.__exit__(None, None, None)
            for member in self._all_members:
                member.request_leave()
            deadline = now() + self._patience
            while (
                not all(member.has_ended for member in self._all_members) and now() < deadline and not hurry()
            ):
                self._pause.wait(_STEP_SECONDS)
        finally:
            for member in self._all_members:
                if isinstance(member, ProcessMember):
                    member.kill()
            self.members.clear()
            if self._temporary is not None:
                self._temporary.cleanup()
                self._temporary = None

    # --- Helpers

    def _require_open(self, method: str) -> None:
        if not self._has_begun or self._has_ended:
            state = "has ended" if self._has_ended else "has not begun"
            raise LoadedGroupError(f"the group's block {state}: call {method} in `with LoadedGroup(...)`")

    def _require_members(self, *members: Member) -> None:
        for member in members:
            if member not in self.members:
                raise LoadedGroupError(f"{member.name} has left or was killed before")

    def _require_topics(self) -> None:
        """Raise if a topic does not exist, or has fewer partitions; do nothing if no broker responds."""
        admin = AdminClient({**self._client_config, "log_level": 0})
        deadline = now() + _METADATA_SECONDS
        while True:
            try:
                found = admin.list_topics(timeout=_METADATA_SECONDS).topics
            except KafkaException:
                return
            actual = {name: len(found[name].partitions) if name in found else 0 for name in self.topics}
            missing = {name: count for name, count in actual.items() if count < self.topics[name]}
            if not missing:
                return
            if now() >= deadline:
                raise LoadedGroupError(
                    "; ".join(
                        f"the topic {name!r} has {count} of {self.topics[name]} partitions"
                        if count
                        else f"the topic {name!r} does not exist: create it before the group's block begins"
                        for name, count in missing.items()
                    )
                )
            self._pause.wait(_STEP_SECONDS)

    def _refresh(self) -> None:
        for member in self._all_members:
            if isinstance(member, ProcessMember):
                member.refresh()

    def _partitions(self) -> Sequence[TopicPartitionKey]:
        return [(topic, number) for topic, count in self.topics.items() for number in range(count)]

    def _folder(self) -> Path:
        if self._directory is not None:
            return self._directory
        if self._temporary is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="groupwright-group-")
        return Path(self._temporary.name)

    def _wait(self, condition: Callable[[], bool], timeout: float) -> bool:
        deadline = now() + timeout
        while True:
            self._refresh()
            holds = condition()
            self._on_wait()
            for member in self.members:
                if member.has_ended and not member.was_asked_to_leave:
                    raise LoadedGroupError(_end_of(member))
            if holds or now() >= deadline:
                return holds
            if self._load is not None:
                self._load.raise_for_error()
            self._pause.wait(_STEP_SECONDS)

    def _wait_until_consumed(self, ends: Mapping[TopicPartitionKey, int], timeout: float | None) -> None:
        timeout = self._patience if timeout is None else timeout
        if not self._wait(lambda: self.ledger.is_consumed(ends), timeout):
            spans = self.ledger.unconsumed(ends)
            raise LoadedGroupError(
                f"{sum(span.size for span in spans)} messages are not consumed within {timeout:g} s"
                f"{examples(spans)}{self._failures()}"
            )

    def _failures(self) -> str:
        """Return the errors of the members' polls, to be appended to a message; empty if there are none."""
        errors = {member.name: found for member in self._all_members if (found := self._errors(member))}
        return f"; members' polls raised or returned errors: {errors}" if errors else ""

    def _errors(self, member: Member) -> list[Any]:
        return list(member.errors) if isinstance(member, ThreadMember) else self._ledger.errors(member.name)

    def _disagreement(self, owned: Mapping[str, set[TopicPartitionKey]]) -> str:
        """Return the group's state and assignment at the coordinator; empty if stable and as owned."""
        if self._admin is None:
            self._admin = AdminClient({**self._client_config, "log_level": 0})
        try:
            state, assigned = described_group(self._admin, self.group_id, _REQUEST_TIMEOUT)
        except (KafkaException, TimeoutError) as error:
            self._admin = None  # it may never find a broker again that listed no brokers
            return f"the coordinator does not respond: {error!r}"
        if state == "Stable" and assigned == owned:
            return ""
        return f"the coordinator reports the state {state} and the assignment {assigned}"


def _may_be_replaced(member: Member) -> bool:
    return isinstance(member, ThreadMember) and member.has_ended


def _end_of(member: Member) -> str:
    if isinstance(member, ProcessMember):
        status, log = member.exit_code, member.log_tail()
        return f"{member.name} ended by itself, with exit status {status}; its log ends:\n{log}"
    failure = member.failure if isinstance(member, ThreadMember) else None
    return f"{member.name} ended by itself: {failure!r}"
