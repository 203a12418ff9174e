"""Persistent state of the jobs, besides Spark's checkpoint, in small JSON files.

- `cluster.json`: the tables' cluster.
- `held.json`: the end offsets up to which the tables have records, exclusive.
- `stale.json`: the dates whose derived tables are out of date.
- `pending.json`: the batch that a batch job has begun to add.
"""

import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

from groupwright.pipeline._jobs.kafka import Offsets
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline._tables.protocol import Batch


@dataclass(frozen=True, slots=True)
class Pending:
    """A batch, from start offsets (inclusive) to end offsets (exclusive)."""

    batch: Batch
    start: Offsets
    end: Offsets


class State:
    """The state files of a folder. Not thread-safe."""

    def __init__(self, folder: Folder) -> None:
        """Use the files of this folder."""
        self._folder = folder

    def cluster(self) -> dict[str, Any] | None:
        """Return the last recorded cluster `id`, and `partitions` of the offsets topic."""
        return self._read("cluster.json")

    def set_cluster(self, cluster: Mapping[str, Any]) -> None:
        """Record `id` and `partitions`."""
        self._write("cluster.json", cluster)

    def ingested(self) -> Offsets:
        """Return the offsets up to which the tables have records, exclusive."""
        return _offsets(self._read("held.json") or {})

    def record_ingested(self, offsets: Offsets) -> None:
        """Record that the tables have all records before these offsets. Offsets never go back."""
        ingested = self.ingested()
        for topic, of_topic in offsets.items():
            known = ingested.setdefault(topic, {})
            for number, offset in of_topic.items():
                known[number] = max(offset, known.get(number, 0))
        self._write("held.json", ingested)

    def stale(self) -> dict[date, int]:
        """Return the dates with outdated derived tables, each with the number of times it was marked."""
        return {date.fromisoformat(day): count for day, count in (self._read("stale.json") or {}).items()}

    def mark_stale(self, dates: Collection[date]) -> None:
        """Mark dates, before their rows change."""
        stale = self.stale()
        self._write_stale({**stale, **{day: stale.get(day, 0) + 1 for day in dates}})

    def mark_derived(self, derived: Mapping[date, int]) -> None:
        """Unmark the dates that `stale` returned, unless they were marked again since."""
        self._write_stale({day: count for day, count in self.stale().items() if derived.get(day) != count})

    def pending(self) -> Pending | None:
        """Return the batch that may be unfinished: `begin` was called for it, and `finish` was not."""
        found = self._read("pending.json")
        if not found:
            return None
        return Pending(Batch(**found["batch"]), _offsets(found["start"]), _offsets(found["end"]))

    def begin(self, pending: Pending) -> None:
        """Record a batch before any of its rows are added."""
        batch = {"writer": pending.batch.writer, "number": pending.batch.number}
        self._write("pending.json", {"batch": batch, "start": pending.start, "end": pending.end})

    def finish(self) -> None:
        """Record that the batch has been added."""
        self._folder.delete("pending.json")

    def _write_stale(self, stale: Mapping[date, int]) -> None:
        self._write("stale.json", {day.isoformat(): count for day, count in sorted(stale.items())})

    def _read(self, name: str) -> dict[str, Any] | None:
        text = self._folder.read(name)
        loaded: dict[str, Any] | None = json.loads(text) if text else None
        return loaded

    def _write(self, name: str, value: Mapping[Any, Any]) -> None:
        self._folder.write(name, json.dumps(value))


def _offsets(loaded: Mapping[str, Mapping[str, int]]) -> Offsets:
    return {
        topic: {int(number): offset for number, offset in of_topic.items()}
        for topic, of_topic in loaded.items()
    }
