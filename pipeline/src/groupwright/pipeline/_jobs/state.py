"""Persistent state of the jobs, besides their positions, in small JSON files.

- `stale.json`: the dates whose derived tables are out of date.
- `pending.json`: the batch that a job has begun to add.
- `maintained.json`: the last date up to which the tables are compacted.

The positions are in the table `read_positions`, so a lost folder loses neither records nor positions.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from threading import Lock
from typing import Any, Self

from groupwright.pipeline._jobs.kafka import Offsets
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline._tables.protocol import Batch, WriteLease
from groupwright.pipeline.errors import PipelineError

CHECKPOINT = "checkpoint"
"""Name of Spark's checkpoint in the folder of the state."""


@dataclass(frozen=True, slots=True)
class BatchRange:
    """A batch and its range, from start offsets (inclusive) to end offsets (exclusive)."""

    batch: Batch
    start: Offsets
    end: Offsets

    @classmethod
    def between(cls, batch: Batch, start: Offsets, end: Offsets) -> Self:
        """Return a batch with the partitions of `end`; one that has no start is read from offset 0."""
        first = {
            topic: {partition: start.get(topic, {}).get(partition, 0) for partition in by_partition}
            for topic, by_partition in end.items()
        }
        return cls(batch, first, end)


class State:
    """The state files of a folder. Thread-safe, except for `begin` and `finish`.

    Methods that write raise a `TablesError` if the job has lost its lease.
    """

    def __init__(self, folder: Folder, lease: WriteLease) -> None:
        """Use the files of this folder, with this right to write."""
        self._folder = folder
        self._lease = lease
        self._lock = Lock()

    def exists(self) -> bool:
        """Return whether there is any state."""
        return self._read("stale.json") is not None

    def stale(self) -> dict[date, int]:
        """Return the dates with outdated derived tables, each with the number of times it was marked."""
        return {date.fromisoformat(day): count for day, count in (self._read("stale.json") or {}).items()}

    def mark_stale(self, dates: Collection[date]) -> None:
        """Mark dates, before their rows change."""
        if not dates:
            return
        with self._lock:
            stale = self.stale()
            self._write_stale({**stale, **{day: stale.get(day, 0) + 1 for day in dates}})

    def mark_derived(self, derived: Mapping[date, int]) -> None:
        """Unmark the dates that `stale` returned, unless they were marked again since."""
        with self._lock:
            self._write_stale(
                {day: count for day, count in self.stale().items() if derived.get(day) != count}
            )

    def maintained(self) -> date | None:
        """Return the last date up to which the tables are compacted; None if they never were."""
        found = self._read("maintained.json")
        return date.fromisoformat(found["last_date"]) if found else None

    def mark_maintained(self, last_date: date) -> None:
        """Record that the tables are compacted up to a date."""
        self._write("maintained.json", {"last_date": last_date.isoformat()})

    def pending(self) -> BatchRange | None:
        """Return the batch that may be unfinished: `begin` was called for it, and `finish` was not."""
        found = self._read("pending.json")
        if not found:
            return None
        return BatchRange(Batch(**found["batch"]), parse_offsets(found["start"]), parse_offsets(found["end"]))

    def begin(self, pending: BatchRange) -> None:
        """Record a batch before any of its rows are added."""
        batch = {"writer": pending.batch.writer, "number": pending.batch.number}
        self._write("pending.json", {"batch": batch, "start": pending.start, "end": pending.end})

    def finish(self) -> None:
        """Record that the batch has been added."""
        self._lease.check()
        self._folder.delete("pending.json")

    def _write_stale(self, stale: Mapping[date, int]) -> None:
        self._write("stale.json", {day.isoformat(): count for day, count in sorted(stale.items())})

    def _read(self, name: str) -> dict[str, Any] | None:
        text = self._folder.read(name)
        loaded: dict[str, Any] | None = json.loads(text) if text else None
        return loaded

    def _write(self, name: str, value: Mapping[Any, Any]) -> None:
        self._lease.check()
        self._folder.write(name, json.dumps(value))


def planned_end(checkpoint: Folder, batch_id: int) -> Offsets:
    """Return the end offsets of a batch that a streaming query has planned, exclusive.

    Raises:
        PipelineError: The checkpoint does not have the batch.
    """
    offsets = checkpoint / "offsets"
    text = offsets.read(str(batch_id))
    if not text:
        raise PipelineError(
            f"{offsets.path} has no offsets of batch {batch_id}: was it deleted? Restart the job"
        )
    return parse_offsets(json.loads(text.splitlines()[-1]))


def parse_offsets(loaded: Mapping[str, Mapping[str, int]]) -> Offsets:
    """Return offsets that were loaded from JSON, where partitions are text."""
    return {
        topic: {int(number): offset for number, offset in of_topic.items()}
        for topic, of_topic in loaded.items()
    }
