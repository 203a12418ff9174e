"""Simulated members: Java's consumer and librdkafka's, on the simulated cluster."""

import itertools
from collections.abc import Callable, Sequence
from functools import partial

import pytest

from groupwright.assignors import Assignor, by_name
from groupwright.core import ErrorCode, TopicPartitionKey
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.classic_group import ClassicGroup, State
from groupwright.testing._simulation.cluster import Cluster
from groupwright.testing._simulation.model_member import MemberState, ModelMember
from groupwright.testing._simulation.model_settings import Behaviour, MemberSettings
from groupwright.testing._simulation.observer import Observer
from groupwright.testing._simulation.scheduler import MS, SECOND, Process, Scheduler
from groupwright.testing._simulation.settings import GroupSettings

JAVA, LIBRDKAFKA = Behaviour.JAVA, Behaviour.LIBRDKAFKA
BOTH = pytest.mark.parametrize("behaviour", Behaviour)
EACH_PROTOCOL = pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])


class Trace(Observer):
    """All events in order, owners by partition, and deliveries by message."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.events: list[tuple[int, str, str, object]] = []
        self.revocations: list[tuple[int, int]] = []
        self.owned: dict[str, set[TopicPartitionKey]] = {}
        self.messages: dict[tuple[int, str, int, int], list[str]] = {}
        self.commits: dict[TopicPartitionKey, int] = {}

    def _record(self, member: str, event: str, details: object) -> None:
        self.events.append((self.scheduler.now, member, event, details))

    def joined(self, member: str, generation: int) -> None:
        self._record(member, "joined", generation)

    def assigned(self, member: str, partitions: Sequence[TopicPartitionKey], generation: int) -> None:
        self._record(member, "assigned", (sorted(partitions), generation))
        assert not self.owned.setdefault(member, set()) & set(partitions)
        self.owned[member] |= set(partitions)

    def revoked(self, member: str, partitions: Sequence[TopicPartitionKey], generation: int) -> None:
        self._record(member, "revoked", (sorted(partitions), generation))
        self.revocations.append((len(partitions), generation))
        assert self.owned[member] >= set(partitions)
        self.owned[member] -= set(partitions)

    def lost(self, member: str, partitions: Sequence[TopicPartitionKey], generation: int) -> None:
        self._record(member, "lost", (sorted(partitions), generation))
        assert self.owned[member] >= set(partitions)
        self.owned[member] -= set(partitions)

    def delivered(self, member: str, topic_id: int, topic: str, partition: int, offset: int) -> None:
        assert (topic, partition) in self.owned[member]
        self.messages.setdefault((topic_id, topic, partition, offset), []).append(member)

    def committed(self, member: str, partition: TopicPartitionKey, offset: int) -> None:  # noqa: ARG002 - of the interface
        self.commits[partition] = offset

    def closed(self, member: str) -> None:
        self._record(member, "closed", None)

    def failed(self, member: str, reason: str) -> None:
        self._record(member, "failed", reason)

    def names(self, member: str, since: int = 0) -> list[str]:
        return [event for when, name, event, _ in self.events if name == member and when >= since]

    def time(self, member: str, event: str, since: int = 0) -> float:
        return next(
            when / SECOND
            for when, name, what, _ in self.events
            if (name, what) == (member, event) and when >= since
        )

    @property
    def repeated(self) -> int:
        return sum(len(members) - 1 for members in self.messages.values())


class World:
    """A cluster, members and a producer of one message a partition every 200 ms."""

    def __init__(self, topics: dict[str, int] | None = None, seed: int = 1, **settings: int) -> None:
        self.scheduler = Scheduler(seed)
        self.cluster = Cluster(self.scheduler, settings=GroupSettings(**settings))
        self.trace = Trace(self.scheduler)
        self.members: dict[str, ModelMember] = {}
        self.produces = True
        for topic, partitions in (topics or {"orders": 6}).items():
            self.cluster.create_topic(topic, partitions)
        self.run(1)
        self._produce()

    def start(
        self,
        name: str,
        behaviour: Behaviour = JAVA,
        strategy: str | Assignor = "range",
        *,
        topics: tuple[str, ...] = ("orders",),
        instance: str | None = None,
        cooperative: bool | None = None,
        **times: int,
    ) -> ModelMember:
        assignor = by_name(strategy) if isinstance(strategy, str) else strategy
        settings = MemberSettings(
            topics=topics,
            assignors=(assignor,),
            behaviour=behaviour,
            group_instance_id=instance,
            cooperative=cooperative,
            **times,  # type: ignore[arg-type]
        )
        member = ModelMember(Process(name, self.scheduler), self.cluster, settings, self.trace)
        self.members[name] = member
        return member

    def kill(self, name: str) -> None:
        process = self.members.pop(name).process
        process.kill()
        self.cluster.cut(process)
        self.trace.owned.pop(name, None)

    def run(self, seconds: float) -> None:
        self.scheduler.run_until(self.scheduler.now + int(seconds * SECOND))

    @property
    def now(self) -> int:
        return self.scheduler.now

    @property
    def group(self) -> ClassicGroup:
        group = self.cluster.coordinator.group("group")
        assert group is not None
        return group

    @property
    def generation(self) -> int:
        return self.group.generation_id

    def owners(self) -> dict[TopicPartitionKey, list[str]]:
        found: dict[TopicPartitionKey, list[str]] = {}
        for name, partitions in sorted(self.trace.owned.items()):
            for partition in partitions:
                found.setdefault(partition, []).append(name)
        return found

    def check_owned_once(self, count: int = 6) -> None:
        owners = self.owners()
        assert len(owners) == count
        assert all(len(names) == 1 for names in owners.values())

    def check_consumed(self) -> None:
        """All that was produced has been delivered."""
        self.produces = False
        self.run(10)
        produced = {
            (topic.id, name, partition, offset)
            for name, topic in self.cluster.topics.items()
            for partition, end in enumerate(topic.ends)
            for offset in range(end)
        }
        assert produced <= self.trace.messages.keys()

    def _produce(self) -> None:
        if self.produces:
            for name, topic in self.cluster.topics.items():
                for partition in range(len(topic.ends)):
                    self.cluster.produce(name, partition)
        self.scheduler.call_in(200 * MS, self._produce)


# --- Joining and leaving


@BOTH
@EACH_PROTOCOL
def test_members_share_partitions_consume_all_and_leave_without_repeating(
    behaviour: Behaviour, strategy: str
) -> None:
    world = World()
    for name in "ab":
        world.start(name, behaviour, strategy)
    world.run(30)
    world.check_owned_once()
    assert {len(world.trace.owned[name]) for name in "ab"} == {3}
    assert world.trace.names("a") == ["joined", "assigned"]

    world.members["a"].close()
    world.run(10)
    world.check_owned_once()
    assert world.trace.names("a") == ["joined", "assigned", "revoked", "closed"]
    assert len(world.trace.owned["b"]) == 6

    world.check_consumed()
    assert world.trace.repeated == 0


@BOTH
def test_the_first_join_is_answered_with_a_member_id(behaviour: Behaviour) -> None:
    world = World()
    errors: list[ErrorCode] = []

    def record(_process: Process, _request: msg.Request, response: msg.Response) -> None:
        if isinstance(response, msg.JoinGroupResponse):
            errors.append(response.error)

    world.cluster.on_answer = record
    member = world.start("a", behaviour)
    world.run(10)

    assert errors == [ErrorCode.MEMBER_ID_REQUIRED, ErrorCode.NONE]
    assert member.member_id.startswith("a-")
    assert (member.generation, member.protocol, member.state) == (1, "range", MemberState.STABLE)


@BOTH
def test_an_eager_member_revokes_all_and_a_cooperative_one_what_moves(behaviour: Behaviour) -> None:
    revoked = {}
    for strategy in ("range", "cooperative-sticky"):
        world = World()
        world.start("a", behaviour, strategy)
        world.run(20)
        world.start("b", behaviour, strategy)
        world.run(30)
        world.check_owned_once()
        revoked[strategy] = world.trace.revocations
        assert world.generation == (2 if strategy == "range" else 3)
        world.check_consumed()

    assert revoked == {"range": [(6, 1)], "cooperative-sticky": [(3, 1)]}


def test_java_and_librdkafka_share_a_group() -> None:
    for strategy in ("range", "roundrobin", "sticky", "cooperative-sticky"):
        world = World({"orders": 6, "payments": 3}, seed=3)
        topics = ("orders", "payments")
        for name, behaviour in (("a", JAVA), ("b", LIBRDKAFKA), ("c", JAVA), ("d", LIBRDKAFKA)):
            world.start(name, behaviour, strategy, topics=topics)
            world.run(7)
        world.run(20)
        world.check_owned_once(9)
        world.kill("a")
        world.members["b"].close()
        world.run(60)
        world.check_owned_once(9)
        assert {member.client_id for member in world.group.members.values()} == {"c", "d"}
        world.check_consumed()


def test_members_subscribe_to_different_topics() -> None:
    world = World({"orders": 4, "payments": 2})
    world.start("a", topics=("orders",))
    world.start("b", LIBRDKAFKA, topics=("orders", "payments"))
    world.run(20)

    world.check_owned_once(6)
    assert {topic for topic, _ in world.trace.owned["a"]} == {"orders"}
    world.check_consumed()


def test_any_assignor_can_be_played_cooperatively() -> None:
    world = World()
    world.start("a", strategy="range", cooperative=True)
    world.run(20)
    world.start("b", strategy="range", cooperative=True)
    world.run(30)

    world.check_owned_once()
    assert world.trace.names("a") == ["joined", "assigned", "joined", "revoked", "joined"]


# --- Crashes, sessions and polls


@BOTH
@EACH_PROTOCOL
def test_a_killed_members_partitions_move_after_its_session_timeout(
    behaviour: Behaviour, strategy: str
) -> None:
    world = World()
    for name in "ab":
        world.start(name, behaviour, strategy, session_timeout=20 * SECOND)
    world.run(30)
    killed = world.now
    world.kill("b")
    world.run(60)

    world.check_owned_once()
    pause = world.trace.time("a", "assigned", killed) - killed / SECOND
    assert 20 - 3 <= pause <= 20 + 3 + 1  # the session began with the last heartbeat; a learns by heartbeat
    world.check_consumed()
    assert 0 < world.trace.repeated <= 3 * 5 * 6  # what b had not committed: up to 5 s of 3 partitions


@BOTH
def test_processing_beyond_the_session_timeout_keeps_the_membership(behaviour: Behaviour) -> None:
    world = World()
    world.start("a", behaviour)
    world.run(20)
    world.members["a"].process_for(120 * SECOND)
    world.run(150)

    assert world.generation == 1
    assert world.trace.names("a") == ["joined", "assigned"]


@BOTH
def test_a_member_that_exceeds_max_poll_interval_leaves_and_returns_at_its_next_poll(
    behaviour: Behaviour,
) -> None:
    world = World()
    for name in "ab":
        world.start(name, behaviour, max_poll_interval=30 * SECOND, session_timeout=20 * SECOND)
    world.run(20)
    stuck = world.now
    world.members["a"].process_for(100 * SECOND)
    world.run(40)
    # b has all partitions long before a notices
    assert len(world.trace.owned["b"]) == 6
    assert 30 <= world.trace.time("b", "assigned", stuck) - stuck / SECOND <= 34
    assert world.trace.names("a", stuck) == []
    assert [member.client_id for member in world.group.members.values()] == ["b"]

    world.run(80)
    assert world.trace.names("a", stuck) == ["lost", "joined", "assigned"]
    assert world.trace.time("a", "lost", stuck) == pytest.approx(stuck / SECOND + 100)
    world.check_owned_once()
    world.check_consumed()


def test_a_static_member_that_exceeds_max_poll_interval_does_not_leave() -> None:
    world = World()
    world.start("a", instance="one", max_poll_interval=30 * SECOND, session_timeout=25 * SECOND)
    world.start("b", instance="two", max_poll_interval=30 * SECOND, session_timeout=25 * SECOND)
    world.run(20)
    stuck = world.now
    world.members["a"].process_for(100 * SECOND)
    world.run(40)
    assert len(world.group.members) == 2  # the session has not expired yet

    world.run(40)

    assert 30 + 25 - 3 <= world.trace.time("b", "assigned", stuck) - stuck / SECOND <= 30 + 25 + 4


def test_java_rebalances_when_a_slow_application_polls_and_librdkafka_before() -> None:
    joined = {}
    for behaviour in Behaviour:
        world = World()
        world.start("a", behaviour, "cooperative-sticky")
        world.run(20)
        world.members["a"].process_for(30 * SECOND)
        began = world.now
        world.start("b", behaviour, "cooperative-sticky")
        world.run(60)
        world.check_owned_once()
        joined[behaviour] = world.trace.time("b", "joined", began) - began / SECOND

    assert joined[JAVA] >= 29  # the group waits for a's JoinGroup
    assert joined[LIBRDKAFKA] < 5


@BOTH
def test_an_eager_revocation_waits_for_a_poll(behaviour: Behaviour) -> None:
    world = World()
    world.start("a", behaviour)
    world.run(20)
    world.members["a"].process_for(30 * SECOND)
    began = world.now
    world.start("b", behaviour)
    world.run(60)

    assert world.trace.time("a", "revoked", began) == pytest.approx(began / SECOND + 30, abs=0.1)
    assert world.trace.time("b", "joined", began) - began / SECOND >= 30


@BOTH
def test_a_process_that_was_stopped_beyond_its_session_loses_its_partitions(behaviour: Behaviour) -> None:
    world = World()
    for name in "ab":
        world.start(name, behaviour, session_timeout=10 * SECOND)
    world.run(20)
    stopped = world.now
    world.members["a"].process.stop(60 * SECOND)
    world.run(100)

    assert world.trace.names("a", stopped)[0] == "lost"
    world.check_owned_once()
    world.check_consumed()


def test_only_librdkafka_loses_partitions_by_its_own_clock() -> None:
    names = {}
    for behaviour in Behaviour:
        world = World()
        for name in "ab":
            world.start(name, behaviour, session_timeout=10 * SECOND)
        world.run(20)
        cut_off = world.now
        world.cluster.isolate(world.members["a"].process)
        world.run(60)
        names[behaviour] = world.trace.names("a", cut_off)
        assert len(world.trace.owned["b"]) == 6
        world.cluster.rejoin(world.members["a"].process)
        world.run(120)
        world.check_owned_once()
        assert world.trace.names("a", cut_off) == ["lost", "joined", "assigned"]
        world.check_consumed()

    assert names == {JAVA: [], LIBRDKAFKA: ["lost"]}


# --- Static membership


@BOTH
@EACH_PROTOCOL
def test_a_static_member_that_restarts_within_its_session_causes_no_rebalance(
    behaviour: Behaviour, strategy: str
) -> None:
    world = World()
    for name in "abc":
        world.start(name, behaviour, strategy, instance=name)
    world.run(30)
    generation, before = world.generation, {name: set(owned) for name, owned in world.trace.owned.items()}
    world.members["b"].close()
    world.run(15)
    assert world.trace.names("b")[-2:] == ["revoked", "closed"]
    assert world.trace.owned["b"] == set()
    world.start("b again", behaviour, strategy, instance="b")
    world.run(15)

    assert world.generation == generation
    assert world.trace.owned["b again"] == before["b"]
    assert world.trace.owned["a"] == before["a"]
    world.check_consumed()
    assert world.trace.repeated == 0


@BOTH
def test_a_static_leader_that_restarts_leads_on_without_assigning(behaviour: Behaviour) -> None:
    world = World()
    for name in "ab":
        world.start(name, behaviour, instance=name, metadata_max_age=20 * SECOND)
    world.run(15)
    leader = next(name for name, member in world.members.items() if member.member_id == world.group.leader)
    world.kill(leader)
    world.start("again", behaviour, instance=leader, metadata_max_age=20 * SECOND)
    world.run(10)
    assert world.generation == 1
    world.check_owned_once()

    world.cluster.add_partitions("orders", 9)
    world.run(60)

    world.check_owned_once(9)  # the returned leader watches the topics


@BOTH
def test_a_second_member_of_an_instance_fences_the_first(behaviour: Behaviour) -> None:
    world = World()
    world.start("a", behaviour, instance="one")
    world.run(10)
    world.start("b", behaviour, instance="one")
    world.run(20)

    assert world.trace.names("a")[-2:] == ["lost", "failed"]
    assert world.trace.events[-1][3] == "FENCED_INSTANCE_ID" or ("a", "failed") in {
        event[1:3] for event in world.trace.events
    }
    assert world.members["a"].state is MemberState.ENDED
    world.check_owned_once()


# --- Faults of the cluster


@BOTH
@EACH_PROTOCOL
def test_a_moved_coordinator_causes_no_rebalance(behaviour: Behaviour, strategy: str) -> None:
    world = World()
    for name in "ab":
        world.start(name, behaviour, strategy)
    world.run(20)
    moved = world.now
    world.cluster.move_coordinator()
    world.run(60)

    assert world.generation == 1
    assert [event for event in world.trace.events if event[0] >= moved] == []
    world.check_consumed()


@BOTH
def test_a_coordinator_that_moves_during_a_rebalance_is_found_again(behaviour: Behaviour) -> None:
    for after in (0.05, 1, 2.9, 3.01, 3.1):
        world = World()
        world.start("a", behaviour)
        world.run(20)
        world.start("b", behaviour)
        world.run(after)
        world.cluster.move_coordinator()
        world.run(60)
        world.check_owned_once()
        world.check_consumed()


@BOTH
@pytest.mark.parametrize("clean", [False, True])
def test_members_survive_the_stop_of_each_broker(behaviour: Behaviour, clean: bool) -> None:  # noqa: FBT001
    world = World()
    for name in "abc":
        world.start(name, behaviour, "cooperative-sticky")
    world.run(20)
    for broker in range(3):
        world.cluster.stop_broker(broker, clean=clean)
        world.run(20)
        world.cluster.start_broker(broker)
        world.run(20)

    assert world.generation == 1
    world.check_owned_once()
    world.check_consumed()
    assert world.trace.repeated == 0


@BOTH
def test_an_outage_of_all_brokers_ends(behaviour: Behaviour) -> None:
    world = World()
    for name in "ab":
        world.start(name, behaviour)
    world.run(20)
    for broker in range(3):
        world.cluster.stop_broker(broker, clean=False)
    world.run(120)
    for broker in range(3):
        world.cluster.start_broker(broker)
    world.run(120)

    world.check_owned_once()
    world.check_consumed()


@BOTH
def test_reset_connections_keep_the_membership(behaviour: Behaviour) -> None:
    world = World()
    for name in "ab":
        world.start(name, behaviour)
    world.run(20)
    for _ in range(20):
        world.cluster.cut(world.members["a"].process)
        world.run(1.7)

    assert world.generation == 1
    world.check_owned_once()
    world.check_consumed()


@BOTH
def test_connections_that_are_reset_during_a_rebalance_are_replaced(behaviour: Behaviour) -> None:
    world = World()
    world.start("a", behaviour, "cooperative-sticky")
    world.run(20)
    world.start("b", behaviour, "cooperative-sticky")
    for _ in range(60):
        world.cluster.cut(world.members["a"].process)
        world.cluster.cut(world.members["b"].process)
        world.run(0.15)
    world.run(60)

    world.check_owned_once()
    world.check_consumed()


@BOTH
def test_a_half_open_connection_ends_with_a_request_timeout(behaviour: Behaviour) -> None:
    world = World()
    member = world.start("a", behaviour, session_timeout=100 * SECOND)
    world.run(20)
    world.cluster.isolate(member.process)
    world.run(1)
    world.cluster.rejoin(member.process)
    world.run(80)

    assert world.generation == 1
    assert world.trace.names("a") == ["joined", "assigned"]
    world.check_consumed()


# --- Topics


@BOTH
@EACH_PROTOCOL
def test_the_leader_notices_topics_that_grow_are_created_and_deleted(
    behaviour: Behaviour, strategy: str
) -> None:
    world = World({"orders": 4})
    for name in "ab":
        world.start(name, behaviour, strategy, topics=("orders", "later"), metadata_max_age=30 * SECOND)
    world.run(20)
    world.check_owned_once(4)

    world.cluster.add_partitions("orders", 8)
    world.run(80)
    world.check_owned_once(8)

    world.cluster.create_topic("later", 2)
    world.run(80)
    world.check_owned_once(10)
    world.check_consumed()

    world.cluster.delete_topic("orders")
    world.run(80)
    world.check_owned_once(2)


def test_only_librdkafkas_eager_followers_watch_topics() -> None:
    rejoins = {}
    for behaviour in Behaviour:
        world = World()
        for name in "abc":
            world.start(name, behaviour, metadata_max_age=30 * SECOND)
            world.run(10)
        world.run(60)
        before = world.generation
        world.cluster.add_partitions("orders", 7)
        world.run(90)
        world.check_owned_once(7)
        rejoins[behaviour] = world.generation - before

    assert rejoins[JAVA] == 1
    assert rejoins[LIBRDKAFKA] > 1


def test_a_topic_that_is_created_again_is_consumed_from_its_beginning() -> None:
    world = World()
    world.start("a", metadata_max_age=30 * SECOND)
    world.run(20)
    world.cluster.delete_topic("orders")
    world.run(5)
    world.cluster.create_topic("orders", 6)
    world.run(60)

    world.check_consumed()


# --- Offsets


@BOTH
def test_commits_carry_the_generation_and_follow_the_interval(behaviour: Behaviour) -> None:
    world = World()
    commits: list[tuple[int, msg.OffsetCommitRequest, msg.OffsetCommitResponse]] = []

    def record(_process: Process, request: msg.Request, response: msg.Response) -> None:
        if isinstance(request, msg.OffsetCommitRequest) and isinstance(response, msg.OffsetCommitResponse):
            commits.append((world.now, request, response))

    world.cluster.on_answer = record
    world.start("a", behaviour, auto_commit_interval=2 * SECOND)
    world.run(30)
    assert {request.generation_id for _, request, _ in commits} == {1}
    gaps = [after - before for (before, *_), (after, *_) in itertools.pairwise(commits)]
    assert all(1.9 * SECOND <= gap <= 2.6 * SECOND for gap in gaps)

    world.start("b", behaviour)
    world.run(30)

    assert {request.generation_id for _, request, _ in commits} == {1, 2}
    assert {error for *_, response in commits for _, error in response.partitions} == {ErrorCode.NONE}
    assert world.trace.commits == {
        ("orders", partition): world.cluster.coordinator.committed("group", ("orders", partition))
        for partition in range(6)
    }


def test_a_member_without_auto_commit_repeats_what_it_consumed() -> None:
    world = World()
    settings = MemberSettings(topics=("orders",), assignors=(by_name("range"),), auto_commit_interval=None)
    first = ModelMember(Process("a", world.scheduler), world.cluster, settings, world.trace)
    world.run(20)
    first.close()
    world.run(2)
    assert world.trace.commits == {}
    consumed = len(world.trace.messages)
    ModelMember(Process("b", world.scheduler), world.cluster, settings, world.trace)
    world.run(20)

    assert world.trace.repeated == consumed


def test_java_repeats_what_it_consumes_during_a_cooperative_rebalance_and_librdkafka_does_not() -> None:
    repeated = {}
    for behaviour in Behaviour:
        world = World(seed=2)
        for name in "ab":
            world.start(name, behaviour, "cooperative-sticky")
        world.run(20)
        world.members["b"].process_for(3 * SECOND)  # so that the join phase takes a while for a
        world.start("c", behaviour, "cooperative-sticky")
        world.run(60)
        world.check_owned_once()
        world.check_consumed()
        repeated[behaviour] = world.trace.repeated

    assert repeated[JAVA] > 0
    assert repeated[LIBRDKAFKA] == 0


# --- Errors


def test_a_refused_session_timeout_is_fatal_for_java_and_retried_by_librdkafka() -> None:
    world = World()
    world.start("a", JAVA, session_timeout=5 * SECOND)
    world.start("b", LIBRDKAFKA, session_timeout=5 * SECOND)
    world.run(60)

    assert world.trace.events[0][1:] == ("a", "failed", "INVALID_SESSION_TIMEOUT")
    assert len(world.trace.events) == 1
    assert world.members["b"].state is not MemberState.ENDED


def test_an_exception_of_an_assignor_ends_the_simulation() -> None:
    class Broken(Assignor):
        name = "broken"

        def assign(self, group: object) -> dict[str, dict[str, list[int]]]:
            raise ZeroDivisionError(f"{group}")

    world = World()
    world.start("a", strategy=Broken())

    with pytest.raises(ZeroDivisionError):
        world.run(20)


@pytest.mark.medium
@BOTH
def test_close_ends_a_member_in_every_state(behaviour: Behaviour) -> None:
    for after in (0, 0.001, 0.003, 0.01, 0.02, 3, 4.05, 4.1):
        world = World(min_session_timeout_ms=1_000)
        world.start("other", behaviour, session_timeout=6 * SECOND)
        world.run(20)
        member = world.start("a", behaviour, session_timeout=6 * SECOND)
        world.run(after)
        member.close()
        member.close()
        world.run(60)
        assert world.trace.names("a").count("closed") == 1
        assert member.state is MemberState.ENDED
        assert member.owned == ()
        assert len(world.trace.owned["other"]) == 6
        assert world.group.state is State.STABLE


@BOTH
def test_close_without_a_coordinator_ends(behaviour: Behaviour) -> None:
    world = World()
    member = world.start("a", behaviour)
    world.run(20)
    for broker in range(3):
        world.cluster.stop_broker(broker, clean=False)
    member.close()
    world.run(40)

    assert world.trace.names("a")[-2:] == ["revoked", "closed"]


# --- Determinism


def chaos(seed: int, behaviour: Callable[[int], Behaviour]) -> World:  # noqa: C901 - one branch a fault
    """Play random faults with members that come and go."""
    world = World({"orders": 7, "payments": 3}, seed=seed)
    random = world.scheduler.stream("chaos")
    strategy = random.choice(["range", "roundrobin", "sticky", "cooperative-sticky"])
    started = 0
    for _ in range(60):
        action = random.choice(
            ["start", "close", "kill", "stuck", "stop", "cut", "move", "broker", "isolate", "wait"]
        )
        name = random.choice(sorted(world.members)) if world.members else None
        if action == "start" and len(world.members) < 6:
            started += 1
            world.start(
                f"m{started}",
                behaviour(started),
                strategy,
                topics=("orders", "payments"),
                session_timeout=10 * SECOND,
                max_poll_interval=20 * SECOND,
            )
        elif action == "close" and name:
            world.members.pop(name).close()
        elif action == "kill" and name:
            world.kill(name)
        elif action == "stuck" and name:
            world.members[name].process_for(random.randint(1, 40) * SECOND)
        elif action == "stop" and name:
            world.members[name].process.stop(random.randint(1, 30) * SECOND)
        elif action == "cut" and name:
            world.cluster.cut(world.members[name].process)
        elif action == "isolate" and name:
            process = world.members[name].process
            world.cluster.isolate(process)
            world.scheduler.call_in(random.randint(1, 30) * SECOND, partial(world.cluster.rejoin, process))
        elif action == "move":
            world.cluster.move_coordinator()
        elif action == "broker":
            number = random.randrange(3)
            world.cluster.stop_broker(number, clean=random.random() < 0.5)
            world.scheduler.call_in(
                random.randint(1, 20) * SECOND, partial(world.cluster.start_broker, number)
            )
        world.run(random.random() * 8)
    world.start("last", behaviour(0), strategy, topics=("orders", "payments"), session_timeout=10 * SECOND)
    world.run(400)
    return world


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(12))
def test_after_random_faults_each_partition_has_one_owner_and_nothing_is_lost(seed: int) -> None:
    world = chaos(seed, lambda number: JAVA if (number + seed) % 2 else LIBRDKAFKA)

    alive = set(world.members)
    owners = {
        partition: [name for name in names if name in alive] for partition, names in world.owners().items()
    }
    assert len(owners) == 10
    assert all(len(names) == 1 for names in owners.values())
    assert world.group.state is State.STABLE
    world.check_consumed()


@pytest.mark.medium
def test_the_same_seed_replays_to_the_bit() -> None:
    def play(seed: int) -> tuple[list[tuple[int, str, str, object]], int, int]:
        world = chaos(seed, lambda number: JAVA if number % 2 else LIBRDKAFKA)
        return world.trace.events, world.scheduler.events_run, len(world.trace.messages)

    assert play(100) == play(100)
    assert play(100) != play(101)
