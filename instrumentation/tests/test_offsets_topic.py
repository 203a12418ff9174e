"""The partition of a group's records, also after `__consumer_offsets` has grown."""

import pytest

from groupwright.instrumentation.advice import OffsetsTopic, Severity, on_offsets_topic, partition_for

SMALLEST = "polygenelubricants"
"""The word whose hash is the smallest of Java's numbers, which has no absolute value."""


@pytest.mark.parametrize(
    ("group", "partition"),
    [
        ("", 0),
        ("hello", 22),  # 99162322
        ("Straße", 22),  # -1808122922
        ("\U0001f600", 49),  # 1772899: two units of UTF-16
        (SMALLEST, 0),
    ],
)
def test_a_groups_partition_is_its_ids_java_hash_without_its_sign(group: str, partition: int) -> None:
    """`integration_tests/coordinator` holds it against a broker; the hashes here are `String.hashCode`'s."""
    assert partition_for(group, 50) == partition


def test_nothing_is_found_while_the_topic_is_as_it_was_created() -> None:
    assert on_offsets_topic("shipping", OffsetsTopic(partitions=50, configured=50)) == []


def test_a_group_that_the_growth_leaves_behind_is_a_warning() -> None:
    (finding,) = on_offsets_topic("shipping", OffsetsTopic(partitions=100, configured=50))

    assert (finding.rule, finding.severity) == ("offsets-topic-grown", Severity.WARNING)
    assert "__consumer_offsets has 100 partitions" in finding.evidence
    assert "offsets.topic.num.partitions is 50" in finding.evidence
    assert "'shipping' is in partition 58, and was in 8 with 50" in finding.evidence
    assert finding.change.index("save the group's committed offsets now") < finding.change.index(
        "restart all"
    )


def test_a_group_that_it_leaves_where_it_was_is_a_note() -> None:
    (finding,) = on_offsets_topic("billing", OffsetsTopic(partitions=100, configured=50))

    assert (finding.rule, finding.severity) == ("offsets-topic-grown", Severity.NOTE)
    assert "'billing' is in partition 9 with both" in finding.evidence
