"""Runs the job under faults, keeps the story on disk, and checks the tables against the ledger."""

import dataclasses
import json
import shutil
import signal
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from groupwright.assignors import GroupwrightError
from groupwright.pipeline import open_tables, schemas
from groupwright.pipeline._jobs.batch import run_batch
from groupwright.pipeline._jobs.settings import settings_from
from groupwright.testing import LocalKafka
from integration_tests.harness.waiting import holds_within
from integration_tests.pipeline_chaos.jobs import Cluster, Job, kill_python_workers
from integration_tests.pipeline_chaos.ledger import Findings, Found, Ledger, Unfinished, check
from integration_tests.pipeline_chaos.schedule import Fault, Kind, draw
from integration_tests.pipeline_chaos.traffic import EVENTS, Traffic

_READY = "batch 0:"
_END_SECONDS = 240.0
"""Time for a job to end or to become ready on a loaded machine."""
_REFUSED = "only one job at a time may write"
_MISSING = "records are missing"
_MAX_RESTARTS = 3
"""Ends of the job by itself for each fault; more are a defect."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Settings of a run: seed, length in seconds, mean time between faults, workers of the cluster.

    `derive_seconds` is the job's setting; each job begins with the dates that the one before has left.
    """

    seed: int
    seconds: float
    interval: float = 20.0
    workers: int = 3
    derive_seconds: float = 30.0

    @property
    def faults(self) -> list[Fault]:
        """The schedule."""
        return draw(self.seed, self.seconds, self.interval)


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a run: the findings, injected faults, ends of the job, and records of the ledger."""

    findings: Findings
    faults: Counter[str]
    ends: Counter[str]
    events: int
    commits: int


class _EndsAgainError(Exception):
    """The job ends by itself more than `_MAX_RESTARTS` times for one fault."""


class Conductor:
    """A run."""

    def __init__(self, plan: Plan, folder: Path, on_story: Callable[[str], None]) -> None:
        """Prepare a run that keeps everything in `folder`."""
        self._plan = plan
        self._folder = folder
        self._tables = folder / "tables"
        self._on_story = on_story
        self._started = time.monotonic()
        self._jobs: list[Job] = []
        self._refusals: list[str] = []
        self._violations: list[str] = []
        self._ends = Counter[str]()
        self._faults = Counter[str]()
        self._restarts = 0

    def run(self, session: Callable[[], AbstractContextManager[SparkSession]]) -> Result:
        """Run the schedule, bring the tables up to the end, and check them.

        Args:
            session: Returns the session for the last batch and the check, with Spark's Kafka source.
        """
        schedule = [dataclasses.asdict(fault) for fault in self._plan.faults]
        (self._folder / "schedule.json").write_text(json.dumps(schedule, indent=1) + "\n")
        with LocalKafka(config={"offsets.topic.num.partitions": 3}) as kafka:
            cluster = Cluster(self._folder, self._plan.workers)
            try:
                traffic = Traffic(kafka)
                self._kafka, self._cluster = kafka, cluster
                try:
                    with traffic:
                        self._inject_faults(traffic)
                except _EndsAgainError as error:
                    self._violations.append(str(error))
                finally:
                    (self._folder / "ledger.json").write_text(traffic.ledger.as_json() + "\n")
                self._end_streams()
                with session() as spark:
                    self._catch_up(spark)
                    found = read_tables(spark, self._tables)
            finally:
                for job in self._jobs:
                    job.kill()
                cluster.close()
        output = "\n".join((*(job.output for job in self._jobs), *self._refusals))
        findings = check(traffic.ledger, found, output)
        findings.violations += self._violations
        ledger_ = traffic.ledger
        result = Result(findings, self._faults, self._ends, len(ledger_.events), len(ledger_.commits))
        (self._folder / "findings.json").write_text(json.dumps(_as_json(result), indent=1) + "\n")
        return result

    def _inject_faults(self, traffic: Traffic) -> None:
        job = self._start()
        begun = time.monotonic()
        for fault in self._plan.faults:
            # Late faults, too, hit a batch at any point, not only the moment at which the job is ready.
            late = self._plan.interval / 4 * (fault.number % 1000) / 1000
            job = self._supervise_until(max(begun + fault.at, time.monotonic() + late), job)
            self._restarts = 0
            text = self._inject(fault, job, traffic)
            self._faults[fault.kind] += 1
            self._tell(f"{fault.kind}: {text}")
            job = self._supervise(job)
        self._supervise_until(begun + self._plan.seconds, job)

    def _supervise_until(self, end: float, job: Job) -> Job:
        while time.monotonic() < end:
            job = self._supervise(job)
            time.sleep(0.2)
        return job

    def _inject(self, fault: Fault, job: Job, traffic: Traffic) -> str:
        inject: dict[Kind, Callable[[], str]] = {
            Kind.KILL_DRIVER: lambda: self._kill_driver(job),
            Kind.KILL_WORKER: lambda: self._kill_worker(fault.number, job),
            Kind.RECREATE: traffic.recreate,
            Kind.SECOND_WRITER: lambda: self._second_writer(job),
            Kind.DELETE_STATE: lambda: self._delete_state(job, traffic.ledger),
            Kind.ADD_PARTITIONS: traffic.add_partition,
            Kind.TRANSACTION: lambda: traffic.open_transaction(
                5 + fault.number % 40, commit=fault.number % 2 == 0
            ),
        }
        return inject[fault.kind]()

    @staticmethod
    def _kill_driver(job: Job) -> str:
        job.kill()
        return f"process {job.pid}"

    def _kill_worker(self, number: int, job: Job) -> str:
        return self._cluster.kill_worker(number) if self._plan.workers else kill_python_workers(job)

    def _delete_state(self, job: Job, ledger: Ledger) -> str:
        job.kill()
        pending = self._tables / "_state" / "pending.json"
        deleted = unfinished(json.loads(pending.read_text()), ledger) if pending.exists() else []
        ledger.unfinished += deleted
        shutil.rmtree(self._tables / "_state", ignore_errors=True)
        return f"process {job.pid} was killed first, {'with' if deleted else 'without'} an unfinished batch"

    def _second_writer(self, first: Job) -> str:
        second = self._submit("batch", "on_data_loss=fail")
        status = self._wait(second)
        if status == 0 or _REFUSED in second.output or _MISSING in second.output:
            return f"{'refused' if _REFUSED in second.output else f'ended with {status}'}"
        self._violations.append(f"the second writer ended with {status}: {second.sentences[-1:]}")
        return f"ended with {status}, the stream with {first.status}"

    def _wait(self, job: Job) -> int:
        """Return a job's exit status; kill a job that does not end, which is a violation."""
        if not holds_within(lambda: job.status is not None, _END_SECONDS):
            self._violations.append(f"{job.log.name} did not end within {_END_SECONDS:.0f} s")
            job.kill()
        return job.wait()

    def _start(self, *settings: str) -> Job:
        job = self._submit("stream", *settings)
        if not holds_within(lambda: job.status is not None or self._is_ready(job), _END_SECONDS):
            self._violations.append(f"{job.log.name} was not ready after {_END_SECONDS:.0f} s")
        return job

    @staticmethod
    def _is_ready(job: Job) -> bool:
        return _READY in job.output

    def _supervise(self, job: Job) -> Job:
        """Start the job again if it has ended, as an orchestrator and its operator would."""
        if job.status is None:
            return job
        self._check_end(job)
        sentence = (job.sentences or ["no sentence"])[-1] if job.status > 0 else "killed"
        self._ends[sentence.partition(":")[0][:80]] += 1
        self._tell(f"{job.log.name} ended with {job.status}: {sentence}")
        self._restarts += 1
        if self._restarts > _MAX_RESTARTS:
            raise _EndsAgainError(f"the job ends again and again: {sentence}")
        return self._start(*(["on_data_loss=restart"] if _MISSING in sentence else []))

    def _check_end(self, job: Job) -> None:
        """Require a sentence of a job that has ended by itself."""
        if job.status != -signal.SIGKILL and not job.sentences:
            self._violations.append(f"{job.log.name} ended with {job.status} without a sentence")

    def _end_streams(self) -> None:
        """Stop the stream by SIGTERM."""
        for job in self._jobs:
            if job.status is not None:
                continue
            job.signal(signal.SIGTERM)
            status = self._wait(job)
            self._tell(f"{job.log.name} ended with {status} after SIGTERM: {job.sentences[-1:]}")
            if status:
                self._check_end(job)

    def _catch_up(self, spark: SparkSession) -> None:
        """Bring the tables up to the end by a batch."""
        for on_data_loss in ("fail", "restart"):
            settings = settings_from([*self._settings(), f"on_data_loss={on_data_loss}"])
            try:
                added = run_batch(spark, settings)
            except GroupwrightError as error:
                self._refusals.append(str(error))
                self._tell(f"the last batch with on_data_loss={on_data_loss} failed: {error}")
                if _MISSING not in str(error):
                    break
            else:
                self._tell(f"the last batch added {added} records")
                return
        self._violations.append(f"the last batch failed: {self._refusals[-1]}")

    def _settings(self) -> tuple[str, ...]:
        return (
            f"bootstrap_servers={self._kafka.bootstrap_servers}",
            f"tables={self._tables}",
            f"events_topic={EVENTS}",
            "trigger_seconds=0.5",
            f"derive_seconds={self._plan.derive_seconds:g}",
            "end_offsets_seconds=5",
            "kafka.default.api.timeout.ms=15000",
            "kafka.request.timeout.ms=5000",
        )

    def _submit(self, job: str, *settings: str) -> Job:
        process = self._cluster.submit(job, (*self._settings(), *settings))
        self._jobs.append(process)
        return process

    def _tell(self, text: str) -> None:
        line = f"{time.monotonic() - self._started:7.1f} s  {text}"
        with (self._folder / "story.txt").open("a", encoding="utf-8") as story:
            story.write(line + "\n")
        self._on_story(line)


def unfinished(pending: Mapping[str, Mapping[str, Mapping[str, int]]], ledger: Ledger) -> list[Unfinished]:
    """Return the ranges of a pending batch, which is taken to be one of the present events topic."""
    start, end = pending["start"], pending["end"]
    return [
        Unfinished(
            len(ledger.topic_ids) - 1 if topic == EVENTS else None,
            int(partition),
            start[topic][partition],
            offset,
        )
        for topic, by_partition in end.items()
        for partition, offset in by_partition.items()
    ]


def _as_json(result: Result) -> dict[str, object]:
    findings = result.findings  # `asdict` does not copy counters
    return {
        "violations": findings.violations,
        "explained": dict(findings.explained),
        "repeated": findings.repeated,
        "faults": dict(result.faults),
        "ends": dict(result.ends),
        "events": result.events,
        "commits": result.commits,
    }


def read_tables(spark: SparkSession, folder: Path) -> Found:
    """Read what a check needs."""
    tables = open_tables(spark, str(folder))
    commits = tables.read(schemas.OFFSET_COMMITS).where("not tombstone").collect()
    return Found(
        [row.id for row in tables.read(schemas.CLIENT_EVENTS).select("id").collect()],
        [(row.group_id, row.partition, row.committed_offset) for row in commits],
        [(row.log_partition, row.log_offset) for row in commits],
        tables.read(schemas.QUARANTINE).count(),
    )
