"""What jobs remember between runs, beside Spark's checkpoint: small JSON files.

`cluster.json`: which cluster the tables are of; `held.json`: up to which offsets they have its topics; `stale.json`:
the dates that derived tables are behind at; `pending.json`: the batch that a batch job had begun to add.
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
    """A batch between two places of the log."""

    batch: Batch
    start: Offsets
    end: Offsets


class State:
    """The files, in a folder. Not thread-safe."""

    def __init__(self, folder: Folder) -> None:
        """Name the folder."""
        self._folder = folder

    def cluster(self) -> dict[str, Any] | None:
        """Return `id`, and `partitions` of the offsets topic, as they were last seen."""
        return self._read("cluster.json")

    def set_cluster(self, cluster: Mapping[str, Any]) -> None:
        """Note them."""
        self._write("cluster.json", cluster)

    def held(self) -> Offsets:
        """Return the offsets up to which the tables have the log, exclusive."""
        return _offsets(self._read("held.json") or {})

    def hold(self, offsets: Offsets) -> None:
        """Note that the tables have the log up to these too."""
        held = self.held()
        for topic, of_topic in offsets.items():
            known = held.setdefault(topic, {})
            for number, offset in of_topic.items():
                known[number] = max(offset, known.get(number, 0))
        self._write("held.json", held)

    def stale(self) -> dict[date, int]:
        """Return the dates at which derived tables are behind, each with how often that has been noted."""
        return {date.fromisoformat(day): count for day, count in (self._read("stale.json") or {}).items()}

    def mark_stale(self, dates: Collection[date]) -> None:
        """Note dates, before their rows change."""
        stale = self.stale()
        self._write_stale({**stale, **{day: stale.get(day, 0) + 1 for day in dates}})

    def mark_derived(self, derived: Mapping[date, int]) -> None:
        """Take dates out that have been derived since `stale` returned this, unless they were noted again."""
        self._write_stale({day: count for day, count in self.stale().items() if derived.get(day) != count})

    def pending(self) -> Pending | None:
        """Return the batch that was begun, and maybe not finished."""
        found = self._read("pending.json")
        if not found:
            return None
        return Pending(Batch(**found["batch"]), _offsets(found["start"]), _offsets(found["end"]))

    def begin(self, pending: Pending) -> None:
        """Note a batch before anything of it is added."""
        batch = {"writer": pending.batch.writer, "number": pending.batch.number}
        self._write("pending.json", {"batch": batch, "start": pending.start, "end": pending.end})

    def end(self) -> None:
        """Note that it has been added."""
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
