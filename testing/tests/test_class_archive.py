"""The file of classes with which brokers start faster."""

from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pytest

from groupwright.testing import LocalKafka
from groupwright.testing.class_archive import main, make_class_archive

pytestmark = pytest.mark.kafka


@pytest.fixture(autouse=True)
def _empty_cache(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


@pytest.mark.endurance
@pytest.mark.slow
def test_brokers_use_the_file_once_it_is_made(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main() == 0

    (made,) = tmp_path.rglob("*.jsa")
    assert str(made) in capsys.readouterr().out
    with LocalKafka() as kafka:
        assert str(made) in {mapped.path for mapped in psutil.Process(kafka.pid).memory_maps()}

    before = made.stat().st_mtime_ns
    assert make_class_archive() == made
    assert made.stat().st_mtime_ns == before


@pytest.mark.slow
def test_a_broker_starts_if_the_file_is_broken() -> None:
    made = LocalKafka().class_archive
    made.parent.mkdir(parents=True)
    made.write_bytes(b"no classes")

    with LocalKafka() as kafka:
        kafka.create_topic("one")
