"""Samples the log-end offsets of all partitions of a cluster, and prints in a line of JSON what it took.

Arguments: the number of topics, of partitions of each, and of brokers. The number of files that a process may
open bounds the partitions of a broker. One broker is a LocalKafka; more are KafkaContainers, with their data
in memory. A sample is what the jobs take: the topics are described, the ends are queried, and the rows are
added to the table.
"""

import json
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from confluent_kafka import KafkaException
from confluent_kafka.cimpl import NewTopic

from groupwright.pipeline import open_tables, schemas
from groupwright.pipeline._jobs.kafka import connected
from groupwright.pipeline._jobs.samples import EndOffsets, end_offset_rows
from groupwright.pipeline._tables import Batch
from groupwright.pipeline.jobs import local_session
from groupwright.testing import Kafka, KafkaContainers, LocalKafka

_ROUNDS = 4
_STARTUP = 300.0
_PATIENCE = 3600.0
_METADATA_SECONDS = 60.0
_AT_ONCE = 20
"""Topics of one request."""
_SMALL = {"log.index.size.max.bytes": 4096, "log.segment.bytes": 1 << 20}
"""Each partition maps its indexes into memory, as large as they may become."""
_BUSY = {"broker.session.timeout.ms": 120_000}
"""Brokers that create many partitions on few cores send their heartbeats late."""
_DISK = "2g"


def main(topics: int, partitions: int, brokers: int) -> None:
    """Create the topics, sample a few times, and print."""
    names = [f"topic-{number:05d}" for number in range(topics)]
    with _cluster(brokers) as kafka:
        _create(kafka, names, partitions)
        client = {"bootstrap.servers": kafka.bootstrap_servers}
        with (
            tempfile.TemporaryDirectory(prefix="groupwright-ends-") as folder,
            local_session("ends", settings={"spark.driver.memory": "2g"}) as spark,
            connected(spark, client) as cluster,
        ):
            tables = open_tables(spark, folder)
            rounds = []
            for number in range(_ROUNDS):
                began = time.perf_counter()
                known = cluster.topics(names)
                described = time.perf_counter()
                ids = {name: topic.id for name, topic in known.items()}
                sample = EndOffsets(datetime.now(UTC), *cluster.log_bounds(known), ids)
                queried = time.perf_counter()
                tables.add(schemas.END_OFFSETS, end_offset_rows(spark, [sample]), Batch("sampler", number))
                written = time.perf_counter()
                rounds.append(
                    {
                        "describe": described - began,
                        "query": queried - described,
                        "write": written - queried,
                        "seconds": written - began,
                    }
                )
            rows = tables.read(schemas.END_OFFSETS).count()
            if rows != _ROUNDS * topics * partitions:
                raise RuntimeError(f"{rows} rows of {_ROUNDS} samples of {topics * partitions} partitions")
    print(json.dumps({"rounds": rounds}))


def _cluster(brokers: int) -> LocalKafka | KafkaContainers:
    if brokers == 1:
        return LocalKafka(config=_SMALL, heap="1g", startup_timeout=_STARTUP)
    return KafkaContainers(
        brokers, config={**_SMALL, **_BUSY}, heap="1g", disk=_DISK, startup_timeout=_STARTUP
    )


def _create(kafka: Kafka, names: Sequence[str], partitions: int) -> None:
    """Create topics without further replicas, and wait until each partition has a leader.

    Raises:
        TimeoutError: A partition has no leader after `_PATIENCE`.
    """
    admin, deadline = kafka.admin(), time.monotonic() + _PATIENCE
    for first in range(0, len(names), _AT_ONCE):
        some = names[first : first + _AT_ONCE]
        new = [NewTopic(name, partitions, 1) for name in some]
        for future in admin.create_topics(new, request_timeout=_METADATA_SECONDS).values():
            future.result()
        # Brokers follow the controller before it goes on.
        while (led := _led(kafka, some)) < len(some) * partitions:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{led} of {len(some) * partitions} partitions have leaders in time")
            time.sleep(0.2)
        print(f"{first + len(some)} topics of {len(names)}", file=sys.stderr)


def _led(kafka: Kafka, names: Sequence[str]) -> int:
    """Return the number of partitions of these topics that have a leader."""
    try:
        found = [kafka.admin().list_topics(name, timeout=_METADATA_SECONDS).topics[name] for name in names]
    except KafkaException:
        return 0  # a busy broker; it is asked again
    return sum(each.leader in kafka.nodes for topic in found for each in topic.partitions.values())


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
