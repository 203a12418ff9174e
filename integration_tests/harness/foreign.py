"""Members with Java's client, each a process."""

import json
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from groupwright.testing import compile_java
from integration_tests.harness.patience import PATIENCE

KAFKA_CLIENTS = "org.apache.kafka:kafka-clients:4.3.1"

JAVA_ASSIGNORS = {
    "range": "org.apache.kafka.clients.consumer.RangeAssignor",
    "roundrobin": "org.apache.kafka.clients.consumer.RoundRobinAssignor",
    "sticky": "org.apache.kafka.clients.consumer.StickyAssignor",
    "cooperative-sticky": "org.apache.kafka.clients.consumer.CooperativeStickyAssignor",
}

_HERE = Path(__file__).parent


class ForeignMember:
    """A member's process, and what it says has happened to it; when this process ends, it leaves."""

    def __init__(self, command: Sequence[str], name: str, log_path: Path) -> None:
        self.name = name
        self.callbacks: list[tuple[str, list[tuple[str, int]]]] = []
        self.owned: set[tuple[str, int]] = set()
        self.consumed: list[tuple[str, int, int]] = []
        self._log_path = log_path
        with log_path.open("wb") as log:
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, text=True
            )
        self._reader = threading.Thread(target=self._read, name=f"reader of {name}", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if said["event"] == "consumed":
                self.consumed += [(topic, partition, offset) for topic, partition, offset in said["what"]]
                continue
            partitions = sorted((topic, partition) for topic, partition in said["what"])
            self.callbacks.append((said["event"], partitions))
            if said["event"] == "assign":
                self.owned |= set(partitions)
            else:
                self.owned -= set(partitions)

    def close(self) -> None:
        """Let the member leave, and wait until its process has ended."""
        if self._process.returncode is not None:
            return
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            code = self._process.wait(PATIENCE)
        finally:
            self._process.kill()
            self._process.wait()
            self._reader.join()
            self._process.stdout.close()
        assert code == 0, f"{self.name} ended with {code}: {self._log_path.read_text(encoding='utf-8')}"


def java_command(classes: Path) -> list[str]:
    """Compile the Java member into `classes`; return its command, its arguments left out."""
    program = compile_java(classes, [_HERE / "JavaMember.java"], KAFKA_CLIENTS)
    short_life = ("-Xmx128m", "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    return program.command("JavaMember", *short_life)
