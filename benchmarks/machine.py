"""Describes the machine, since times mean nothing without it."""

import os
import platform
from pathlib import Path


def describe() -> dict[str, str]:
    """Return what matters of the machine."""
    facts = {
        "CPU": _cpu_model(),
        "cores": str(_cores()),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
    }
    if hasattr(os, "getloadavg"):
        facts["load at the start"] = f"{os.getloadavg()[0]:.1f}"
    return facts


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _cpu_model() -> str:
    return _field("/proc/cpuinfo", "model name") or platform.processor() or platform.machine()


def _memory() -> str:
    kibibytes = _field("/proc/meminfo", "MemTotal").split()[:1]
    return f"{int(kibibytes[0]) / 2**20:.0f} GiB" if kibibytes else "unknown"


def _field(path: str, name: str) -> str:
    """Return the value of a field in one of Linux's files, or nothing."""
    file = Path(path)
    lines = file.read_text().splitlines() if file.exists() else []
    values = [line.partition(":")[2].strip() for line in lines if line.startswith(name)]
    return values[0] if values else ""
