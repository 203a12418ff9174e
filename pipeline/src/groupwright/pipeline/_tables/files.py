"""Small files on any Hadoop file system: local, HDFS, S3, and so on."""

import copy
import errno
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self
from uuid import uuid4

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.sql import SparkSession

from groupwright.pipeline._tables.java import java_class
from groupwright.pipeline.errors import TablesError

_ATOMIC_RENAME = ("file", "hdfs")
"""Schemes of file systems whose renames are atomic, and can refuse an existing target."""
_TEMPORARY = ".writing"


class Folder:
    """A folder, created by the first write."""

    def __init__(self, spark: SparkSession, path: str) -> None:
        """Name a folder, which need not exist.

        Args:
            spark: Session with the file systems' configuration.
            path: The folder, as a path or a URI.
        """
        self.path = path.rstrip("/")
        self._spark = spark
        jvm: Any = spark._jvm  # noqa: SLF001 - Spark has no other way to its file systems
        self._configuration = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
        self._to_path = java_class(jvm, "org.apache.hadoop.fs.Path")
        self._to_paths = java_class(jvm, "org.apache.hadoop.fs.FileUtil").stat2Paths
        self._to_text = java_class(jvm, "org.apache.commons.lang3.ArrayUtils").toString
        self._io = java_class(jvm, "org.apache.commons.io.IOUtils")
        self._fs = self._to_path(self.path).getFileSystem(self._configuration)
        self._scheme = str(self._fs.getUri().getScheme())

    def __truediv__(self, name: str) -> Self:
        """Return a sub-folder."""
        folder = copy.copy(self)
        folder.path = f"{self.path}/{name}"
        return folder

    def names(self) -> list[str]:
        """Return the names in the folder, sorted."""
        if not (listed := self._listed()):
            return []
        # As one text, `{file:/folder/a,file:/folder/b}`: each name would take half a millisecond.
        paths = str(self._to_text(self._to_paths(listed))).removeprefix("{").removesuffix("}")
        folder = f"{self._fs.makeQualified(self._at()).toString()}/"
        return sorted(paths.removeprefix(folder).split(f",{folder}"))

    def read(self, name: str) -> str | None:
        """Return a file's text, or None if it does not exist."""
        try:
            stream = self._fs.open(self._at(name))
        except Py4JJavaError as error:
            if _is_missing(error):
                return None
            raise
        try:
            return str(self._io.toString(stream, "UTF-8"))
        finally:
            stream.close()

    @property
    def scheme(self) -> str:
        """The scheme of the file system's URI, such as `file` or `s3a`."""
        return self._scheme

    @property
    def has_atomic_rename(self) -> bool:
        """True if a file can be created atomically unless it exists."""
        return self.scheme in _ATOMIC_RENAME

    def write(self, name: str, text: str, *, replace: bool = True) -> bool:
        """Write a file atomically.

        Returns:
            Whether the file was written: False if it exists and `replace` is False.

        Raises:
            TablesError: `replace` is False, and the file system has no atomic rename.
        """
        if not self.has_atomic_rename:
            if not replace:
                raise TablesError(f"{self.path}: {self.scheme} has no atomic rename")
            self._create(self._at(name), text)  # an object appears as a whole when its upload ends
            return True
        if replace and self.scheme == "file":
            self._replace_local(name, text)
            return True
        # Each writer has a temporary file of its own, so none can publish the contents of another.
        temporary_name = f".{name}.{uuid4().hex}{_TEMPORARY}"
        temporary = self._at(temporary_name)
        self._create(temporary, text)
        try:
            if replace:
                self._rename(temporary, name, "OVERWRITE")
                return True
            return self._link(temporary, name) if self.scheme == "file" else self._rename_new(temporary, name)
        finally:
            self.delete(temporary_name)

    def delete(self, name: str) -> None:
        """Delete a file or a folder with its contents, if it exists."""
        self._fs.delete(self._at(name), True)  # noqa: FBT003 - Java's recursive

    def _listed(self) -> Sequence[Any]:
        """Return the status of each file; none if the folder does not exist."""
        path = self._at()
        # PySpark takes milliseconds for an exception. An object store would need two more requests.
        if self.has_atomic_rename and not self._fs.exists(path):
            return ()
        try:
            listed: Sequence[Any] = self._fs.listStatus(path)
        except Py4JJavaError as error:
            if _is_missing(error):
                return ()
            raise
        return listed

    def _create(self, path: Any, text: str) -> None:
        stream = self._fs.create(path, True)  # noqa: FBT003 - Java's overwrite
        try:
            stream.write(text.encode())
        finally:
            stream.close()

    def _replace_local(self, name: str, text: str) -> None:
        """Write a local file with an atomic rename; Hadoop's deletes the target first, so readers miss it."""
        folder = Path(self._at().toUri().getPath())
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{name}.{uuid4().hex}{_TEMPORARY}"
        try:
            with temporary.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            (folder / f".{name}.crc").unlink(missing_ok=True)  # Hadoop's checksum of the former contents
            temporary.replace(folder / name)
        finally:
            temporary.unlink(missing_ok=True)

    def _rename(self, source: Any, name: str, option: str) -> None:
        # FileSystem.rename cannot replace a target. FileContext.rename can with OVERWRITE, and else raises.
        jvm: Any = self._spark._jvm  # noqa: SLF001 - as above
        rename = java_class(jvm, "org.apache.hadoop.fs.Options$Rename")
        options = self._spark._sc._gateway.new_array(rename, 1)  # type: ignore[union-attr]  # noqa: SLF001 - as above
        options[0] = getattr(rename, option)
        context = java_class(jvm, "org.apache.hadoop.fs.FileContext").getFileContext(
            source.toUri(), self._configuration
        )
        context.rename(source, self._at(name), options)

    def _rename_new(self, source: Any, name: str) -> bool:
        try:
            self._rename(source, name, "NONE")
        except Py4JJavaError as error:
            if error.java_exception.getClass().getSimpleName() != "FileAlreadyExistsException":
                raise
            return False
        return True

    def _link(self, source: Any, name: str) -> bool:
        """Create a local file as a hard link, which fails if it exists; Hadoop's local rename overwrites."""
        target = self._at(name).toUri().getPath()
        try:
            os.link(source.toUri().getPath(), target)
        except FileExistsError:
            return False
        except OSError as error:
            if error.errno not in {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP}:
                raise
            raise TablesError(
                f"{self.path}: its file system has no hard links, by which one job alone gets the right to "
                "write. Use another volume"
            ) from None
        return True

    def _at(self, name: str = "") -> Any:
        return self._to_path(f"{self.path}/{name}" if name else self.path)


def _is_missing(error: Py4JJavaError) -> bool:
    """Return whether a file or folder does not exist; a check before the access could be out of date."""
    return str(error.java_exception.getClass().getSimpleName()) == "FileNotFoundException"
