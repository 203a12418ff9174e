"""Make brokers start faster: `python -m groupwright.testing.class_archive`.

It keeps the classes that a broker loads in a file (class data sharing, JEP 350). Each later `LocalKafka` of
this user, this Java and this version of Kafka maps them into memory, and starts in about two thirds of the
time. After an update of Java or Kafka, run the command again.
"""

import sys
import tempfile
from collections.abc import Callable
from functools import cached_property
from pathlib import Path

from confluent_kafka import Consumer, Producer

from groupwright.testing._kafka.local_kafka import LocalKafka

_WAIT_SECONDS = 60.0


class _RecordingKafka(LocalKafka):
    """A broker that writes the classes that it has loaded to a file when it stops."""

    target = Path()
    _stop_seconds = _WAIT_SECONDS

    @cached_property
    def _class_archive_options(self) -> list[str]:
        return [f"-XX:ArchiveClassesAtExit={self.target}"]


def make_class_archive() -> Path | None:
    """Make the archive unless there is one; return its path, or None if this Java cannot make any.

    Raises:
        LocalKafkaError: The broker does not start.
    """
    kafka = _RecordingKafka()

    def record(target: Path) -> None:
        kafka.target = target
        with kafka:
            use_broker(kafka)
            kafka.stop()

    return made_archive(kafka.class_archive, record)


def made_archive(path: Path, record: Callable[[Path], None]) -> Path | None:
    """Return an archive's path, after `record` has made it if it did not exist; None if it makes none.

    Args:
        path: The archive.
        record: Runs a Java that writes its classes to the given path, in a folder for its other files.
    """
    if path.exists():
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".recording-", dir=path.parent) as staging:
        target = Path(staging, path.name)
        record(target)
        if not target.exists():
            return None
        target.replace(path)
    return path


def use_broker(kafka: LocalKafka) -> None:
    """Produce, consume in a group, and commit, so that the broker loads the classes for that."""
    topic = "recording"
    kafka.create_topic(topic)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    producer.produce(topic, b"a message")
    producer.flush(_WAIT_SECONDS)
    config = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "group.id": topic,
        "auto.offset.reset": "earliest",
    }
    consumer = Consumer(config)
    try:
        consumer.subscribe([topic])
        message = consumer.poll(_WAIT_SECONDS)
        if message is not None and message.error() is None:
            consumer.commit(message=message, asynchronous=False)
    finally:
        consumer.close()


def main() -> int:
    """Make the archive, and say where it is."""
    path = make_class_archive()
    if path is None:
        sys.stdout.write("This Java cannot keep classes in a file; brokers start as before\n")
    else:
        sys.stdout.write(f"Brokers start with the classes in {path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
