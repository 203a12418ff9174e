"""Sequences of requests by several members of one group, and their generation from a seed."""

import random
from dataclasses import dataclass, replace
from enum import Enum

TOPICS = ("orders", "payments")
PARTITIONS = 2


class MemberId(Enum):
    """The member id in a request."""

    OWN = "its id"
    NONE = "no id"
    FORMER = "an id it had before"
    UNKNOWN = "an unknown id"
    OTHERS = "another member's id"


class Generation(Enum):
    """The generation in a request."""

    OWN = "its generation"
    NONE = "generation -1"
    OLDER = "the generation before"
    NEWER = "the generation after"


class Plan(Enum):
    """The members in the leader's assignments."""

    ALL = "all members"
    SOME = "some members"
    NONE = "no member"


class Names(Enum):
    """The protocol type and name in a SyncGroup."""

    OWN = "the chosen protocol"
    OTHER = "another protocol"
    MISSING = "no protocol"


@dataclass(frozen=True, slots=True)
class Actor:
    """A client: the settings of its requests."""

    instance_id: str | None = None
    protocol_type: str = "consumer"
    protocols: tuple[str, ...] = ("range",)
    topics: tuple[str, ...] = ("orders",)
    session_ms: int = 30_000
    rebalance_ms: int = 40_000


@dataclass(frozen=True, slots=True)
class Join:
    actor: int
    member_id: MemberId = MemberId.OWN
    version: int = 9
    protocols: tuple[str, ...] | None = None
    """In place of the actor's, from now on."""
    topics: tuple[str, ...] | None = None
    """In place of the actor's, from now on; with no topics, the metadata is no subscription."""
    session_ms: int | None = None
    """In place of the actor's, for this request."""
    only_if_idle: bool = True
    """True if the step is left out while another request of the actor is parked."""


@dataclass(frozen=True, slots=True)
class Sync:
    actor: int
    member_id: MemberId = MemberId.OWN
    generation: Generation = Generation.OWN
    plan: Plan = Plan.ALL
    names: Names = Names.OWN
    version: int = 5
    only_if_idle: bool = True


@dataclass(frozen=True, slots=True)
class Heartbeat:
    actor: int
    member_id: MemberId = MemberId.OWN
    generation: Generation = Generation.OWN


@dataclass(frozen=True, slots=True)
class Leave:
    actors: tuple[int, ...]
    member_id: MemberId = MemberId.OWN
    by_instance: bool = True
    """True if static members name their instance."""


@dataclass(frozen=True, slots=True)
class Commit:
    actor: int
    member_id: MemberId = MemberId.OWN
    generation: Generation = Generation.OWN
    too_large: bool = False
    """True if one of the offsets has too much metadata."""
    version: int = 9


@dataclass(frozen=True, slots=True)
class Fetch:
    pass


@dataclass(frozen=True, slots=True)
class DeleteOffsets:
    pass


@dataclass(frozen=True, slots=True)
class Describe:
    pass


@dataclass(frozen=True, slots=True)
class Delete:
    pass


@dataclass(frozen=True, slots=True)
class Wait:
    seconds: float


@dataclass(frozen=True, slots=True)
class Restart:
    pass


Step = Join | Sync | Heartbeat | Leave | Commit | Fetch | DeleteOffsets | Describe | Delete | Wait | Restart


@dataclass(frozen=True, slots=True)
class Program:
    """A sequence of steps of the clients of one group."""

    name: str
    actors: tuple[Actor, ...]
    steps: tuple[Step, ...]

    def without(self, position: int) -> "Program":
        """Return the program without one step."""
        return replace(self, steps=self.steps[:position] + self.steps[position + 1 :])

    def words(self) -> list[str]:
        """Return the program in words, one line an actor or a step."""
        actors = [f"actor {number}: {_fields(actor, Actor())}" for number, actor in enumerate(self.actors)]
        return actors + [f"{number:2}. {step_words(step)}" for number, step in enumerate(self.steps)]


def step_words(step: Step) -> str:
    """Return a step in words."""
    return f"{type(step).__name__.lower()} {_fields(step, None)}".strip()


def _fields(value: object, default: object) -> str:
    found = []
    for name in value.__slots__:  # type: ignore[attr-defined]
        content = getattr(value, name)
        usual = getattr(default, name, None) if default else type(value).__dataclass_fields__[name].default  # type: ignore[attr-defined]
        if content != usual:
            shown = content.value if isinstance(content, Enum) else content
            found.append(f"{name.replace('_', ' ')} {shown}")
    return ", ".join(found) or ("the defaults" if default else "")


# --- Generation

_PROTOCOLS = (
    ("range",),
    ("roundrobin", "range"),
    ("range", "roundrobin"),
    ("sticky", "range", "roundrobin"),
    ("cooperative-sticky", "range"),
)
_SESSIONS = (1_000, 2_000, 30_000, 30_000)
_REBALANCES = (1_500, 2_600, 40_000)
_LONG_SESSIONS = (20_000, 120_000)
RESTART_WAIT = 26.0
"""Longer than the shorter session timeout of programs with a restart, by more than a restart takes."""


def generate(seed: int, *, restart: bool = False) -> Program:
    """Return a random program.

    Args:
        seed: The same seed gives the same program.
        restart: Whether the broker restarts in the middle. Timeouts are then so long that none ends
            before the last step.
    """
    chance = random.Random(f"{seed} {restart}")  # noqa: S311 - no secret
    return _Generator(chance, restart=restart).program(f"seed {seed}")


class _Generator:
    def __init__(self, chance: random.Random, *, restart: bool) -> None:
        self._chance = chance
        self._restart = restart
        self._actors = tuple(self._actor(number) for number in range(chance.randint(1, 5)))

    def program(self, name: str) -> Program:
        steps: list[Step] = []
        if self._chance.random() < 0.9:
            steps += self._enrol(self._some(), again=True)
            steps += self._round()
        for _ in range(self._chance.randint(3, 9)):
            steps += self._fragment()
        if self._restart:
            position = self._chance.randint(len(steps) // 3, len(steps))
            steps = [*steps[:position], Restart(), *steps[position:]]
            steps += [Describe(), Fetch(), Wait(RESTART_WAIT)]
        return Program(name, self._actors, (*steps, Describe(), Fetch()))

    def _actor(self, number: int) -> Actor:
        chance = self._chance
        static = chance.random() < 0.35
        return Actor(
            # Sometimes two actors have the same instance id.
            f"instance{chance.choice((number, number, number, 0))}" if static else None,
            "connect" if chance.random() < 0.08 else "consumer",
            chance.choice(_PROTOCOLS),
            self._topics(),
            chance.choice(_LONG_SESSIONS if self._restart else _SESSIONS),
            60_000 if self._restart else chance.choice(_REBALANCES),
        )

    def _topics(self) -> tuple[str, ...]:
        return self._chance.choice((("orders",), ("orders",), ("orders", "payments"), ()))

    def _some(self) -> list[int]:
        count = self._chance.randint(1, len(self._actors))
        return self._chance.sample(range(len(self._actors)), count)

    def _one(self) -> int:
        return self._chance.randrange(len(self._actors))

    def _fragment(self) -> list[Step]:
        chance = self._chance
        fragments = (
            (4, lambda: self._enrol(self._some(), again=chance.random() < 0.9)),
            (6, self._round),
            (2, lambda: [Join(actor) for actor in self._some()]),
            (3, lambda: [Sync(actor) for actor in self._some()]),
            (2, lambda: [Wait(chance.choice((0.1, 0.3) if self._restart else (0.3, 0.9, 1.2, 1.8, 2.4)))]),
            (12, lambda: [self._noise()]),
            (3, lambda: [Describe()]),
        )
        weights = [weight for weight, _ in fragments]
        (_, fragment) = chance.choices(fragments, weights)[0]
        made: list[Step] = list(fragment())
        return made

    def _enrol(self, actors: list[int], *, again: bool) -> list[Step]:
        """Let actors join; a dynamic member joins again with the id that it is given."""
        steps: list[Step] = []
        for actor in actors:
            version = 9 if again or self._chance.random() < 0.5 else 3
            steps.append(Join(actor, version=version))
            if again and self._actors[actor].instance_id is None:
                steps.append(Join(actor))
        return steps

    def _round(self) -> list[Step]:
        """Let all members join and sync, as in a rebalance without a fault; in any order."""
        everyone = list(range(len(self._actors)))
        self._chance.shuffle(everyone)
        joins: list[Step] = [Join(actor) for actor in everyone]
        self._chance.shuffle(everyone)
        return [*joins, *(Sync(actor) for actor in everyone)]

    def _noise(self) -> Step:
        chance = self._chance
        makers = (
            (5, self._odd_join),
            (4, self._odd_sync),
            (4, lambda: Heartbeat(self._one(), self._id(), self._generation())),
            (4, self._leave),
            (4, self._commit),
            (1, Fetch),
            (1, DeleteOffsets),
            (1, Describe),
            (1, Delete),
        )
        (_, maker) = chance.choices(makers, [weight for weight, _ in makers])[0]
        made: Step = maker()
        return made

    def _odd_join(self) -> Join:
        chance = self._chance
        changes = chance.random() < 0.4
        odd_session = chance.random() < 0.1
        return Join(
            self._one(),
            self._id(),
            chance.choice((9, 9, 9, 8, 5, 3)),
            protocols=chance.choice((*_PROTOCOLS, ())) if changes else None,
            topics=self._topics() if changes else None,
            session_ms=chance.choice((0, 4_000_000)) if odd_session else None,
            only_if_idle=chance.random() < 0.6,
        )

    def _odd_sync(self) -> Sync:
        chance = self._chance
        return Sync(
            self._one(),
            self._id(),
            self._generation(),
            chance.choice(tuple(Plan)),
            chance.choice((Names.OWN, Names.OWN, Names.OTHER, Names.MISSING)),
            chance.choice((5, 5, 3)),
            only_if_idle=chance.random() < 0.6,
        )

    def _leave(self) -> Leave:
        count = self._chance.choice((1, 1, 2, 3))
        actors = self._some()[:count]
        return Leave(tuple(actors), self._id(), self._chance.random() < 0.7)

    def _commit(self) -> Commit:
        chance = self._chance
        if chance.random() < 0.25:
            return Commit(self._one(), MemberId.NONE, Generation.NONE)
        return Commit(
            self._one(), self._id(), self._generation(), chance.random() < 0.1, chance.choice((9, 9, 8))
        )

    def _id(self) -> MemberId:
        return self._chance.choices(tuple(MemberId), (10, 2, 2, 1, 1))[0]

    def _generation(self) -> Generation:
        return self._chance.choices(tuple(Generation), (10, 1, 2, 1))[0]
