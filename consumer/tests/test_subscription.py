"""Names and regular expressions in a subscription."""

import re
from dataclasses import replace

import pytest

from groupwright.assignors import Topic
from groupwright.consumer._protocol.model import MetadataResponse
from groupwright.consumer._protocol.subscription import parse_subscription, read_pattern

EXISTING = MetadataResponse(
    {name: Topic(1) for name in ("orders", "orders-eu", "reorders", "payments", "__consumer_offsets")},
    internal=frozenset({"__consumer_offsets"}),
)


@pytest.mark.parametrize(
    ("topics", "selected"),
    [
        pytest.param(["payments", "absent", "orders"], ("orders", "payments"), id="names that exist"),
        pytest.param(["^orders"], ("orders", "orders-eu"), id="from the beginning"),
        pytest.param(["^orders$"], ("orders",), id="to the end"),
        pytest.param(["^.*orders$"], ("orders", "reorders"), id="anything before"),
        pytest.param(["^(orders|pay)"], ("orders", "orders-eu", "payments"), id="alternatives"),
        pytest.param(["^orders-", "payments"], ("orders-eu", "payments"), id="mixed"),
        pytest.param(
            ["^.*"], ("orders", "orders-eu", "payments", "reorders"), id="internal topics do not match"
        ),
        pytest.param(["^__.*"], (), id="not even on purpose"),
        pytest.param(["__consumer_offsets"], ("__consumer_offsets",), id="but by name they are selected"),
        pytest.param(["^nothing"], (), id="nothing may match"),
    ],
)
def test_what_is_selected_and_sorted(topics: list[str], selected: tuple[str, ...]) -> None:
    """KAFKA-12898: the coordinator compares bytes, and an order that changes is a rebalance."""
    assert parse_subscription(topics).among(EXISTING) == selected


def test_a_name_that_was_joined_with_stays_unless_it_is_refused() -> None:
    selection = parse_subscription(["absent", "gone", "payments"])

    assert selection.among(EXISTING, ["gone", "payments", "other"]) == ("gone", "payments")
    assert selection.among(replace(EXISTING, unauthorized=frozenset({"payments"})), ["gone", "payments"]) == (
        "gone",
    )


def test_what_is_ignored_is_selected_neither_by_expression_nor_by_name() -> None:
    """As librdkafka's topic.blacklist: as if the topics did not exist."""
    selection = parse_subscription(["^orders", "payments"], (re.compile("-eu$"), re.compile("^pay")))

    assert selection.among(EXISTING) == ("orders",)
    assert selection.wanted_names == ()
    assert [selection.covers(topic) for topic in ("orders", "orders-eu", "payments")] == [True, False, False]


def test_only_names_are_known_before_the_topics_are() -> None:
    assert parse_subscription(["b", "a", "^c"]).wanted_names == ("a", "b")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        pytest.param(
            "^(a", "'^(a' is no regular expression: missing ), unterminated subpattern", id="broken"
        ),
        pytest.param("^a**", "'^a**' is no regular expression: multiple repeat", id="repeated"),
        pytest.param("^[[:alpha:]]", "'^[[:alpha:]]' has a character class of POSIX", id="of POSIX"),
        pytest.param("^[[a]", "'^[[a]' is no regular expression: Possible nested set", id="ambiguous"),
    ],
)
def test_what_is_no_expression_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        read_pattern(text)
