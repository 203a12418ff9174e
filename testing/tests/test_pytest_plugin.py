"""Fixtures and options of the pytest plugin in a user's tests."""

import subprocess
import sys
from pathlib import Path

import pytest
from jgo.config import GlobalSettings

from integration_tests.harness.patience import PATIENCE

pytest_plugins = ["pytester"]


@pytest.fixture
def maven_cache() -> Path:
    return GlobalSettings.load().repo_cache


@pytest.fixture
def user(
    maven_cache: Path,  # before pytester, which moves the home directory
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    temporary: Path,
) -> pytest.Pytester:
    """A user's project, whose pytest runs in a process of its own."""
    monkeypatch.setenv("M2_REPO", str(maven_cache))
    monkeypatch.setenv("TMPDIR", str(temporary))
    return pytester


def test_loading_the_plugin_loads_no_client_and_no_numpy() -> None:
    """It is loaded in each run of pytest wherever Groupwright is installed."""
    program = "import sys, groupwright.testing.pytest_plugin; print(*sys.modules)"

    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=PATIENCE
    )

    modules = set(loaded.stdout.split())
    assert "groupwright.testing" in modules
    assert not modules & {"confluent_kafka", "jgo", "numpy", "groupwright.testing._kafka.local_kafka"}


@pytest.mark.medium
def test_the_fixtures_are_there_and_start_nothing_by_themselves(user: pytest.Pytester) -> None:
    user.makepyfile("def test_without_kafka(): pass")

    user.runpytest_subprocess("--fixtures").stdout.fnmatch_lines(["local_kafka *", "new_kafka_topic *"])
    user.makeconftest(
        """
        import sys

        def pytest_unconfigure():
            assert "groupwright.testing._kafka.kafka" not in sys.modules
        """
    )
    result = user.runpytest_subprocess("-W", "error")

    result.assert_outcomes(passed=1)
    assert result.ret == 0, "nothing of a broker was loaded"


@pytest.mark.medium
def test_a_log_that_cannot_be_read_leaves_the_failure_of_a_test_in_sight(user: pytest.Pytester) -> None:
    user.makepyfile(
        """
        import pytest
        from groupwright.testing import LocalKafka

        class Unreadable(LocalKafka):
            def log_tail(self, lines=50):
                raise OSError("the container engine has ended")

        @pytest.fixture
        def kafka():
            return Unreadable()

        def test_a(kafka):
            assert kafka is None

        def test_b():
            pass
        """
    )

    result = user.runpytest_subprocess("-W", "error")

    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(
        [
            "*assert *Unreadable*",
            "*Kafka's log*",
            "The log cannot be read: OSError('the container engine has ended')",
        ]
    )


@pytest.mark.endurance
@pytest.mark.slow
@pytest.mark.kafka
def test_one_broker_of_the_oldest_line_serves_a_session_and_a_failed_test_shows_its_log(
    user: pytest.Pytester, temporary: Path
) -> None:
    user.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def local_kafka_config():
            return {"num.partitions": 5}
        """
    )
    user.makepyfile(
        """
        from confluent_kafka import Consumer, Producer

        seen = set()

        def test_a(local_kafka, new_kafka_topic):
            seen.update((local_kafka.pid, new_kafka_topic(), new_kafka_topic(partitions=2)))
            assert local_kafka.version == "3.9.2"
            assert "num.partitions=5" in (local_kafka.log_path.parent / "server.properties").read_text()

        def test_b(local_kafka, new_kafka_topic):
            topic = new_kafka_topic()
            seen.update((local_kafka.pid, topic))
            assert len(seen) == 4  # one broker, three topics
            address = {"bootstrap.servers": local_kafka.bootstrap_servers}
            producer = Producer(address)
            producer.produce(topic, b"a message")
            assert producer.flush() == 0
            consumer = Consumer({**address, "group.id": topic, "auto.offset.reset": "earliest"})
            consumer.subscribe([topic])
            assert consumer.poll().value() == b"a message"
            consumer.close()

        def test_that_uses_kafka_fails(new_kafka_topic):
            assert new_kafka_topic() is None

        def test_that_does_not_use_kafka_fails():
            assert False
        """
    )

    result = user.runpytest_subprocess("-o", "groupwright_kafka_version=3.9.2", "-W", "error")

    result.assert_outcomes(passed=2, failed=2)
    result.stdout.fnmatch_lines(["*_ test_that_uses_kafka_fails _*", "*Kafka's log*", "*INFO *"])
    assert result.stdout.str().count("Kafka's log") == 1
    assert list(temporary.iterdir()) == []
