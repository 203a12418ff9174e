"""Samples the log-end offsets of all partitions of a broker, and prints in a line of JSON what it took.

Arguments: the number of topics, and of partitions of each. The broker is a LocalKafka, and the number of
files that its process may open bounds the partitions. A sample is what the jobs take: the topics are
described, the ends are queried, and the rows are added to the table.
"""

import json
import sys
import tempfile
import time
from datetime import UTC, datetime

from groupwright.cli.pipeline.spark import local_spark
from groupwright.pipeline import open_tables, schemas
from groupwright.pipeline._jobs.kafka import connected
from groupwright.pipeline._jobs.samples import EndOffsets, end_offset_rows
from groupwright.pipeline._tables import Batch
from groupwright.testing import LocalKafka

_ROUNDS = 4
_PATIENCE = 300.0
_SMALL = {"log.index.size.max.bytes": 4096, "log.segment.bytes": 1 << 20}
"""Each partition maps its indexes into memory, as large as they may become."""


def main(topics: int, partitions: int) -> None:
    """Create the topics, sample a few times, and print."""
    names = [f"topic-{number:05d}" for number in range(topics)]
    with LocalKafka(config=_SMALL, heap="1g", startup_timeout=_PATIENCE) as kafka:
        for name in names:
            kafka.create_topic(name, partitions)
        client = {"bootstrap.servers": kafka.bootstrap_servers}
        with (
            tempfile.TemporaryDirectory(prefix="groupwright-ends-") as folder,
            local_spark("ends", {"spark.driver.memory": "2g"}) as spark,
            connected(spark, client) as cluster,
        ):
            tables = open_tables(spark, folder)
            rounds = []
            for number in range(_ROUNDS):
                began = time.perf_counter()
                known = cluster.topics(names)
                described = time.perf_counter()
                ids = {name: topic.id for name, topic in known.items()}
                sample = EndOffsets(datetime.now(UTC), cluster.end_offsets(known), ids)
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


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
