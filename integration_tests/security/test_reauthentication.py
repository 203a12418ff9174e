"""Sessions that the broker ends: a member authenticates again on the same connection (KIP-368)."""

import logging
import threading
import time
from collections.abc import Iterator

import pytest

from groupwright.consumer._config.config import read_connection
from groupwright.consumer._network.brokers import Brokers
from groupwright.core.kafka_apis import METADATA
from groupwright.testing import Listener, LocalKafka, Security
from integration_tests.harness.patience import PATIENCE

pytestmark = pytest.mark.kafka

SESSION = 8.0  # seconds


@pytest.fixture(scope="module")
def kafka() -> Iterator[LocalKafka]:
    config = {"connections.max.reauth.ms": str(round(SESSION * 1000))}
    with LocalKafka(config=config, security=Security(users={"alice": "of-alice"})) as kafka:
        yield kafka


@pytest.mark.parametrize(
    ("listener", "mechanism"),
    [
        pytest.param(Listener.SASL_PLAINTEXT, "SCRAM-SHA-256", marks=pytest.mark.endurance),
        (Listener.SASL_SSL, "PLAIN"),
    ],
)
def test_a_connection_outlives_its_session(
    kafka: LocalKafka, caplog: pytest.LogCaptureFixture, listener: Listener, mechanism: str
) -> None:
    network = Brokers(read_connection(kafka.secure_config(listener, mechanism=mechanism), timeout=PATIENCE))
    ended = threading.Event()
    failures: list[Exception] = []

    async def ask() -> None:
        try:
            until = time.monotonic() + 1.5 * SESSION
            while time.monotonic() < until:
                await network.ask_anywhere(METADATA(topics=[]))
                await network.sleep(0.05)
        except Exception as error:  # noqa: BLE001 - whatever it is
            failures.append(error)
        finally:
            ended.set()

    with caplog.at_level(logging.DEBUG, "groupwright.consumer"):
        network.start()
        network.call_soon(lambda: network.spawn(ask()))
        assert ended.wait(PATIENCE)
        lines = caplog.messages.copy()
        network.call_soon(network.end)
        network.join_thread(PATIENCE)

    assert failures == []
    assert sum("SaslHandshake" in line for line in lines) == 2 * sum("connected" in line for line in lines)
    assert not [line for line in lines if "closed" in line]
