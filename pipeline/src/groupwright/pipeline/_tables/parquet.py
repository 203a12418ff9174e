"""Parquet, with a manifest a table that says which of its files count.

Plain Parquet has no commit: a job that dies leaves half of its files, and a reader sees files come and go. So files go
to a folder of the batch (`offset_commits/batch=…/date=…/`), and count from when a new version of the manifest
(`_manifest/<version>.json`) names it: one small file, written whole. It also has each writer's last batch; one
that is played again after that changes nothing, and before that overwrites exactly its own files.

What was replaced stays for `GRACE_SECONDS`, for readers that had begun, and is deleted by a later change.
"""

import json
import time
from collections.abc import Callable, Collection
from dataclasses import asdict, dataclass, field, replace
from datetime import date

from pyspark.sql import DataFrame, SparkSession

from groupwright.pipeline._tables.files import Folder
from groupwright.pipeline._tables.protocol import Batch
from groupwright.pipeline.errors import TablesError
from groupwright.pipeline.schemas import PARTITION_COLUMN, Table

GRACE_SECONDS = 600.0
_KEPT_VERSIONS = 10
_MANIFEST = "_manifest"


@dataclass(frozen=True, slots=True)
class Manifest:
    """What a table consists of.

    Attributes:
        version: Counts from 1; 0 for a table that has nothing yet.
        folders: By date, the folders that hold its rows, as paths from the table's.
        written: By writer, its last batch.
        replaced: Folders that count no more, with the time (seconds since the epoch) at which that began.
    """

    version: int = 0
    folders: dict[str, list[str]] = field(default_factory=dict)
    written: dict[str, int] = field(default_factory=dict)
    replaced: dict[str, float] = field(default_factory=dict)


class ParquetTables:
    """Tables under a folder, as Parquet."""

    def __init__(self, spark: SparkSession, root: str, clock: Callable[[], float] = time.time) -> None:
        """Open them; nothing is written.

        Args:
            spark: Reads and writes.
            root: The folder of all tables, as a path or a URI.
            clock: Says when something was replaced.
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
            return  # played again, it would be as empty
        folders = {day: list(before.folders.get(day, ())) for day in {**before.folders, **added}}
        for day, folder in added.items():
            folders[day].append(folder)
        written = {**before.written, batch.writer: batch.number}
        self._publish(table, before, replace(before, folders=folders, written=written))

    def replace(self, table: Table, rows: DataFrame, dates: Collection[date]) -> None:
        """See `Tables.replace`."""
        before = self.manifest(table)
        added = self._write(table, rows, f"version-{before.version + 1:012d}")
        gone = {day.isoformat() for day in dates}
        if foreign := added.keys() - gone:
            raise TablesError(
                f"{table.name}: rows of {', '.join(sorted(foreign))} were to replace those of "
                f"{', '.join(sorted(gone))}; nothing is changed"
            )
        if not added and not gone & before.folders.keys():
            return
        kept = {day: folders for day, folders in before.folders.items() if day not in gone}
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
            return self._spark.createDataFrame([], table.schema)
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
        """Write rows to the batch's folder, and return the folder of each date."""
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
        counts = {path for paths in after.folders.values() for path in paths}
        gone = {path for paths in before.folders.values() for path in paths} - counts
        replaced = {**before.replaced, **dict.fromkeys(gone, now)}
        old = {path for path, since in replaced.items() if since + GRACE_SECONDS <= now}
        manifest = replace(
            after,
            version=before.version + 1,
            replaced={path: since for path, since in replaced.items() if path not in old},
        )
        folder = self._root / table.name
        manifests = folder / _MANIFEST
        if not manifests.write(_file(manifest.version), json.dumps(asdict(manifest)), replace=False):
            raise TablesError(
                f"{folder.path} has a version {manifest.version} that another job wrote meanwhile: let one job at a "
                "time write to these tables, and start this one again; nothing is lost or there twice"
            )
        for path in old:
            folder.delete(path)
        for version in _versions(manifests.names())[:-_KEPT_VERSIONS]:
            manifests.delete(_file(version))


def _file(version: int) -> str:
    return f"{version:012d}.json"


def _versions(names: Collection[str]) -> list[int]:
    return sorted(int(name.removesuffix(".json")) for name in names if name[:12].isdigit())
