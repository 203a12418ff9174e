"""ddtrace: the spans of a consumer whose class was made before or after `patch`."""

from typing import Any

import confluent_kafka
import ddtrace
from ddtrace.contrib import trace_utils
from ddtrace.contrib.internal.kafka import patch as datadog
from ddtrace.trace import TraceFilter

from integration_tests.third_parties.common import (
    ORIGINAL,
    consumer_class,
    new_group,
    new_topic,
    numbers,
    produce,
    settings,
    wait_for,
)


class _Collector(TraceFilter):  # type: ignore[misc]
    def __init__(self) -> None:
        self.spans: list[Any] = []

    def process_trace(self, trace: list[Any]) -> None:
        self.spans += trace


def _spans(bootstrap: str, kind: Any) -> Any:
    topic, group = new_topic(bootstrap, 1), new_group()
    produce(bootstrap, topic, numbers(5), 1)
    collector = _Collector()
    ddtrace.tracer.configure(trace_processors=[collector])
    consumer = kind(settings(bootstrap, group, enable_auto_commit=False))
    consumer.subscribe([topic])
    got: list[str] = []

    def poll() -> bool:
        message = consumer.poll(0.5)
        if message is not None:
            got.append(message.value().decode())
        return message is not None

    wait_for(poll, "a message")
    poll()
    while len(got) < 5:
        got.extend(message.value().decode() for message in consumer.consume(3, 1.0))
    consumer.commit(asynchronous=False)
    joined = len(collector.spans)
    for _ in range(4):
        consumer.poll(0.5)
    empty = len(collector.spans) - joined
    consumer.close()
    keys = (
        "component",
        "kafka.topic",
        "kafka.message_offset",
        "kafka.partition",
        "kafka.group_id",
        "kafka.received_message",
        "messaging.system",
    )
    spans = [
        {"name": span.name, **{key: _tag(span, key, topic, group) for key in keys}}
        for span in collector.spans
    ]
    return {
        "messages": got,
        "spans": [span for span in spans if span["kafka.received_message"] == "True"],
        "spans of four empty polls": empty,
    }


def _tag(span: Any, key: str, topic: str, group: str) -> str:
    value = span.get_tag(key)
    if value is None:
        value = span.get_metric(key)
    return str(value).replace(topic, "TOPIC").replace(group, "GROUP")


def patched_before_import(which: str, bootstrap: str) -> Any:
    """Patch first, as ddtrace-run does."""
    datadog.patch()
    return _spans(bootstrap, consumer_class(which))


def patched_after_import(which: str, bootstrap: str) -> Any:
    """Patch when the application has its consumer's class already."""
    kind = consumer_class(which)
    datadog.patch()
    return _spans(bootstrap, kind)


def wrapped_by_hand(which: str, bootstrap: str) -> Any:
    """Wrap ours as ddtrace wraps confluent-kafka's, before it is patched."""
    kind = consumer_class(which)
    datadog.patch()
    if which == ORIGINAL:
        return _spans(bootstrap, confluent_kafka.Consumer)

    class TracedConsumer(datadog.TracedConsumerMixin, kind):  # type: ignore[misc, valid-type]
        pass

    for method in ("poll", "consume"):
        trace_utils.wrap(TracedConsumer, method, datadog.traced_poll_or_consume)
    trace_utils.wrap(TracedConsumer, "commit", datadog.traced_commit)
    return _spans(bootstrap, TracedConsumer)
