"""The end of a stream, without Spark."""

from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import pytest
from py4j.protocol import Py4JError  # type: ignore[import-untyped]

from groupwright.pipeline._jobs import stream as stream_module
from groupwright.pipeline._jobs.ingest import BatchSummary
from groupwright.pipeline._jobs.maintenance import is_due
from groupwright.pipeline._jobs.stream import _Stream
from groupwright.pipeline.errors import PipelineError
from integration_tests.harness.patience import PATIENCE


class _Stopping(_Stream):
    """Stops while the last call of a worker runs."""

    def _periodic(self) -> Iterator[tuple[str, float, Callable[[], bool]]]:
        self.begun, self.may_fail = Event(), Event()
        yield "sample-writer", 0.0, self._fail

    def _fail(self) -> bool:
        self.begun.set()
        assert self.may_fail.wait(PATIENCE)
        raise PipelineError("the samples cannot be written")

    def _follow(self, stop: Event) -> bool:
        assert self.begun.wait(PATIENCE)  # a worker that is stopped before its first call makes none
        self._finish(MagicMock(isActive=False, exception=lambda: None))
        stop.set()
        self.may_fail.set()
        return False


def test_the_error_of_a_worker_that_fails_while_the_stream_stops_is_raised() -> None:
    settings = SimpleNamespace(stop_seconds=60.0, end_offsets_seconds=0.0)
    context: Any = MagicMock(settings=settings, known_topics=set)
    context.state.stale.return_value = {}
    with pytest.raises(PipelineError, match="samples cannot be written"):
        _Stopping(context, MagicMock(), lambda _: None).run(Event())


def test_a_stop_while_batches_follow_at_once_ends_after_the_current_one() -> None:
    context: Any = MagicMock(settings=SimpleNamespace(stop_seconds=5.0), known_topics=set)
    stream = _Stream(context, MagicMock(), lambda _: None)
    query = MagicMock(isActive=True, status={"isTriggerActive": True}, exception=lambda: None)
    query.awaitTermination.side_effect = lambda _: stream._add(MagicMock(), 1)
    stream._finish(query)
    assert query.awaitTermination.call_count == 1
    context.ingest.add.assert_not_called()
    query.stop.assert_called_once()


@pytest.mark.medium
def test_a_stop_while_an_unfinished_batch_is_added_is_bounded() -> None:
    """The job before was killed in a long batch, and this one is stopped while it repeats it."""
    begun, cancelled, stop = Event(), Event(), Event()

    def prepare() -> Any:
        begun.set()
        assert cancelled.wait(PATIENCE)
        raise PipelineError("the Spark job was cancelled")

    settings = SimpleNamespace(stop_seconds=0.1, end_offsets_seconds=0.0, derive_seconds=60.0, once=True)
    context: Any = MagicMock(settings=settings, known_topics=set, prepare=prepare)
    context.state.stale.return_value = {}
    context.spark.sparkContext.cancelJobGroup.side_effect = lambda _: cancelled.set()
    stream = Thread(target=_Stream(context, MagicMock(), lambda _: None).run, args=(stop,), daemon=True)
    stream.start()
    assert begun.wait(PATIENCE)
    stop.set()
    stream.join(PATIENCE)
    assert not stream.is_alive()
    assert cancelled.is_set()
    context.spark.readStream.format.assert_not_called()


@pytest.mark.parametrize("is_stopped", [False, True])
def test_a_query_that_does_not_end_is_followed_by_no_other_and_keeps_its_lease(
    monkeypatch: pytest.MonkeyPatch, *, is_stopped: bool
) -> None:
    """`isActive` is false as soon as `stop` is called, although a batch still writes."""
    settings = SimpleNamespace(stop_seconds=60.0, end_offsets_seconds=0.0, once=False, derive_seconds=60.0)
    context: Any = MagicMock(settings=settings, known_topics=set)
    context.state.stale.return_value = {}
    context.topics_have_changed.return_value = True
    monkeypatch.setattr(stream_module, "_TOPICS_SECONDS", 0)
    monkeypatch.setattr(_Stream, "_observe_logs", lambda _: None)
    stop = Event()
    query = MagicMock(isActive=True, status={"isTriggerActive": False}, exception=lambda: None)

    def end() -> None:
        query.isActive = False
        raise Py4JError("it did not stop within 30000 ms")

    query.stop.side_effect = end
    started = []

    def start(_stream: object, _start: object) -> Any:
        started.append(query)
        if is_stopped:
            stop.set()
        return query

    monkeypatch.setattr(_Stream, "_start", start)
    stream = _Stream(context, MagicMock(), lambda _: None)
    with nullcontext() if is_stopped else pytest.raises(PipelineError, match="the query is stuck"):
        stream.run(stop)
    assert len(started) == 1
    context.lease.abandon.assert_called_once()


def test_times_are_told_to_spark_without_an_exponent() -> None:
    assert stream_module._interval(1_209_600.0) == "1209600000 milliseconds"
    assert stream_module._interval(0.25) == "250 milliseconds"


def test_the_topics_of_an_unfinished_batch_are_sampled() -> None:
    context: Any = MagicMock(known_topics=set, repeated=BatchSummary(topics={"orders"}))
    stream = _Stream(context, MagicMock(), lambda _: None)
    stream._prepare(Event())
    stream._sample()
    context.sample_ends.assert_called_once_with({"orders"})


@pytest.mark.parametrize("is_maintained", [False, True])
def test_a_stream_that_ends_by_itself_maintains_the_tables_if_that_is_due(
    monkeypatch: pytest.MonkeyPatch, *, is_maintained: bool
) -> None:
    maintained = MagicMock()
    monkeypatch.setattr(stream_module, "maintain", maintained)
    monkeypatch.setattr(_Stream, "_follow", lambda *_: False)
    settings = SimpleNamespace(stop_seconds=60.0, end_offsets_seconds=0.0, once=True)
    context: Any = MagicMock(settings=settings, known_topics=set)
    context.state.stale.return_value = {}
    yesterday = datetime.now(UTC).date() - timedelta(days=1)
    context.state.maintained.return_value = yesterday if is_maintained else None
    _Stream(context, MagicMock(), lambda _: None).run(Event())
    assert maintained.call_count == (0 if is_maintained else 1)


def test_a_clock_that_was_ahead_keeps_no_later_day_from_maintenance() -> None:
    today = datetime.now(UTC).date()
    state = MagicMock(**{"maintained.return_value": today + timedelta(days=365)})
    assert is_due(state, today - timedelta(days=1))


@pytest.mark.parametrize("watermark", ["+58876-09-30T05:20:00.000Z", "2930-01-01T00:00:00.000Z"])
def test_a_record_from_the_future_lets_no_date_pass_before_it_is_over(
    monkeypatch: pytest.MonkeyPatch, watermark: str
) -> None:
    maintained = MagicMock()
    monkeypatch.setattr(stream_module, "maintain", maintained)
    context = MagicMock(**{"state.maintained.return_value": None})
    stream = _Stream(context, MagicMock(), lambda _: None)
    stream._query = MagicMock(lastProgress={"eventTime": {"watermark": watermark}})
    before = datetime.now(UTC).date()
    stream._compact()
    *_, last_date = maintained.call_args.args
    assert before <= last_date + timedelta(days=1) <= datetime.now(UTC).date()
