"""Parquet tables, with a manifest per table that lists the valid files.

Plain Parquet has no commits: a job that dies leaves some of its files behind, and readers see files appear
and disappear. Therefore each batch is written to a folder of its own (`offset_commits/batch=…/date=…/`). The
folder becomes valid when a new version of the manifest (`_manifest/<version>.json`) lists it; a manifest is a
small file, written atomically. The manifest also records each writer's last batch: a repeated batch changes
nothing if it is listed.

A version is created only if it does not exist, so of two writers one is first, and the other one repeats its
change on the new version. A job also has the number of its lease: a manifest with a higher number refuses it.

Replaced folders are kept for `GRACE_SECONDS`, for readers that have already started; a later change deletes
them.
"""

import json
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from threading import Lock
from uuid import uuid4

from pyspark.sql import DataFrame, SparkSession

from groupwright.pipeline._tables.arrow import empty_frame
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline._tables.protocol import Batch, WriteLease
from groupwright.pipeline.errors import TablesError
from groupwright.pipeline.schemas import PARTITION_COLUMN, Table

GRACE_SECONDS = 600.0
"""Time for which replaced folders are kept, in seconds."""
_ABANDONED_SECONDS = 86400.0
"""Age, in seconds, from which files that no manifest lists are deleted: they are not of a running batch."""
_KEPT_VERSIONS = 10
"""Number of manifests that are kept, for readers that have already listed them."""
_KEPT_WRITERS = 50
"""Number of writers whose last batch is recorded. Only the last batch of the last job can be repeated."""
_MANIFEST = "_manifest"
_BATCH = "batch"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The valid folders of a table.

    Attributes:
        version: Version of the manifest, from 1; 0 for an empty table.
        folders: The folders of each date's rows, relative to the table's folder.
        written: The number of each writer's last batch.
        replaced: Folders that are no longer valid, with the time of their replacement in seconds since the
            epoch.
        fence: The highest number of a lease that has written.
    """

    version: int = 0
    folders: dict[str, list[str]] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    replaced: dict[str, float] = field(default_factory=dict)
    fence: int = 0


Change = Callable[[Manifest], Manifest | None]
"""A change of a manifest; None if nothing changes."""


class ParquetTables:
    """Parquet tables under a folder."""

    def __init__(
        self,
        spark: SparkSession,
        root: str,
        clock: Callable[[], float] = time.time,
        lease: WriteLease | None = None,
    ) -> None:
        """Open the tables, without writing anything.

        Args:
            spark: The session that reads and writes.
            root: The folder of all tables, as a path or a URI.
            clock: Returns the time in seconds since the epoch.
            lease: The right to write, checked before each change; None for readers and single programs.

        Raises:
            TablesError: The tables are to be written, and the file system cannot do that safely.
        """
        self._spark = spark
        self._root = Folder(spark, root)
        self._clock = clock
        self._lease = lease
        self._lock = Lock()
        if lease:
            self._require_atomic_rename()

    def add(self, table: Table, rows: DataFrame, batch: Batch) -> None:
        """See `Tables.add`."""
        if _has(self.manifest(table), batch):
            return
        added = self._write(table, rows, f"{batch.writer}-{batch.number:012d}")
        if not added:
            return  # nothing to record: the batch is empty again if it is repeated

        def change(before: Manifest) -> Manifest | None:
            if _has(before, batch):
                return None
            folders = {day: list(before.folders.get(day, ())) for day in {**before.folders, **added}}
            for day, folder in added.items():
                folders[day].append(folder)
            others = {writer: number for writer, number in before.written.items() if writer != batch.writer}
            recent = dict(list(others.items())[-_KEPT_WRITERS:])
            return replace(before, folders=folders, written={**recent, batch.writer: batch.number})

        self._publish(table, change, added)

    def replace(self, table: Table, rows: DataFrame, dates: Collection[date]) -> None:
        """See `Tables.replace`."""
        added = self._write(table, rows, "replacement")
        replaced = {day.isoformat() for day in dates}
        if foreign := added.keys() - replaced:
            self._discard(table, added)
            raise TablesError(
                f"{table.name}: rows of {', '.join(sorted(foreign))} cannot replace those of "
                f"{', '.join(sorted(replaced))}; nothing was changed"
            )

        def change(before: Manifest) -> Manifest | None:
            if not added and not replaced & before.folders.keys():
                return None
            kept = {day: folders for day, folders in before.folders.items() if day not in replaced}
            return replace(before, folders={**kept, **{day: [folder] for day, folder in added.items()}})

        self._publish(table, change, added)

    def read(self, table: Table, *, since: date | None = None, until: date | None = None) -> DataFrame:
        """See `Tables.read`."""
        first, last = (since or date.min).isoformat(), (until or date.max).isoformat()
        folder = self._root / table.name
        paths = [
            f"{folder.path}/{path}"
            for day, paths in self.manifest(table).folders.items()
            if first <= day <= last
            for path in paths
        ]
        if not paths:
            return empty_frame(self._spark, table)
        return self._read_folders(table, paths)

    def _read_folders(self, table: Table, paths: Sequence[str]) -> DataFrame:
        base = (self._root / table.name).path
        reader = self._spark.read.schema(table.schema).option("basePath", base)
        return reader.parquet(*paths).drop(_BATCH)

    def compact(self, table: Table, dates: Collection[date]) -> None:
        """See `Tables.compact`."""
        folders = self.manifest(table).folders
        for day in sorted(dates):
            compacted = folders.get(day.isoformat(), ())
            if len(compacted) > 1:
                self._compact(table, day, compacted)

    def _compact(self, table: Table, day: date, compacted: Sequence[str]) -> None:
        folder = self._root / table.name
        rows = self._read_folders(table, [f"{folder.path}/{path}" for path in compacted])
        # By group or topic, whose rows are then in few files; adaptive execution merges small partitions.
        by = next(name for name in ("group_id", "topic") if name in table.columns)
        self._rewrite(table, day, compacted, rows.repartition(by), "compaction")

    def _rewrite(self, table: Table, day: date, old: Sequence[str], rows: DataFrame, batch: str) -> None:
        """Write a date's rows of some folders to a new one, which takes their place."""
        added = self._write(table, rows, batch)

        def change(before: Manifest) -> Manifest | None:
            current = before.folders.get(day.isoformat(), [])
            if not set(old) <= set(current):
                return None  # the date was replaced meanwhile
            later = [path for path in current if path not in old]
            return replace(before, folders={**before.folders, day.isoformat(): [*added.values(), *later]})

        self._publish(table, change, added)

    def retain(self, table: Table, since: date) -> None:
        """See `Tables.retain`."""

        def change(before: Manifest) -> Manifest | None:
            kept = {day: paths for day, paths in before.folders.items() if day >= since.isoformat()}
            return replace(before, folders=kept) if kept != before.folders else None

        self._publish(table, change, {})

    def vacuum(self, table: Table) -> None:
        """See `Tables.vacuum`."""
        if self._lease:
            self._lease.check()
        folder = self._root / table.name
        manifest = self.manifest(table)
        listed = [*manifest.replaced, *(path for paths in manifest.folders.values() for path in paths)]
        known = {path.partition("/")[0] for path in listed}
        oldest = self._clock() - _ABANDONED_SECONDS
        for name, modified in folder.modified().items():
            if name.startswith(f"{_BATCH}=") and name not in known and modified < oldest:
                folder.delete(name)
        (folder / _MANIFEST).delete_temporary(oldest)

    def manifest(self, table: Table) -> Manifest:
        """Return the table's newest manifest."""
        folder = self._root / table.name / _MANIFEST
        versions = _versions(folder.names())
        text = folder.read(_file(versions[-1])) if versions else None
        return Manifest(**json.loads(text)) if text else Manifest()

    def _write(self, table: Table, rows: DataFrame, batch: str) -> dict[str, str]:
        """Write rows to a new folder, and return its sub-folder of each date."""
        name = f"{_BATCH}={batch}.{uuid4().hex[:8]}"
        folder = self._root / table.name / name
        rows.write.mode("overwrite").partitionBy(PARTITION_COLUMN).parquet(folder.path)
        prefix = f"{PARTITION_COLUMN}="
        added = {
            found.removeprefix(prefix): f"{name}/{found}"
            for found in folder.names()
            if found.startswith(prefix)
        }
        if not added:
            (self._root / table.name).delete(name)
        return added

    def _publish(self, table: Table, change: Change, added: Mapping[str, str]) -> None:
        """Apply a change to the newest manifest, again if another writer was faster.

        Args:
            table: The table.
            change: The change.
            added: The folders that were written for it, which are deleted if nothing changes.

        Raises:
            TablesError: Another job has taken over.
        """
        folder = self._root / table.name
        manifests = folder / _MANIFEST
        with self._lock:
            while True:
                before = self.manifest(table)
                self._require_lease(before)
                after = change(before)
                if after is None:
                    self._discard(table, added)
                    return
                manifest, expired = self._next(before, after)
                if manifests.write(_file(manifest.version), json.dumps(asdict(manifest)), replace=False):
                    break
            for path in expired:
                folder.delete(path)
            for version in _versions(manifests.names())[:-_KEPT_VERSIONS]:
                manifests.delete(_file(version))

    def _discard(self, table: Table, added: Mapping[str, str]) -> None:
        for name in {path.partition("/")[0] for path in added.values()}:
            (self._root / table.name).delete(name)

    def _next(self, before: Manifest, after: Manifest) -> tuple[Manifest, set[str]]:
        """Return the next version, and the folders to delete once it is written."""
        now = self._clock()
        valid = {path for paths in after.folders.values() for path in paths}
        no_longer = {path for paths in before.folders.values() for path in paths} - valid
        replaced = {**before.replaced, **dict.fromkeys(no_longer, now)}
        expired = {path for path, since in replaced.items() if since + GRACE_SECONDS <= now}
        manifest = replace(
            after,
            version=before.version + 1,
            replaced={path: since for path, since in replaced.items() if path not in expired},
            fence=max(before.fence, self._lease.number if self._lease else 0),
        )
        return manifest, expired

    def _require_lease(self, manifest: Manifest) -> None:
        if self._lease is None:
            return
        self._lease.check()
        if manifest.fence > self._lease.number:
            raise TablesError(
                f"{self._root.path}: another job has taken over, and only one job at a time may write. "
                "Restart this one when it has ended; no rows are lost or duplicated"
            )

    def _require_atomic_rename(self) -> None:
        if not self._root.has_atomic_rename:
            raise TablesError(
                f"{self._root.path}: Parquet tables need a file system with atomic renames (file or hdfs), "
                f"and {self._root.scheme} has none. Set format=delta or format=iceberg"
            )


def _has(manifest: Manifest, batch: Batch) -> bool:
    return manifest.written.get(batch.writer, -1) >= batch.number


def _file(version: int) -> str:
    return f"{version:012d}.json"


def _versions(names: Collection[str]) -> list[int]:
    return sorted(int(name.removesuffix(".json")) for name in names if name[:12].isdigit())
