"""Plays many programs at once on one broker, tries differences again, and makes them small."""

import asyncio
import contextlib
import itertools
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from groupwright.testing import LocalKafka
from groupwright.testing._kafka.settings import Setting
from groupwright.testing._simulation.settings import GroupSettings, KafkaVersion
from integration_tests.coordinator_model.connections import BrokerNetwork
from integration_tests.coordinator_model.player import DifferenceError, Player
from integration_tests.coordinator_model.programs import PARTITIONS, TOPICS, Program, Restart

MAX_SIZE = 4
_AT_ONCE = 150
_CHECK_INTERVAL_MS = 7 * 24 * 3600 * 1000
_TRIES = 3
_LATE_TRIES = 4


@dataclass(frozen=True, slots=True)
class Difference:
    """A program whose answers differ, and what differed."""

    program: Program
    position: int
    """The step at which it differs."""
    lines: tuple[str, ...]

    def words(self) -> str:
        """Return the program in words, and both sides' answers."""
        return "\n".join([f"--- {self.program.name}", *self.program.words(), *self.lines])


@dataclass(slots=True)
class Outcome:
    """Results of played programs."""

    agreed: int = 0
    raced: int = 0
    """Of those that agreed: ended early, because two timers ended at the same time."""
    late: int = 0
    """Plays that differed after late answers, and were played again."""
    uncertain: list[Difference] = field(default_factory=list)
    """Differences after late answers that came in every play."""
    slowest: float = 0.0
    """Longest time in seconds that the broker took to answer at once."""
    steps: int = 0
    requests: int = 0
    once: list[Difference] = field(default_factory=list)
    """Differences that did not come again when the program was played again."""
    differences: list[Difference] = field(default_factory=list)

    def add(self, other: "Outcome") -> None:
        """Add the counts of another outcome."""
        self.agreed += other.agreed
        self.raced += other.raced
        self.late += other.late
        self.slowest = max(self.slowest, other.slowest)
        self.steps += other.steps
        self.requests += other.requests
        self.uncertain += other.uncertain
        self.once += other.once
        self.differences += other.differences

    def __str__(self) -> str:
        return (
            f"{self.agreed} programs agreed ({self.raced} ended early by a race of timers), "
            f"{self.steps} steps, {self.requests} requests, slowest answer {self.slowest:.2f} s, "
            f"{self.late} plays too late to count, "
            f"{len(self.uncertain)} programs always too late; {len(self.once)} differed once and not again, "
            f"{len(self.differences)} differ"
        )


def settings(initial_delay_ms: int, pace: float = 1.0) -> GroupSettings:
    """Return the settings with which the programs run."""
    return GroupSettings(
        initial_rebalance_delay_ms=int(initial_delay_ms * pace),
        min_session_timeout_ms=1,
        max_size=MAX_SIZE,
        offsets_retention_check_interval_ms=_CHECK_INTERVAL_MS,
    )


def broker_config(group: GroupSettings) -> Mapping[str, Setting]:
    """Return the broker settings that the model's settings stand for."""
    return {
        "group.initial.rebalance.delay.ms": group.initial_rebalance_delay_ms,
        "group.min.session.timeout.ms": group.min_session_timeout_ms,
        "group.max.session.timeout.ms": group.max_session_timeout_ms,
        "group.max.size": group.max_size,
        "offsets.retention.check.interval.ms": group.offsets_retention_check_interval_ms,
        "group.coordinator.append.linger.ms": 0,
    }


def model_version(kafka: str) -> KafkaVersion:
    """Return the model's version for a version of Kafka."""
    return KafkaVersion.KAFKA_3_9 if kafka.startswith("3.") else KafkaVersion.KAFKA_4_3


class Runner:
    """Plays programs on a running broker."""

    def __init__(
        self, kafka: LocalKafka, group: GroupSettings, at_once: int = _AT_ONCE, pace: float = 1.0
    ) -> None:
        self._kafka = kafka
        self._settings = group
        self._version = model_version(kafka.version)
        self._at_once = at_once
        self._pace = pace
        self._numbers = itertools.count()
        self._run = uuid.uuid4().hex[:8]

    def create_topics(self) -> None:
        """Create the topics of the programs' commits."""
        for topic in TOPICS:
            self._kafka.create_topic(topic, PARTITIONS)

    async def run(self, programs: Sequence[Program]) -> Outcome:
        """Play programs side by side, and play those again that differ or whose answers came too late."""
        outcome = await self._play_all(programs)
        for _ in range(_LATE_TRIES):
            outcome.late += len(outcome.uncertain)
            again = await self._play_all([difference.program for difference in outcome.uncertain])
            outcome.uncertain = []
            outcome.add(again)
        suspects, outcome.differences = outcome.differences, []
        for _ in range(_TRIES - 1):
            again = await self._play_all([suspect.program for suspect in suspects])
            outcome.differences += again.differences
            differing = {difference.program for difference in again.differences}
            suspects = [suspect for suspect in suspects if suspect.program not in differing]
        outcome.once = suspects
        return outcome

    async def _play_all(self, programs: Sequence[Program]) -> Outcome:
        outcome = Outcome()
        limit = asyncio.Semaphore(self._at_once)
        barrier = _Barrier(sum(map(_restarts, programs)), self._restart)

        async def play(program: Program) -> None:
            # Programs with a restart wait for one another.
            async with contextlib.nullcontext() if _restarts(program) else limit:
                turn = _Turn(barrier)
                outcome.add(await self._play(program, turn.arrive))
                if _restarts(program):
                    await turn.leave()

        await asyncio.gather(*(play(program) for program in programs))
        return outcome

    async def shrink(self, difference: Difference) -> Difference:
        """Leave out steps while the program still differs."""
        while True:
            # All shorter programs are tried at once. Steps near the end matter least.
            steps = range(len(difference.program.steps))
            outcome = await self._play_all([difference.program.without(step) for step in steps])
            if not outcome.differences:
                return difference
            difference = min(outcome.differences, key=lambda found: found.position)

    async def _play(self, program: Program, restart: Callable[[], Awaitable[None]]) -> Outcome:
        player = Player(
            program,
            f"{self._run}-{next(self._numbers)}",
            BrokerNetwork(self._kafka.bootstrap_servers),
            self._settings,
            self._version,
            restart,
            self._pace,
        )
        outcome = Outcome()
        try:
            await player.play()
            outcome.agreed = 1
            outcome.raced = player.raced
        except DifferenceError as error:
            found = Difference(program, player.played, tuple(error.lines))
            (outcome.uncertain if player.late else outcome.differences).append(found)
        except OSError as error:  # a timeout, or a lost connection
            lines = (f"at step {player.played}", repr(error))
            outcome.uncertain.append(Difference(program, player.played, lines))
        outcome.steps, outcome.requests, outcome.slowest = player.played, player.requests, player.slowest
        return outcome

    async def _restart(self) -> None:
        await asyncio.to_thread(self._kafka.restart)


def _restarts(program: Program) -> bool:
    return any(isinstance(step, Restart) for step in program.steps)


class _Barrier:
    """Lets all programs with a restart wait for one another, so that the broker restarts once for all."""

    def __init__(self, count: int, restart: Callable[[], Awaitable[None]]) -> None:
        self._missing = count
        self._restart = restart
        self.restarted = asyncio.Event()

    async def count_down(self) -> None:
        self._missing -= 1
        if self._missing == 0:
            await self._restart()
            self.restarted.set()


class _Turn:
    """One program at the barrier. It counts once, even if it ends before its restart."""

    def __init__(self, barrier: _Barrier) -> None:
        self._barrier = barrier
        self._counted = False

    async def arrive(self) -> None:
        await self.leave()
        await self._barrier.restarted.wait()

    async def leave(self) -> None:
        if not self._counted:
            self._counted = True
            await self._barrier.count_down()
