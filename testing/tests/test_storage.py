"""The format of a node's storage is kept, and the next node like it needs no program for it."""

import base64
import hashlib
import re
import subprocess
from pathlib import Path

import pytest

from groupwright.testing import LocalKafka
from groupwright.testing._kafka import settings
from groupwright.testing._kafka.storage import NodeStorage, new_id
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.tools import command_of_kafkas_tool

CHECKPOINTS = ("bootstrap.checkpoint", "__cluster_metadata-0/00000000000000000000-0000000000.checkpoint")
TOOL = "org.apache.kafka.tools.FeatureCommand"


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty cache of the user's."""
    cache = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    return cache


def node(directory: Path, version: str = "4.3.1", **overrides: str) -> NodeStorage:
    """Return the storage of a node; underscores in names stand for dots."""
    given = {name.replace("_", "."): value for name, value in overrides.items()}
    return NodeStorage(
        settings.single_node(port=20_000, controller_port=20_001, log_dir=directory, overrides=given), version
    )


def formatted(directory: Path, checkpoint: str = CHECKPOINTS[0]) -> NodeStorage:
    """Return a storage as Kafka's tool leaves it."""
    (directory / checkpoint).parent.mkdir(parents=True)
    (directory / "meta.properties").write_text("version=1\n")
    (directory / checkpoint).write_bytes(b"features\nof 1")
    return node(directory)


def test_an_id_is_sixteen_bytes_and_never_looks_like_an_option() -> None:
    ids = {new_id() for _ in range(500)}

    assert len(ids) == 500
    assert not any("-" in each for each in ids)
    assert {len(base64.urlsafe_b64decode(each + "==")) for each in ids} == {16}


def test_the_cluster_id_is_read_from_kafkas_mark(tmp_path: Path) -> None:
    storage = node(tmp_path)
    assert storage.cluster_id is None
    meta = tmp_path / "meta.properties"
    meta.write_text("#\n#Mon Nov 30\nversion=1\n")
    assert storage.cluster_id is None

    meta.write_text("#\n#Mon Nov 30\ncluster.id=Some-Id_1\nversion=1\n")

    assert storage.cluster_id == "Some-Id_1"
    meta.write_text("cluster.id=chosen\\:by\\=hand\n")
    assert storage.cluster_id == "chosen:by=hand"


def test_a_directory_is_formatted_once_kafka_has_left_its_mark(tmp_path: Path) -> None:
    both = node(tmp_path, log_dirs=f"{tmp_path},/elsewhere")
    assert not both.is_formatted

    (tmp_path / "meta.properties").touch()

    assert both.is_formatted


@pytest.mark.parametrize("checkpoint", CHECKPOINTS, ids=["before 4.4", "since 4.4"])
def test_a_kept_format_is_that_of_the_next_node_with_ids_of_its_own(tmp_path: Path, checkpoint: str) -> None:
    formatted(tmp_path / "first", checkpoint).keep()
    second, third = node(tmp_path / "second"), node(tmp_path / "third")

    assert second.restore()
    assert third.restore()

    assert second.is_formatted
    assert (tmp_path / "second" / checkpoint).read_bytes() == b"features\nof 1"
    texts = [(tmp_path / name / "meta.properties").read_text().splitlines() for name in ("second", "third")]
    found = [dict(line.split("=") for line in lines) for lines in texts]
    assert [each["node.id"] for each in found] == ["1", "1"]
    assert len({found[0][name] for name in ("cluster.id", "directory.id")} | {found[1]["cluster.id"]}) == 3


@pytest.mark.parametrize(
    ("version", "overrides"),
    [
        ("3.9.2", {}),
        ("4.3.1", {"unstable_api_versions_enable": "true"}),
        ("4.3.1", {"metadata_log_dir": "/elsewhere"}),
        ("4.3.1", {"log_dirs": "/elsewhere,/and/there"}),
    ],
)
def test_another_version_or_setting_needs_a_format_of_its_own(
    version: str, overrides: dict[str, str], tmp_path: Path
) -> None:
    formatted(tmp_path / "first").keep()

    assert not node(tmp_path / "second", version, **overrides).restore()


def test_what_is_broken_in_the_cache_is_not_used(cache: Path, tmp_path: Path) -> None:
    formatted(tmp_path / "first").keep()
    (kept,) = (path for path in cache.rglob("*") if path.is_file())
    kept.write_bytes(kept.read_bytes()[:-1])

    assert not node(tmp_path / "second").restore()
    assert not (tmp_path / "second").exists()


def test_what_an_earlier_release_has_kept_is_not_used(cache: Path, tmp_path: Path) -> None:
    formatted(tmp_path / "first").keep()
    (kept,) = (path for path in cache.rglob("*") if path.is_file())
    features = b"\xff\x00\nfeatures"
    kept.write_bytes(hashlib.sha256(features).digest() + features)

    assert not node(tmp_path / "second").restore()


def test_a_cache_that_cannot_be_written_is_no_error(cache: Path, tmp_path: Path) -> None:
    cache.write_text("a file")

    formatted(tmp_path / "first").keep()

    assert not node(tmp_path / "second").restore()


@pytest.mark.endurance
@pytest.mark.kafka
@pytest.mark.slow
def test_a_broker_of_a_kept_format_has_the_features_of_one_that_kafka_has_formatted() -> None:
    first_by_tool, first = new_broker()
    second_by_tool, second = new_broker()

    assert (first_by_tool, second_by_tool) == (True, False)
    assert first == second
    assert {"metadata.version", "kraft.version"} <= first.keys()


def new_broker() -> tuple[bool, dict[str, str]]:
    """Return whether Kafka's tool has formatted a new broker, and the levels of its features."""
    with LocalKafka() as kafka:
        # The tool writes the time into a comment.
        by_tool = (kafka.log_path.parent / "data" / "meta.properties").read_text().startswith("#")
        shown = subprocess.run(
            [
                *command_of_kafkas_tool(kafka.version, TOOL),
                "--bootstrap-server",
                kafka.bootstrap_servers,
                "describe",
            ],
            capture_output=True,
            text=True,
            timeout=PATIENCE,
            check=True,
        ).stdout
    return by_tool, dict(re.findall(r"Feature: (\S+).*FinalizedVersionLevel: (\S+)", shown))
