"""Plays one scenario: members, a producer and faults on a simulated cluster, held to the guarantees."""

import functools
import gc
from dataclasses import dataclass, replace

from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.classic_group import State
from groupwright.testing._simulation.cluster import Cluster, NetworkSettings
from groupwright.testing._simulation.scheduler import MS, SECOND, Process, Scheduler
from groupwright.testing._simulation.settings import GroupSettings
from integration_tests.simulation import runtime
from integration_tests.simulation.by_hand import HandMember
from integration_tests.simulation.foreign import ForeignMember
from integration_tests.simulation.guarantees import GENERATIONS_A_FAULT, Guarantees
from integration_tests.simulation.guarantees_by_hand import HandGuarantees
from integration_tests.simulation.handle import Librdkafka
from integration_tests.simulation.member import RealMember
from integration_tests.simulation.network import Network
from integration_tests.simulation.records import BrokenGuaranteeError
from integration_tests.simulation.reports import Reports
from integration_tests.simulation.scenario import (
    GROUP,
    LONGEST_CALLBACK,
    OF_ANY,
    Client,
    Fault,
    Kind,
    MemberPlan,
    Scenario,
)
from integration_tests.simulation.story import Story

AnyMember = RealMember | ForeignMember
_MOST_PARTITIONS = 8
_CUTS = frozenset(
    {Kind.STOP, Kind.CUT, Kind.ISOLATE, Kind.LOSE_BROKERS, Kind.KILL, Kind.RESTART, Kind.CLOSE_ISOLATED}
)
"""Faults after which a request of the member may take long."""
_PAUSE = SECOND
"""Time after which an application that assigns by hand starts again."""
_RETURN = 10 * SECOND
"""Time after the last fault in which processes that were killed have started again."""
_REFRESH = 20 * SECOND
"""Time in which every member has seen which topics exist."""
_UNTIL_CLOSE = 30
"""Readings of the clock by a process until it waits for its assignment in `close`."""
_REST = 30 * SECOND
"""Time in which a group at rest must not rebalance."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a simulation.

    Attributes:
        scenario: The scenario.
        generations: Number of generations of the group.
        rebalances: Number of rebalances that members have completed, as each records them.
        delivered: Number of messages.
        virtual_seconds: Virtual time.
        events: Number of the scheduler's events.
        digest: Digest of the story; equal for equal runs.
        violation: The guarantee that was broken; None if all were kept.
        story: The story, if it was kept.
    """

    scenario: Scenario
    generations: int
    rebalances: int
    delivered: int
    virtual_seconds: float
    events: int
    digest: int
    violation: BrokenGuaranteeError | None
    story: Story


def play(scenario: Scenario, *, keep: bool = False) -> Outcome:
    """Play a scenario to its end, or until a guarantee is broken.

    Args:
        scenario: The scenario.
        keep: Whether to keep the story.
    """
    gc.disable()  # it takes a fifth of the time, and would run at other moments in a replay
    try:
        return _Player(scenario, keep=keep).play()
    finally:
        gc.enable()
        gc.collect()


class _Player:
    def __init__(self, scenario: Scenario, *, keep: bool) -> None:
        self._scenario = scenario
        self._scheduler = scheduler = Scheduler(scenario.seed)
        runtime.enter(scheduler)
        settings = GroupSettings(
            initial_rebalance_delay_ms=scenario.initial_delay // MS, min_session_timeout_ms=1_000
        )
        network = NetworkSettings(slow_share=scenario.slow_share)
        self._cluster = cluster = Cluster(
            scheduler, brokers=scenario.brokers, settings=settings, network=network
        )
        Librdkafka.cluster = Network.cluster = cluster
        self._story = Story(scheduler, keep=keep)
        self._guarantees = Guarantees(scheduler, cluster, scenario.session_timeout + LONGEST_CALLBACK)
        self._reports = Reports(scheduler, cluster, self._story, self._guarantees, self._read_again)
        cluster.on_answer = self._reports.answered
        scheduler.after_event = self._guarantees.check
        self._members: list[AnyMember] = []
        self._by_hand: dict[str, HandMember] = {}
        """Applications that assign by hand, each started again after its end."""
        self._random = scheduler.stream("player")
        self._producing = True

    def play(self) -> Outcome:
        scenario, scheduler = self._scenario, self._scheduler
        violation = None
        try:
            for name, partitions in scenario.topics:
                self._cluster.create_topic(name, partitions)
            for plan in scenario.members:
                scheduler.call_in(int(self._random.random() * SECOND), functools.partial(self._join, plan))
            for plan in scenario.by_hand:
                recovery = scenario.session_timeout
                self._reports.by_hand[plan.name] = HandGuarantees(
                    scheduler, self._cluster, recovery, plan.commits, self._guarantees
                )
                scheduler.call_in(int(self._random.random() * SECOND), functools.partial(self._read, plan))
            for fault in scenario.faults:
                scheduler.call_at(fault.at, functools.partial(self._make, fault))
            self._produce()
            scheduler.run_until(scenario.calm_at)
            self._calm()
            scheduler.run_until(scheduler.now + _RETURN)
            self._check_missing_topics()
            self._change_topics()
            self._settle()
            self._subscribe_again()
            self._settle()
        except (BrokenGuaranteeError, runtime.SpinError) as error:
            violation = _violation(error, scheduler.now)
            self._story.record("guarantee", f"BROKEN: {violation}")
        finally:
            for member in (*self._members, *self._by_hand.values()):
                member.kill()
            runtime.leave()
        return Outcome(
            scenario,
            self._guarantees.generations,
            self._guarantees.rebalances,
            self._guarantees.delivered_count,
            scheduler.now / SECOND,
            scheduler.events_run,
            self._story.digest,
            violation,
            self._story,
        )

    # --- The course of things

    def _produce(self) -> None:
        if self._producing:
            for name, topic in self._cluster.topics.items():
                self._cluster.produce(
                    name, self._random.randrange(len(topic.ends)), self._random.randint(1, 3)
                )
            self._scheduler.call_in(
                int(self._random.expovariate(1) * self._scenario.produce_interval), self._produce
            )

    def _calm(self) -> None:
        """End all faults."""
        self._story.record("player", "all faults end")
        self._producing = False
        for broker in self._cluster.brokers:
            self._cluster.start_broker(broker.number)
        for member in (*self._running(), *self._by_hand.values()):
            self._cluster.rejoin(member.process)
            member.resume_all()

    def _change_topics(self) -> None:
        """Grow a topic and create one, which the group must see by itself.

        Not before members that were started again are back: a static leader that is away meanwhile takes the
        topics as it finds them for those of the assignment, as Java's does (KIP-814).
        """
        name, size = next((name, len(topic.ends)) for name, topic in sorted(self._cluster.topics.items()))
        self._cluster.add_partitions(name, size + 1)
        if "returns" not in self._cluster.topics:
            self._cluster.create_topic("returns", 1)
        if not self._running():
            self._join(MemberPlan("last", strategy=self._scenario.members[0].strategy))

    def _check_missing_topics(self) -> None:
        """Check that members have reported the topic of their subscription that does not exist."""
        if "returns" in self._cluster.topics:
            return
        self._scheduler.run_until(self._scheduler.now + _REFRESH)
        for member in self._running():
            if (
                isinstance(member, RealMember)
                and "returns" in member.topics
                and "returns" not in member.missing
            ):
                self._break("a topic that does not exist is reported", f"{member.name} has reported none")
        # A static leader may have missed that another topic has grown; see `_change_topics`.
        self._settle(is_whole=False)

    def _subscribe_again(self) -> None:
        """Have a member subscribe again to the same topics, in a group at rest, with messages to come."""
        members = [member for member in self._running() if isinstance(member, RealMember)]
        if members:
            member = self._random.choice(members)
            self._story.record(member.name, "subscribes again")
            member.subscribe_to(member.topics)
            self._scheduler.run_until(self._scheduler.now + SECOND)
            for name, topic in self._cluster.topics.items():
                for number in range(len(topic.ends)):
                    self._cluster.produce(name, number, 1)

    def _settle(self, *, is_whole: bool = True) -> None:
        """Wait until the group is at rest, and check that it stays so.

        Args:
            is_whole: Whether each partition has an owner then; else the group only rebalances no more.
        """
        scenario, scheduler = self._scenario, self._scheduler
        # A member whose session ends unnoticed, or that is in a slow callback, holds up a rebalance for so
        # long; a deadlock would last for ever.
        bound = 3 * (scenario.max_poll_interval + scenario.session_timeout) + 150 * SECOND
        end, rest_since, generations = scheduler.now + bound, scheduler.now, -1
        while scheduler.now < rest_since + _REST:
            unsettled = self._unsettled() if is_whole else ""
            if unsettled or self._guarantees.generations != generations:
                rest_since, generations = scheduler.now, self._guarantees.generations
                if scheduler.now > end:
                    why = unsettled or "it rebalances without a cause"
                    self._break(
                        "the group comes to rest", f"{bound / SECOND:.0f} s after the last fault: {why}"
                    )
            scheduler.run_until(scheduler.now + SECOND)
        most = GENERATIONS_A_FAULT * (len(scenario.faults) + len(scenario.members) + 1)
        if self._guarantees.generations > most:
            self._break("no storms", f"{self._guarantees.generations} generations")

    def _unsettled(self) -> str:
        """Return in words why the group is not at rest, or nothing."""
        running = self._running()
        group = self._cluster.coordinator.group(GROUP)
        if group is None or group.state is not State.STABLE:
            return "the group does not exist" if group is None else f"the group is {group.state.value}"
        if len(group.members) != len(running):
            return f"the group has {len(group.members)} members, and {len(running)} run"
        ends = {}
        for name, topic in self._cluster.topics.items():
            readers = {member.name for member in running if self._reads(member, name)}
            if not readers:
                continue
            ends[name] = topic.ends
            for number in range(len(topic.ends)):
                owners = self._guarantees.owners((name, number))
                if len(owners) != 1:
                    return f"{name}[{number}] is owned by {owners}"
        missing = self._guarantees.unconsumed(ends)
        for name, member in self._by_hand.items():
            read = {
                topic: self._cluster.topics[topic].ends[:count]
                for topic, count in self._scenario.topics
                if topic in member.topics
            }
            missing += self._reports.by_hand[name].unconsumed(read)
        return f"not delivered: {', '.join(missing)}" if missing else ""

    @staticmethod
    def _reads(member: AnyMember, topic: str) -> bool:
        return any(name == topic or name.startswith("^") for name in member.topics)

    def _break(self, guarantee: str, detail: str) -> None:
        raise BrokenGuaranteeError(guarantee, detail, self._scheduler.now)

    def _running(self) -> list[AnyMember]:
        return [member for member in self._members if not member.ended and not member.closing]

    # --- Faults

    def _join(self, plan: MemberPlan) -> None:
        if len(self._running()) < self._scenario.largest_group:
            member: AnyMember
            if plan.client is Client.GROUPWRIGHT:
                member = RealMember(plan, self._scenario, self._scheduler, self._reports)
            else:
                member = ForeignMember(plan, self._scenario, self._scheduler, self._cluster, self._reports)
            self._members.append(member)
            self._story.record(plan.name, f"starts: {_words(plan)}")
            member.start()

    def _read(self, plan: MemberPlan) -> None:
        """Start an application that assigns by hand, again if it has ended."""
        member = HandMember(plan, self._scenario, self._scheduler, self._reports)
        self._by_hand[plan.name] = member
        self._story.record(plan.name, f"starts: assigns by hand, {_words(plan)}")
        if not self._producing:
            member.resume_all()
        member.start()

    def _read_again(self, member: HandMember) -> None:
        self._scheduler.call_in(_PAUSE, functools.partial(self._read, member.plan))

    def _restart(self, plan: MemberPlan, attempt: int) -> None:
        name = plan.name if plan.static else f"{plan.name.partition('-')[0]}-{attempt}"
        if not any(member.name == name for member in self._running()):
            self._join(replace(plan, name=name))

    def _make(self, fault: Fault) -> None:  # noqa: C901 - a case for each
        running = self._running()
        if fault.kind in OF_ANY:
            running += [each for each in self._by_hand.values() if not each.ended and not each.closing]
        member = running[fault.member % len(running)] if running else None
        cluster = self._cluster
        match fault.kind:
            case Kind.JOIN if fault.plan is not None:
                self._join(fault.plan)
            case Kind.MOVE:
                self._cluster_fault("the coordinator moves")
                cluster.move_coordinator()
            case Kind.STOP_BROKER | Kind.CRASH_BROKER | Kind.READDRESS_BROKER:
                clean = fault.kind is not Kind.CRASH_BROKER
                moves = fault.kind is Kind.READDRESS_BROKER
                number = fault.detail % len(cluster.brokers)
                self._cluster_fault(f"broker {number} {'shuts down' if clean else 'crashes'}")
                cluster.stop_broker(number, clean=clean)
                self._scheduler.call_in(
                    fault.duration, functools.partial(self._start_broker, number, moves=moves)
                )
            case Kind.GROW:
                name = sorted(cluster.topics)[fault.detail % len(cluster.topics)]
                size = min(_MOST_PARTITIONS, len(cluster.topics[name].ends) + 1)
                self._story.record("cluster", f"{name} grows to {size} partitions")
                cluster.add_partitions(name, size)
            case Kind.CREATE:
                if "returns" not in cluster.topics:
                    self._story.record("cluster", "returns is created")
                    cluster.create_topic("returns", 2)
            case Kind.DELETE:
                if "returns" in cluster.topics:
                    self._story.record("cluster", "returns is deleted")
                    self._guarantees.renewed("returns")
                    cluster.delete_topic("returns")
            case _ if member is not None:
                self._make_of(member, fault)

    def _start_broker(self, number: int, *, moves: bool) -> None:
        # Until now, a member that knows this broker alone could ask none.
        self._cluster_fault(f"broker {number} starts{' at another address' if moves else ''}")
        self._cluster.start_broker(number, moves=moves)

    def _cluster_fault(self, words: str) -> None:
        self._story.record("cluster", words)
        for guarantees in (self._guarantees, *self._reports.by_hand.values()):
            guarantees.record_fault()

    def _make_of(self, member: AnyMember, fault: Fault) -> None:  # noqa: C901 - a case for each
        kind = fault.kind
        self._story.record(member.name, f"{kind.value} {fault.duration / SECOND:.3f} s")
        self._reports.of(member).record_fault(member.name, cuts=kind in _CUTS)
        match kind:
            case Kind.CLOSE:
                member.close()
            case Kind.KILL | Kind.RESTART:
                member.kill()
                self._reports.of(member).killed(member)
                if isinstance(member, HandMember):
                    self._read_again(member)
                elif kind is Kind.RESTART:
                    again = functools.partial(self._restart, member.plan, len(self._members))
                    self._scheduler.call_in(fault.duration, again)
            case Kind.STOP if isinstance(member, RealMember) and fault.detail % 10 == 3:
                member.stop_and_close(fault.duration, _UNTIL_CLOSE + fault.detail)
            case Kind.STOP if isinstance(member, RealMember):
                soon = fault.detail % 2 == 0
                stop = member.process.stop_at_reading if soon else member.stop_after_assignment
                stop(fault.duration, fault.detail)
            case Kind.STOP:
                member.process.stop(fault.duration)
            case Kind.BUSY:
                member.be_busy(fault.duration)
            case Kind.CUT:
                self._cluster.cut(member.process)
            case Kind.ISOLATE:
                self._isolate(member, fault.duration)
            case Kind.EXPEL:
                self._expel(member)
            case _ if isinstance(member, RealMember):
                self._make_of_ours(member, fault)

    def _make_of_ours(self, member: RealMember, fault: Fault) -> None:  # noqa: C901 - as above
        match fault.kind:
            case Kind.CLOSE_BY_OTHER_THREAD:
                member.close_by_other_thread()
            case Kind.COMMIT_BY_OTHER_THREAD:
                member.commit_by_other_thread()
            case Kind.TWIN if member.plan.static:
                name = f"{member.name}-{len(self._members)}"
                instance = member.plan.instance or member.name
                self._join(replace(member.plan, name=name, instance=instance))
            case Kind.FORK:
                member.fork(fault.detail)
            case Kind.ENFORCE:
                member.orders.append(member.enforce_rebalance)
            case Kind.UNSUBSCRIBE:
                member.unsubscribe(fault.duration)
            case Kind.SUBSCRIBE:
                names = sorted(self._cluster.topics)
                member.subscribe_to(names[: 1 + fault.detail % len(names)])
            case Kind.SIGNAL:
                member.interrupt(fault.detail)
            case Kind.WAKE:
                member.wake_up()
            case Kind.CLOSE_ISOLATED:
                member.commit_by_other_thread()
                self._isolate(member, fault.duration)
                member.close()
            case Kind.LOSE_BROKERS:
                if member.consumer is not None and self._scenario.brokers > 1:
                    # It happens while brokers end, so that the coordinator is looked up again.
                    member.consumer.librdkafka.lost_brokers = True
                    self._cluster_fault("the coordinator moves")
                    self._cluster.move_coordinator()

    def _isolate(self, member: AnyMember, duration: int) -> None:
        def end() -> None:
            self._cluster.rejoin(member.process)
            # Its connections may stay half open for a while from here on, too.
            self._reports.of(member).record_fault(member.name)

        self._cluster.isolate(member.process)
        self._scheduler.call_in(duration, end)

    def _expel(self, member: AnyMember) -> None:
        """Remove a member as an administrator does."""
        group = self._cluster.coordinator.group(GROUP)
        mine = [each for each in (group.members if group else ()) if each.startswith(f"{member.name}-")]
        if mine:
            request = msg.LeaveGroupRequest(GROUP, (msg.LeavingMember(mine[0]),))
            admin = Process("admin", self._scheduler)
            broker = self._cluster.coordinator_broker
            if broker is not None:
                self._cluster.connect(
                    admin, broker, lambda link: link.send(request, _ignore), _nothing, _nothing
                )


def _violation(error: BaseException, now: int) -> BrokenGuaranteeError:
    if isinstance(error, BrokenGuaranteeError):
        return error
    return BrokenGuaranteeError("no thread spins", "one reads the clock, and never waits", now)


def _words(plan: MemberPlan) -> str:
    kind = f"{plan.client.value}, {'static, ' if plan.static else ''}{'/'.join(plan.strategy)}"
    return f"{kind}, topics {', '.join(plan.topics)}, commits {plan.commits.value}"


def _ignore(_response: object) -> None:
    pass


def _nothing() -> None:
    pass
