"""Parquet tables, with a manifest per table that lists the valid files.

Plain Parquet has no commits: a job that dies leaves some of its files behind, and readers see files appear
and disappear. Therefore each batch is written to a folder of its own (`offset_commits/batch=…/date=…/`). The
folder becomes valid when a new version of the manifest (`_manifest/<version>.json`) lists it; a manifest is a
small file, written atomically. The manifest also records each writer's last batch: a repeated batch changes
nothing if it is listed, and otherwise overwrites its own files.

Replaced folders are kept for `GRACE_SECONDS`, for readers that have already started; a later change deletes
them.
"""

import json
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field, replace
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from groupwright.pipeline._tables.empty import empty_frame
from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline._tables.protocol import Batch
from groupwright.pipeline.errors import TablesError
from groupwright.pipeline.schemas import PARTITION_COLUMN, Table

GRACE_SECONDS = 600.0
"""Time for which replaced folders are kept, in seconds."""
_KEPT_VERSIONS = 10
_MANIFEST = "_manifest"


@dataclass(frozen=True, slots=True)
class Manifest:
    """The valid folders of a table.

    Attributes:
        version: Version of the manifest, from 1; 0 for an empty table.
        folders: The folders of each date's rows, relative to the table's folder.
        written: The number of each writer's last batch.
        replaced: Folders that are no longer valid, with the time of their replacement in seconds since the
            epoch.
    """

    version: int = 0
    folders: dict[str, list[str]] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    replaced: dict[str, float] = field(default_factory=dict)


class ParquetTables:
    """Parquet tables under a folder."""

    def __init__(self, spark: SparkSession, root: str, clock: Callable[[], float] = time.time) -> None:
        """Open the tables, without writing anything.

        Args:
            spark: The session that reads and writes.
            root: The folder of all tables, as a path or a URI.
            clock: Returns the time in seconds since the epoch.
        """
        self._spark = spark
        self._root = Folder(spark, root)
        self._clock = clock

    def add(self, table: Table, rows: DataFrame, batch: Batch) -> None:
        """See `Tables.add`."""
        before = self.manifest(table)
        if before.written.get(batch.writer, -1) >= batch.number:
            return
        added = self._write(table, rows, f"{batch.writer}-{batch.number:012d}")
        if not added:
            return  # nothing to record: the batch is empty again if it is repeated
        folders = {day: list(before.folders.get(day, ())) for day in {**before.folders, **added}}
        for day, folder in added.items():
            folders[day].append(folder)
        written = {**before.written, batch.writer: batch.number}
        self._publish(table, before, replace(before, folders=folders, written=written))

    def replace(self, table: Table, rows: DataFrame, dates: Collection[date]) -> None:
        """See `Tables.replace`."""
        before = self.manifest(table)
        added = self._write(table, rows, f"version-{before.version + 1:012d}")
        replaced = {day.isoformat() for day in dates}
        if foreign := added.keys() - replaced:
            raise TablesError(
                f"{table.name}: rows of {', '.join(sorted(foreign))} cannot replace those of "
                f"{', '.join(sorted(replaced))}; nothing was changed"
            )
        if not added and not replaced & before.folders.keys():
            return
        kept = {day: folders for day, folders in before.folders.items() if day not in replaced}
        folders = {**kept, **{day: [folder] for day, folder in added.items()}}
        self._publish(table, before, replace(before, folders=folders))

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
        reader = self._spark.read.schema(table.schema).option("basePath", folder.path)
        return reader.parquet(*paths).select(*table.columns)

    def compact(self, table: Table, dates: Collection[date]) -> None:
        """See `Tables.compact`."""
        folders = self.manifest(table).folders
        for day in sorted(dates):
            if len(folders.get(day.isoformat(), ())) > 1:
                self.replace(table, self.read(table, since=day, until=day).coalesce(1), [day])

    def manifest(self, table: Table) -> Manifest:
        """Return the table's newest manifest."""
        folder = self._root / table.name / _MANIFEST
        versions = _versions(folder.names())
        text = folder.read(_file(versions[-1])) if versions else None
        return Manifest(**json.loads(text)) if text else Manifest()

    def _write(self, table: Table, rows: DataFrame, batch: str) -> dict[str, str]:
        """Write rows to the batch's folder, and return its sub-folder of each date."""
        name = f"batch={batch}"
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

    def _publish(self, table: Table, before: Manifest, after: Manifest) -> None:
        now = self._clock()
        valid = {path for paths in after.folders.values() for path in paths}
        no_longer = {path for paths in before.folders.values() for path in paths} - valid
        replaced = {**before.replaced, **dict.fromkeys(no_longer, now)}
        expired = {path for path, since in replaced.items() if since + GRACE_SECONDS <= now}
        manifest = replace(
            after,
            version=before.version + 1,
            replaced={path: since for path, since in replaced.items() if path not in expired},
        )
        folder = self._root / table.name
        manifests = folder / _MANIFEST
        if not manifests.write(_file(manifest.version), json.dumps(asdict(manifest)), replace=False):
            raise TablesError(
                f"{folder.path}: another job has just written version {manifest.version}, and only one job "
                "at a time may write. Stop the other job and restart this one; no rows are lost or duplicated"
            )
        for path in expired:
            folder.delete(path)
        for version in _versions(manifests.names())[:-_KEPT_VERSIONS]:
            manifests.delete(_file(version))


def _file(version: int) -> str:
    return f"{version:012d}.json"


def _versions(names: Collection[str]) -> list[int]:
    return sorted(int(name.removesuffix(".json")) for name in names if name[:12].isdigit())
