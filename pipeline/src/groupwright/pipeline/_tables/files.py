"""Small files on any Hadoop file system: local, HDFS, S3, and so on."""

from typing import Any, Self

from pyspark.sql import SparkSession


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
        self._hadoop = jvm.org.apache.hadoop.fs
        self._configuration = spark._jsc.hadoopConfiguration()  # noqa: SLF001 - as above
        self._to_text = jvm.org.apache.commons.io.IOUtils.toString
        self._fs = self._hadoop.Path(self.path).getFileSystem(self._configuration)

    def __truediv__(self, name: str) -> Self:
        """Return a sub-folder."""
        return type(self)(self._spark, f"{self.path}/{name}")

    def names(self) -> list[str]:
        """Return the names in the folder, sorted."""
        folder = self._at()
        if not self._fs.exists(folder):
            return []
        return sorted(each.getPath().getName() for each in self._fs.listStatus(folder))

    def read(self, name: str) -> str | None:
        """Return a file's text, or None if it does not exist."""
        path = self._at(name)
        if not self._fs.exists(path):
            return None
        stream = self._fs.open(path)
        try:
            return str(self._to_text(stream, "UTF-8"))
        finally:
            stream.close()

    def write(self, name: str, text: str, *, replace: bool = True) -> bool:
        """Write a file atomically.

        Returns:
            Whether the file was written: False if it exists and `replace` is False.
        """
        temporary = self._at(f".{name}.writing")
        stream = self._fs.create(temporary, True)  # noqa: FBT003 - Java's overwrite
        try:
            stream.write(text.encode())
        finally:
            stream.close()
        # FileSystem.rename cannot replace a target; FileContext.rename can, and raises if one exists unasked.
        rename = getattr(self._hadoop, "Options$Rename")
        options = self._spark._sc._gateway.new_array(rename, 1)  # type: ignore[union-attr]  # noqa: SLF001 - as above
        options[0] = rename.OVERWRITE if replace else rename.NONE
        if not replace and self._fs.exists(self._at(name)):
            return False
        self._hadoop.FileContext.getFileContext(temporary.toUri(), self._configuration).rename(
            temporary, self._at(name), options
        )
        return True

    def delete(self, name: str) -> None:
        """Delete a file or a folder with its contents, if it exists."""
        self._fs.delete(self._at(name), True)  # noqa: FBT003 - Java's recursive

    def _at(self, name: str = "") -> Any:
        return self._hadoop.Path(f"{self.path}/{name}" if name else self.path)
