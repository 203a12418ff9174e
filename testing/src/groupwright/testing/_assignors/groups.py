"""Reproducible random groups for testing assignors."""

import random
from collections.abc import Callable, Iterator

from groupwright.assignors import NO_GENERATION, Group, Member, Topic
from groupwright.testing._assignors.weights import Weights, weighted

UserData = Callable[[random.Random], bytes | None]
"""Function that creates a member's user data."""

_SIZES = (0, 1, 1, 2, 3, 3, 5, 8, 12, 20)
_RACKS = ("rack-a", "rack-b", "rack-c")
_MOST_TOPICS = 6
_MOST_MEMBERS = 10
_LAST_GENERATION = 7

_Subscriptions = list[tuple[str, ...]]
_Claims = list[dict[str, list[int]]]


def random_groups(
    seed: int = 0, count: int = 300, *, user_data: UserData | None = None, weights: Weights | None = None
) -> Iterator[Group]:
    """Yield random groups, small ones first; the same for the same arguments.

    They cover equal, different and empty subscriptions; topics that do not exist or have no partitions;
    static members; racks; and members that own nothing, own partitions of an assignment made before members
    and topics changed, or have outdated or contradictory claims.

    Args:
        seed: Seed of the random generator.
        count: Number of groups.
        user_data: Creates members' user data. By default, `check` calls the `user_data` of each member's
            assignor.
        weights: Creates the weights of a topic's partitions, such as `skewed_weights`. By default, topics
            have none.
    """
    rng = random.Random(seed)  # noqa: S311 - reproducible, not secret
    rng_of_weights = random.Random(~seed)  # noqa: S311 - as above
    for number in range(count):
        group = _group(rng, 1 + number * _MOST_MEMBERS // count, user_data)
        yield group if weights is None else weighted(group, rng_of_weights, weights)


def large_group(members: int = 100, topics: int = 100, partitions: int = 100) -> Group:
    """Return a group whose members all subscribe to all topics, and own nothing."""
    names = [f"topic-{number:04}" for number in range(topics)]
    ids = [f"member-{number:05}" for number in range(members)]
    return Group([Member(id_, names) for id_ in ids], dict.fromkeys(names, partitions))


def _group(rng: random.Random, members: int, user_data: UserData | None) -> Group:
    names = [f"topic-{number}" for number in range(rng.randint(1, _MOST_TOPICS))]
    has_racks = _happens(rng, 0.4)
    topics = {name: _topic(rng, has_racks=has_racks) for name in names}
    subscriptions = _subscriptions(rng, [*names, "no-such-topic"], members)
    generations = [_LAST_GENERATION] * members
    claims: _Claims = [{} for _ in range(members)]
    match rng.randrange(4):
        case 0:
            generations = [NO_GENERATION] * members
        case 1:
            generations = [rng.choice((NO_GENERATION, 5, _LAST_GENERATION)) for _ in range(members)]
            claims = [_loose_claims(rng, names) for _ in range(members)]
        case _:
            claims = _earlier_assignment(rng, subscriptions, topics)
    return Group(
        [
            Member(
                f"member-{rng.randrange(1000):03}-{number}",
                subscriptions[number],
                owned=claims[number],
                generation=generations[number],
                instance_id=f"host-{rng.randrange(1000):03}-{number}" if _happens(rng, 0.3) else None,
                rack=rng.choice((*_RACKS, None)) if has_racks else None,
                user_data=user_data(rng) if user_data else None,
            )
            for number in range(members)
        ],
        topics,
    )


def _topic(rng: random.Random, *, has_racks: bool) -> Topic:
    partitions = rng.choice(_SIZES)
    if not has_racks or _happens(rng, 0.1):
        return Topic(partitions)
    replicas = rng.randint(1, len(_RACKS))
    return Topic(partitions, racks=[rng.sample(_RACKS, replicas) for _ in range(partitions)])


def _subscriptions(rng: random.Random, names: list[str], members: int) -> _Subscriptions:
    if _happens(rng, 0.4):
        return [tuple(rng.sample(names, rng.randint(1, len(names))))] * members
    return [tuple(rng.sample(names, rng.randint(0, len(names)))) for _ in range(members)]


def _earlier_assignment(
    rng: random.Random, subscriptions: _Subscriptions, topics: dict[str, Topic]
) -> _Claims:
    """Return consistent claims from one assignment, whose members were some of these and some that left."""
    members = len(subscriptions)
    earlier = rng.sample(range(members), rng.randint(0, members))
    claims: _Claims = [{} for _ in range(members)]
    for name, topic in topics.items():
        subscribers = [number for number in earlier if name in subscriptions[number] or _happens(rng, 0.1)]
        departed = [None] if not subscribers or _happens(rng, 0.3) else []
        for partition in range(rng.choice((topic.partitions, topic.partitions // 2))):
            owner = rng.choice([*subscribers, *departed])
            if owner is not None:
                claims[owner].setdefault(name, []).append(partition)
    return claims


def _loose_claims(rng: random.Random, names: list[str]) -> dict[str, list[int]]:
    """Return claims to arbitrary partitions, which need not exist."""
    claimed = rng.sample([*names, "topic-gone"], rng.randint(0, len(names)))
    return {name: rng.sample(range(max(_SIZES) + 2), rng.randint(0, 6)) for name in claimed}


def _happens(rng: random.Random, probability: float) -> bool:
    return rng.random() < probability
