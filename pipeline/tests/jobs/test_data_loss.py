"""Comparison of recorded positions with topics that were recreated, truncated or expired. Pure."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any
from unittest.mock import MagicMock

import pytest

from groupwright.pipeline._jobs.context import JobContext
from groupwright.pipeline._jobs.data_loss import DataLoss, Kind, find_losses, readable_part
from groupwright.pipeline._jobs.kafka import Cluster, KafkaTopic, Offsets
from groupwright.pipeline._jobs.positions import Positions, TopicPosition
from groupwright.pipeline._jobs.state import BatchRange
from groupwright.pipeline._tables import Batch
from groupwright.pipeline.errors import PipelineError, UnreachableError

READ = Positions(3, "cluster", {"events": TopicPosition("id-1", {0: 50, 1: 60})})
SAME = {"events": KafkaTopic("id-1", 2)}
UNFINISHED = BatchRange(
    Batch("stream", 4),
    {"events": {0: 50, 1: 60}, "another": {0: 7}},
    {"events": {0: 55, 1: 70}, "another": {0: 9}},
)


def test_a_log_that_has_all_unread_records_is_no_loss() -> None:
    grown = {"events": KafkaTopic("id-1", 3), "another": KafkaTopic("id-2", 1)}
    assert not find_losses(READ, grown, {"events": {0: 50, 1: 0, 2: 9}}, {"events": {0: 50, 1: 99, 2: 12}})


@pytest.mark.parametrize(
    ("topics", "earliest", "ends", "kind", "partitions", "message"),
    [
        ({}, {}, {}, Kind.DELETED, (0, 1), "events was deleted; the tables have read it up to"),
        (
            {"events": KafkaTopic("id-2", 1)},
            {0: 0},
            {0: 500},
            Kind.RECREATED,
            (0, 1),
            "events was deleted and created again: its topic id is id-2 and was id-1, and the",
        ),
        (
            SAME,
            {0: 0, 1: 0},
            {0: 50, 1: 10},
            Kind.TRUNCATED,
            (1,),
            "events was truncated or restored from an older copy: it ends at offset (partition) 10 (1), and",
        ),
        (
            SAME,
            {0: 53, 1: 0},
            {0: 70, 1: 60},
            Kind.EXPIRED,
            (0,),
            "3 offsets of events were deleted before they were read: it begins at offset (partition) 53 (0)",
        ),
        (
            SAME,
            {0: 0, 1: 0},
            {0: 52, 1: 70},
            Kind.CUT,
            (0,),
            "events was truncated or restored from an older copy: it ends at offset (partition) 52 (0), and",
        ),
    ],
)
def test_a_loss_is_named_with_what_is_missing(
    topics: dict[str, KafkaTopic],
    earliest: dict[int, int],
    ends: dict[int, int],
    kind: Kind,
    partitions: tuple[int, ...],
    message: str,
) -> None:
    pending = UNFINISHED if kind is Kind.CUT else None
    (loss,) = find_losses(READ, topics, {"events": earliest}, {"events": ends}, pending)
    assert (loss.kind, loss.partitions) == (kind, partitions)
    assert loss.message.startswith(message)
    wrong = (pending.end if pending else READ.offsets())["events"]
    assert all(f"{wrong[partition]} ({partition})" in loss.message for partition in partitions)


def test_positions_advance_and_never_go_back() -> None:
    after = READ.advanced({"events": {0: 40, 1: 61, 2: 5}})
    assert after.sequence == 4
    assert after.offsets() == {"events": {0: 50, 1: 61, 2: 5}}


@pytest.mark.parametrize(
    ("kind", "partitions", "start", "end"),
    [
        (Kind.DELETED, (0,), {"another": {0: 7}}, {"another": {0: 9}}),
        (Kind.RECREATED, (0,), {"another": {0: 7}}, {"another": {0: 9}}),
        (
            Kind.TRUNCATED,
            (0,),
            {"events": {1: 60}, "another": {0: 7}},
            {"events": {1: 70}, "another": {0: 9}},
        ),
        (
            Kind.CUT,
            (1,),
            {"events": {0: 50, 1: 60}, "another": {0: 7}},
            {"events": {0: 55, 1: 64}, "another": {0: 9}},
        ),
        (
            Kind.EXPIRED,
            (0, 1),
            {"events": {0: 53}, "another": {0: 7}},
            {"events": {0: 55}, "another": {0: 9}},
        ),
    ],
)
def test_an_unfinished_batch_is_repeated_as_far_as_its_records_exist(
    kind: Kind, partitions: tuple[int, ...], start: Offsets, end: Offsets
) -> None:
    earliest = {"events": {0: 53, 1: 70}} if kind is Kind.EXPIRED else {}
    ends = {Kind.TRUNCATED: {"events": {0: 20}}, Kind.CUT: {"events": {0: 99, 1: 64}}}.get(kind, {})
    loss = DataLoss("events", kind, "", "", partitions)
    assert readable_part(UNFINISHED, [loss], earliest, ends) == BatchRange(UNFINISHED.batch, start, end)


def test_a_batch_is_complete_once_the_positions_have_passed_its_end() -> None:
    """The positions are its last rows. Those that are derived from the other tables prove nothing."""
    complete = {"events": {0: 50, 1: 60}}
    assert READ.has_passed(complete)
    assert not READ.has_passed({"events": {0: 50, 1: 61}})
    assert not READ.has_passed({"another": {0: 1}})
    assert not replace(READ, sequence=0).has_passed(complete)


def test_nothing_is_left_of_an_unfinished_batch_of_a_deleted_topic() -> None:
    whole = BatchRange(Batch("stream", 4), {"events": {0: 50}}, {"events": {0: 55}})
    assert readable_part(whole, [DataLoss("events", Kind.DELETED, "", "", (0,))], {}, {}) is None


def test_a_topic_that_is_deleted_while_its_offsets_are_listed_is_left_out() -> None:
    """Kafka does not answer for it; the other topics are listed again."""
    orders, events = KafkaTopic("o", 1), KafkaTopic("e", 1)
    any_, cluster = MagicMock(), MagicMock()
    cluster.topics.side_effect = [{"orders": orders, "events": events}, {"orders": orders}]
    bounds = ('{"orders-0": 2}', '{"orders-0": 5}')
    cluster.log_bounds.side_effect = [PipelineError("Kafka does not respond"), bounds]
    context = JobContext(any_, any_, any_, any_, cluster, any_, any_)
    sample = context.sample_ends({"orders", "events"})
    assert sample is not None
    assert (sample.starts, sample.ends, sample.topic_ids) == (*bounds, {"orders": "o"})

    cluster.topics.side_effect = lambda _: {"orders": orders}
    cluster.offsets.side_effect = PipelineError("Kafka does not respond")
    with pytest.raises(PipelineError, match="does not respond"):
        context.log_ends()


def test_a_job_goes_on_without_a_sample_that_kafka_does_not_return(caplog: pytest.LogCaptureFixture) -> None:
    any_, cluster = MagicMock(), MagicMock()
    cluster.topics.return_value = {"orders": KafkaTopic("o", 1)}
    cluster.log_bounds.side_effect = UnreachableError("Kafka does not respond: a timeout")
    assert JobContext(any_, any_, any_, any_, cluster, any_, any_).sample_ends({"orders"}) is None
    assert "Log-end offsets were not sampled: Kafka does not respond: a timeout" in caplog.text


def test_a_partition_without_a_leader_is_left_out_of_the_sample(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Kafka's client times out while it waits for the leader."""

    def log_bounds(_: Cluster, wanted: Mapping[str, Mapping[int, int]]) -> tuple[str, str]:
        if 1 in wanted["orders"]:
            raise UnreachableError("Kafka does not respond: a timeout")
        return str(wanted), "ends"

    def partition(number: int, leader: Any) -> Any:
        return MagicMock(**{"partition.return_value": number, "leader.return_value": leader})

    description, admin = MagicMock(), MagicMock()
    description.partitions.return_value = [partition(0, "broker"), partition(1, None)]
    futures = {"orders": MagicMock(**{"get.return_value": description})}
    admin.describeTopics.return_value.topicNameValues.return_value = futures
    monkeypatch.setattr(Cluster, "_log_bounds", log_bounds)
    cluster = Cluster(MagicMock(), admin, "localhost:9092", MagicMock())
    topics = {"orders": KafkaTopic("o", 2)}
    assert cluster.log_bounds(topics) == ("{'orders': {0: 0}}", "ends")
    assert "The sample of log-end offsets lacks partitions without a leader: orders-1" in caplog.text
    description.partitions.return_value[1].leader.return_value = "broker"
    with pytest.raises(UnreachableError):
        cluster.log_bounds(topics)


def test_a_topic_that_one_answer_of_the_cluster_lacks_keeps_its_position() -> None:
    """A broker with incomplete metadata says that a topic does not exist, and the next one has it."""
    offsets_topic = {"__consumer_offsets": KafkaTopic("id-0", 1)}
    both = offsets_topic | SAME
    answers = iter([offsets_topic])
    cluster: Any = MagicMock(**{"id.return_value": "cluster"})
    cluster.topics.side_effect = lambda _: next(answers, both)
    cluster.offsets.side_effect = lambda topics, position, **_: {
        name: dict.fromkeys(range(topic.partitions), 0 if position == "earliest" else 99)
        for name, topic in topics.items()
    }
    known = replace(READ, topics={**READ.topics, "__consumer_offsets": TopicPosition("id-0", {0: 5})})
    settings: Any = MagicMock(events_topic="events", on_data_loss="fail", start="earliest")
    state: Any = MagicMock(**{"pending.return_value": None})
    ingest: Any = MagicMock(positions=known)
    context = JobContext(MagicMock(), settings, MagicMock(), state, cluster, ingest, MagicMock())
    assert context.prepare() == {"__consumer_offsets": {0: 5}, "events": {0: 50, 1: 60}}
    ingest.record_positions.assert_not_called()


@pytest.mark.parametrize("exists", [True, False])
def test_an_unfinished_batch_of_a_topic_that_the_settings_no_longer_name_is_added_as_far_as_it_can_be(
    *, exists: bool
) -> None:
    offsets_topic = {"__consumer_offsets": KafkaTopic("id-0", 1)}
    there = offsets_topic | (SAME if exists else {})
    cluster: Any = MagicMock(**{"id.return_value": "cluster"})
    cluster.topics.side_effect = lambda names: {name: topic for name, topic in there.items() if name in names}
    cluster.offsets.side_effect = lambda topics, position, **_: {
        name: dict.fromkeys(range(topic.partitions), 0 if position == "earliest" else 99)
        for name, topic in topics.items()
    }
    known = replace(READ, topics={**READ.topics, "__consumer_offsets": TopicPosition("id-0", {0: 5})})
    pending = BatchRange(
        Batch("stream", 4),
        {"events": {0: 50}, "__consumer_offsets": {0: 5}},
        {"events": {0: 55}, "__consumer_offsets": {0: 9}},
    )
    settings: Any = MagicMock(events_topic="", on_data_loss="restart")
    state: Any = MagicMock(**{"pending.return_value": pending})
    ingest: Any = MagicMock(positions=known)
    context = JobContext(MagicMock(), settings, MagicMock(), state, cluster, ingest, MagicMock())

    assert context.prepare() == {"__consumer_offsets": {0: 5}}, (
        "as before: the batch's end is recorded by `add`"
    )

    (_, added), _ = ingest.add.call_args
    assert added.end == (pending.end if exists else {"__consumer_offsets": {0: 9}})
    assert [loss.topic for loss in context.accepted_losses] == ([] if exists else ["events"])
    settings.on_data_loss = "fail"
    if not exists:
        with pytest.raises(PipelineError, match="events was deleted; the tables have read it up to"):
            context.prepare()
