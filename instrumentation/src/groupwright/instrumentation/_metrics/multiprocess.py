"""Gauges in prometheus-client's multiprocess mode: one set of files for each process, rewritten as a whole.

prometheus-client merges the files of all processes (`MultiProcessCollector`). Series of its own gauges
cannot be removed in that mode, and a scrape reads the live values of one process alone. So each process
writes its values every few seconds, to files of prometheus-client's format. The files of a process that no
longer exists are removed by the others, as `mark_process_dead` does for those of prometheus-client.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from prometheus_client.mmap_dict import MmapedDict, mmap_key

from groupwright.core.metrics import MetricType
from groupwright.instrumentation._metrics.gauges import Series
from groupwright.instrumentation._metrics.spec import ClientSpec, Merge

INTERVAL = 5.0
"""Seconds between two writes."""
_STALE = 4 * INTERVAL
"""Age in seconds from which a file is removed: its process hangs, or its pid belongs to another process."""
_MODES = {Merge.SUM: "livesum", Merge.MAX: "livemax", Merge.LAST: "livemostrecent"}
_MARK = "-groupwright"


def directory() -> Path | None:
    """Return prometheus-client's directory of files; None outside of multiprocess mode."""
    path = os.environ.get("PROMETHEUS_MULTIPROC_DIR")
    return Path(path) if path else None


def write(folder: Path, number: int, gauges: Mapping[ClientSpec, Series], last: float) -> None:
    """Replace this process's gauges.

    Args:
        folder: The directory of files.
        number: Number of the collector in this process.
        gauges: The series.
        last: Time of this process's last rebalance: of several processes with one series, the latest wins.
    """
    by_mode: dict[str, list[tuple[str, float]]] = {mode: [] for mode in _MODES.values()}
    for spec, series in gauges.items():
        mode = "livemax" if spec.type is MetricType.INFO else _MODES[spec.merge]
        for labels, value in series.items():
            key = mmap_key(spec.name, spec.name, list(spec.labels), list(labels), spec.help)
            by_mode[mode].append((key, float(value)))
    for mode, values in by_mode.items():
        path = _path(folder, mode, os.getpid(), number)
        temporary = path.with_suffix(".writing")
        temporary.unlink(missing_ok=True)
        file: Any = MmapedDict(str(temporary))  # type: ignore[no-untyped-call]
        try:
            for key, value in values:
                # MultiProcessCollector ignores a livemostrecent value whose timestamp is 0.
                file.write_value(key, value, max(last, 1.0))
        finally:
            file.close()
        temporary.replace(path)


def remove(folder: Path, pid: int) -> None:
    """Remove the gauges of a process."""
    _unlink(folder.glob(f"gauge_live*_{pid}{_MARK}*"))


def remove_dead(folder: Path) -> None:
    """Remove the gauges of processes that no longer exist, or that have not written for 20 s.

    A process that was killed while it wrote has left a temporary file, too.
    """
    for path in folder.glob(f"gauge_live*{_MARK}*"):
        pid = int(path.stem.rpartition("_")[2].partition("-")[0])
        with suppress(FileNotFoundError):
            if not _exists(pid) or time.time() - path.stat().st_mtime > _STALE:
                _unlink([path])


def _path(folder: Path, mode: str, pid: int, number: int) -> Path:
    # MultiProcessCollector reads the mode between underscores, and takes the rest as the process's id.
    return folder / f"gauge_{mode}_{pid}{_MARK}-{number}.db"


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _unlink(paths: Iterable[Path]) -> None:
    for path in paths:
        path.unlink(missing_ok=True)
