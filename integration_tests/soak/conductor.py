"""Run a soak: inject the scheduled faults into a real cluster, let the groups settle, check the histories."""

import functools
import heapq
import itertools
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType
from confluent_kafka.cimpl import NewPartitions

from groupwright.testing import LocalKafka
from groupwright.testing._kafka.security import Listener, Security
from groupwright.testing.groups import Load, LoadedGroup, now
from integration_tests.harness.waiting import holds_within
from integration_tests.soak import checker, schedule, stored
from integration_tests.soak.events import Interrupted
from integration_tests.soak.fleet import Fleet, Worker
from integration_tests.soak.member import Order
from integration_tests.soak.schedule import Fault, Kind
from integration_tests.soak.stored import StoredCommit, StoredGeneration, StoredRecord
from integration_tests.soak.timing import BROKER_SETTINGS, Timing

if TYPE_CHECKING:
    from groupwright.core import TopicPartitionKey

_TOPICS = {"orders": 4, "payments": 3, "returns": 2, "salaries": 2}
_GROWING = ("orders", "payments")
_DELETED = "returns"
"""The topic that is deleted and re-created."""
_FORBIDDEN = "salaries"
"""The topic that guests may not read."""
_GUEST = "alice"
_GONE_SECONDS = 4.0
"""The shortest time between a topic's deletion and its re-creation."""
_OFFSETS_SECONDS = 30.0
"""The longest time in which the coordinator removes the offsets of a deleted topic."""
_RELEASE_SECONDS = 60.0
"""The longest time for which members may own a deleted topic."""
_RESTART_SECONDS = 30.0
_ORDERS = {Kind.INTERRUPT: Order.INTERRUPT, Kind.ENFORCE: Order.ENFORCE, Kind.WAKE: Order.WAKE}
_MOST_PARTITIONS = 12
_MEMBERS_AT_FIRST = 3
_MOST_MEMBERS = 5
_SESSIONS_IF_MISSING = 5
"""Sessions for which nothing changes before messages that no member has consumed are taken for lost."""
_DRAIN_SECONDS = 90.0
_STEP_SECONDS = 0.1
_BROKER_SECONDS = 300.0
"""The longest time in which the broker starts and answers; other processes may keep the machine busy."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Parameters of a run."""

    seed: int
    seconds: float
    assignors: tuple[str, ...]
    """One group for each."""
    rate: int = 100
    """Messages a second."""
    timing: Timing = field(default_factory=Timing)


@dataclass(frozen=True, slots=True)
class Progress:
    """Progress of a run."""

    phase: str
    elapsed: float
    faults: int
    produced: int
    consumed: int
    rebalances: int


@dataclass(slots=True)
class Result:
    """Result of a run: counts of faults and rebalances, and the findings."""

    plan: Plan
    findings: checker.Findings
    faults: Counter[str]
    """The number of injections, by fault."""
    rebalances: dict[str, int]
    """The number of generations stored for each group."""
    drained: bool
    """True if all messages were consumed, and each partition had one owner, within `_DRAIN_SECONDS`."""


Watcher = Callable[[Progress], None]


def run(plan: Plan, directory: Path, watch: Watcher = lambda _: None) -> Result:
    """Run a soak; every process has ended when it returns.

    Args:
        plan: Parameters of the run.
        directory: Existing directory for histories and logs.
        watch: Called a few times a second.
    """
    security = Security({_GUEST: "guest-secret"}, authorize=True)
    with LocalKafka(config=BROKER_SETTINGS, security=security, startup_timeout=_BROKER_SECONDS) as kafka:
        for topic, partitions in _TOPICS.items():
            kafka.create_topic(topic, partitions)
        _forbid(kafka, schedule.forbidden(plan.seed))
        secured = kafka.secure_config(Listener.SASL_PLAINTEXT, mechanism="PLAIN", user=_GUEST)
        fleet = Fleet(
            kafka.bootstrap_servers, _TOPICS, plan.assignors, directory, plan.seed, plan.timing, secured
        )
        try:
            return _Run(plan, kafka, fleet, watch).run()
        finally:
            fleet.close()


def _forbid(kafka: LocalKafka, what: str) -> None:
    rule = AclBinding(
        ResourceType.TOPIC,
        _FORBIDDEN,
        ResourcePatternType.LITERAL,
        f"User:{_GUEST}",
        "*",
        AclOperation.READ if what == "read" else AclOperation.ALL,
        AclPermissionType.DENY,
    )
    kafka.admin().create_acls([rule], request_timeout=_BROKER_SECONDS)[rule].result(_BROKER_SECONDS)


class _Run:
    def __init__(self, plan: Plan, kafka: LocalKafka, fleet: Fleet, watch: Watcher) -> None:
        self._plan = plan
        self._kafka = kafka
        self._fleet = fleet
        self._watch = watch
        self._deleting = False
        self._started = now()
        self._order = itertools.count()
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._last_look = 0.0

    def run(self) -> Result:
        """Inject faults, let the groups settle, stop all members, check the histories."""
        self._inject_faults()
        drained = self._drain()
        settled = now()
        self._fleet.disband()
        self._look("checking", at_once=True)
        return self._check(stored.read_all(self._kafka.bootstrap_servers), settled, drained=drained)

    # --- Faults -------------------------------------------------------------------------------------

    def _inject_faults(self) -> None:
        plan = self._plan
        self._fleet.start_producer([*_GROWING, _FORBIDDEN], plan.rate)
        self._deleted_producer = self._produce_deleted()
        for _, group in itertools.product(range(_MEMBERS_AT_FIRST), plan.assignors):
            self._fleet.start(group)
        for fault in schedule.faults(plan.seed, plan.seconds, plan.assignors, plan.timing):
            self._at(self._started + fault.at, functools.partial(self._inject, fault))
        ends = self._started + plan.seconds
        pause = threading.Event()
        while now() < ends or self._due:
            if self._due and self._due[0][0] <= now():
                heapq.heappop(self._due)[2]()
            else:
                pause.wait(_STEP_SECONDS / 2)
            self._look("faults")

    def _at(self, time: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._due, (time, next(self._order), action))

    def _inject(self, fault: Fault) -> None:
        if fault.group:
            self._inject_group_fault(fault)
        elif fault.kind is Kind.DELETE:
            self._delete()
        elif fault.kind is Kind.GROW:
            self._grow(_GROWING[fault.choice % len(_GROWING)])
        else:
            with self._fleet.injecting(fault.kind.value):
                self._inject_broker_fault(fault)

    def _inject_broker_fault(self, fault: Fault) -> None:
        match fault.kind:
            case Kind.PAUSE_BROKER:
                self._kafka.pause()
                threading.Event().wait(fault.seconds)
                self._kafka.resume()
                self._kafka.wait_until_ready(_BROKER_SECONDS)
            case Kind.CRASH_BROKER:
                self._kafka.kill()
                self._kafka.start()
            case _:
                self._kafka.restart()

    def _inject_group_fault(self, fault: Fault) -> None:
        fleet, alive = self._fleet, self._fleet.alive(fault.group)
        if fault.kind is Kind.JOIN:
            if len(alive) < _MOST_MEMBERS:
                fleet.start(fault.group)
        elif fault.kind is Kind.GUEST:
            guest = fleet.start(fault.group, guest=True)
            self._at(now() + fault.seconds, lambda: fleet.leave(guest))
        elif victims := self._victims(fault.kind, alive):
            self._inject_member_fault(fault, victims[fault.choice % len(victims)])

    def _victims(self, kind: Kind, alive: Sequence[Worker]) -> list[Worker]:
        if not alive or (kind in {Kind.LEAVE, Kind.CLOSE} and len(alive) == 1):
            return []
        free = self._fleet.free(alive[0].group)
        return [each for each in free if kind is not Kind.RESTART or each.role.instance is not None]

    def _inject_member_fault(self, fault: Fault, victim: Worker) -> None:
        fleet = self._fleet
        match fault.kind:
            case Kind.RESTART:
                fleet.leave(victim)
                again = now() + fault.seconds
                self._at(again, lambda: self._replace_ended(victim, again + _RESTART_SECONDS))
            case Kind.KILL:
                fleet.kill(victim)
                self._at(now() + fault.seconds, lambda: self._replace(victim))
            case Kind.STALL:
                fleet.stop(victim)
                self._at(now() + fault.seconds, lambda: fleet.go_on(victim))
            case _:
                self._command(fault.kind, victim)

    def _command(self, kind: Kind, victim: Worker) -> None:
        fleet = self._fleet
        match kind:
            case Kind.LEAVE:
                fleet.leave(victim)
            case Kind.CLOSE:
                fleet.close_elsewhere(victim)
            case Kind.BUSY:
                fleet.distract(victim)
            case Kind.INTERRUPT | Kind.ENFORCE | Kind.WAKE:
                fleet.order(victim, kind.value, _ORDERS[kind])
            case _:
                raise AssertionError(f"{kind} is no fault of a member")

    def _replace(self, victim: Worker) -> None:
        if victim.role.instance is not None or len(self._fleet.alive(victim.group)) < _MOST_MEMBERS:
            self._fleet.start(victim.group, heir_of=victim.role)

    def _replace_ended(self, victim: Worker, deadline: float) -> None:
        """Start a static member's successor once the member has closed; earlier it would fence the member."""
        if victim.process.has_ended:
            self._fleet.start(victim.group, heir_of=victim.role)
        elif now() < deadline:
            self._at(now() + _STEP_SECONDS, lambda: self._replace_ended(victim, deadline))

    # Each incarnation of the deleted topic has its own producer, which ends before the deletion. Members must
    # have revoked the topic before it is re-created. So every event belongs to exactly one incarnation.

    def _produce_deleted(self) -> Load:
        return self._fleet.start_producer([_DELETED], max(1, self._plan.rate // 5))

    def _delete(self) -> None:
        if not self._deleting:
            self._deleting = True
            self._deleted_producer.stop()
            self._delete_written()

    def _delete_written(self) -> None:
        if not self._deleted_producer.ended:
            self._at(now() + _STEP_SECONDS, self._delete_written)
            return
        with self._fleet.injecting("delete topic", _DELETED):
            futures = self._kafka.admin().delete_topics([_DELETED], request_timeout=_BROKER_SECONDS)
            futures[_DELETED].result(_BROKER_SECONDS)
            is_clean = holds_within(lambda: not self._has_offsets(), _OFFSETS_SECONDS, _STEP_SECONDS)
        self._fleet.resize(_DELETED, 0)
        if not is_clean:
            # A broker that crashes before removing the offsets keeps them, and members of the next topic of
            # this name would begin beyond its end.
            with self._fleet.injecting("leave topic deleted", _DELETED):
                self._fleet.forget(_DELETED)
            return
        deleted = now()
        self._at(deleted + _GONE_SECONDS, lambda: self._recreate(deleted))

    def _has_offsets(self) -> bool:
        """Return whether the coordinator still stores offsets of the deleted topic."""
        latest: dict[tuple[str, TopicPartitionKey], StoredRecord] = {}
        try:
            for record in stored.read_all(self._kafka.bootstrap_servers):
                if not isinstance(record, StoredGeneration) and record.partition[0] == _DELETED:
                    latest[record.group, record.partition] = record
        except (KafkaException, TimeoutError):
            return True  # not known yet
        return any(isinstance(record, StoredCommit) for record in latest.values())

    def _recreate(self, deleted: float) -> None:
        self._look("faults", at_once=True)
        running = self._fleet.running()
        owners = [w.role.name for w in running if any(topic == _DELETED for topic, _ in w.process.owned)]
        # A member that was stopped all the while was seen to fetch nothing of the new topic's partitions.
        unaware = any(w.frozen or w.busy_until > now() for w in running)
        if (owners or unaware) and now() < deleted + _RELEASE_SECONDS:
            self._at(now() + _STEP_SECONDS, lambda: self._recreate(deleted))
            return
        for name in owners:
            with self._fleet.injecting("keep deleted topic", name):
                pass
        self._fleet.forget(_DELETED)
        with self._fleet.injecting("make topic", _DELETED):
            _once_unfenced(lambda: self._kafka.create_topic(_DELETED, _TOPICS[_DELETED]))
        self._fleet.resize(_DELETED, _TOPICS[_DELETED])
        self._deleting = False
        self._deleted_producer = self._produce_deleted()

    def _grow(self, topic: str) -> None:
        partitions = self._fleet.partitions[topic] + 1
        if partitions > _MOST_PARTITIONS:
            return
        wanted = NewPartitions(topic, partitions)
        with self._fleet.injecting(Kind.GROW.value, topic):
            admin = self._kafka.admin()
            _once_unfenced(
                lambda: admin.create_partitions([wanted], request_timeout=_BROKER_SECONDS)[topic].result(
                    _BROKER_SECONDS
                )
            )
        self._fleet.resize(topic, partitions)

    # --- Settling------------------------------------------------------------------------------------

    def _drain(self) -> bool:
        """Wait until all is consumed and each partition has one owner; return whether that happened."""
        self._fleet.stop_producers()
        for group in self._plan.assignors:
            self._fleet.start(group)  # its rebalance makes the leader notice grown topics

        last_change, last_missing = now(), -1

        def calm() -> bool:
            nonlocal last_change, last_missing
            self._look("draining", at_once=True)
            missing = sum(group.ledger.unconsumed_count for group in self._fleet.groups.values())
            if missing != last_missing or not all(map(_is_settled, self._fleet.groups.values())):
                last_change, last_missing = now(), missing
            # A member that was just resumed does not know its losses yet, so the state must last a session.
            # What is missing may be lost by interrupted polls, or come late: that takes longer to tell.
            sessions = _SESSIONS_IF_MISSING if missing else 1
            return now() - last_change > sessions * self._plan.timing.session

        return holds_within(calm, _DRAIN_SECONDS, _STEP_SECONDS)

    def _look(self, phase: str, *, at_once: bool = False) -> None:
        time = now()
        if not at_once and time - self._last_look < _STEP_SECONDS:
            return
        self._last_look = time
        ledgers = [group.ledger for group in self._fleet.groups.values()]
        self._watch(
            Progress(
                phase=phase,
                elapsed=time - self._started,
                faults=len(self._fleet.faults),
                produced=ledgers[0].produced_count,
                consumed=sum(ledger.consumed_count for ledger in ledgers),
                rebalances=sum(max(ledger.generations.values(), default=0) for ledger in ledgers),
            )
        )

    # --- Checking -----------------------------------------------------------------------------------

    def _check(self, records: Sequence[StoredRecord], settled: float, *, drained: bool) -> Result:
        histories = {name: group.ledger.histories for name, group in self._fleet.groups.items()}
        known = checker.Records(histories, self._fleet.produced(), self._fleet.faults, records, settled)
        generations = Counter(
            record.group for record in records if isinstance(record, StoredGeneration) and record.owners
        )
        return Result(
            plan=self._plan,
            findings=checker.check(known, self._plan.timing),
            faults=Counter(fault.what for fault in self._fleet.faults),
            rebalances={group: generations[group] for group in self._plan.assignors},
            drained=drained,
        )


def _is_settled(group: LoadedGroup) -> bool:
    """Return whether the group is settled, and has consumed all but what interrupted polls may have lost."""
    ledger = group.ledger
    events = itertools.chain.from_iterable(ledger.histories.values())
    interruptions = sum(isinstance(event, Interrupted) for event in events)
    return ledger.unconsumed_count <= interruptions and not group.unsettled()


def _once_unfenced(request: Callable[[], None]) -> None:
    """Make a request of the controller again while it has fenced the broker, which missed its heartbeats.

    Raises:
        KafkaException: The request was rejected, or the broker is still fenced.
    """

    def is_done() -> bool:
        try:
            request()
        except KafkaException as error:
            if error.args[0].code() != KafkaError.INVALID_REPLICATION_FACTOR:
                raise
            return False
        return True

    if not holds_within(is_done, _BROKER_SECONDS, _STEP_SECONDS):
        request()
