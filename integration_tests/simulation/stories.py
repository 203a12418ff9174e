"""Small scenarios that once broke a promise, by the name of what happened."""

from collections.abc import Callable

from groupwright.testing._simulation.scheduler import MS, SECOND
from simulation.scenario import Commits, Kind, MemberPlan, Scenario, Trouble


def _consume_gathers() -> list[Scenario]:
    """An automatic commit comes while `consume` waits for more messages than there are."""
    plan = MemberPlan("m1", batch=100, processing=0)
    return [Scenario(1, auto_commit_interval=200 * MS, produce_interval=50 * MS, members=(plan,))]


def _stopped_after_on_assign() -> list[Scenario]:
    """A process is stopped soon after `on_assign`, for longer than its session."""
    plan = MemberPlan("m1", processing=0)
    heir = MemberPlan("m2", processing=0)
    return [
        Scenario(
            seed,
            session_timeout=2 * SECOND,
            heartbeat_interval=500 * MS,
            max_poll_interval=3 * SECOND,
            auto_commit_interval=60 * SECOND,
            produce_interval=20 * MS,
            members=(plan,),
            troubles=(
                Trouble(2 * SECOND, Kind.JOIN, plan=heir),
                Trouble(2 * SECOND + delay * 20 * MS, Kind.STOP, 0, 5 * SECOND, detail=20),
            ),
        )
        for seed in range(2)
        for delay in range(1, 13)
    ]


def _deleted_before_the_assignment() -> list[Scenario]:
    """A topic is deleted, and the group rebalances before its leader sees that."""
    plan = MemberPlan("m1", strategy=("cooperative-sticky",), topics=("orders", "returns"), processing=0)
    return [
        Scenario(
            seed,
            members=(plan,),
            produce_interval=SECOND,
            troubles=(
                Trouble(1 * SECOND, Kind.CREATE),
                Trouble(20 * SECOND, Kind.DELETE),
                Trouble(20 * SECOND + delay * 100 * MS, Kind.ENFORCE),
            ),
        )
        for seed in range(3)
        for delay in range(8)
    ]


def _a_seek_soon_after_a_reassignment() -> list[Scenario]:
    """An application seeks where librdkafka still ends the partition's former fetch."""
    plan = MemberPlan("m1", seeks_at_start=True, processing=0)
    rejoins = tuple(Trouble(second * SECOND, Kind.ENFORCE) for second in range(2, 40, 2))
    return [Scenario(seed, members=(plan,), troubles=rejoins) for seed in range(3)]


def _commits_after_a_seek() -> list[Scenario]:
    """Commits that wait for the coordinator are merged, and the last one is that of a seek back."""
    plan = MemberPlan("m1", commits=Commits.ASYNC, seeks=0.2, processing=0)
    moves = tuple(Trouble(second * SECOND, Kind.MOVE) for second in range(2, 20))
    return [Scenario(seed, members=(plan,), troubles=moves) for seed in range(3)]


def _closed_before_on_assign() -> list[Scenario]:
    """A signal handler raises just before `on_assign` is called, and the application closes its consumer."""
    plan = MemberPlan("m1", processing=0)
    joins = Trouble(9 * SECOND, Kind.JOIN, plan=MemberPlan("m2", processing=0))
    closes = Trouble(9 * SECOND + 45 * MS, Kind.CLOSE)
    return [
        Scenario(
            seed,
            members=(plan,),
            produce_interval=5 * SECOND,
            troubles=(
                Trouble(5 * SECOND, Kind.CLOSE),
                joins,
                Trouble(9 * SECOND + MS, Kind.SIGNAL, detail=detail),
                closes,
            ),
        )
        for seed in range(2)
        for detail in range(31, 121, 3)
    ]


STORIES: dict[str, Callable[[], list[Scenario]]] = {
    "consume-gathers": _consume_gathers,
    "stopped-after-on-assign": _stopped_after_on_assign,
    "deleted-before-the-assignment": _deleted_before_the_assignment,
    "seek-soon-after-a-reassignment": _a_seek_soon_after_a_reassignment,
    "commits-after-a-seek": _commits_after_a_seek,
    "closed-before-on-assign": _closed_before_on_assign,
}
"""Scenarios by name; each list plays in seconds."""
