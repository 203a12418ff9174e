"""From a subscription to an assignment, and what each answer on the way does to that."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from groupwright.assignors import JoinedMember
from groupwright.consumer import Phase
from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.error_policy import Api, ErrorAction, classify
from groupwright.consumer._protocol.events import Assign, Revoke
from groupwright.consumer._protocol.model import UNREADABLE, MemberIdentity, MetadataResponse, Offset
from groupwright.consumer._protocol.transitions import State
from groupwright.core import ErrorCode, error_name

if TYPE_CHECKING:
    from consumer.tests.conftest import Player

AT_ONCE, LATER, ELSEWHERE = "at once", "after a pause", "once the coordinator is found again"

SAME_AGAIN = [
    pytest.param(14, LATER, id="the coordinator is loading"),
    pytest.param(15, ELSEWHERE, id="the coordinator is not available"),
    pytest.param(16, ELSEWHERE, id="it is not the coordinator"),
    pytest.param(27, AT_ONCE, id="rebalance in progress"),
    pytest.param(None, ELSEWHERE, id="the connection broke"),
]
TO_THE_USER = {
    api: [code for code in (*ErrorCode, 999) if classify(api, code) is ErrorAction.FATAL]
    for api in (Api.JOIN_GROUP, Api.SYNC_GROUP)
}
TO_THE_USER[Api.JOIN_GROUP].remove(ErrorCode.MEMBER_ID_REQUIRED)  # no error: the member joins with its id


def joins(player: "Player", when: str) -> str:
    """Let the next JoinGroup be sent when it should be, and no sooner; return its subscription."""
    if when is not AT_ONCE:
        assert not player.asks(act.SendJoinGroup)
        assert player.asks(act.FindCoordinator) is (when is ELSEWHERE)
        if when is ELSEWHERE:
            player.find()
        assert not player.asks(act.SendJoinGroup)
        player.wait(player.timing.retry_backoff_max)
    (action,) = (action for action in player.asked if isinstance(action, act.SendJoinGroup))
    ((_, subscription),) = action.request.protocols
    return f"as {action.request.member_id!r}: {subscription.decode()}"


def rejoining(stable: "Player") -> None:
    """Bring a stable member to where it has given its partitions up, and JoinGroup is under way."""
    stable.beat()
    stable.answer_heartbeat(27)
    assert isinstance(stable.serve(), Revoke)
    assert stable.member.state is State.PREPARING_REBALANCE


def test_the_whole_way_into_a_group(player: "Player") -> None:
    """KIP-394: the first JoinGroup brings only an id, so that a lost answer leaves no ghost member behind."""
    player.subscribe("t", "u")
    assert player.asked == [act.FindCoordinator()]

    player.find()
    first = player.take(act.SendJoinGroup)
    assert first.request.member_id == ""
    assert first.request.protocols == (("range", b"t,u owns [] of generation -1"),)
    assert first.request.reason == "the consumer subscribed"

    player.asked.append(first)
    player.answer_join(79, member_id="m-1")
    assert joins(player, AT_ONCE) == "as 'm-1': t,u owns [] of generation -1"
    assert player.member.state.name == "PREPARING_REBALANCE"

    player.answer_join()
    assert player.member.state.name == "COMPLETING_REBALANCE"
    assert player.member.identity == MemberIdentity(1, "m-1", "range")

    player.answer_sync({"t": (0, 2), "u": (1,)})
    assert player.member.state is State.STABLE
    assert player.notified == [act.NotifyAssignor("range", {"t": (0, 2), "u": (1,)}, 1)]
    assert not player.inbox

    player.answer_offsets(committed=7)
    event = player.serve()
    assert isinstance(event, Assign)
    assert event.gained == player.member.owned == {"t": (0, 2), "u": (1,)}
    assert {key: start.offset for key, start in event.offsets.items()} == {
        ("t", 0): 7,
        ("t", 2): 7,
        ("u", 1): 7,
    }
    assert event.identity == MemberIdentity(1, "m-1", "range")
    assert player.asked == []


def test_nothing_is_sent_before_a_subscription(player: "Player") -> None:
    player.wait(60)

    assert player.asked == []
    assert player.member.next_tick(player.now) is None


def test_the_same_subscription_again_is_another_rebalance_of_an_eager_member(stable: "Player") -> None:
    """As in librdkafka, which gives the former subscription up first."""
    stable.subscribe("t")
    event = stable.serve()

    assert isinstance(event, Revoke)
    assert (event.partitions, event.lost) == ({"t": (0, 1)}, False)
    stable.settle({"t": (0, 1)})


def test_the_same_subscription_again_changes_nothing_for_a_cooperative_member(
    new_player: Callable[..., "Player"],
) -> None:
    player = new_player(cooperative=True)
    player.join({"t": (0,)})
    player.subscribe("t")

    assert player.asked == []
    assert not player.inbox


def test_the_leader_plans_and_a_follower_only_asks(player: "Player") -> None:
    player.plan()
    plan = player.take(act.PerformAssignment)
    assert (plan.protocol, [member.id for member in plan.members]) == ("range", ["m-1"])
    assert not player.asks(act.SendSyncGroup)

    computed = act.GroupAssignment({"m-1": b"t:0"}, frozenset({"t"}), MetadataResponse())
    player.reply(plan, act.Answered(computed))
    assert player.take(act.SendSyncGroup).assignment is computed


def test_a_leader_that_the_coordinator_tells_to_skip_the_plan_sends_an_empty_one(player: "Player") -> None:
    """KIP-814: a static leader that comes back to a stable group gets its old assignment."""
    player.subscribe("t")
    player.find()
    player.answer_join(leads=True, skip_assignment=True)

    assert player.asked[0] == act.PerformAssignment(
        player.member.facts.attempt, "range", (JoinedMember("m-1", None, b""),), skip=True
    )
    player.answer_plan({"t": 2})
    sent = player.take(act.SendSyncGroup).assignment
    assert sent is not None
    assert sent.assignments == {}


def test_a_group_without_a_leader_is_no_error(player: "Player") -> None:
    """A KIP-848 group answers classic members with no leader and no members."""
    player.subscribe("t")
    player.find()
    player.answer_join(leader="", members=())
    player.answer_sync({"t": (0,)})

    assert player.member.state is State.STABLE


def test_an_old_brokers_answers_name_no_type_and_no_protocol(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join(protocol_type=None)
    player.answer_sync({"t": (0,)}, protocol_type=None, protocol=None)

    assert player.member.state is State.STABLE
    assert not player.refused


def test_a_member_without_an_assignment_gets_an_empty_one(player: "Player") -> None:
    """A leader that leaves a member out sends it no bytes; other clients raise an error at each poll."""
    player.join({})

    assert isinstance(player.served[-1], Assign)
    assert player.served[-1].gained == {}


def test_a_rejoin_gives_everything_up_first_even_if_that_is_nothing(player: "Player") -> None:
    """Eager: each on_assign has its on_revoke, empty or not; but the first join has nothing to revoke."""
    player.join({})
    assert [type(event) for event in player.served] == [Assign]

    player.beat()
    player.answer_heartbeat(27)
    event = player.serve()
    assert isinstance(event, Revoke)
    assert (event.partitions, event.lost) == ({}, False)
    assert joins(player, AT_ONCE) == "as 'm-1': t owns [] of generation 1"


# --- JoinGroup's errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "when"), SAME_AGAIN)
def test_joining_is_tried_again_with_the_same_ids(stable: "Player", error: int | None, when: str) -> None:
    rejoining(stable)

    stable.disconnect() if error is None else stable.answer_join(error)

    assert joins(stable, when) == "as 'm-1': t owns [] of generation 1"
    assert stable.drops == (1 if when is ELSEWHERE else 0)
    assert not stable.inbox
    assert not stable.refused


@pytest.mark.parametrize(
    ("error", "next_join"),
    [
        pytest.param(25, "as '': t owns [] of generation -1", id="unknown member id"),
        pytest.param(69, "as '': t owns [] of generation -1", id="group id not found"),
        pytest.param(22, "as 'm-1': t owns [] of generation -1", id="illegal generation"),
    ],
)
def test_ids_that_the_coordinator_does_not_know_are_dropped_at_joining(
    stable: "Player", error: int, next_join: str
) -> None:
    """A first join that waits more than five minutes is answered UNKNOWN_MEMBER_ID: it just starts over."""
    rejoining(stable)

    stable.answer_join(error)

    assert joins(stable, AT_ONCE) == next_join
    assert not stable.inbox


@pytest.mark.parametrize("error", TO_THE_USER[Api.JOIN_GROUP], ids=error_name)
def test_a_refusal_to_join_is_told_and_tried_again_when_the_application_polls(
    stable: "Player", error: int
) -> None:
    rejoining(stable)

    stable.answer_join(error)
    assert [refusal.error for refusal in stable.refused] == [error]
    assert stable.refused[0].timeline is not None
    stable.wait(60, polling=False)
    assert not stable.asks(act.SendJoinGroup)

    stable.feed(stable.member.resume)
    assert joins(stable, AT_ONCE) == "as 'm-1': t owns [] of generation 1"


def test_an_application_that_polls_on_after_a_refusal_does_not_ask_in_a_loop(stable: "Player") -> None:
    rejoining(stable)
    pauses = []
    for _ in range(5):
        stable.answer_join(81)
        stable.feed(stable.member.resume)
        refused_at = stable.now
        while not stable.asks(act.SendJoinGroup):
            due = stable.member.next_tick(stable.now)
            assert due is not None
            stable.wait_until(due)
        pauses.append(stable.now - refused_at)

    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0])
    stable.answer_join()
    stable.answer_sync(error=14)
    stable.wait(0.1)
    assert stable.asks(act.SendJoinGroup)


def test_an_assignment_that_cannot_be_read_is_reported_each_time_and_does_not_keep_the_group_rebalancing(
    stable: "Player",
) -> None:
    """Each JoinGroup rebalances the group; without longer pauses, that was seven times a second."""
    rejoining(stable)
    pauses = []
    for attempt in range(1, 6):
        stable.answer_join()
        stable.answer_sync(b"!")
        assert len(stable.refused) == attempt
        stable.feed(stable.member.resume)
        failed_at = stable.now
        while not stable.asks(act.SendJoinGroup):
            due = stable.member.next_tick(stable.now)
            assert due is not None
            stable.wait_until(due)
        pauses.append(stable.now - failed_at)
    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0])

    stable.answer_join()
    stable.answer_sync({"t": (0, 1)})
    stable.answer_offsets()
    stable.serve()
    rejoining(stable)
    stable.answer_join()
    stable.answer_sync(b"!")
    stable.feed(stable.member.resume)
    stable.wait(0.1)
    assert stable.asks(act.SendJoinGroup), "the pause is the shortest again"


@pytest.mark.parametrize("joining", [True, False], ids=["JoinGroup", "SyncGroup"])
def test_a_group_of_another_type_is_refused(player: "Player", *, joining: bool) -> None:
    player.subscribe("t")
    player.find()
    if joining:
        player.answer_join(protocol_type="connect")
    else:
        player.answer_join()
        player.answer_sync({"t": (0,)}, protocol_type="connect")

    assert player.refused[0].error == 23
    assert "'connect'" in player.refused[0].detail
    assert not player.inbox


def test_a_broker_that_is_too_old_is_reported_and_not_retried(stable: "Player") -> None:
    """The client knows before it sends; it treated this as a broken connection and retried forever."""
    rejoining(stable)
    sent = stable.take(act.SendJoinGroup)
    stable.reply(sent, act.Refused(35, "the broker is too old"))

    assert [(refusal.error, refusal.detail) for refusal in stable.refused] == [(35, "the broker is too old")]
    stable.wait(60, polling=False)
    assert not stable.asks(act.SendJoinGroup)
    stable.feed(stable.member.resume)
    assert stable.asks(act.SendJoinGroup)


@pytest.mark.parametrize(
    "kind", [act.SendJoinGroup, act.PerformAssignment, act.SendSyncGroup, act.FetchOffsets]
)
def test_a_step_that_a_defect_cut_short_does_not_stay_open(
    player: "Player",
    kind: type[act.SendJoinGroup | act.PerformAssignment | act.SendSyncGroup | act.FetchOffsets],
) -> None:
    """The member would have waited for its answer as long as the process lived."""
    player.subscribe("t")
    player.find()
    if kind is not act.SendJoinGroup:
        player.answer_join(leads=kind is act.PerformAssignment)
    if kind is act.FetchOffsets:
        player.answer_sync({"t": (0,)})
    player.reply(player.take(kind), act.Broken())
    assert not player.asks(act.SendJoinGroup)

    player.feed(player.member.resume)
    player.wait(player.timing.retry_backoff)
    player.settle({"t": (0,)})


# --- SyncGroup's errors ---------------------------------------------------------------------------------


@pytest.mark.parametrize(("error", "when"), SAME_AGAIN)
def test_after_a_failed_sync_the_new_generation_is_kept(
    stable: "Player", error: int | None, when: str
) -> None:
    """KAFKA-13891: resetting it revoked everything. The Java client does not handle error 14 here."""
    rejoining(stable)
    stable.answer_join()

    stable.disconnect() if error is None else stable.answer_sync(error=error)

    assert joins(stable, when) == "as 'm-1': t owns [] of generation 2"
    assert not stable.inbox
    assert not stable.refused


@pytest.mark.parametrize(
    ("error", "next_join"),
    [
        pytest.param(22, "as 'm-1': t owns [] of generation -1", id="illegal generation"),
        pytest.param(25, "as '': t owns [] of generation -1", id="unknown member id"),
    ],
)
def test_ids_that_the_coordinator_does_not_know_are_dropped_at_syncing(
    stable: "Player", error: int, next_join: str
) -> None:
    rejoining(stable)
    stable.answer_join()

    stable.answer_sync(error=error)

    assert joins(stable, AT_ONCE) == next_join
    assert not stable.inbox


@pytest.mark.parametrize("error", TO_THE_USER[Api.SYNC_GROUP], ids=error_name)
def test_a_refusal_to_sync_is_told_and_tried_again_when_the_application_polls(
    stable: "Player", error: int
) -> None:
    rejoining(stable)
    stable.answer_join()

    stable.answer_sync(error=error)
    assert [refusal.error for refusal in stable.refused] == [error]
    stable.wait(1)
    assert not stable.asks(act.SendJoinGroup)

    stable.feed(stable.member.resume)
    assert stable.asks(act.SendJoinGroup)


def test_an_assignment_of_another_protocol_is_refused(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": (0,)}, protocol="roundrobin")

    assert player.refused[0].error == 23
    assert player.refused[0].detail == "SyncGroup says 'roundrobin', JoinGroup said 'range'"


def test_an_assignment_that_cannot_be_read_is_told(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync(b"!")

    assert player.refused[0].error == 0
    assert "cannot be read: malformed assignment" in player.refused[0].detail
    assert not player.inbox


def test_an_assignment_of_a_topic_that_was_not_asked_for_is_dropped(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": (0,), "other": (0,)})

    assert not player.inbox
    assert joins(player, LATER) == "as 'm-1': t owns [] of generation 1"


@pytest.mark.parametrize("syncing", [False, True], ids=["JoinGroup", "SyncGroup"])
@pytest.mark.parametrize("static", [False, True], ids=["dynamic", "static"])
def test_a_member_that_was_replaced_never_joins_again(
    new_player: Callable[..., "Player"], *, static: bool, syncing: bool
) -> None:
    player = new_player(static=static)
    player.subscribe("t")
    player.find()
    if syncing:
        player.answer_join()
        player.answer_sync(error=82)
    else:
        player.answer_join(82)
    assert [refusal.error for refusal in player.refused] == [82]

    player.feed(player.member.resume)
    player.subscribe("u")
    player.wait(60)
    assert player.asked == []


def test_a_static_member_is_not_fenced_by_itself(new_player: Callable[..., "Player"]) -> None:
    """A broker restarted during SyncGroup; the next coordinator knew "one" by the id of an older generation.

    Found by the soak: a member that rejoined was given a new id, and its SyncGroup was answered
    NOT_COORDINATOR. The stored group held its former id, so JoinGroup with the new one was answered
    FENCED_INSTANCE_ID forever, though no other member had its group.instance.id.
    """
    player = new_player(static=True)
    player.subscribe("t")
    player.find()
    player.answer_join(member_id="m-2")
    player.answer_sync(error=16)
    assert joins(player, ELSEWHERE) == "as 'm-2': t owns [] of generation 1"

    player.answer_join(82)

    assert not player.refused
    assert joins(player, AT_ONCE) == "as '': t owns [] of generation -1"


def test_a_static_leader_is_not_fenced_by_itself(new_player: Callable[..., "Player"]) -> None:
    """The same, where the coordinator moves while the leader plans: it is SyncGroup that is answered so."""
    player = new_player(static=True)
    player.plan()
    player.beat()
    player.disconnect()
    player.answer_plan({"t": 2})

    player.answer_sync(error=82)

    assert not player.refused
    assert joins(player, ELSEWHERE) == "as '': t owns [] of generation -1"


def test_a_static_member_is_fenced_once_the_group_was_stored_with_its_id(
    new_player: Callable[..., "Player"],
) -> None:
    player = new_player(static=True)
    player.subscribe("t")
    player.find()
    player.answer_join(member_id="m-2")
    player.answer_sync(error=16)
    joins(player, ELSEWHERE)
    player.answer_join(member_id="m-2")
    player.answer_sync({"t": (0,)})
    player.answer_offsets()
    player.serve()

    player.answer_heartbeat()  # sent as of the generation before
    player.beat()
    player.answer_heartbeat(82)

    assert [refusal.error for refusal in player.refused] == [82]


# --- The assignor's errors ------------------------------------------------------------------------------


def test_an_assignor_that_fails_is_told_and_tried_again_when_the_application_polls(player: "Player") -> None:
    player.plan()
    player.reply(player.take(act.PerformAssignment), act.Refused(0, "the assignor failed: why"))

    assert [(refusal.error, refusal.detail) for refusal in player.refused] == [
        (0, "the assignor failed: why")
    ]
    assert player.asked == []
    player.wait(60)
    assert player.asked == []

    player.feed(player.member.resume)
    assert joins(player, AT_ONCE) == "as 'm-1': t owns [] of generation 1"


# --- OffsetFetch's errors -------------------------------------------------------------------------------


def fetching(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.answer_sync({"t": (0, 1)})


@pytest.mark.parametrize(
    ("group_error", "partition_error", "elsewhere"),
    [
        pytest.param(14, 0, False, id="the coordinator is loading"),
        pytest.param(15, 0, True, id="the coordinator is not available"),
        pytest.param(16, 0, True, id="it is not the coordinator"),
        pytest.param(0, 88, False, id="an open transaction may change an offset"),
        pytest.param(0, 3, False, id="a topic is not known yet"),
        pytest.param(None, 0, True, id="the connection broke"),
    ],
)
def test_offsets_that_cannot_be_read_yet_are_all_fetched_again(
    player: "Player", group_error: int | None, partition_error: int, *, elsewhere: bool
) -> None:
    """An open transaction must never send a partition to its reset policy: that would lose or repeat."""
    fetching(player)

    if group_error is None:
        player.disconnect()
    else:
        player.answer_offsets(error=group_error, errors={("t", 0): 0, ("t", 1): partition_error})
    assert not player.inbox
    assert player.asks(act.FindCoordinator) is elsewhere
    if elsewhere:
        player.find()
    assert not player.asks(act.FetchOffsets)
    player.wait(player.timing.retry_backoff_max)
    player.answer_offsets()

    assert isinstance(player.serve(), Assign)
    assert not player.refused


@pytest.mark.parametrize(("group_error", "partition_error"), [(30, 0), (30, 29), (-1, 0)])
def test_offsets_that_are_refused_are_told(player: "Player", group_error: int, partition_error: int) -> None:
    fetching(player)

    player.answer_offsets(error=group_error, errors={("t", 0): 0, ("t", 1): partition_error})
    assert [refusal.error for refusal in player.refused] == [group_error or partition_error]
    assert not player.inbox

    player.wait(1)
    player.feed(player.member.resume)
    player.settle({"t": (0,)})


@pytest.mark.parametrize("error", [29, 999])
def test_an_offset_that_may_not_be_read_stops_no_other_partition(player: "Player", error: int) -> None:
    """A member assigned a topic that it may not read failed here, rejoined, and its group never settled."""
    fetching(player)

    player.answer_offsets(errors={("t", 0): 0, ("t", 1): error})

    event = player.serve()
    assert isinstance(event, Assign)
    assert event.offsets == {("t", 0): Offset(7), ("t", 1): UNREADABLE}
    assert not player.refused


def test_a_rebalance_ends_the_fetching_of_offsets(player: "Player") -> None:
    """franz-go 1.2.2: partitions kept over a rebalance were never fetched, or assigned twice."""
    fetching(player)
    late = player.take(act.FetchOffsets)
    player.beat()
    player.answer_heartbeat(27)
    assert joins(player, AT_ONCE) == "as 'm-1': t owns [] of generation 1"

    player.asked.append(late)
    player.answer_offsets()
    assert not player.inbox

    player.settle({"t": (0,)})
    assert [type(event) for event in player.served] == [Assign]


# --- The coordinator's look-up --------------------------------------------------------------------------


def test_the_look_up_is_repeated_with_growing_pauses(player: "Player") -> None:
    player.subscribe("t")
    started = player.now
    for _ in range(8):
        player.take(act.FindCoordinator)
        player.reply(act.FindCoordinator(), act.Disconnected())
        assert not player.asks(act.FindCoordinator)
        due = player.member.next_tick(player.now)
        assert due is not None
        player.wait(due - player.now)

    assert player.now - started == pytest.approx(0.1 + 0.2 + 6 * 0.25)
    assert not player.refused


def test_a_refused_look_up_is_told_and_tried_again_when_the_application_polls(player: "Player") -> None:
    player.subscribe("t")
    player.take(act.FindCoordinator)
    player.reply(act.FindCoordinator(), act.Refused(30, "not allowed"))
    assert [(refusal.error, refusal.detail) for refusal in player.refused] == [(30, "not allowed")]
    player.wait(60)
    assert player.asked == []

    player.feed(player.member.resume)
    player.find()
    assert player.asks(act.SendJoinGroup)


# --- Subscriptions that change --------------------------------------------------------------------------


def test_a_new_subscription_gives_everything_up_and_joins_again(stable: "Player") -> None:
    stable.subscribe("u")
    stable.see()
    event = stable.serve()

    assert isinstance(event, Revoke)
    assert (event.partitions, event.lost) == ({"t": (0, 1)}, False)
    assert joins(stable, AT_ONCE) == "as 'm-1': u owns [] of generation 1"
    assert stable.take(act.SendJoinGroup).request.reason == "the subscription changed"


def test_a_subscription_that_changes_during_the_join_is_joined_with_next(player: "Player") -> None:
    """KAFKA-7961: an assignment for topics that were just unsubscribed."""
    player.subscribe("t")
    player.find()
    player.subscribe("u")
    player.see()
    player.answer_join()
    player.answer_sync({"t": (0,)})

    assert not player.inbox
    assert joins(player, AT_ONCE) == "as 'm-1': u owns [] of generation 1"


# --- Its timeline ---------------------------------------------------------------------------------------


def test_a_rebalance_is_measured_in_its_phases(stable: "Player") -> None:
    stable.beat()
    began = stable.now
    stable.answer_heartbeat(27)
    stable.wait(0.5)
    stable.serve()
    stable.wait(1)
    stable.answer_join()
    stable.wait(2)
    stable.answer_sync({"t": (0,)})
    stable.wait(0.25)
    stable.answer_offsets()
    event = stable.inbox[0]
    assert isinstance(event, Assign)
    assert event.timeline is not None
    event.timeline.end(Phase.ASSIGN, stable.now + 0.125)

    assert event.timeline.started == began
    assert event.timeline.reason == "members or partitions changed"
    assert not event.timeline.lost
    assert event.timeline.phases == pytest.approx(
        {Phase.REVOKE: 0.5, Phase.JOIN: 1.0, Phase.SYNC: 2.0, Phase.ASSIGN: 0.375}
    )


def test_the_time_of_a_sync_that_failed_is_part_of_the_rebalance(player: "Player") -> None:
    player.subscribe("t")
    player.find()
    player.answer_join()
    player.wait(2)
    player.answer_sync(error=27)
    player.wait(1)
    player.answer_join()
    player.answer_sync({})
    event = player.inbox[0]

    assert isinstance(event, Assign)
    assert event.timeline is not None
    assert event.timeline.phases[Phase.SYNC] == pytest.approx(2.0)
    assert event.timeline.phases[Phase.JOIN] == pytest.approx(1.0)
