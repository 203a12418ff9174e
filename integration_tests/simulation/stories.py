"""Small scenarios that once broke a guarantee, by the name of what happened."""

from collections.abc import Callable

from groupwright.testing._simulation.scheduler import MS, SECOND
from integration_tests.simulation.scenario import Commits, Fault, Kind, MemberPlan, Scenario


def _consume_gathers() -> list[Scenario]:
    """An automatic commit comes while `consume` waits for more messages than there are."""
    plan = MemberPlan("m1", batch=100, processing=0)
    return [Scenario(1, auto_commit_interval=200 * MS, produce_interval=50 * MS, members=(plan,))]


def _stopped_after_on_assign() -> list[Scenario]:
    """A process is stopped soon after `on_assign`, for longer than its session."""
    plan = MemberPlan("m1", processing=0)
    successor = MemberPlan("m2", processing=0)
    return [
        Scenario(
            seed,
            session_timeout=2 * SECOND,
            heartbeat_interval=500 * MS,
            max_poll_interval=3 * SECOND,
            auto_commit_interval=60 * SECOND,
            produce_interval=20 * MS,
            members=(plan,),
            faults=(
                Fault(2 * SECOND, Kind.JOIN, plan=successor),
                Fault(2 * SECOND + delay * 20 * MS, Kind.STOP, 0, 5 * SECOND, detail=20),
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
            faults=(
                Fault(1 * SECOND, Kind.CREATE),
                Fault(20 * SECOND, Kind.DELETE),
                Fault(20 * SECOND + delay * 100 * MS, Kind.ENFORCE),
            ),
        )
        for seed in range(3)
        for delay in range(8)
    ]


def _a_seek_soon_after_a_reassignment() -> list[Scenario]:
    """An application seeks where librdkafka still ends the partition's former fetch."""
    plan = MemberPlan("m1", seeks_at_start=True, processing=0)
    rejoins = tuple(Fault(second * SECOND, Kind.ENFORCE) for second in range(2, 40, 2))
    return [Scenario(seed, members=(plan,), faults=rejoins) for seed in range(3)]


def _commits_after_a_seek() -> list[Scenario]:
    """Commits that wait for the coordinator are merged, and the last one is that of a seek back."""
    plan = MemberPlan("m1", commits=Commits.ASYNC, seeks=0.2, processing=0)
    moves = tuple(Fault(second * SECOND, Kind.MOVE) for second in range(2, 20))
    return [Scenario(seed, members=(plan,), faults=moves) for seed in range(3)]


def _closed_before_on_assign() -> list[Scenario]:
    """A signal handler raises just before `on_assign` is called, and the application closes its consumer."""
    plan = MemberPlan("m1", processing=0)
    joins = Fault(9 * SECOND, Kind.JOIN, plan=MemberPlan("m2", processing=0))
    closes = Fault(9 * SECOND + 45 * MS, Kind.CLOSE)
    return [
        Scenario(
            seed,
            members=(plan,),
            produce_interval=5 * SECOND,
            faults=(
                Fault(5 * SECOND, Kind.CLOSE),
                joins,
                Fault(9 * SECOND + MS, Kind.SIGNAL, detail=detail),
                closes,
            ),
        )
        for seed in range(2)
        for detail in range(31, 121, 3)
    ]


def _interrupted_by_hand() -> list[Scenario]:
    """A signal handler raises in the first native call after an assignment by hand without offsets."""
    plan = MemberPlan("hand", processing=0, reassigns=0.3)
    signals = tuple(Fault(tenth * 100 * MS, Kind.SIGNAL, 1, detail=tenth % 61) for tenth in range(20, 200))
    return [
        Scenario(seed, members=(MemberPlan("m1"),), by_hand=(plan,), produce_interval=20 * MS, faults=signals)
        for seed in range(3)
    ]


def _forks() -> list[Scenario]:
    """A process forks, in each place in which it can, and the child uses the consumer."""
    plan = MemberPlan("m1", processing=0)
    forks = tuple(Fault(second * SECOND, Kind.FORK, detail=second % 3) for second in range(2, 14))
    joins = tuple(Fault(second * SECOND, Kind.ENFORCE) for second in range(2, 14))
    return [Scenario(1, members=(plan,), produce_interval=50 * MS, faults=(*forks, *joins))]


def _interrupted_within_a_group() -> list[Scenario]:
    """A signal handler raises soon after `on_assign`, and the application assigns by hand before it polls."""
    plan = MemberPlan("hand", commits=Commits.SYNC, processing=0, ends=True, reassigns=0.3, subscribes=0.5)
    signals = tuple(
        Fault(tenth * 100 * MS, Kind.SIGNAL, 1, detail=1 + tenth % 4 * 5) for tenth in range(20, 400)
    )
    return [
        Scenario(seed, members=(MemberPlan("m1"),), by_hand=(plan,), produce_interval=SECOND, faults=signals)
        for seed in range(10)
    ]


def _sought_before_the_assignment() -> list[Scenario]:
    """A signal handler raises soon after `on_assign`, and the application seeks before it polls."""
    plan = MemberPlan("m1", processing=0, seeks_at_start=True, changes_wrongly=True)
    rejoins = tuple(Fault(second * SECOND, Kind.ENFORCE) for second in range(3, 60, 3))
    signals = tuple(
        Fault(second * SECOND - 500 * MS, Kind.SIGNAL, detail=1 + second % 4 * 5)
        for second in range(3, 60, 3)
    )
    return [Scenario(seed, members=(plan,), faults=(*rejoins, *signals)) for seed in range(4)]


def _rejected_after_a_commit_under_way() -> list[Scenario]:
    """An application assigns again while a commit is under way, and a later one was rejected at once."""
    plan = MemberPlan("hand", commits=Commits.ASYNC, batch=10, processing=0, reassigns=0.3, subscribes=0.5)
    waits = (Fault(60 * SECOND, Kind.WAKE),)
    return [
        Scenario(seed, members=(MemberPlan("m1"),), by_hand=(plan,), produce_interval=20 * MS, faults=waits)
        for seed in range(6)
    ]


def _a_commit_under_way_when_the_group_assigns() -> list[Scenario]:
    """An application reads by hand, subscribes, and commits just before the poll that assigns."""
    plan = MemberPlan("hand", commits=Commits.ASYNC, processing=0, reassigns=0.2, subscribes=1.0)
    waits = (Fault(30 * SECOND, Kind.WAKE),)
    return [
        Scenario(
            seed,
            slow_share=0.4,
            members=(MemberPlan("m1"),),
            by_hand=(plan,),
            produce_interval=5 * MS,
            faults=waits,
        )
        for seed in range(2)
    ]


def _read_by_hand_before_an_interrupted_assignment() -> list[Scenario]:
    """A signal handler raises soon after `on_assign`, when the partitions were read by hand before."""
    signals = tuple(
        Fault(tenth * 100 * MS, Kind.SIGNAL, 1, detail=1 + tenth % 2 * 5) for tenth in range(20, 300, 3)
    )
    return [
        Scenario(
            0,
            members=(MemberPlan("m1"),),
            by_hand=(
                MemberPlan("hand", commits=commits, batch=10, reassigns=0.05, subscribes=1.0, processing=0),
            ),
            produce_interval=20 * MS,
            faults=signals,
        )
        for commits in (Commits.SYNC, Commits.ASYNC)
    ]


def _sought_by_hand_before_an_interrupted_assignment() -> list[Scenario]:
    """An application seeks back by hand, subscribes, and a signal handler raises soon after `on_assign`."""
    plan = MemberPlan(
        "hand", topics=("orders", "payments"), seeks=0.02, reassigns=0.02, subscribes=0.2, processing=50 * MS
    )
    return [
        Scenario(
            seed,
            session_timeout=3 * SECOND,
            heartbeat_interval=750 * MS,
            initial_delay=3 * SECOND,
            topics=(("orders", 4), ("payments", 3)),
            members=(MemberPlan("m1"),),
            by_hand=(plan,),
            produce_interval=interval,
            faults=tuple(Fault(500 * MS + second * SECOND, Kind.SIGNAL, 1, detail=1) for second in range(20)),
        )
        for seed, interval in ((2, 200 * MS), (11, 50 * MS))
    ]


def _busy_beyond_the_poll_interval() -> list[Scenario]:
    """An application processes for longer than `max.poll.interval.ms`, and commits before it polls again."""
    return [
        Scenario(
            0,
            session_timeout=3 * SECOND,
            max_poll_interval=3 * SECOND,
            members=(MemberPlan("m1", commits=Commits.SYNC, processing=0),),
            produce_interval=200 * MS,
            faults=(Fault(5 * SECOND, Kind.BUSY, duration=seconds * SECOND),),
        )
        for seconds in (4, 8)
    ]


def _busy_for_several_automatic_commits() -> list[Scenario]:
    """An application that commits automatically processes for long, in its third generation."""
    plans = tuple(MemberPlan(f"m{number}", processing=0) for number in range(1, 4))
    joins = tuple(Fault(part * 4 * SECOND, Kind.JOIN, plan=plan) for part, plan in enumerate(plans[1:], 1))
    work = tuple(Fault(at * SECOND, Kind.BUSY, duration=6 * SECOND) for at in (30, 50))
    return [
        Scenario(seed, members=plans[:1], produce_interval=20 * MS, faults=(*joins, *work))
        for seed in range(2)
    ]


def _callbacks_beyond_the_poll_interval() -> list[Scenario]:
    """Rebalance callbacks take longer than `max.poll.interval.ms`, which counts as polling."""
    rejoins = tuple(Fault(second * SECOND, Kind.ENFORCE) for second in range(5, 45, 7))
    return [
        Scenario(
            seed,
            session_timeout=3 * SECOND,
            max_poll_interval=3 * SECOND,
            members=(MemberPlan("m1", processing=0, callback=8 * SECOND),),
            produce_interval=200 * MS,
            faults=rejoins,
        )
        for seed in range(2)
    ]


def _closed_while_an_assignment_waits() -> list[Scenario]:
    """A member closes in a rebalance, and is stopped beyond its session when its assignment has come."""
    plans = (MemberPlan("m1", processing=0, callback=100 * MS), MemberPlan("m2", processing=0))
    return [
        Scenario(
            0,
            session_timeout=2 * SECOND,
            heartbeat_interval=500 * MS,
            max_poll_interval=3 * SECOND,
            produce_interval=200 * MS,
            members=plans,
            faults=tuple(
                fault
                for at in (3 * SECOND, 13 * SECOND, 23 * SECOND)
                for fault in (
                    Fault(at, Kind.STOP, 0, 3 * SECOND, detail),
                    Fault(at, Kind.JOIN, plan=MemberPlan(f"m{at}", processing=0)),
                )
            ),
        )
        for detail in (23, 33, 43, 53)
    ]


def _revoked_after_a_failed_sync() -> list[Scenario]:
    """A leader subscribes to fewer topics while it joins, and newcomers join before it has synced.

    The names of members decide the delays of their applications, as the seed does.
    """

    def plan(name: str) -> MemberPlan:
        topics = ("orders", "payments")
        return MemberPlan(name, strategy=("cooperative-sticky",), topics=topics, processing=0)

    at = 3 * SECOND
    newcomers = [
        Fault(at + (40 + 60 * number) * MS, Kind.JOIN, plan=plan(f"x0-{number}")) for number in range(5)
    ]
    return [
        Scenario(
            0,
            heartbeat_interval=200 * MS,
            auto_commit_interval=60 * SECOND,
            slow_share=1.0,
            topics=(("orders", 4), ("payments", 4)),
            produce_interval=50 * MS,
            members=(plan("m1"), plan("m2")),
            faults=(
                Fault(at, Kind.ENFORCE),
                newcomers[0],
                Fault(at + 60 * MS, Kind.SUBSCRIBE),
                *newcomers[1:],
                *(Fault(at + 1500 * MS + number, Kind.CLOSE, 2) for number in range(5)),
                Fault(at + 2500 * MS, Kind.SUBSCRIBE, detail=1),
            ),
        )
    ]


def _interrupted_when_it_is_fenced() -> list[Scenario]:
    """Another process takes a member's `group.instance.id`, and a signal handler raises soon after."""
    plan = MemberPlan("m1", static=True, processing=0)
    twin = Fault(5 * SECOND, Kind.TWIN)
    return [
        Scenario(
            0,
            members=(plan,),
            produce_interval=5 * SECOND,
            faults=(twin, Fault(5 * SECOND + MS, Kind.SIGNAL, detail=detail)),
        )
        for detail in range(28, 46)
    ]


def _interrupted_when_offsets_are_looked_up() -> list[Scenario]:
    """A signal handler raises in the poll that begins to look offsets up, and the application seeks."""
    plan = MemberPlan("m1", processing=0, seeks_at_start=True)
    times = range(5, 155, 3)
    return [
        Scenario(
            seed,
            members=(plan,),
            produce_interval=5 * SECOND,
            faults=tuple(
                fault
                for second in times
                for fault in (
                    Fault(second * SECOND, Kind.ENFORCE),
                    Fault(second * SECOND + MS, Kind.SIGNAL, detail=5 * second % 150 + 4 * part),
                )
            ),
        )
        for seed in range(2)
        for part in range(2)
    ]


def _busy_after_an_interrupted_assignment() -> list[Scenario]:
    """A signal handler raises in the poll that applies a first assignment, and the next poll comes late."""
    return [
        Scenario(
            seed,
            session_timeout=3 * SECOND,
            max_poll_interval=3 * SECOND,
            initial_delay=3 * SECOND,
            produce_interval=100 * MS,
            members=(MemberPlan("m1", processing=0),),
            faults=(
                Fault(2 * SECOND, Kind.SIGNAL, detail=detail),
                Fault(3 * SECOND + (350 + 70 * part) * MS, Kind.BUSY, duration=9 * SECOND),
            ),
        )
        for seed in range(2)
        for detail in (1, 6, 11)
        for part in range(10)
    ]


def _left_before_the_group_has_assigned() -> list[Scenario]:
    """An application that reads by hand subscribes, and unsubscribes while the group assigns."""
    plan = MemberPlan("hand", batch=10, processing=0, reassigns=0.1, subscribes=0.5)
    return [
        Scenario(
            seed,
            slow_share=0.4,
            auto_commit_interval=200 * MS,
            members=(MemberPlan("m1"),),
            by_hand=(plan,),
            produce_interval=20 * MS,
            faults=tuple(
                Fault((2 + 7 * part) * SECOND, Kind.BUSY, 1, duration=4 * SECOND) for part in range(12)
            ),
        )
        for seed in range(4)
    ]


def _the_bootstrap_server_dies() -> list[Scenario]:
    """`bootstrap.servers` names the coordinator alone, which dies; the others name it for some seconds."""
    plan = MemberPlan("m1", processing=0)
    crash = Fault(5 * SECOND, Kind.CRASH_BROKER, duration=40 * SECOND)
    return [Scenario(seed, bootstrap=1, members=(plan,), faults=(crash,)) for seed in range(5)]


def _all_brokers_move() -> list[Scenario]:
    """Each broker gets another address; at last the one whose name `bootstrap.servers` has is away."""
    plan = MemberPlan("m1", processing=0)
    moves = tuple(
        Fault((5 + 8 * number) * SECOND, Kind.READDRESS_BROKER, duration=3 * SECOND, detail=number)
        for number in range(3)
    )
    away = Fault(40 * SECOND, Kind.STOP_BROKER, duration=40 * SECOND)
    return [Scenario(seed, bootstrap=1, members=(plan,), faults=(*moves, away)) for seed in range(5)]


STORIES: dict[str, Callable[[], list[Scenario]]] = {
    "consume-gathers": _consume_gathers,
    "stopped-after-on-assign": _stopped_after_on_assign,
    "deleted-before-the-assignment": _deleted_before_the_assignment,
    "seek-soon-after-a-reassignment": _a_seek_soon_after_a_reassignment,
    "commits-after-a-seek": _commits_after_a_seek,
    "closed-before-on-assign": _closed_before_on_assign,
    "interrupted-by-hand": _interrupted_by_hand,
    "interrupted-within-a-group": _interrupted_within_a_group,
    "sought-before-the-assignment": _sought_before_the_assignment,
    "rejected-after-a-commit-under-way": _rejected_after_a_commit_under_way,
    "a-commit-under-way-when-the-group-assigns": _a_commit_under_way_when_the_group_assigns,
    "read-by-hand-before-an-interrupted-assignment": _read_by_hand_before_an_interrupted_assignment,
    "sought-by-hand-before-an-interrupted-assignment": _sought_by_hand_before_an_interrupted_assignment,
    "busy-beyond-the-poll-interval": _busy_beyond_the_poll_interval,
    "busy-for-several-automatic-commits": _busy_for_several_automatic_commits,
    "callbacks-beyond-the-poll-interval": _callbacks_beyond_the_poll_interval,
    "closed-while-an-assignment-waits": _closed_while_an_assignment_waits,
    "revoked-after-a-failed-sync": _revoked_after_a_failed_sync,
    "interrupted-when-it-is-fenced": _interrupted_when_it_is_fenced,
    "interrupted-when-offsets-are-looked-up": _interrupted_when_offsets_are_looked_up,
    "busy-after-an-interrupted-assignment": _busy_after_an_interrupted_assignment,
    "left-before-the-group-has-assigned": _left_before_the_group_has_assigned,
    "the-bootstrap-server-dies": _the_bootstrap_server_dies,
    "all-brokers-move": _all_brokers_move,
    "forks": _forks,
}
"""Scenarios by name; each list plays in seconds."""
