"""Records made by Kafka's own classes, and how tests make batches of records."""

import base64
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from groupwright.pipeline._decoding import RAW
from groupwright.testing import compile_java
from integration_tests.harness.patience import PATIENCE

_COORDINATOR = "org.apache.kafka:kafka-group-coordinator:4.4.0"
_SOURCE = Path(__file__).parent / "GoldenRecords.java"
_SEED, _OF_EACH = "20261121", "25"


class GoldenRecord(NamedTuple):
    """A record, and what it says: Kafka's JSON of it."""

    key: bytes
    value: bytes | None
    says: dict[str, Any]


@pytest.fixture(scope="session")
def golden_records(tmp_path_factory: pytest.TempPathFactory) -> list[GoldenRecord]:
    """Records of every kind and version, and a tombstone of each, serialized by Kafka's generated classes."""
    folder = tmp_path_factory.mktemp("golden")
    program = compile_java(folder, [_SOURCE], _COORDINATOR)
    made = folder / "records.jsonl"
    command = program.command("GoldenRecords", "-Xmx256m")
    subprocess.run(
        [*command, str(made), _OF_EACH, _SEED], check=True, timeout=PATIENCE, stderr=subprocess.DEVNULL
    )
    with made.open(encoding="utf-8") as lines:
        return [_read(json.loads(line)) for line in lines]


def _read(says: dict[str, Any]) -> GoldenRecord:
    value = base64.b64decode(says["value"]) if "value" in says else None
    return GoldenRecord(base64.b64decode(says["key"]), value, says)


@pytest.fixture(scope="session")
def batch() -> Callable[[Sequence[tuple[bytes | None, bytes | None]]], pa.RecordBatch]:
    """Makes a batch of keys and values; offsets count from 0."""

    def make(records: Sequence[tuple[bytes | None, bytes | None]]) -> pa.RecordBatch:
        numbers = np.arange(len(records))
        columns = [
            pa.array([key for key, _ in records], pa.binary()),
            pa.array([value for _, value in records], pa.binary()),
            pa.array(np.zeros(len(records), np.int32)),
            pa.array(numbers),
            pa.array(numbers).cast(pa.timestamp("us", tz="UTC")),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=RAW)

    return make
