"""A group of pods in virtual time, and the scenarios that are played with it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial

from groupwright.testing._simulation.classic_group import State
from groupwright.testing._simulation.cluster import Cluster
from groupwright.testing._simulation.group_ledger import GroupLedger, pod_of
from groupwright.testing._simulation.model_member import MemberState, ModelMember
from groupwright.testing._simulation.model_settings import MemberSettings
from groupwright.testing._simulation.results import Result
from groupwright.testing._simulation.scenarios import Crash, Join, Leave, RollingRestart, Scenario, Settings
from groupwright.testing._simulation.scheduler import MS, SECOND, Process, Scheduler
from groupwright.testing._simulation.settings import GroupSettings
from groupwright.testing.errors import SimulationError

GROUP = "group"
_STEP = 100 * MS
"""Time between two looks at the group."""
_MOST_REBALANCES = 1000
"""Rebalances, besides ten for each pod, after which a group counts as one that never becomes stable."""
_JITTER = 0.2
"""Share of a pod's start and stop times by which they vary."""


@dataclass(slots=True)
class _Pod:
    """A pod: `member` is None while it is down."""

    name: str
    starts: int = 0
    started: int = 0
    member: ModelMember | None = None


class SimulatedGroup:
    """A cluster, and pods with one consumer each."""

    def __init__(self, settings: Settings, pods: int, topics: Mapping[str, int], seed: int) -> None:
        """Start all pods, and wait until the group is stable.

        Raises:
            SimulationError: It does not become stable.
        """
        self._settings = settings
        self._topics = dict(topics)
        self._seed = seed
        self._scheduler = Scheduler(seed)
        self._random = self._scheduler.stream("pods")
        self._ledger = GroupLedger(self._scheduler, topics)
        self._cluster = Cluster(
            self._scheduler,
            brokers=settings.brokers,
            settings=GroupSettings(
                initial_rebalance_delay_ms=settings.initial_rebalance_delay_ms,
                min_session_timeout_ms=settings.min_session_timeout_ms,
                max_session_timeout_ms=settings.max_session_timeout_ms,
            ),
            version=settings.kafka_version,
        )
        self._cluster.on_coordinator = self._on_coordinator
        self._generation = self._generations = self._assigned_generation = 0
        self._last_action = 0
        self._produces = True
        for topic, partitions in self._topics.items():
            self._cluster.create_topic(topic, partitions)
        self._run(2 * SECOND)  # until all brokers know the topics
        self._produce()
        self._pods = [_Pod(f"pod-{number}") for number in range(pods)]
        for pod in self._pods:
            self._scheduler.call_in(int(self._random.random() * SECOND), partial(self._start, pod))
        self._run(2 * SECOND)
        self._settle()
        self._run(settings.auto_commit_interval_ms * MS)

    def play(self, scenarios: Sequence[Scenario]) -> Result:
        """Play scenarios one after the other; each begins when the group is stable.

        Raises:
            SimulationError: The group does not become stable again, or a member fails.
        """
        pods = len(self._pods)
        self._run_to_any_phase()
        self._ledger.begin()
        self._generations = 0
        consumed = self._ledger.consumed
        began = self._last_action = self._scheduler.now
        for number, scenario in enumerate(scenarios):
            if number:
                self._run_to_any_phase()
            match scenario:
                case RollingRestart():
                    self._rolling_restart(scenario)
                case Join():
                    self._join(scenario)
                case Leave():
                    self._leave(scenario)
                case Crash():
                    self._crash(scenario)
            self._settle()
        stable = self._ledger.last_change
        pauses = self._ledger.pauses()
        self._produces = False
        self._drain()
        return Result(
            scenario=", ".join(map(_name, scenarios)),
            seed=self._seed,
            pods=pods,
            rebalances=self._generations,
            moves=self._ledger.moves,
            min_moves=min(self._ledger.min_moves, self._ledger.moves),
            partitions=pauses,
            produced=self._produced() - consumed,
            delivered=self._ledger.delivered_total,
            delivered_twice=self._ledger.repeated,
            seconds=(self._last_action - began) / SECOND,
            stable_seconds=(stable - began) / SECOND,
        )

    # --- Scenarios

    def _rolling_restart(self, scenario: RollingRestart) -> None:
        order = self._pods[::-1]  # as a StatefulSet does
        killed = {pod.name for pod in self._random.sample(order, scenario.killed)}
        for first in range(0, len(order), scenario.at_once):
            batch = order[first : first + scenario.at_once]
            for pod in batch:
                self._replace(pod, kill=pod.name in killed)
            while not all(self._is_ready(pod, scenario) for pod in batch):
                self._run(_STEP)

    def _join(self, scenario: Join) -> None:
        new = [_Pod(f"pod-{len(self._pods) + number}") for number in range(scenario.members)]
        self._pods += new
        for pod in new:
            self._scheduler.call_in(self._vary(self._settings.start_seconds), partial(self._start, pod))
        while any(pod.member is None for pod in new):
            self._run(_STEP)

    def _leave(self, scenario: Leave) -> None:
        for _ in range(scenario.members):
            self._stop(self._pods.pop(), kill=False)

    def _crash(self, scenario: Crash) -> None:
        crashed = self._random.sample(self._pods, scenario.members)
        for pod in crashed:
            self._stop(pod, kill=True)
            if scenario.restarts:
                self._scheduler.call_in(self._vary(self._settings.start_seconds), partial(self._start, pod))
            else:
                self._pods.remove(pod)
        while scenario.restarts and any(pod.member is None for pod in crashed):
            self._run(_STEP)

    # --- Pods

    def _replace(self, pod: _Pod, *, kill: bool) -> None:
        """Stop a pod, and start it again when its consumer has closed and the pod has ended."""
        member = pod.member
        self._stop(pod, kill=kill)

        def start_once_closed() -> None:
            if member is None or kill or member.state is MemberState.ENDED:
                delay = self._vary(self._settings.stop_seconds) + self._vary(self._settings.start_seconds)
                self._scheduler.call_in(delay, partial(self._start, pod))
            else:
                self._scheduler.call_in(_STEP // 10, start_once_closed)

        start_once_closed()

    def _vary(self, seconds: float) -> int:
        return int(seconds * SECOND * (1 - _JITTER + 2 * _JITTER * self._random.random()))

    def _start(self, pod: _Pod) -> None:
        settings = self._settings
        shortest, longest = settings.processing_ms
        pod.starts += 1
        pod.started = self._last_action = self._scheduler.now
        pod.member = ModelMember(
            Process(f"{pod.name}.{pod.starts}", self._scheduler),
            self._cluster,
            MemberSettings(
                topics=tuple(self._topics),
                assignors=(settings.assignor_object(),),
                group_id=GROUP,
                group_instance_id=pod.name if settings.static_membership else None,
                behaviour=settings.client,
                cooperative=settings.is_cooperative,
                session_timeout=settings.session_timeout_ms * MS,
                heartbeat_interval=settings.heartbeat_interval_ms * MS,
                max_poll_interval=settings.max_poll_interval_ms * MS,
                auto_commit_interval=settings.auto_commit_interval_ms * MS,
                processing=(int(shortest * MS), int(longest * MS)),
            ),
            self._ledger,
        )

    def _stop(self, pod: _Pod, *, kill: bool) -> None:
        member, pod.member = pod.member, None
        self._last_action = self._scheduler.now
        if member is None:
            return
        if kill:
            member.process.kill()
            self._cluster.cut(member.process)
            self._ledger.killed(member.name)
        else:
            member.close()

    def _is_ready(self, pod: _Pod, scenario: RollingRestart) -> bool:
        ready = pod.started + int(self._settings.ready_seconds * SECOND)
        if pod.member is None or self._scheduler.now < ready:
            return False
        return not scenario.waits_for_join or pod.member.name in self._ledger.joined_members

    # --- Time

    def _run(self, duration: int) -> None:
        self._scheduler.run_until(self._scheduler.now + duration)
        if self._ledger.failures:
            raise SimulationError(f"a member has failed, {self._ledger.failures[0]}")

    def _run_to_any_phase(self) -> None:
        """Run for a random time, so that a scenario begins at any time between two heartbeats and commits."""
        longest = max(self._settings.auto_commit_interval_ms, self._settings.heartbeat_interval_ms)
        self._run(int(longest * MS * self._random.random()))

    def _settle(self) -> None:
        """Run until the group has been stable for two heartbeat intervals.

        Raises:
            SimulationError: That takes too much time, or too many rebalances.
        """
        settings = self._settings
        quiet = 2 * settings.heartbeat_interval_ms * MS
        limit = 10 * 60 * SECOND + 3 * (settings.session_timeout_ms + settings.max_poll_interval_ms) * MS
        began, generation = self._scheduler.now, self._generation
        while not self._is_stable() or self._scheduler.now < self._ledger.last_change + quiet:
            took, rebalances = self._scheduler.now - began, self._generation - generation
            if took > limit or rebalances > _MOST_REBALANCES + 10 * len(self._pods):
                raise SimulationError(
                    f"the group is not stable after {took // SECOND} s and {rebalances} rebalances: its "
                    "assignor may not converge, or processing_ms may be too long for max_poll_interval_ms or "
                    "session_timeout_ms"
                )
            self._run(_STEP)

    def _drain(self) -> None:
        """Run until all messages are consumed, or for twice as long as a poll may take and a minute."""
        deadline = self._scheduler.now + 60 * SECOND + 2 * int(self._settings.processing_ms[1] * MS)
        while self._ledger.consumed < self._produced() and self._scheduler.now < deadline:
            self._run(_STEP)

    def _produced(self) -> int:
        return sum(sum(topic.ends) for topic in self._cluster.topics.values())

    def _is_stable(self) -> bool:
        """Return whether the group's members are the live pods' consumers, and have their assignments."""
        group = self._cluster.coordinator.group(GROUP)
        members = [pod.member for pod in self._pods if pod.member is not None]
        return (
            group is not None
            and group.state is State.STABLE
            and len(group.members) == len(members) == len(self._pods)
            and all(
                member.state is MemberState.STABLE and member.generation == group.generation_id
                for member in members
            )
        )

    def _on_coordinator(self) -> None:
        """Count generations, and record the members of those that become Stable."""
        group = self._cluster.coordinator.group(GROUP)
        if group is None:
            return
        if group.generation_id > self._generation:
            self._generations += group.generation_id - self._generation
            self._generation = group.generation_id
        if group.state is State.STABLE and group.generation_id > self._assigned_generation:
            self._assigned_generation = group.generation_id
            self._ledger.generation_began(pod_of(member.client_id) for member in group.members.values())

    def _produce(self) -> None:
        if not self._produces:
            return
        for topic, partitions in self._topics.items():
            for partition in range(partitions):
                self._cluster.produce(topic, partition)
        self._scheduler.call_in(int(SECOND / self._settings.messages_per_second), self._produce)


def _name(scenario: Scenario) -> str:
    """Return a scenario as text, without what is left at its default."""
    changed = (
        f"{each.name}={getattr(scenario, each.name)}"
        for each in fields(scenario)
        if getattr(scenario, each.name) != each.default
    )
    return f"{type(scenario).__name__}({', '.join(changed)})"
