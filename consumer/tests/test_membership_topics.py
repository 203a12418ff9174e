"""Topics that are created, deleted or grow: what the leader watches, and what regular expressions match."""

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from groupwright.consumer._protocol import actions as act
from groupwright.consumer._protocol.events import Assign, Revoke
from groupwright.consumer._protocol.timers import Timing
from groupwright.consumer._protocol.transitions import State

if TYPE_CHECKING:
    from consumer.tests.conftest import Player

REFRESH = 60.0


@pytest.fixture
def patient(new_player: Callable[..., "Player"]) -> "Player":
    """A cooperative member that looks at the topics every minute."""
    timing = Timing(
        session_timeout=10.0, heartbeat_interval=3.0, max_poll_interval=300.0, metadata_refresh=REFRESH
    )
    return new_player(cooperative=True, timing=timing)


@pytest.fixture
def leader(patient: "Player") -> "Player":
    """The leader of a stable group that subscribes to t and u; t has two partitions, and u does not exist."""
    patient.plan()
    patient.answer_plan({"t": 2}, "u")
    patient.answer_sync({"t": (0, 1)})
    patient.answer_offsets()
    patient.serve()
    return patient


def alive(player: "Player", seconds: float) -> None:
    """Let time pass, heartbeats being answered."""
    end = player.now + seconds
    while player.now < end:
        player.wait_until(min(end, player.now + 1.0))
        if player.asks(act.SendHeartbeat):
            player.answer_heartbeat()


def join_reason(player: "Player") -> str:
    return player.take(act.SendJoinGroup).request.reason


# --- The leader -----------------------------------------------------------------------------------------


def test_the_leader_watches_the_whole_groups_topics(leader: "Player") -> None:
    alive(leader, 1.0)
    assert leader.looks == [act.FetchMetadata(("t", "u"))]
    leader.answer_look({"t": 2})
    assert not leader.asks(act.SendJoinGroup)

    alive(leader, 0.9 * REFRESH)
    assert leader.looks == [act.FetchMetadata(("t", "u"))]


@pytest.mark.parametrize(
    ("topics", "reason"),
    [
        ({"t": 3}, "topic 't' has 3 partitions, not 2"),
        ({"t": 2, "u": 1}, "topic 'u' was created"),
    ],
)
def test_the_leader_joins_again_when_a_topic_appears_or_grows(
    leader: "Player", topics: dict[str, int], reason: str
) -> None:
    alive(leader, 1.0)
    leader.answer_look(topics)

    assert not leader.inbox
    assert join_reason(leader) == reason


def test_a_topic_that_was_deleted_is_given_up(leader: "Player") -> None:
    alive(leader, 1.0)
    leader.answer_look({})
    assert not leader.asks(act.SendJoinGroup)
    alive(leader, 1.0)
    leader.answer_look({})
    assert [action.request.reason for action in leader.asked if isinstance(action, act.SendJoinGroup)] == [
        "topic 't' was deleted"
    ]
    leader.answer_join(leads=True)
    leader.answer_plan({}, "t", "u")
    leader.answer_sync(b"")

    event = leader.serve()
    assert isinstance(event, Revoke)
    assert (event.partitions, event.lost) == ({"t": (0, 1)}, False)


def test_a_rebalance_that_a_change_calls_for_comes_even_if_the_change_is_undone(leader: "Player") -> None:
    """KAFKA-9815: the join failed, the metadata changed back, and no member joined again."""
    alive(leader, 1.0)
    leader.answer_look({"t": 3})
    leader.answer_join(14)
    leader.wait(leader.timing.retry_backoff)

    assert join_reason(leader) == "topic 't' has 3 partitions, not 2"


def test_a_commit_to_a_topic_that_is_gone_has_the_leader_look(leader: "Player") -> None:
    alive(leader, 1.0)
    leader.answer_look({"t": 2})
    leader.feed(leader.member.commit_answered, leader.member.identity, 3)
    alive(leader, 1.0)

    assert leader.looks == [act.FetchMetadata(("t", "u"))]


def test_one_that_no_longer_leads_watches_its_own_topics_alone(leader: "Player") -> None:
    alive(leader, 1.0)
    leader.answer_look({"t": 2})
    leader.beat()
    leader.answer_heartbeat(27)
    leader.answer_join()
    leader.answer_sync({"t": (0, 1)})
    leader.serve()
    alive(leader, REFRESH)

    assert leader.looks == [act.FetchMetadata(("t",))]
    leader.answer_look({"t": 3})
    assert not leader.asks(act.SendJoinGroup)


def test_a_look_that_failed_is_repeated_and_harmless(leader: "Player") -> None:
    alive(leader, 1.0)
    for _ in range(3):
        leader.looks.clear()
        leader.reply(act.FetchMetadata(None), act.Refused(29, "not allowed"))
        alive(leader, 1.0)
        assert leader.looks == [act.FetchMetadata(("t", "u"))]

    assert leader.member.state is State.STABLE
    assert not leader.refused


def test_a_leader_that_returns_watches_the_topics_though_it_made_no_plan(
    new_player: Callable[..., "Player"],
) -> None:
    """KIP-814: below JoinGroup 9, no member would."""
    player = new_player(static=True)
    player.subscribe("t")
    player.find()
    player.answer_join(leads=True, skip_assignment=True)
    player.answer_plan({"t": 2})
    player.answer_sync({"t": (0,)})
    player.answer_offsets()
    player.serve()
    alive(player, 1.0)
    player.answer_look({"t": 3})

    assert isinstance(player.serve(), Revoke)
    assert join_reason(player) == "topic 't' has 3 partitions, not 2"


def test_a_leader_that_may_not_see_a_topic_says_which(patient: "Player") -> None:
    patient.plan()
    patient.reply(patient.take(act.PerformAssignment), act.Refused(29, "may not see 'u'"))

    assert [(refusal.error, refusal.detail) for refusal in patient.refused] == [(29, "may not see 'u'")]


# --- Regular expressions --------------------------------------------------------------------------------


def matching(player: "Player", topics: dict[str, int], *patterns: str) -> None:
    """Subscribe by expressions, and let the topics be looked at; JoinGroup is sent."""
    player.subscribe(*(patterns or ("^t",)))
    player.find()
    assert player.looks == [act.FetchMetadata(None)]
    assert not player.asks(act.SendJoinGroup)
    player.answer_look(topics)
    assert player.asks(act.SendJoinGroup)


def joined_with(player: "Player") -> str:
    (action,) = (action for action in player.asked if isinstance(action, act.SendJoinGroup))
    return action.request.protocols[0][1].decode()


def test_topics_are_matched_before_joining(patient: "Player") -> None:
    """KAFKA-7126: otherwise each member would start a rebalance of its own when it sees a new topic."""
    matching(patient, {"t": 2, "tt": 1, "u": 4}, "^t", "v")

    assert joined_with(patient) == "t,tt owns [] of generation -1"


def test_an_id_that_is_given_first_costs_no_second_look(patient: "Player") -> None:
    matching(patient, {"t": 2})
    patient.answer_join(79, member_id="m-1")

    assert patient.asks(act.SendJoinGroup)
    assert not patient.looks


def test_nothing_may_match(patient: "Player") -> None:
    matching(patient, {"u": 1})
    patient.settle({})

    assert patient.member.subscription == ()
    assert not patient.refused


def test_a_topic_that_appears_and_matches_is_joined_with(patient: "Player") -> None:
    matching(patient, {"t": 2})
    patient.settle({"t": (0,)})
    alive(patient, 0.9 * REFRESH)
    patient.answer_look({"t": 2, "u": 1, "t-new": 1})
    assert not patient.inbox

    assert joined_with(patient) == "t,t-new owns [('t', 0)] of generation 1"
    assert join_reason(patient) == "other topics of the subscription are available now"


def test_a_topic_that_does_not_match_is_none_of_its_business(patient: "Player") -> None:
    matching(patient, {"t": 2})
    patient.settle({"t": (0,)})
    alive(patient, 0.9 * REFRESH)
    patient.answer_look({"t": 5, "u": 1})

    assert not patient.asks(act.SendJoinGroup)


def test_a_topic_that_vanished_is_unsubscribed_when_it_was_seen_to_be_gone_twice(patient: "Player") -> None:
    matching(patient, {"t": 2, "tt": 1})
    patient.settle({"t": (0,), "tt": (0,)})
    alive(patient, 0.9 * REFRESH)
    patient.answer_look({"t": 2})
    assert not patient.asks(act.SendJoinGroup)
    alive(patient, 1.0)
    patient.answer_look({"t": 2})

    # It is the assignment that takes it away: no other member can be given it meanwhile.
    assert joined_with(patient) == "t owns [('t', 0), ('tt', 0)] of generation 1"


def test_a_topic_that_the_leader_knew_first_is_taken_in(patient: "Player") -> None:
    matching(patient, {"t": 2})
    patient.answer_join()
    patient.answer_sync({"t": (0,), "t-new": (0,)})
    patient.answer_offsets()

    event = patient.serve()
    assert isinstance(event, Assign)
    assert event.owned == {"t": (0,), "t-new": (0,)}
    assert patient.member.subscription == ("t", "t-new")
    assert not patient.asks(act.SendJoinGroup)


def test_names_that_become_an_expression_keep_what_it_matches(patient: "Player") -> None:
    patient.join({"t": (0,), "u": (0,)}, topics=("t", "u"))
    patient.subscribe("^t")

    event = patient.serve()
    assert isinstance(event, Revoke)
    assert event.partitions == {"u": (0,)}
    patient.answer_look({"t": 2, "u": 1})
    assert joined_with(patient) == "t owns [('t', 0)] of generation 1"


def test_topics_that_cannot_be_looked_at_are_looked_at_again(patient: "Player") -> None:
    patient.subscribe("^t")
    patient.find()
    patient.looks.clear()
    patient.reply(act.FetchMetadata(None), act.Disconnected())
    assert not patient.looks
    patient.wait(patient.timing.retry_backoff)
    patient.answer_look({"t": 1})

    assert patient.asks(act.SendJoinGroup)


def test_a_refusal_to_show_the_topics_is_told(patient: "Player") -> None:
    patient.subscribe("^t")
    patient.find()
    patient.looks.clear()
    patient.reply(act.FetchMetadata(None), act.Refused(58, "wrong password"))
    assert [(refusal.error, refusal.detail) for refusal in patient.refused] == [(58, "wrong password")]
    patient.wait(10)
    assert not patient.looks

    patient.feed(patient.member.resume)
    assert patient.looks == [act.FetchMetadata(None)]


# --- Topics that are not available ----------------------------------------------------------------------


def lacking(player: "Player") -> None:
    """Subscribe to t, and to two topics that are not available; JoinGroup is sent."""
    player.subscribe("t", "u", "secret")
    player.take(act.FindCoordinator)
    player.reply(act.FindCoordinator(), act.Answered())

    assert not player.asks(act.SendJoinGroup)
    assert player.looks == [act.FetchMetadata(("secret", "t", "u"))]
    player.answer_look({"t": 1}, unauthorized=frozenset({"secret"}))


def test_a_member_joins_with_the_topics_that_are_available_and_reports_the_others(player: "Player") -> None:
    """As librdkafka: else it would be assigned partitions that it cannot read."""
    lacking(player)

    assert joined_with(player) == "t owns [] of generation -1"
    assert player.unavailable == [("secret", 29), ("u", 3)]


def test_a_topic_that_becomes_available_is_joined_with(patient: "Player") -> None:
    """Its group's leader does not look at a topic that no member has joined with."""
    lacking(patient)
    patient.settle({"t": (0,)})
    alive(patient, 1.0)
    patient.answer_look({"t": 1}, unauthorized=frozenset({"secret"}))
    alive(patient, 0.9 * REFRESH)
    patient.answer_look({"t": 1, "secret": 1, "u": 1})

    assert joined_with(patient) == "secret,t,u owns [('t', 0)] of generation 1"
    assert join_reason(patient) == "other topics of the subscription are available now"


def test_one_that_lacks_a_topic_looks_again_before_it_joins_again(patient: "Player") -> None:
    """The first member to see a topic rebalances the group; the others join with the topic (KAFKA-7126)."""
    lacking(patient)
    patient.settle({"t": (0,)})
    alive(patient, 1.0)
    patient.answer_look({"t": 1}, unauthorized=frozenset({"secret"}))
    alive(patient, 5.0)
    patient.beat()
    patient.answer_heartbeat(27)

    assert not patient.asks(act.SendJoinGroup)
    patient.answer_look({"t": 1, "u": 1}, unauthorized=frozenset({"secret"}))
    assert joined_with(patient) == "t,u owns [('t', 0)] of generation 1"


def test_a_topic_that_may_no_longer_be_seen_is_given_up_and_not_joined_with(patient: "Player") -> None:
    patient.join({"t": (0,), "u": (0,)}, topics=("t", "u"))
    alive(patient, 0.9 * REFRESH)
    patient.answer_look({"t": 1}, unauthorized=frozenset({"u"}))
    event = patient.serve()

    assert isinstance(event, Revoke)
    assert (event.partitions, event.lost) == ({"u": (0,)}, True)
    assert joined_with(patient) == "t owns [('t', 0)] of generation 1"
    assert patient.unavailable == [("u", 29)]


def test_a_named_topic_that_was_deleted_is_the_leaders_business(patient: "Player") -> None:
    """Else each member would rebalance the group when it sees that."""
    patient.join({"t": (0,), "u": (0,)}, topics=("t", "u"))
    for seconds in (0.9 * REFRESH, 1.0, 0.9 * REFRESH):
        alive(patient, seconds)
        patient.answer_look({"t": 1})

    assert not patient.asks(act.SendJoinGroup)
    assert patient.unavailable == [("u", 3)]


def test_a_look_at_the_subscription_before_says_nothing_of_the_next(player: "Player") -> None:
    player.subscribe("t")
    player.take(act.FindCoordinator)
    player.reply(act.FindCoordinator(), act.Answered())
    player.subscribe("t", "u")
    player.answer_look({"t": 1})

    assert player.unavailable == []
    assert player.looks == [act.FetchMetadata(("t", "u"))]
    player.answer_look({"t": 1})
    assert player.unavailable == [("u", 3)]


def test_a_deleted_topic_is_reported_at_the_second_look_that_misses_it(leader: "Player") -> None:
    alive(leader, 1.0)
    leader.answer_look({})
    assert leader.unavailable == []
    alive(leader, 1.0)
    leader.answer_look({})

    assert leader.unavailable == [("t", 3)]


def test_a_refused_look_up_is_told_once_until_the_coordinator_is_found(player: "Player") -> None:
    """As librdkafka does; it reports every rejection of JoinGroup."""
    player.subscribe("t")
    reported = []
    for error in (30, 30, 58, None, 58):
        if error is None:
            player.find()
            player.answer_join(16)
        else:
            player.take(act.FindCoordinator)
            player.reply(act.FindCoordinator(), act.Refused(error, "not allowed"))
            reported.append((error, player.refused[-1].repeated))
            player.feed(player.member.resume)
        player.wait(2.0)

    assert reported == [(30, False), (30, True), (58, False), (58, False)]
