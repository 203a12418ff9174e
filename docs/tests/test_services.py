"""The programs of docs/web-services.md and the settings of docs/secured-clusters.md, on a real Kafka."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from groupwright.consumer import Consumer
from groupwright.testing import Listener, LocalKafka, Security
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

DOCS = Path(__file__).parents[1]
pytestmark = pytest.mark.kafka


def names_of(page: str) -> dict[str, Any]:
    """Run a page's programs."""
    names: dict[str, Any] = {}
    for program in re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL):
        exec(program, names)  # noqa: S102 - the documentation's own code
    return names


def test_an_asgi_lifespan_consumes_and_closes(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic()
    producer = Producer({"bootstrap.servers": local_kafka.bootstrap_servers})
    producer.produce(topic, b"an order")
    assert producer.flush(PATIENCE) == 0
    config = {
        "bootstrap.servers": local_kafka.bootstrap_servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
    }

    async def serve() -> Any:
        seen: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        async def handle(message: Any) -> None:
            seen.set_result(message.value())

        async with names_of("web-services.md")["consuming"](config, [topic], handle):
            return await asyncio.wait_for(seen, PATIENCE)

    assert asyncio.run(serve()) == b"an order"
    (group,) = local_kafka.admin().describe_consumer_groups([topic]).values()
    assert group.result(PATIENCE).members == [], "its member has left"


def test_the_lag_of_an_existing_service_grows_and_falls(
    local_kafka: LocalKafka, new_kafka_topic: NewKafkaTopic
) -> None:
    topic = new_kafka_topic()
    producer = Producer({"bootstrap.servers": local_kafka.bootstrap_servers})
    page = names_of("web-services.md")
    config = {
        "bootstrap.servers": local_kafka.bootstrap_servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
        "statistics.interval.ms": 100,
    }

    text = (DOCS / "web-services.md").read_text(encoding="utf-8")
    (protocol,) = re.findall(r'^groupwright_rebalances_total.*protocol="(.*)"} 1\.0$', text, re.MULTILINE)

    def produce(messages: int) -> None:
        for _ in range(messages):
            producer.produce(topic, b"an order")
        assert producer.flush(PATIENCE) == 0

    consumer = page["create_consumer"](config)

    def lag() -> float | None:
        consumer.poll(0)  # serves the statistics
        text = page["metrics"]().body.decode()
        found = re.search(rf'^groupwright_lag{{.*topic="{topic}".*}} (.+)$', text, re.MULTILINE)
        return None if found is None else float(found[1])

    try:
        consumer.subscribe([topic])
        produce(3)
        assert len(consumer.consume(3, PATIENCE)) == 3
        wait_until(lambda: lag() == 0, "the lag to be 0")
        assert f'outcome="completed",protocol="{protocol}"}} 1.0' in page["metrics"]().body.decode()
        consumer.pause(consumer.assignment())  # as a service that does not keep up
        produce(7)
        wait_until(lambda: lag() == 7, "the lag to grow")
        consumer.resume(consumer.assignment())
        assert len(consumer.consume(7, PATIENCE)) == 7
        wait_until(lambda: lag() == 0, "the lag to fall")
    finally:
        consumer.close()


@pytest.mark.slow
def test_the_settings_of_secured_clusters_connect() -> None:
    settings = names_of("secured-clusters.md")
    with LocalKafka(security=Security(users={"billing": "secret"})) as kafka:
        kafka.create_topic("orders")
        producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
        producer.produce("orders", b"an order")
        assert producer.flush(PATIENCE) == 0
        for name, listener, options in (
            ("tls", Listener.SSL, {}),
            ("mutual_tls", Listener.MUTUAL_TLS, {"user": "billing"}),
            ("password", Listener.SASL_SSL, {"mechanism": "SCRAM-SHA-512", "user": "billing"}),
        ):
            real = kafka.secure_config(listener, **options)
            page = settings[name]
            # The page's keys, with this broker's addresses, files and password.
            config = {key: real[key] for key in page}
            assert {key: config[key] for key in ("security.protocol", "sasl.mechanism") if key in page} == {
                key: page[key] for key in ("security.protocol", "sasl.mechanism") if key in page
            }
            with Consumer({**config, "group.id": name, "auto.offset.reset": "earliest"}) as consumer:
                consumer.subscribe(["orders"])
                message = consumer.poll(PATIENCE)
            assert message is not None
            assert message.error() is None
            assert message.value() == b"an order"
