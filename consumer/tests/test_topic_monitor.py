"""The times at which metadata is fetched, and the changes that cause a rebalance."""

import math
import re
from collections.abc import Mapping

import pytest

from groupwright.assignors import Topic
from groupwright.consumer._protocol.model import MetadataResponse
from groupwright.consumer._protocol.subscription import parse_subscription
from groupwright.consumer._protocol.timers import Timing
from groupwright.consumer._protocol.topic_monitor import TopicErrors, TopicMonitor

NOW = 1000.0


def answer(topics: Mapping[str, int], *, unauthorized: frozenset[str] = frozenset()) -> MetadataResponse:
    return MetadataResponse({name: Topic(count) for name, count in topics.items()}, unauthorized=unauthorized)


def leading(topics: Mapping[str, int], *, jitter: float = 0.5) -> TopicMonitor:
    """Return the watch of a leader whose group subscribes to t and u."""
    watch = TopicMonitor(Timing(), lambda: jitter)
    watch.on_leader({"t", "u"}, answer(topics), NOW)
    return watch


def look(watch: TopicMonitor, now: float, topics: Mapping[str, int]) -> str | None:
    """Look, and return what has changed since the plan was made."""
    assert watch.start(None, now)
    watch.found(answer(topics), now)
    return watch.change()


@pytest.mark.parametrize(
    ("planned", "seen", "change"),
    [
        ({"t": 2}, {"t": 2}, None),
        ({"t": 2}, {"t": 2, "others": 9}, None),
        ({"t": 2}, {"t": 3}, "topic 't' has 3 partitions, not 2"),
        ({"t": 2}, {"t": 2, "u": 1}, "topic 'u' was created"),
        ({}, {"t": 2, "u": 1}, "topic 't' was created"),
        ({}, {}, None),
    ],
)
def test_what_appears_or_grows_is_believed_at_once(
    planned: Mapping[str, int], seen: Mapping[str, int], change: str | None
) -> None:
    assert look(leading(planned), NOW + 1, seen) == change


@pytest.mark.parametrize(
    ("seen", "change"),
    [({"t": 2}, "topic 'u' was deleted"), ({"t": 1, "u": 4}, "topic 't' has 1 partitions, not 2")],
)
def test_what_vanishes_or_shrinks_is_believed_at_the_second_look(
    seen: Mapping[str, int], change: str
) -> None:
    """A broker that lags behind would otherwise take partitions away that are there."""
    watch = leading({"t": 2, "u": 4})

    assert look(watch, NOW + 10, seen) is None
    assert watch.next_at == NOW + 11
    assert look(watch, NOW + 11, seen) == change


def test_a_topic_that_was_deleted_before_the_assignment_makes_the_group_rebalance_no_more() -> None:
    """The group rebalanced at each look, for ever: what the assignment lacked counted as created."""
    watch = leading({"t": 2, "u": 4})
    watch.on_leader({"t", "u"}, answer({"t": 2}), NOW + 1)
    assert look(watch, NOW + 2, {"t": 2}) is None
    assert look(watch, NOW + 3, {"t": 2, "u": 4}) == "topic 'u' was created"


def test_brokers_that_contradict_each_other_change_nothing() -> None:
    watch = leading({"t": 2, "u": 4})
    now = NOW
    for _ in range(20):
        now = watch.next_at
        assert look(watch, now, {"t": 2, "u": 4}) is None
        now = watch.next_at
        assert look(watch, now, {"t": 2}) is None


def test_a_topic_that_may_no_longer_be_seen_is_not_gone() -> None:
    watch = leading({"t": 2, "u": 4})
    for _ in range(3):
        assert watch.start(None, NOW)
        watch.found(answer({"t": 2}, unauthorized=frozenset({"u"})), NOW)
        assert watch.change() is None


def test_a_follower_compares_nothing() -> None:
    watch = leading({"t": 2})
    watch.on_follower(NOW)

    assert look(watch, NOW + 1, {"t": 5}) is None
    assert watch.group_subscription is None


ABC = {1: "a", 2: "b", 3: "c"}
"""The racks of three brokers."""


@pytest.mark.parametrize(
    ("replicas", "racks", "later_replicas", "later_racks", "is_change"),
    [
        pytest.param((1, 2), ABC, (1, 2), ABC, False, id="nothing"),
        pytest.param((1, 2), ABC, (2, 1), ABC, False, id="another preferred leader"),
        pytest.param((1, 2), ABC, (1, 3), ABC, True, id="a replica in another rack"),
        pytest.param((1, 2), ABC, (1,), ABC, True, id="one replica fewer"),
        pytest.param(
            (1, 2), {1: "a", 2: "b", 3: "b"}, (1, 3), {1: "a", 2: "b", 3: "b"}, False, id="the same rack"
        ),
        pytest.param((1, 2), ABC, (1, 2), {**ABC, 2: "d"}, True, id="a broker in another rack"),
        pytest.param((1, 2), ABC, (1, 2), {**ABC, 2: None}, True, id="a broker in no rack"),
        pytest.param((1, 2), {1: None, 2: None}, (1, 2), {1: "a", 2: "b"}, True, id="brokers that get racks"),
        pytest.param((1, 2), ABC, (1, 2), {1: "a"}, False, id="a broker goes down"),
        pytest.param((1, 2), {1: "a"}, (1, 2), ABC, False, id="a broker is up for the first time"),
        pytest.param((1, 2), {}, (1, 2), {}, False, id="brokers without racks"),
        pytest.param((1, 2), ABC, (1, 2), {**ABC, 4: "d"}, False, id="a broker without replicas"),
        pytest.param(
            (1, 2), ABC, (1, 4), ABC, True, id="a replica in an unknown rack instead of a known one"
        ),
    ],
)
def test_replicas_in_other_racks_are_a_change_where_they_matter(
    replicas: tuple[int, ...],
    racks: dict[int, str | None],
    later_replicas: tuple[int, ...],
    later_racks: dict[int, str | None],
    *,
    is_change: bool,
) -> None:
    """KIP-881: only for members that have a rack themselves. A rack that is not known is not another one."""

    def metadata(nodes: tuple[int, ...], known: dict[int, str | None]) -> MetadataResponse:
        return MetadataResponse({"t": Topic(2)}, replicas={"t": (nodes, nodes)}, racks=known)

    for matters in (False, True):
        watch = TopicMonitor(Timing(), racks=matters)
        watch.on_leader({"t"}, metadata(replicas, racks), NOW)
        assert watch.change() is None
        assert watch.start(None, NOW)
        watch.found(metadata(later_replicas, later_racks), NOW)
        expected = "replicas of topic 't' are in other racks" if matters and is_change else None
        assert watch.change() == expected


def test_a_topic_that_has_fewer_partitions_in_one_response_is_not_in_other_racks() -> None:
    watch = TopicMonitor(Timing(), racks=True)
    watch.on_leader({"t"}, MetadataResponse({"t": Topic(2)}, replicas={"t": ((1,), (2,))}, racks=ABC), NOW)
    assert watch.start(None, NOW)
    watch.found(MetadataResponse({"t": Topic(1)}, replicas={"t": ((1,),)}, racks=ABC), NOW)

    assert watch.change() is None


def test_the_leader_looks_again_soon_after_its_plan_and_then_at_the_usual_time() -> None:
    """KAFKA-3949: what changes between the plan and the group's having it."""
    watch = leading({"t": 2}, jitter=0.5)
    assert watch.next_at == NOW + 1
    look(watch, NOW + 1, {"t": 2})

    assert watch.next_at == NOW + 1 + 0.9 * 300


@pytest.mark.parametrize(("jitter", "pause"), [(0.0, 240.0), (0.999, 299.94)])
def test_a_group_does_not_look_all_at_once_and_nobody_later_than_configured(
    jitter: float, pause: float
) -> None:
    watch = TopicMonitor(Timing(), lambda: jitter)
    watch.on_follower(NOW)

    assert watch.next_at - NOW == pytest.approx(pause)


def test_the_usual_look_can_be_turned_off() -> None:
    watch = TopicMonitor(Timing(metadata_refresh=math.inf))
    watch.on_follower(NOW)
    assert watch.next_at == math.inf

    watch.schedule(NOW)
    assert watch.next_at <= NOW + 1


def test_looks_that_lead_to_rebalances_come_later_and_later() -> None:
    """A cluster that never agrees with itself must not keep its groups from working."""
    watch = leading({"t": 2})
    pauses = []
    for count in range(3, 12):
        assert look(watch, watch.next_at, {"t": count}) is not None
        watch.on_leader(
            {"t"}, answer({"t": count - 1}), NOW
        )  # and the leader then plans with a broker that lags behind
        pauses.append(watch.next_at - NOW)

    assert pauses == [2, 4, 8, 16, 32, 64, 128, 256, 300]
    assert look(watch, NOW, {"t": 10}) is None
    watch.on_leader({"t"}, answer({"t": 10}), NOW)
    assert watch.next_at == NOW + 1


def test_a_response_is_fresh_however_long_it_took_unless_the_subscription_has_changed() -> None:
    """A member that waits for fresh metadata would ask again for ever."""
    watch = leading({"t": 2})
    watch.start(None, NOW)
    watch.found(answer({"t": 2}), NOW + 60)
    assert watch.is_fresh(NOW + 60)
    assert not watch.is_fresh(NOW + 62)

    watch.start(None, NOW + 70)
    watch.subscribed(NOW + 71)
    watch.found(answer({"t": 2}), NOW + 72)
    assert not watch.is_fresh(NOW + 72)


def test_a_look_that_failed_is_tried_again_with_growing_pauses() -> None:
    watch = leading({"t": 2})
    now, pauses = NOW, []
    for _ in range(5):
        assert watch.start(None, now)
        assert not watch.start(None, now)
        watch.missing(now)
        assert not watch.start(None, now)
        assert not watch.is_fresh(now)
        pauses.append(watch.next_at - now)
        now = watch.next_at

    assert pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.0])


# --- Errors of a subscription's topics ------------------------------------------------------------------


def test_each_error_is_reported_once_until_it_has_passed() -> None:
    errors, selection = TopicErrors(), parse_subscription(["t", "u"])
    both, one = answer({"t": 1, "u": 1}), answer({"t": 1})

    assert errors.found(selection, one) == [("u", 3)]
    assert errors.found(selection, one) == []
    assert errors.found(selection, answer({"t": 1}, unauthorized=frozenset({"u"}))) == [("u", 29)]
    assert errors.found(selection, both) == []
    assert errors.found(selection, one) == [("u", 3)]


def test_the_same_subscription_again_repeats_no_error_and_another_in_between_does() -> None:
    errors, selection = TopicErrors(), parse_subscription(["t", "u"])
    one = answer({"t": 1})
    errors.found(selection, one)

    errors.subscribed()
    assert errors.found(selection, one) == []
    errors.subscribed()
    assert errors.found(parse_subscription(["t"]), one) == []
    errors.subscribed()
    assert errors.found(selection, one) == [("u", 3)]


def test_a_topic_that_may_no_longer_be_seen_is_reported_although_it_is_kept() -> None:
    errors, selection = TopicErrors(), parse_subscription(["t"])

    assert errors.found(selection, answer({"t": 1}, unauthorized=frozenset({"t"}))) == [("t", 29)]


def test_an_expression_is_reported_by_its_text_and_a_topic_that_had_matched_by_its_name() -> None:
    errors, selection = TopicErrors(), parse_subscription(["^t.", "^u."])

    assert errors.found(selection, answer({"t1": 1, "t2": 1})) == [("^u.", 3)]
    assert errors.found(selection, answer({"t2": 1})) == [("t1", 3)]
    assert errors.found(selection, answer({})) == [("t2", 3)]
    assert errors.found(selection, answer({"t1": 1, "t2": 1, "u1": 1})) == []


def test_ignored_topics_have_no_errors() -> None:
    selection = parse_subscription(["t", "^u"], (re.compile("t|u"),))

    assert TopicErrors().found(selection, answer({"t": 1, "u": 1})) == [("^u", 3)]
