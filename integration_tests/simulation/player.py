"""Plays one scenario: members, a producer and troubles on a simulated cluster, held to the promises."""

import functools
import gc
from dataclasses import dataclass, replace

from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.classic_group import State
from groupwright.testing._simulation.cluster import Cluster
from groupwright.testing._simulation.messages import TopicPartition as Key
from groupwright.testing._simulation.scheduler import MS, SECOND, Process, Scheduler
from groupwright.testing._simulation.settings import GroupSettings
from simulation import runtime
from simulation.foreign import ForeignMember, commits_of
from simulation.handle import Librdkafka
from simulation.member import RealMember
from simulation.network import Network
from simulation.promises import GENERATIONS_A_TROUBLE, GROUP, BrokenPromiseError, Promises
from simulation.scenario import LONGEST_CALLBACK, Client, Kind, MemberPlan, Scenario, Trouble
from simulation.story import Story

AnyMember = RealMember | ForeignMember

_MOST_PARTITIONS = 8
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
        violation: The promise that was broken; None if all were kept.
        story: The story, if it was kept.
    """

    scenario: Scenario
    generations: int
    rebalances: int
    delivered: int
    virtual_seconds: float
    events: int
    digest: int
    violation: BrokenPromiseError | None
    story: Story


def play(scenario: Scenario, *, keep: bool = False) -> Outcome:
    """Play a scenario to its end, or until a promise is broken.

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
        self._cluster = cluster = Cluster(scheduler, brokers=scenario.brokers, settings=settings)
        Librdkafka.cluster = Network.cluster = cluster
        self._story = Story(scheduler, keep=keep)
        self._promises = Promises(scheduler, cluster, scenario.session_timeout + LONGEST_CALLBACK)
        cluster.on_answer = self._answered
        scheduler.after_event = self._promises.check
        self._members: list[AnyMember] = []
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
            for trouble in scenario.troubles:
                scheduler.call_at(trouble.at, functools.partial(self._make, trouble))
            self._produce()
            scheduler.run_until(scenario.calm_at)
            self._calm()
            self._settle()
        except BrokenPromiseError as broken:
            violation = broken
            self._story.tell("promise", f"BROKEN: {broken}")
        finally:
            for member in self._members:
                member.kill()
            runtime.leave()
        return Outcome(
            scenario,
            self._promises.generations,
            self._promises.rebalances,
            self._promises.delivered_count,
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
        """End all troubles."""
        self._story.tell("player", "all troubles end")
        self._producing = False
        for broker in self._cluster.brokers:
            self._cluster.start_broker(broker.number)
        for member in self._running():
            self._cluster.rejoin(member.process)
            member.resume_all()
        if not self._running():
            self._join(MemberPlan("last", strategy=self._scenario.members[0].strategy))

    def _settle(self) -> None:
        """Wait until the group is at rest, and check that it stays so."""
        scenario, scheduler = self._scenario, self._scheduler
        # A member whose session ends unnoticed, or that is in a slow callback, holds up a rebalance for so
        # long; a deadlock would last for ever.
        bound = 3 * (scenario.max_poll_interval + scenario.session_timeout) + 150 * SECOND
        end, rest_since, generations = scheduler.now + bound, scheduler.now, -1
        while scheduler.now < rest_since + _REST:
            unsettled = self._unsettled()
            if unsettled or self._promises.generations != generations:
                rest_since, generations = scheduler.now, self._promises.generations
                if scheduler.now > end:
                    why = unsettled or "it rebalances without a cause"
                    self._break(
                        "the group comes to rest", f"{bound / SECOND:.0f} s after the last trouble: {why}"
                    )
            scheduler.run_until(scheduler.now + SECOND)
        most = GENERATIONS_A_TROUBLE * (len(scenario.troubles) + len(scenario.members) + 1)
        if self._promises.generations > most:
            self._break("no storms", f"{self._promises.generations} generations")

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
                owners = self._promises.owners((name, number))
                if len(owners) != 1:
                    return f"{name}[{number}] is owned by {owners}"
        missing = self._promises.unconsumed(ends)
        return f"not delivered: {', '.join(missing)}" if missing else ""

    @staticmethod
    def _reads(member: AnyMember, topic: str) -> bool:
        return any(name == topic or name.startswith("^") for name in member.topics)

    def _break(self, promise: str, detail: str) -> None:
        raise BrokenPromiseError(promise, detail, self._scheduler.now)

    def _running(self) -> list[AnyMember]:
        return [member for member in self._members if not member.ended and not member.closing]

    # --- Troubles

    def _join(self, plan: MemberPlan) -> None:
        if len(self._running()) < self._scenario.largest_group:
            member: AnyMember
            if plan.client is Client.GROUPWRIGHT:
                member = RealMember(plan, self._scenario, self._scheduler, self)
            else:
                member = ForeignMember(plan, self._scenario, self._scheduler, self._cluster, self)
            self._members.append(member)
            self._story.tell(plan.name, f"starts: {_words(plan)}")
            member.start()

    def _restart(self, plan: MemberPlan, attempt: int) -> None:
        name = plan.name if plan.static else f"{plan.name.partition('-')[0]}-{attempt}"
        if not any(member.name == name for member in self._running()):
            self._join(replace(plan, name=name))

    def _make(self, trouble: Trouble) -> None:
        running = self._running()
        member = running[trouble.member % len(running)] if running else None
        cluster = self._cluster
        match trouble.kind:
            case Kind.JOIN if trouble.plan is not None:
                self._join(trouble.plan)
            case Kind.MOVE:
                self._cluster_trouble("the coordinator moves")
                cluster.move_coordinator()
            case Kind.STOP_BROKER | Kind.CRASH_BROKER:
                clean = trouble.kind is Kind.STOP_BROKER
                number = trouble.detail % len(cluster.brokers)
                self._cluster_trouble(f"broker {number} {'shuts down' if clean else 'crashes'}")
                cluster.stop_broker(number, clean=clean)
                self._scheduler.call_in(trouble.duration, lambda: cluster.start_broker(number))
            case Kind.GROW:
                name = sorted(cluster.topics)[trouble.detail % len(cluster.topics)]
                size = min(_MOST_PARTITIONS, len(cluster.topics[name].ends) + 1)
                self._story.tell("cluster", f"{name} grows to {size} partitions")
                cluster.add_partitions(name, size)
            case Kind.CREATE:
                if "returns" not in cluster.topics:
                    self._story.tell("cluster", "returns is created")
                    cluster.create_topic("returns", 2)
            case Kind.DELETE:
                if "returns" in cluster.topics:
                    self._story.tell("cluster", "returns is deleted")
                    self._promises.renewed("returns")
                    cluster.delete_topic("returns")
            case _ if member is not None:
                self._make_of(member, trouble)

    def _cluster_trouble(self, words: str) -> None:
        self._story.tell("cluster", words)
        self._promises.troubled()

    def _make_of(self, member: AnyMember, trouble: Trouble) -> None:  # noqa: C901 - a case for each
        kind = trouble.kind
        self._story.tell(member.name, f"{kind.value} {trouble.duration / SECOND:.3f} s")
        self._promises.troubled(member.name)
        match kind:
            case Kind.CLOSE:
                member.close()
            case Kind.KILL | Kind.RESTART:
                member.kill()
                self._promises.killed(member)
                if kind is Kind.RESTART:
                    again = functools.partial(self._restart, member.plan, len(self._members))
                    self._scheduler.call_in(trouble.duration, again)
            case Kind.STOP if isinstance(member, RealMember):
                soon = trouble.detail % 2 == 0
                stop = member.process.stop_at_reading if soon else member.stop_after_assignment
                stop(trouble.duration, trouble.detail)
            case Kind.STOP:
                member.process.stop(trouble.duration)
            case Kind.BUSY:
                member.be_busy(trouble.duration)
            case Kind.CUT:
                self._cluster.cut(member.process)
            case Kind.ISOLATE:
                self._cluster.isolate(member.process)
                self._scheduler.call_in(trouble.duration, lambda: self._cluster.rejoin(member.process))
            case Kind.EXPEL:
                self._expel(member)
            case _ if isinstance(member, RealMember):
                self._make_of_ours(member, trouble)

    def _make_of_ours(self, member: RealMember, trouble: Trouble) -> None:
        match trouble.kind:
            case Kind.CLOSE_BY_OTHER_THREAD:
                member.close_by_other_thread()
            case Kind.ENFORCE:
                member.orders.append(member.enforce_rebalance)
            case Kind.UNSUBSCRIBE:
                member.unsubscribe(trouble.duration)
            case Kind.SUBSCRIBE:
                names = sorted(self._cluster.topics)
                member.subscribe_to(names[: 1 + trouble.detail % len(names)])
            case Kind.SIGNAL:
                member.interrupt(trouble.detail)
            case Kind.WAKE:
                if member.consumer is not None:
                    member.consumer.wakeup()
            case Kind.LOSE_BROKERS:
                if member.consumer is not None and self._scenario.brokers > 1:
                    # It happens while brokers end, so that the coordinator is looked up again.
                    member.consumer.librdkafka.lost_brokers = True
                    self._cluster_trouble("the coordinator moves")
                    self._cluster.move_coordinator()

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

    # --- What members and the coordinator report

    def _answered(self, process: Process, request: msg.Request, response: msg.Response) -> None:
        self._promises.answered(process, request, response)
        match request, response:
            case msg.JoinGroupRequest(), msg.JoinGroupResponse():
                why = getattr(process, "reason", "")
                self._story.tell(process.name, f"JoinGroup ({why}): {_join_words(response)}")
            case msg.HeartbeatRequest(), msg.HeartbeatResponse() if not response.error:
                pass
            case msg.OffsetCommitRequest(), msg.OffsetCommitResponse():
                offsets = {key: each.offset for key, each in request.offsets}
                told = ", ".join(
                    f"{key[0]}[{key[1]}]={offsets[key]} {e.name}" for key, e in response.partitions
                )
                self._story.tell(process.name, f"OffsetCommit: {told}")
            case msg.LeaveGroupRequest(), _:
                self._story.tell(process.name, "LeaveGroup")
            case _:
                error = getattr(response, "error", None)
                what = type(request).__name__.removesuffix("Request")
                self._story.tell(process.name, f"{what}: {'' if error is None else error.name}")

    def assigned(self, member: AnyMember, partitions: list[Key]) -> None:
        """See `Observer`."""
        if not member.ended:
            self._story.tell(member.name, f"on_assign {_names(partitions)}")
            self._promises.assigned(member, partitions)

    def revoked(self, member: AnyMember, partitions: list[Key], *, lost: bool) -> None:
        """See `Observer`."""
        if not member.ended:
            self._story.tell(member.name, f"{'on_lost' if lost else 'on_revoke'} {_names(partitions)}")
            self._promises.revoked(member, partitions, lost=lost, commits=commits_of(member.plan))

    def delivered(self, member: AnyMember, topic_id: int, key: Key, offset: int) -> None:
        """See `Observer`."""
        if not member.ended:
            del topic_id
            self._story.tell(member.name, f"gets {key[0]}[{key[1]}]@{offset}")
            self._promises.delivered(member, key, offset, session_until=member.session_until)

    def reached_end(self, member: AnyMember, key: Key, offset: int, *, paused: bool) -> None:
        """See `Observer`."""
        if not member.ended:
            self._story.tell(member.name, f"gets the end of {key[0]}[{key[1]}]@{offset}")
            self._promises.reached_end(member, key, offset, paused=paused)

    def sought(self, member: AnyMember, key: Key, offset: int) -> None:
        """See `Observer`."""
        if not member.ended:
            self._story.tell(member.name, f"seeks {key[0]}[{key[1]}] to {offset}")
            self._promises.sought(member, key, offset)

    def moved(self, member: AnyMember, key: Key, offset: int) -> None:
        """See `Observer`."""
        if not member.ended:
            self._story.tell(
                member.name, f"librdkafka moves {key[0]}[{key[1]}] to {offset}, by a late answer"
            )
            self._promises.moved(member, key, offset)

    def start_of(self, key: Key) -> int:
        """See `Observer`."""
        return max(0, self._cluster.coordinator.committed(GROUP, key))

    def asked(self, member: AnyMember) -> None:
        """See `Observer`."""
        if not member.ended:
            self._promises.asked(member)

    def committed_unknown(self, member: AnyMember, error: str | None, duration: int) -> None:
        """See `Observer`."""
        if not member.ended:
            took = f"{duration / SECOND:.3f} s"
            self._story.tell(member.name, f"commit of an unknown topic: {error} after {took}")
            self._promises.committed_unknown(member, error, duration)

    def committed(self, member: AnyMember, offsets: dict[Key, int], error: str | None) -> None:
        """See `Observer`."""
        if not member.ended:
            told = error or ", ".join(
                f"{key[0]}[{key[1]}]={offset}" for key, offset in sorted(offsets.items())
            )
            self._story.tell(member.name, f"commit ended: {told}")
            self._promises.committed(member, offsets, error)

    def said(self, member: AnyMember, words: str) -> None:
        """See `Observer`."""
        if not member.ended:
            self._story.tell(member.name, words)

    def closed(self, member: AnyMember, error: str | None) -> None:
        """See `Observer`."""
        self._story.tell(member.name, f"has closed{'' if error is None else f' with {error}'}")
        if error is not None:
            self._break("an application gets no error that it does not expect", f"{member.name}: {error}")
        self._promises.closed(member)

    def failed(self, member: ForeignMember) -> None:
        """Forget a member of another client that has ended with an error."""
        self._promises.killed(member)


def _words(plan: MemberPlan) -> str:
    kind = f"{plan.client.value}, {'static, ' if plan.static else ''}{'/'.join(plan.strategy)}"
    return f"{kind}, topics {', '.join(plan.topics)}, commits {plan.commits.value}"


def _join_words(response: msg.JoinGroupResponse) -> str:
    if response.error:
        return response.error.name
    return f"{'leads' if response.members else 'joins'} generation {response.generation_id}"


def _names(partitions: list[Key]) -> str:
    return ", ".join(f"{topic}[{number}]" for topic, number in partitions) or "nothing"


def _ignore(_response: object) -> None:
    pass


def _nothing() -> None:
    pass
