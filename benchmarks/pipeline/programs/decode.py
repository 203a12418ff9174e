"""Decodes records on Spark, and prints in a line of JSON what it took.

Arguments: the cores (Spark's, and those that the process may use), what to do (`decode` or
`decode_offset_commits`), how many times, and either a folder of Parquet or a number of records to be made on
the fly.
"""

import json
import sys
import time
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from benchmarks.pipeline.programs.session import local_session
from benchmarks.pipeline.programs.watch import Watch, use_cores
from benchmarks.pipeline.synthetic import Fleet, HistoryKind, history
from groupwright import pipeline

_RECORDS_A_SLICE = 2_500_000


def main(cores: int, what: str, rounds: int, source: str) -> None:
    """Decode, and print."""
    use_cores(cores)
    spark = local_session(cores, memory="1g")
    records = _records(spark, cores, source)
    decode = getattr(pipeline, what)
    with Watch() as watch:
        taken = [_taken(watch, decode(records)) for _ in range(rounds)]
    print(json.dumps({"rounds": taken, "python_mib": watch.python, "jvm_mib": watch.jvm}))
    spark.stop()


def _records(spark: SparkSession, cores: int, source: str) -> DataFrame:
    if not source.isdigit():
        return spark.read.parquet(source)
    count = int(source)
    slices = max(cores, count // _RECORDS_A_SLICE)
    return history(spark, Fleet(commits=count, groups=1000), [HistoryKind.COMMITS], slices)


def _taken(watch: Watch, decoded: DataFrame) -> dict[str, float]:
    began, used = time.perf_counter(), watch.cpu_seconds()
    decoded.write.format("noop").mode("overwrite").save()
    return {"seconds": time.perf_counter() - began, "cpu_seconds": watch.cpu_seconds() - used}


if __name__ == "__main__":
    _, _cores, _what, _rounds, _source = sys.argv
    main(int(_cores), _what, int(_rounds), _source if _source.isdigit() else str(Path(_source)))
