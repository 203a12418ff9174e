"""Decodes records on Spark, and prints in a line of JSON what it took.

Arguments: the cores (Spark's, and those that the process may use), what to do (`decode` or
`decode_offset_commits`), how many times, and either a folder of Parquet or a number of records to be made on
the fly.
"""

import json
import os
import sys
import threading
import time
from pathlib import Path
from typing import Any, Self

import psutil  # type: ignore[import-untyped]
from benchmarks.pipeline.programs.session import local_session
from benchmarks.pipeline.synthetic import Fleet, HistoryKind, history
from pyspark.sql import DataFrame, SparkSession

from groupwright import pipeline

_SAMPLE_SECONDS = 0.1
_RECORDS_A_SLICE = 2_500_000


def main(cores: int, what: str, rounds: int, source: str) -> None:
    """Decode, and print."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    spark = local_session(cores, memory="1g")
    records = _records(spark, cores, source)
    decode = getattr(pipeline, what)
    with _Watch() as watch:
        taken = [_taken(watch, decode(records)) for _ in range(rounds)]
    print(json.dumps({"rounds": taken, "python_mib": watch.python, "jvm_mib": watch.jvm}))
    spark.stop()


def _records(spark: SparkSession, cores: int, source: str) -> DataFrame:
    if not source.isdigit():
        return spark.read.parquet(source)
    count = int(source)
    slices = max(cores, count // _RECORDS_A_SLICE)
    return history(spark, Fleet(commits=count, groups=1000), [HistoryKind.COMMITS], slices)


def _taken(watch: "_Watch", decoded: DataFrame) -> dict[str, float]:
    began, used = time.perf_counter(), watch.cpu_seconds()
    decoded.write.format("noop").mode("overwrite").save()
    return {"seconds": time.perf_counter() - began, "cpu_seconds": watch.cpu_seconds() - used}


class _Watch:
    """Watches the most memory that Spark's JVM and its Python workers take.

    Attributes:
        python: Of all workers together, in MiB.
        jvm: In MiB.
    """

    def __init__(self) -> None:
        self.python = self.jvm = 0.0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()

    def cpu_seconds(self) -> float:
        """Return the seconds of processor time so far, of all processes."""
        return sum(sum(times[:2]) for times in self._of_each(lambda process: process.cpu_times()))

    def _run(self) -> None:
        while not self._end.wait(_SAMPLE_SECONDS):
            held = self._of_each(lambda process: (process.name(), process.memory_info().rss / 2**20))
            self.jvm = max(self.jvm, sum(size for name, size in held if "java" in name))
            self.python = max(self.python, sum(size for name, size in held[1:] if "java" not in name))

    @staticmethod
    def _of_each(ask: Any) -> list[Any]:
        """Return the answers of this process, the first, and its descendants."""
        me = psutil.Process()
        answers = []
        for process in [me, *me.children(recursive=True)]:
            try:
                answers.append(ask(process))
            except psutil.Error:  # it has ended
                continue
        return answers


if __name__ == "__main__":
    _, _cores, _what, _rounds, _source = sys.argv
    main(int(_cores), _what, int(_rounds), _source if _source.isdigit() else str(Path(_source)))
