"""The pipeline's jobs and Spark's cluster as processes."""

import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import psutil  # type: ignore[import-untyped]
import pyspark

from groupwright.pipeline import main
from groupwright.pipeline.jobs import FEW_ROWS
from groupwright.testing import find_java
from integration_tests.harness.process import Process
from integration_tests.harness.waiting import wait_until

_LOOPBACK = "127.0.0.1"
QUICK = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)
"""Options of a JVM that starts with little processor time."""
_SPARK = Path(pyspark.__file__).parent / "bin"
_QUIET = Path(main.__file__).parent / "_jobs" / "quiet.properties"
_SENTENCE = re.compile(r"\d{4}-\d\d-\d\d [\d:,]+ (?:WARNING|ERROR) groupwright[\w.]*: (.*)$", re.MULTILINE)


class Job(Process):
    """A job of the pipeline."""

    @property
    def sentences(self) -> list[str]:
        """The warnings and errors that the job has logged."""
        return logged_sentences(self.output)


class Cluster:
    """Spark's standalone cluster: a master and workers of one core each; `local[2]` without workers."""

    def __init__(self, folder: Path, workers: int) -> None:
        """Start the processes, which log into `folder`."""
        self._folder = folder
        self._number = 0
        self.environment = _environment(folder)
        self.workers: list[Process] = []
        self.master_url = "local[2]"
        self._master: Process | None = None
        if workers:
            self._master = self._daemon("master", "master.Master", "--port", "0")
            wait_until(lambda: "New state: ALIVE" in self._output(), "the master is up")
            (address,) = re.findall(rf"Starting Spark master at (spark://{_LOOPBACK}:\d+)", self._output())
            self.master_url = address
        for _ in range(workers):
            self.add_worker()

    def _output(self) -> str:
        return self._master.output if self._master else ""

    def add_worker(self) -> None:
        """Start a worker, and wait until the master knows it."""
        options = ("--cores", "1", "--memory", "1g", self.master_url)
        worker = self._daemon("worker", "worker.Worker", *options)
        wait_until(lambda: "Successfully registered with master" in worker.output, "the worker is up")
        self.workers.append(worker)

    def kill_worker(self, number: int) -> str:
        """Kill a worker with its executors and start another one."""
        worker = self.workers.pop(number % len(self.workers))
        worker.kill()
        self.add_worker()
        return f"worker {worker.pid} with its executors"

    def submit(self, job: str, settings: Sequence[str]) -> Job:
        """Start a job by spark-submit."""
        self._number += 1
        conf = {
            **FEW_ROWS,
            "spark.pyspark.python": sys.executable,
            "spark.driver.host": _LOOPBACK,
            "spark.driver.bindAddress": _LOOPBACK,
            "spark.driver.memory": "700m",
            "spark.executor.memory": "512m",
            "spark.executor.cores": "1",
            "spark.executor.extraJavaOptions": QUICK,
            "spark.driver.extraJavaOptions": f"{QUICK} -Dlog4j2.configurationFile={_QUIET.as_uri()}",
            "spark.sql.shuffle.partitions": "1",
            "spark.ui.enabled": "false",
        }
        options = [text for key, value in conf.items() for text in ("--conf", f"{key}={value}")]
        command = (str(_SPARK / "spark-submit"), "--master", self.master_url, *options)
        log = self._folder / f"job-{self._number:03d}-{job}.log"
        return Job(log, *command, str(main.__file__), job, *settings, env=self.environment)

    def close(self) -> None:
        """Kill all processes of the cluster."""
        for process in (*self.workers, *([self._master] if self._master else ())):
            process.kill()

    def _daemon(self, name: str, daemon: str, *arguments: str) -> Process:
        self._number += 1
        options = ("--host", _LOOPBACK, "--webui-port", "0", *arguments)
        command = (str(_SPARK / "spark-class"), f"org.apache.spark.deploy.{daemon}", *options)
        return Process(self._folder / f"{name}-{self._number:03d}.log", *command, env=self.environment)


def logged_sentences(output: str) -> list[str]:
    """Return the warnings and errors of a job's output, in which the JVM's lines may be unfinished."""
    return _SENTENCE.findall(output)


def kill_python_workers(driver: Process) -> str:
    """Kill the Python processes in which a local Spark runs its tasks."""
    victims = [
        process
        for process in psutil.Process(driver.pid).children(recursive=True)
        if _is_python_worker(process)
    ]
    for process in victims:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    return f"Python workers {[process.pid for process in victims]}"


def _is_python_worker(process: psutil.Process) -> bool:
    try:
        return "pyspark.daemon" in process.cmdline()
    except psutil.NoSuchProcess:
        return False


def _environment(folder: Path) -> dict[str, str]:
    return {
        **{name: value for name, value in os.environ.items() if "SPARK" not in name},
        "JAVA_HOME": str(find_java().executable.resolve().parents[1]),
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(folder / "scratch"),
        "SPARK_WORKER_DIR": str(folder / "work"),
        "SPARK_LOCAL_HOSTNAME": _LOOPBACK,
        "SPARK_LOCAL_IP": _LOOPBACK,
        "SPARK_PUBLIC_DNS": _LOOPBACK,
    }
