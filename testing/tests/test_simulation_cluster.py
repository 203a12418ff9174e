"""Virtual time, processes, connections and metadata of the simulated cluster."""

from dataclasses import dataclass, field

import pytest

from groupwright.core import ErrorCode
from groupwright.testing._simulation import broker_messages as bmsg
from groupwright.testing._simulation import messages as msg
from groupwright.testing._simulation.cluster import (
    CONNECT_TIMEOUT,
    AnyRequest,
    AnyResponse,
    Cluster,
    Connection,
    NetworkSettings,
)
from groupwright.testing._simulation.scheduler import MS, SECOND, Process, Scheduler
from groupwright.testing._simulation.settings import GroupSettings

GROUP = "group"


@dataclass
class Client:
    """A process with one connection, which records what it receives, and when."""

    cluster: Cluster
    process: Process
    broker: int = 0
    connection: Connection | None = None
    answers: list[tuple[str, AnyResponse]] = field(default_factory=list)
    failures: list[int] = field(default_factory=list)
    losses: list[int] = field(default_factory=list)

    def connect(self) -> "Client":
        self.cluster.connect(
            self.process,
            self.broker,
            lambda connection: setattr(self, "connection", connection),
            lambda: self.failures.append(self.cluster.scheduler.now),
            lambda: self.losses.append(self.cluster.scheduler.now),
        )
        return self

    def send(self, name: str, request: AnyRequest) -> None:
        assert self.connection is not None
        self.connection.send(request, lambda response: self.answers.append((name, response)))

    @property
    def names(self) -> list[str]:
        return [name for name, _ in self.answers]


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler(seed=1)


@pytest.fixture
def cluster(scheduler: Scheduler) -> Cluster:
    return Cluster(scheduler, settings=GroupSettings(initial_rebalance_delay_ms=0))


def client(cluster: Cluster, name: str = "a", broker: int = 0) -> Client:
    made = Client(cluster, Process(name, cluster.scheduler), broker).connect()
    run(cluster, SECOND)
    return made


def run(cluster: Cluster, duration: int) -> None:
    cluster.scheduler.run_until(cluster.scheduler.now + duration)


def error(response: AnyResponse) -> ErrorCode:
    assert isinstance(response, msg.JoinGroupResponse | msg.HeartbeatResponse | msg.SyncGroupResponse)
    return response.error


def join(**changed: object) -> msg.JoinGroupRequest:
    return msg.JoinGroupRequest(GROUP, version=3, **changed)  # type: ignore[arg-type]


HEARTBEAT = msg.HeartbeatRequest(GROUP, "unknown", 1)


# --- Virtual time


def test_events_run_in_order_of_time_then_of_scheduling(scheduler: Scheduler) -> None:
    ran: list[tuple[str, int]] = []
    for when, name in ((20, "c"), (10, "a"), (10, "b"), (-5, "now")):
        scheduler.call_at(when, lambda name=name: ran.append((name, scheduler.now)))  # type: ignore[misc]

    scheduler.run_until(15)

    assert ran == [("now", 0), ("a", 10), ("b", 10)]
    assert scheduler.now == 15


def test_a_cancelled_event_does_not_run(scheduler: Scheduler) -> None:
    ran: list[str] = []
    scheduler.call_in(10, lambda: ran.append("cancelled")).cancel()
    scheduler.call_in(10, lambda: ran.append("kept"))

    scheduler.run_until(100)

    assert ran == ["kept"]
    assert scheduler.events_run == 1


def test_streams_are_the_same_for_a_seed_and_a_name_alone() -> None:
    first, second = Scheduler(1), Scheduler(1)
    first.stream("other").random()

    assert first.stream("network").random() == second.stream("network").random()
    assert first.stream("network").random() != first.stream("pods").random()
    assert Scheduler(2).stream("network").random() != first.stream("network").random()


def test_a_check_follows_each_event(scheduler: Scheduler) -> None:
    seen: list[int] = []
    scheduler.after_event = lambda: seen.append(scheduler.now)
    scheduler.call_at(3, lambda: None)
    scheduler.call_at(7, lambda: None)

    scheduler.run_until(10)

    assert seen == [3, 7]


# --- Processes


def test_a_stopped_process_acts_once_it_runs_again_in_the_same_order(scheduler: Scheduler) -> None:
    process = Process("a", scheduler)
    ran: list[tuple[str, int]] = []
    for when in (10, 20, 200):
        process.call_at(when, lambda when=when: ran.append((f"at {when}", scheduler.now)))  # type: ignore[misc]
    process.stop(100)

    scheduler.run_until(300)

    assert ran == [("at 10", 100), ("at 20", 100), ("at 200", 200)]


def test_a_second_stop_replaces_the_end_of_the_first(scheduler: Scheduler) -> None:
    process = Process("a", scheduler)
    ran: list[int] = []
    process.call_at(5, lambda: ran.append(scheduler.now))
    process.stop(10)
    scheduler.run_until(8)
    process.stop(10)

    scheduler.run_until(100)

    assert ran == [18]


def test_an_event_that_is_cancelled_during_a_stop_does_not_run(scheduler: Scheduler) -> None:
    process = Process("a", scheduler)
    ran: list[int] = []
    event = process.call_at(5, lambda: ran.append(scheduler.now))
    process.stop(10)
    scheduler.run_until(8)
    event.cancel()

    scheduler.run_until(100)

    assert ran == []


@pytest.mark.parametrize("stopped", [False, True])
def test_a_killed_process_never_acts_again(scheduler: Scheduler, stopped: bool) -> None:  # noqa: FBT001
    process = Process("a", scheduler)
    ran: list[int] = []
    process.call_at(5, lambda: ran.append(scheduler.now))
    if stopped:
        process.stop(10)
        scheduler.run_until(8)
    process.kill()
    process.stop(10)  # no effect on a dead process
    process.call_at(20, lambda: ran.append(scheduler.now))

    scheduler.run_until(100)

    assert ran == []
    assert not process.stopped


# --- Connections


def test_a_connection_keeps_the_order_of_requests_and_responses() -> None:
    slow = NetworkSettings(latency=(0, 50 * MS), slow_share=0.5)
    cluster = Cluster(Scheduler(3), network=slow)
    one = client(cluster)
    names = [f"{number}" for number in range(50)]
    for name in names:
        one.send(name, HEARTBEAT)

    run(cluster, 10 * SECOND)

    assert one.names == names


def test_connections_overtake_each_other() -> None:
    cluster = Cluster(Scheduler(3), network=NetworkSettings(latency=(0, 50 * MS)))
    order: list[str] = []
    clients = [client(cluster, name) for name in "abcdefgh"]
    for each in clients:
        assert each.connection is not None
        each.connection.send(HEARTBEAT, lambda _, name=each.process.name: order.append(name))  # type: ignore[misc]

    run(cluster, SECOND)

    assert sorted(order) == list("abcdefgh")
    assert order != list("abcdefgh")


def test_a_parked_join_delays_the_requests_behind_it(cluster: Cluster) -> None:
    cluster = Cluster(cluster.scheduler)  # with the initial delay of 3 s
    one, other = client(cluster, "a"), client(cluster, "b")
    one.send("join", join())
    one.send("heartbeat", HEARTBEAT)
    other.send("heartbeat", HEARTBEAT)

    run(cluster, SECOND)
    assert one.names == []
    assert other.names == ["heartbeat"]

    run(cluster, 10 * SECOND)
    assert one.names == ["join", "heartbeat"]
    assert error(one.answers[1][1]) is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_request_that_has_arrived_is_handled_after_its_connection_is_closed(cluster: Cluster) -> None:
    one = client(cluster)
    one.send("join", join())
    assert one.connection is not None
    one.connection.close()

    run(cluster, SECOND)

    group = cluster.coordinator.group(GROUP)
    assert group is not None
    assert len(group.members) == 1
    assert one.answers == []
    assert one.losses == []


def test_a_cut_connection_is_reported_and_loses_what_is_on_its_way(cluster: Cluster) -> None:
    one = client(cluster)
    one.send("heartbeat", HEARTBEAT)
    cluster.cut(one.process)

    run(cluster, SECOND)

    assert len(one.losses) == 1
    assert one.answers == []
    one.connect()
    run(cluster, SECOND)
    one.send("again", HEARTBEAT)
    run(cluster, SECOND)
    assert one.names == ["again"]


def test_an_isolated_process_hears_nothing_and_its_connections_stay_half_open(cluster: Cluster) -> None:
    one = client(cluster)
    cluster.isolate(one.process)
    one.send("lost", HEARTBEAT)
    assert not cluster.reaches(one.process, 0)
    run(cluster, 100 * SECOND)
    assert one.connection is not None
    assert one.connection.open

    cluster.rejoin(one.process)
    one.send("still lost", HEARTBEAT)
    run(cluster, 100 * SECOND)

    assert cluster.reaches(one.process, 0)
    assert (one.names, one.losses, one.failures) == ([], [], [])


def test_a_half_open_connection_does_not_hear_of_its_brokers_end(cluster: Cluster) -> None:
    one, other = client(cluster, "a"), client(cluster, "b")
    cluster.isolate(one.process)

    cluster.stop_broker(0, clean=True)
    run(cluster, SECOND)

    assert one.losses == []
    assert len(other.losses) == 1


def test_an_isolated_process_fails_to_connect_after_a_timeout(cluster: Cluster) -> None:
    process = Process("a", cluster.scheduler)
    cluster.isolate(process)
    one = Client(cluster, process).connect()

    run(cluster, CONNECT_TIMEOUT - SECOND)
    assert one.failures == []
    run(cluster, 2 * SECOND)

    assert len(one.failures) == 1


def test_a_stopped_broker_refuses_connections_until_it_starts(cluster: Cluster) -> None:
    cluster.stop_broker(1, clean=True)
    one = client(cluster, broker=1)
    assert len(one.failures) == 1

    cluster.start_broker(1)
    one.connect()
    run(cluster, SECOND)

    assert one.connection is not None
    assert one.connection.open


# --- Metadata


def topics(cluster: Cluster, one: Client) -> bmsg.MetadataResponse:
    one.send("metadata", bmsg.MetadataRequest(None))
    run(cluster, 200 * MS)
    response = one.answers[-1][1]
    assert isinstance(response, bmsg.MetadataResponse)
    return response


def test_metadata_lags_and_never_goes_back() -> None:
    cluster = Cluster(Scheduler(5), network=NetworkSettings(metadata_lag=5 * SECOND))
    clients = [client(cluster, f"c{number}", number) for number in range(3)]
    cluster.create_topic("orders", 1)
    seen: list[list[int]] = [[] for _ in clients]
    for partitions in range(2, 30):
        cluster.add_partitions("orders", partitions)
        for counts, one in zip(seen, clients, strict=True):
            counts.append(topics(cluster, one).topics.get("orders", 0))

    assert all(counts == sorted(counts) for counts in seen)
    assert len({tuple(counts) for counts in seen}) > 1  # the brokers do not agree all the time
    run(cluster, 5 * SECOND)
    assert [topics(cluster, one).topics["orders"] for one in clients] == [29, 29, 29]


def test_a_topic_that_is_created_again_has_another_id(cluster: Cluster) -> None:
    one = client(cluster)
    cluster.create_topic("orders", 2)
    run(cluster, SECOND)
    first = topics(cluster, one).ids["orders"]
    cluster.delete_topic("orders")
    run(cluster, SECOND)
    assert topics(cluster, one).topics == {}
    cluster.create_topic("orders", 2)
    run(cluster, SECOND)

    assert topics(cluster, one).ids["orders"] != first


def test_those_that_wait_for_messages_are_called_once(cluster: Cluster) -> None:
    cluster.create_topic("orders", 2)
    called: list[str] = []
    cluster.topics["orders"].fetchers[0] = [lambda: called.append("partition 0")]
    cluster.topics["orders"].fetchers[1] = [lambda: called.append("deleted")]

    cluster.produce("orders", 0)
    cluster.produce("orders", 0, 5)
    assert cluster.topics["orders"].ends == [6, 0]
    assert called == ["partition 0"]

    cluster.delete_topic("orders")
    assert called == ["partition 0", "deleted"]


def test_a_partition_is_led_by_a_live_broker(cluster: Cluster) -> None:
    assert [cluster.leader(("orders", partition)) for partition in range(4)] == [0, 1, 2, 0]
    cluster.stop_broker(1, clean=True)
    assert [cluster.leader(("orders", partition)) for partition in range(4)] == [0, 2, 2, 0]
    cluster.stop_broker(0, clean=True)
    cluster.stop_broker(2, clean=True)
    assert cluster.leader(("orders", 0)) == -1


def test_offsets_are_listed_by_the_leader_alone(cluster: Cluster) -> None:
    cluster.create_topic("orders", 2)
    cluster.produce("orders", 0, 7)
    one = client(cluster, broker=0)
    wanted = (("orders", 0), ("orders", 1), ("missing", 0))
    one.send("end", bmsg.ListOffsetsRequest(wanted, end=True))
    one.send("beginning", bmsg.ListOffsetsRequest(wanted, end=False))
    run(cluster, SECOND)

    assert [
        response.offsets for _, response in one.answers if isinstance(response, bmsg.ListOffsetsResponse)
    ] == [
        {("orders", 0): 7},
        {("orders", 0): 0},
    ]


# --- The coordinator


def coordinator(cluster: Cluster, one: Client) -> bmsg.FindCoordinatorResponse:
    one.send("find", bmsg.FindCoordinatorRequest(GROUP))
    run(cluster, 100 * MS)
    response = one.answers[-1][1]
    assert isinstance(response, bmsg.FindCoordinatorResponse)
    return response


def test_only_the_coordinators_broker_answers_for_the_group(cluster: Cluster) -> None:
    one = client(cluster, broker=1)
    one.send("join", join())
    run(cluster, SECOND)

    assert error(one.answers[0][1]) is ErrorCode.NOT_COORDINATOR
    assert coordinator(cluster, one).broker == 0


def test_a_coordinator_that_moves_answers_parked_requests(cluster: Cluster) -> None:
    cluster = Cluster(cluster.scheduler)
    one = client(cluster)
    one.send("join", join())
    run(cluster, 100 * MS)

    cluster.move_coordinator()
    run(cluster, SECOND)

    assert [(name, error(response)) for name, response in one.answers] == [
        ("join", ErrorCode.NOT_COORDINATOR)
    ]
    one.send("heartbeat", HEARTBEAT)
    run(cluster, SECOND)
    assert error(one.answers[1][1]) is ErrorCode.NOT_COORDINATOR
    assert coordinator(cluster, one).broker == cluster.coordinator_broker != 0


def test_a_coordinator_that_crashed_answers_nothing_when_the_next_one_moves_while_it_loads(
    cluster: Cluster,
) -> None:
    cluster = Cluster(cluster.scheduler)
    one = client(cluster)
    one.send("join", join())
    run(cluster, 100 * MS)

    cluster.stop_broker(0, clean=False, election=10 * MS)
    run(cluster, 20 * MS)
    cluster.move_coordinator()
    run(cluster, SECOND)

    assert one.answers == []


def test_a_coordinator_that_loads_says_so(cluster: Cluster) -> None:
    cluster.move_coordinator(loading=10 * SECOND)
    assert cluster.coordinator_broker is not None
    one = client(cluster, broker=cluster.coordinator_broker)
    one.send("join", join())
    run(cluster, SECOND)
    assert error(one.answers[0][1]) is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    run(cluster, 10 * SECOND)
    one.send("join", join())
    run(cluster, SECOND)
    assert error(one.answers[1][1]) is ErrorCode.NONE


def commit(cluster: Cluster) -> None:
    one = client(cluster, "admin", cluster.coordinator_broker or 0)
    one.send("commit", msg.OffsetCommitRequest(GROUP, ((("orders", 0), msg.CommittedOffset(5)),)))
    run(cluster, SECOND)
    assert cluster.coordinator.committed(GROUP, ("orders", 0)) == 5


def test_a_commit_of_an_unknown_topic_is_refused_by_the_broker_alone(cluster: Cluster) -> None:
    cluster.create_topic("orders", 1)
    one = client(cluster, "admin", cluster.coordinator_broker or 0)
    offsets = ((("unknown", 0), msg.CommittedOffset(1)), (("orders", 0), msg.CommittedOffset(5)))
    one.send("both", msg.OffsetCommitRequest(GROUP, offsets))
    one.send("unknown", msg.OffsetCommitRequest(GROUP, offsets[:1]))
    run(cluster, SECOND)

    both, unknown = (answer for _, answer in one.answers)
    assert isinstance(both, msg.OffsetCommitResponse)
    assert isinstance(unknown, msg.OffsetCommitResponse)
    assert dict(both.partitions) == {
        ("unknown", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ("orders", 0): ErrorCode.NONE,
    }
    assert unknown.partitions == ((("unknown", 0), ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),)
    assert cluster.coordinator.committed(GROUP, ("orders", 0)) == 5


def test_the_log_survives_a_move_and_a_crash(cluster: Cluster) -> None:
    cluster.create_topic("orders", 1)
    commit(cluster)

    cluster.move_coordinator()
    run(cluster, SECOND)
    assert cluster.coordinator.committed(GROUP, ("orders", 0)) == 5

    cluster.stop_broker(cluster.coordinator_broker or 0, clean=False, election=2 * SECOND)
    one = client(cluster, broker=next(each.number for each in cluster.brokers if each.up))
    crashed = cluster.brokers[coordinator(cluster, one).broker]
    assert not crashed.up, "others take it for alive until its session ends"
    run(cluster, 3 * SECOND)
    assert coordinator(cluster, one).broker == cluster.coordinator_broker
    assert cluster.coordinator.committed(GROUP, ("orders", 0)) == 5


def test_a_topic_that_is_deleted_while_the_coordinator_loads_has_no_offsets(cluster: Cluster) -> None:
    cluster.create_topic("orders", 1)
    commit(cluster)
    cluster.move_coordinator(loading=SECOND)
    cluster.delete_topic("orders")

    run(cluster, 2 * SECOND)

    assert cluster.coordinator.committed(GROUP, ("orders", 0)) == -1


def test_the_only_broker_is_the_coordinator_again_after_a_restart(scheduler: Scheduler) -> None:
    cluster = Cluster(scheduler, brokers=1, settings=GroupSettings(initial_rebalance_delay_ms=0))
    cluster.create_topic("orders", 1)
    commit(cluster)
    first = cluster.coordinator

    cluster.stop_broker(0, clean=True)
    assert cluster.coordinator_broker is None
    cluster.move_coordinator()  # to no one
    run(cluster, 10 * SECOND)
    cluster.start_broker(0)
    run(cluster, SECOND)

    assert cluster.coordinator_broker == 0
    assert cluster.coordinator is not first
    assert cluster.coordinator.committed(GROUP, ("orders", 0)) == 5


def test_sessions_end_in_virtual_time(cluster: Cluster) -> None:
    one = client(cluster)
    one.send("join", join(session_timeout_ms=6_000))
    run(cluster, 5 * SECOND)
    group = cluster.coordinator.group(GROUP)
    assert group is not None
    assert len(group.members) == 1

    run(cluster, 2 * SECOND)

    assert group.members == {}


def test_the_same_seed_gives_the_same_times() -> None:
    def times(seed: int) -> list[tuple[int, str]]:
        cluster = Cluster(Scheduler(seed))
        answered: list[tuple[int, str]] = []
        cluster.on_answer = lambda process, *_: answered.append((cluster.scheduler.now, process.name))
        for name in "abc":
            one = client(cluster, name)
            one.send("join", join(client_id=name))
            one.send("heartbeat", HEARTBEAT)
        run(cluster, 20 * SECOND)
        return answered

    assert times(1) == times(1)
    assert times(1) != times(2)


def test_a_broker_that_moves_has_a_new_address_which_the_others_learn(cluster: Cluster) -> None:
    cluster.stop_broker(1, clean=True)
    run(cluster, SECOND)
    cluster.start_broker(1, moves=True)
    run(cluster, SECOND)
    assert cluster.brokers[1].address == len(cluster.brokers)

    one = client(cluster)
    one.send("topics", bmsg.MetadataRequest())
    run(cluster, SECOND)
    (response,) = [response for _, response in one.answers]
    assert isinstance(response, bmsg.MetadataResponse)
    assert response.addresses == {0: 0, 1: len(cluster.brokers), 2: 2}

    failed: list[bool] = []
    cluster.connect_to(one.process, 1, lambda _: None, lambda: failed.append(True), lambda: None)
    run(cluster, SECOND)
    assert failed == [True], "nobody has the former address"
