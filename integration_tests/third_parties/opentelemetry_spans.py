"""opentelemetry-instrumentation-confluent-kafka: the spans of one instrumented consumer, or of all."""

import threading
from collections.abc import Callable
from typing import Any

import confluent_kafka
from opentelemetry.instrumentation.confluent_kafka import ConfluentKafkaInstrumentor
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from integration_tests.third_parties.common import (
    ORIGINAL,
    PATIENCE,
    consumer_class,
    new_group,
    new_topic,
    numbers,
    produce,
    settings,
    wait_for,
)

_Make = Callable[[dict[str, Any]], Any]


def _provider() -> tuple[TracerProvider, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider, exporter


def _plain(spans: tuple[ReadableSpan, ...], topic: str) -> list[Any]:
    def named(text: object) -> str:
        return str(text).replace(topic, "TOPIC")

    return [
        {
            "name": named(span.name),
            "kind": span.kind.name,
            "attributes": {key: named(value) for key, value in (span.attributes or {}).items()},
            "links": len(span.links),
            "has a parent": span.parent is not None,
        }
        for span in spans
        if span.kind.name == "CONSUMER"
    ]


def _spans(bootstrap: str, make: _Make, exporter: InMemorySpanExporter) -> Any:
    topic = new_topic(bootstrap, 1)
    produce(bootstrap, topic, numbers(5), 1)
    consumer = make(settings(bootstrap, new_group(), enable_auto_commit=False))
    got: list[str] = []

    def poll() -> bool:
        message = consumer.poll(0.5)
        if message is not None:
            got.append(message.value().decode())
        return message is not None

    consumer.subscribe([topic])
    wait_for(poll, "a message")
    wait_for(poll, "the second message")
    while len(got) < 5:
        got += [message.value().decode() for message in consumer.consume(3, PATIENCE)]
    consumer.commit(asynchronous=False)
    consumer.poll(0.2)
    consumer.close()
    return {"messages": got, "spans": _plain(exporter.get_finished_spans(), topic)}


def _batch(bootstrap: str, make: _Make, exporter: InMemorySpanExporter) -> Any:
    topic = new_topic(bootstrap, 1)
    produce(bootstrap, topic, numbers(1), 1)
    consumer = make(settings(bootstrap, new_group()))
    consumer.subscribe([topic])
    wait_for(lambda: consumer.poll(0.5) is not None, "a message")

    def feed() -> None:
        for _ in range(3):
            threading.Event().wait(0.1)
            produce(bootstrap, topic, numbers(1), 1)

    feeder = threading.Thread(target=feed)
    feeder.start()
    messages = consumer.consume(3, PATIENCE)
    feeder.join()
    consumer.close()
    names = [span["name"] for span in _plain(exporter.get_finished_spans(), topic)]
    return {"messages": len(messages), "spans": names.count("TOPIC process")}


def _one(which: str) -> tuple[_Make, InMemorySpanExporter]:
    provider, exporter = _provider()
    kind = consumer_class(which)

    def make(config: dict[str, Any]) -> Any:
        return ConfluentKafkaInstrumentor.instrument_consumer(kind(config), tracer_provider=provider)

    return make, exporter


def _all(which: str) -> tuple[_Make, InMemorySpanExporter]:
    provider, exporter = _provider()
    ConfluentKafkaInstrumentor().instrument(tracer_provider=provider)
    return consumer_class(which), exporter


def instrument_consumer(which: str, bootstrap: str) -> Any:
    """Instrument one consumer: poll, consume, commit, close."""
    return _spans(bootstrap, *_one(which))


def instrument_consumer_batch(which: str, bootstrap: str) -> Any:
    """Instrument one consumer: a batch whose messages come slowly."""
    return _batch(bootstrap, *_one(which))


def instrument_before_import(which: str, bootstrap: str) -> Any:
    """Instrument all, as `opentelemetry-instrument` does, before the consumer's class is imported."""
    return _spans(bootstrap, *_all(which))


def instrument_before_import_batch(which: str, bootstrap: str) -> Any:
    """Instrument all: a batch whose messages come slowly."""
    return _batch(bootstrap, *_all(which))


def instrument_after_import(which: str, bootstrap: str) -> Any:
    """Instrument all after `from ... import Consumer`."""
    kind = consumer_class(which)
    _, exporter = _all(which)
    return _spans(bootstrap, kind, exporter)


def instrument_after_import_looked_up(which: str, bootstrap: str) -> Any:
    """Instrument all after `import confluent_kafka`, and look the class up then."""
    consumer_class(which)
    kind, exporter = _all(which)
    return _spans(bootstrap, confluent_kafka.Consumer if which == ORIGINAL else kind, exporter)
