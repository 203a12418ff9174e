"""Format of a node's storage. Kafka's tool takes half a second for it, so what it has written is kept.

The tool writes `meta.properties`, which has ids, and a checkpoint, which has the features of the cluster. The
latter is the same for nodes of the same version and settings, apart from SCRAM credentials.
"""

import contextlib
import hashlib
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path

from groupwright.testing._java.java import cache_directory

_META = "meta.properties"
_CLUSTER_ID = "cluster.id"
_CHECKPOINTS = ("bootstrap.checkpoint", "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint")
"""Paths of the checkpoint before Kafka 4.4, and since."""
_OF_ONE_NODE = frozenset({"controller.quorum.voters", "listeners", "advertised.listeners", "log.dirs"})
"""Settings with ports and paths, on which the checkpoint does not depend."""
_DIGEST_BYTES = hashlib.sha256().digest_size


class NodeStorage:
    """The storage of one node: its data directory."""

    def __init__(self, settings: Mapping[str, str], version: str, *, has_secrets: bool = False) -> None:
        """Describe the storage.

        Args:
            settings: The node's settings.
            version: The version of Kafka.
            has_secrets: Whether it is formatted with SCRAM credentials, so that its format is not kept.
        """
        self._settings = settings
        self._version = version
        directory, *others = settings["log.dirs"].split(",")
        self._directory = Path(directory)
        self._is_kept = not (has_secrets or others or "metadata.log.dir" in settings)

    @property
    def is_formatted(self) -> bool:
        """True if it is formatted, that is, has a `meta.properties`."""
        return (self._directory / _META).exists()

    @property
    def cluster_id(self) -> str | None:
        """The id of the cluster that it was formatted for; None if it has none."""
        with contextlib.suppress(OSError):
            for line in (self._directory / _META).read_text(encoding="utf-8").splitlines():
                name, _, value = line.partition("=")
                if name.strip() == _CLUSTER_ID:
                    return value.strip().replace("\\", "")  # Java escapes punctuation
        return None

    def restore(self) -> bool:
        """Format it as a node of this version and these settings once was; return False if it cannot."""
        if not self._is_kept:
            return False
        meta = {
            "version": "1",
            _CLUSTER_ID: new_id(),
            "directory.id": new_id(),
            "node.id": self._settings["node.id"],
        }
        lines = "".join(f"{name}={value}\n" for name, value in meta.items())
        try:
            kept = self._path.read_bytes()
            digest, rest = kept[:_DIGEST_BYTES], kept[_DIGEST_BYTES:]
            if hashlib.sha256(rest).digest() != digest:
                return False
            first, _, checkpoint = rest.partition(b"\n")
            place = first.decode("latin-1")
            if place not in _CHECKPOINTS:
                return False
            written = self._directory / place
            written.parent.mkdir(parents=True, exist_ok=True)
            written.write_bytes(checkpoint)
            (self._directory / _META).write_text(lines, encoding="utf-8")
        except OSError:
            return False  # nothing is kept, or Kafka's tool says why the directory cannot be written
        return True

    def keep(self) -> None:
        """Keep what Kafka's tool has written, if the user's cache can be written."""
        if not self._is_kept:
            return
        with contextlib.suppress(OSError):
            place = next((each for each in _CHECKPOINTS if (self._directory / each).exists()), None)
            if place is None:
                return
            rest = place.encode() + b"\n" + (self._directory / place).read_bytes()
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".keeping-", dir=self._path.parent) as staging:
                written = Path(staging, self._path.name)
                written.write_bytes(hashlib.sha256(rest).digest() + rest)
                written.replace(self._path)

    @property
    def _path(self) -> Path:
        of_all = sorted((name, value) for name, value in self._settings.items() if name not in _OF_ONE_NODE)
        name = hashlib.sha256(repr((self._version, of_all)).encode()).hexdigest()[:16]
        return cache_directory() / "checkpoints" / name


def new_id() -> str:
    """Return a random id in Kafka's form: 16 bytes in URL-safe base64 without padding."""
    # No dash, because a leading one would be parsed as an option.
    return urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=").replace("-", "_")
