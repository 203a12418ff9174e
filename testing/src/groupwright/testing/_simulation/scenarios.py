"""Settings and scenarios of a simulated group, and the checks of both."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from math import isfinite
from numbers import Integral, Real

from groupwright.assignors import Assignor, RebalanceProtocol, by_name, check_member_assignor
from groupwright.testing._simulation.model_settings import Behaviour
from groupwright.testing._simulation.settings import KafkaVersion
from groupwright.testing.errors import SimulationError

_ENUMS: Mapping[str, type[Enum]] = {
    "client": Behaviour,
    "kafka_version": KafkaVersion,
    "rebalance_protocol": RebalanceProtocol,
}
_NUMBERS = (
    "session_timeout_ms",
    "heartbeat_interval_ms",
    "max_poll_interval_ms",
    "auto_commit_interval_ms",
    "initial_rebalance_delay_ms",
    "min_session_timeout_ms",
    "max_session_timeout_ms",
    "start_seconds",
    "stop_seconds",
    "ready_seconds",
    "messages_per_second",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Settings of a group's consumers, of its brokers and of its pods. Defaults are Kafka's.

    A pod runs one consumer.

    Attributes:
        assignor: `partition.assignment.strategy`: an assignor, or the name of a built-in one.
        rebalance_protocol: EAGER or COOPERATIVE (KIP-429); None for COOPERATIVE if the assignor supports it.
            With an assignor that does not, COOPERATIVE makes the leader withhold partitions that another
            member owns, as `groupwright.assignors.withhold_claimed` does.
        client: The consumers' client library, whose behaviour differs.
        static_membership: Whether each pod has a `group.instance.id`, which stays the same when it restarts.
        session_timeout_ms: `session.timeout.ms`.
        heartbeat_interval_ms: `heartbeat.interval.ms`.
        max_poll_interval_ms: `max.poll.interval.ms`.
        auto_commit_interval_ms: `auto.commit.interval.ms`.
        processing_ms: Shortest and longest time for which an application processes what a poll returns.
        initial_rebalance_delay_ms: The broker's `group.initial.rebalance.delay.ms`.
        min_session_timeout_ms: The broker's `group.min.session.timeout.ms`.
        max_session_timeout_ms: The broker's `group.max.session.timeout.ms`.
        kafka_version: Version of the brokers.
        brokers: Number of brokers.
        start_seconds: Time from a pod's start to its consumer's `subscribe`, up to a fifth more or less.
        stop_seconds: Time from the end of a consumer's `close`, which begins when the application has
            processed its messages, to the start of its pod's replacement, up to a fifth more or less.
        ready_seconds: Time from a consumer's `subscribe` until its pod counts as ready, and the next one may
            restart.
        messages_per_second: Messages that each partition gets.
    """

    assignor: Assignor | str = "range"
    rebalance_protocol: RebalanceProtocol | None = None
    client: Behaviour = Behaviour.JAVA
    static_membership: bool = False
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    auto_commit_interval_ms: int = 5_000
    processing_ms: tuple[float, float] = (1.0, 20.0)
    initial_rebalance_delay_ms: int = 3_000
    min_session_timeout_ms: int = 6_000
    max_session_timeout_ms: int = 1_800_000
    kafka_version: KafkaVersion = KafkaVersion.KAFKA_4_3
    brokers: int = 3
    start_seconds: float = 10.0
    stop_seconds: float = 2.0
    ready_seconds: float = 5.0
    messages_per_second: float = 1.0

    def __post_init__(self) -> None:
        """Check the settings.

        Raises:
            AssignorError: The assignor is not usable.
            SimulationError: No group can have these settings.
        """
        self._check_types()
        check_member_assignor(self.assignor_object())
        for name in ("session_timeout_ms", "heartbeat_interval_ms", "max_poll_interval_ms", "brokers"):
            _check(getattr(self, name) > 0, f"{name} is {getattr(self, name)}: set it to 1 or more")
        for name in ("auto_commit_interval_ms", "messages_per_second"):
            _check(getattr(self, name) > 0, f"{name} is {getattr(self, name)}: set it to more than 0")
        for name in ("start_seconds", "stop_seconds", "ready_seconds", "initial_rebalance_delay_ms"):
            _check(getattr(self, name) >= 0, f"{name} is {getattr(self, name)}: set it to 0 or more")
        session, heartbeat = self.session_timeout_ms, self.heartbeat_interval_ms
        _check(
            heartbeat < session,
            f"heartbeat_interval_ms is {heartbeat}, which is not below session_timeout_ms ({session}), so "
            "sessions expire between heartbeats: set it to a third of the session timeout",
        )
        low, high = self.min_session_timeout_ms, self.max_session_timeout_ms
        _check(
            low <= session <= high,
            f"session_timeout_ms is {session}, and brokers refuse all outside of {low} to {high}: change it, "
            "or min_session_timeout_ms and max_session_timeout_ms as on your brokers",
        )
        polls = self.max_poll_interval_ms
        _check(
            self.client is not Behaviour.LIBRDKAFKA or polls >= session,
            f"max_poll_interval_ms is {polls}, and librdkafka refuses less than session_timeout_ms, which is "
            f"{session}: raise it",
        )
        shortest, longest = self.processing_ms
        _check(
            0 <= shortest <= longest,
            f"processing_ms is ({shortest}, {longest}): set it to the shortest and the longest time",
        )

    def _check_types(self) -> None:
        _check(
            isinstance(self.assignor, str | Assignor),
            f"assignor is {self.assignor!r}: give an assignor object, or the name of a built-in one",
        )
        for name, kind in _ENUMS.items():
            value, choices = getattr(self, name), [f"{kind.__name__}.{each.name}" for each in kind]
            _check(
                isinstance(value, kind) or (value is None and name == "rebalance_protocol"),
                f"{name} is {value!r}: set it to {' or '.join(choices)}",
            )
        _check_whole("brokers", self.brokers)
        for name in _NUMBERS:
            _check_number(name, getattr(self, name))
        ends: object = self.processing_ms
        _check(
            isinstance(ends, Sequence) and len(ends) == 2,  # noqa: PLR2004 - two ends
            f"processing_ms is {self.processing_ms!r}: set it to the shortest and the longest time",
        )
        for value in self.processing_ms:
            _check_number("processing_ms", value)

    def assignor_object(self) -> Assignor:
        """Return the assignor, looked up if it was given by name.

        Raises:
            AssignorError: No assignor has this name.
        """
        return by_name(self.assignor) if isinstance(self.assignor, str) else self.assignor

    @property
    def is_cooperative(self) -> bool:
        """True if members keep their partitions while they join."""
        protocol = self.rebalance_protocol
        if protocol is None:
            return RebalanceProtocol.COOPERATIVE in self.assignor_object().protocols
        return protocol is RebalanceProtocol.COOPERATIVE


@dataclass(frozen=True, slots=True)
class RollingRestart:
    """All pods are replaced, some at a time.

    Attributes:
        at_once: Pods that restart at the same time.
        killed: Pods that are killed instead of closed, at random.
        waits_for_join: Whether a pod counts as ready only if its consumer has joined the group. The next pods
            restart when these are ready.
    """

    at_once: int = 1
    killed: int = 0
    waits_for_join: bool = False

    def check(self, pods: int) -> None:
        """Check the scenario for a group of this size.

        Raises:
            SimulationError: It is impossible.
        """
        _check_whole("at_once", self.at_once)
        _check_whole("killed", self.killed)
        _check(
            1 <= self.at_once <= pods,
            f"at_once is {self.at_once}: restart between 1 and all {pods} pods at once",
        )
        _check(0 <= self.killed <= pods, f"killed is {self.killed}: kill between none and all {pods} pods")


@dataclass(frozen=True, slots=True)
class Join:
    """More pods start.

    Attributes:
        members: Number of pods.
    """

    members: int = 1

    def check(self, pods: int) -> None:  # noqa: ARG002 - as the other scenarios
        """Check the scenario.

        Raises:
            SimulationError: It is impossible.
        """
        _check_whole("members", self.members)
        _check(self.members >= 1, f"members is {self.members}: let 1 or more pods join")


@dataclass(frozen=True, slots=True)
class Leave:
    """Pods stop for good; their consumers close.

    Attributes:
        members: Number of pods.
    """

    members: int = 1

    def check(self, pods: int) -> None:
        """Check the scenario for a group of this size.

        Raises:
            SimulationError: It is impossible.
        """
        _check_whole("members", self.members)
        _check(
            1 <= self.members < pods,
            f"members is {self.members}: let at least 1 of {pods} pods leave, and at least 1 stay",
        )


@dataclass(frozen=True, slots=True)
class Crash:
    """Pods are killed at the same time.

    Attributes:
        members: Number of pods.
        restarts: Whether they start again at once.
    """

    members: int = 1
    restarts: bool = True

    def check(self, pods: int) -> None:
        """Check the scenario for a group of this size.

        Raises:
            SimulationError: It is impossible.
        """
        _check_whole("members", self.members)
        most = pods if self.restarts else pods - 1
        _check(
            1 <= self.members <= most,
            f"members is {self.members}: let 1 to {most} of {pods} pods crash, so that a member is left",
        )


Scenario = RollingRestart | Join | Leave | Crash


def check(scenarios: Sequence[Scenario], pods: int, topics: Mapping[str, int]) -> None:
    """Check the size of a group, and scenarios that follow each other.

    Raises:
        SimulationError: A simulation is impossible.
    """
    _check_whole("pods", pods)
    _check(pods >= 1, f"pods is {pods}: a group needs 1 or more")
    _check(
        bool(topics), 'topics is empty: name the topics and their numbers of partitions, as {"orders": 12}'
    )
    _check(
        isinstance(topics, Mapping),
        f'topics is {topics!r}: name the topics and their numbers of partitions, as {{"orders": 12}}',
    )
    for topic, partitions in topics.items():
        _check_whole(f"the number of partitions of {topic!r}", partitions)
        _check(partitions >= 1, f"topic {topic!r} has {partitions} partitions: set 1 or more")
    _check(bool(scenarios), "there is no scenario: give one, such as RollingRestart()")
    for scenario in scenarios:
        _check(
            isinstance(scenario, Scenario),
            f"the scenario is {scenario!r}: give one, such as RollingRestart()",
        )
        scenario.check(pods)
        if isinstance(scenario, Join):
            pods += scenario.members
        elif isinstance(scenario, Leave) or (isinstance(scenario, Crash) and not scenario.restarts):
            pods -= scenario.members


def _check(holds: bool, message: str) -> None:  # noqa: FBT001 - reads as an assertion
    if not holds:
        raise SimulationError(message)


def _check_whole(name: str, value: object) -> None:
    _check(isinstance(value, Integral), f"{name} is {value!r}: set it to a whole number")


def _check_number(name: str, value: object) -> None:
    _check(isinstance(value, Real) and isfinite(value), f"{name} is {value!r}: set it to a finite number")
