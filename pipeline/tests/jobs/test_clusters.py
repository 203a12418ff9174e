"""The README's commands for clusters, on Spark's standalone manager and on Hadoop's YARN.

The machines' PATH is not the submitter's: their `python3` has neither pandas nor groupwright, and an executor
without the command's choice of Python would end there.
"""

import os
import re
import signal
import sys
import tarfile
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyspark
import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as Spark's own documentation has it

from groupwright.pipeline import Tables, open_tables
from groupwright.pipeline._jobs.kafka import CONNECTOR
from groupwright.pipeline._tables.factory import table_format
from groupwright.pipeline.schemas import OFFSET_COMMITS, REBALANCES
from groupwright.testing import LocalKafka, compile_java, find_java, resolve_jars
from integration_tests.harness.patience import PATIENCE
from integration_tests.pipeline_chaos.jobs import QUICK

pytestmark = [pytest.mark.integration, pytest.mark.endurance]

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
LOOPBACK = "127.0.0.1"
SCRIPTS = Path(sys.executable).parent
PARTITIONS = 4
END = "2026-11-21T00:00:00Z"
COMMITS = 40
YARN = (
    "org.apache.hadoop:hadoop-client-minicluster:3.4.1",
    # What it uses and does not name.
    "com.sun.xml.bind:jaxb-impl:2.3.1",
    "javax.xml.bind:jaxb-api:2.3.1",
    "org.bouncycastle:bcpkix-jdk18on:1.78.1",
    "org.slf4j:slf4j-reload4j:1.7.36",
)
IVY = """
<ivysettings>
  <settings defaultResolver="cache"/>
  <resolvers><ibiblio name="cache" m2compatible="true" root="{}"/></resolvers>
</ivysettings>
"""


@pytest.fixture
def environment(tmp_path: Path, small_spark: Mapping[str, str]) -> dict[str, str]:
    """The environment of every machine: Java, addresses, a Maven repository, and small sizes."""
    conf = tmp_path / "conf"
    conf.mkdir()
    (conf / "ivysettings.xml").write_text(IVY.format(maven_cache().as_uri()))
    settings = {
        **{key: value for key, value in small_spark.items() if key != "spark.master"},
        "spark.jars.ivySettings": conf / "ivysettings.xml",
        "spark.jars.ivy": tmp_path / "ivy",
        "spark.executor.extraJavaOptions": QUICK,
        "spark.sql.shuffle.partitions": 1,
        "spark.ui.enabled": "false",
    }
    configure_spark(conf, settings)
    return {
        **{name: value for name, value in os.environ.items() if "SPARK" not in name},
        "JAVA_HOME": str(find_java().executable.resolve().parents[1]),
        "SPARK_CONF_DIR": str(conf),
        "SPARK_DAEMON_JAVA_OPTS": QUICK,
        "SPARK_DAEMON_MEMORY": "256m",
        "SPARK_LOCAL_DIRS": str(tmp_path / "scratch"),
        "SPARK_LOCAL_HOSTNAME": LOOPBACK,
        "SPARK_LOCAL_IP": LOOPBACK,
        "SPARK_PUBLIC_DNS": LOOPBACK,
    }


def configure_spark(conf: Path, settings: Mapping[str, object]) -> None:
    """Add settings to Spark's defaults."""
    with (conf / "spark-defaults.conf").open("a") as defaults:
        defaults.writelines(f"{key} {value}\n" for key, value in settings.items())


def maven_cache() -> Path:
    """Return where the jars and their POMs are."""
    jar, *_ = resolve_jars(CONNECTOR, table_format("delta").jars)
    return jar.parents[5]  # .../org/apache/spark/<artifact>/<version>/<jar>


@pytest.fixture
def machine(environment: dict[str, str]) -> dict[str, str]:
    """The environment of the cluster's daemons, from which the submitter's Python cannot be seen."""
    path = (each for each in environment["PATH"].split(os.pathsep) if Path(each) != SCRIPTS)
    return {**environment, "PATH": os.pathsep.join(path)}


@pytest.fixture
def submitter(environment: dict[str, str]) -> dict[str, str]:
    """The environment of the README's commands."""
    return {**environment, "PATH": os.pathsep.join((str(SCRIPTS), environment["PATH"]))}


@pytest.fixture
def start_daemon(
    start_program: Callable[..., Any], machine: dict[str, str], tmp_path: Path
) -> Callable[..., Any]:
    """Start one of Spark's daemons."""
    home = Path(pyspark.__file__).parent
    of_daemon = {**machine, "SPARK_HOME": str(home), "SPARK_WORKER_DIR": str(tmp_path / "work")}

    def start(name: str, *arguments: str) -> Any:
        command = (str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}")
        return start_program(*command, "--host", LOOPBACK, "--webui-port", "0", *arguments, env=of_daemon)

    return start


@pytest.fixture
def yarn(
    start_program: Callable[..., Any], machine: dict[str, str], submitter: dict[str, str], tmp_path: Path
) -> Iterator[Any]:
    """Hadoop's resource manager and one node manager, of which the submitter knows."""
    program = compile_java(tmp_path / "classes", [Path(__file__).parent / "MiniYarn.java"], *YARN)
    conf = tmp_path / "hadoop"
    conf.mkdir()
    submitter["HADOOP_CONF_DIR"] = str(conf)
    settings = {
        "spark.yarn.jars": f"local:{Path(pyspark.__file__).parent / 'jars'}/*",  # instead of copies
        "spark.yarn.stagingDir": (tmp_path / "staging").as_uri(),
        "spark.yarn.appMasterEnv.SPARK_LOCAL_HOSTNAME": LOOPBACK,
        "spark.executorEnv.SPARK_LOCAL_HOSTNAME": LOOPBACK,
        "spark.executor.instances": 1,
        "spark.executor.memory": "512m",
    }
    configure_spark(Path(submitter["SPARK_CONF_DIR"]), settings)
    options = ("-Xmx512m", *QUICK.split(), "--add-opens=java.base/java.lang=ALL-UNNAMED")
    cluster = start_program(*program.command("MiniYarn", *options), str(conf), env=machine)
    cluster.wait_for("YARN is ready")
    yield cluster
    cluster.signal(signal.SIGTERM)
    cluster.wait()


@pytest.fixture(scope="module", autouse=True)
def events(kafka: LocalKafka) -> None:
    """The topic of the members' events."""
    kafka.create_topic("groupwright.rebalances")


@pytest.mark.kafka
def test_the_batch_runs_on_a_standalone_cluster_by_the_command_of_the_readme(
    kafka: LocalKafka,
    groups: Any,
    start_daemon: Callable[..., Any],
    start_program: Callable[..., Any],
    submitter: dict[str, str],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    master = start_daemon("master.Master", "--port", "0")
    master.wait_for("New state: ALIVE")
    (address,) = re.findall(rf"Starting Spark master at spark://({LOOPBACK}:\d+)", master.output)
    worker = start_daemon("worker.Worker", "--cores", "1", "--memory", "1g", f"spark://{address}")
    worker.wait_for("Successfully registered with master")
    consume(kafka, groups, "billing")

    configure(kafka, tmp_path)
    command = command_of_the_readme(
        "standalone", {"$MASTER:7077": address, END: datetime.now(UTC).isoformat()}
    )
    batch = start_program("bash", "-euc", command, env=submitter)
    assert batch.exit_status() == 0, f"{batch.output}\n{worker.output}"
    assert "for groupwright batch" in worker.output, "an executor of the cluster was to do it"
    check_history(kafka, spark, tmp_path, "billing")


@pytest.mark.kafka
def test_the_stream_runs_on_yarn_by_the_command_of_the_readme(
    kafka: LocalKafka,
    groups: Any,
    yarn: Any,
    start_program: Callable[..., Any],
    submitter: dict[str, str],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    assert f"--packages {CONNECTOR},{table_format('delta').jars} " in README
    consume(kafka, groups, "shipping")

    configure(kafka, tmp_path)
    pack_environment(tmp_path / "venv.tar.gz")
    stream = "stream --config pipeline.toml"
    command = command_of_the_readme("YARN", {stream: f"{stream} once=true"})
    job = start_program("bash", "-euc", command, env=submitter)
    assert job.exit_status() == 0, f"{job.output}\n{yarn.output}"
    assert "final status: SUCCEEDED" in job.output
    check_history(kafka, spark, tmp_path, "shipping")


def consume(kafka: LocalKafka, groups: Any, group: str) -> None:
    """Let a group of one member consume a topic of its own, and leave."""
    kafka.create_topic(topic_of(group), PARTITIONS)
    groups.produce(topic_of(group), COMMITS, PARTITIONS)
    groups.join(f"{group}-1", group, topic_of(group))
    groups.wait_until(lambda: sum(committed(kafka, group).values()) == COMMITS)
    groups.leave_all()


def configure(kafka: LocalKafka, folder: Path) -> None:
    """Write the job's configuration into the folder where the command runs."""
    (folder / "pipeline.toml").write_text(
        f'bootstrap_servers = "{kafka.bootstrap_servers}"\n'
        f'tables = "{folder / "tables"}"\n'
        "end_offsets_seconds = 0\n"
    )


def pack_environment(archive: Path) -> None:
    """Pack an environment whose interpreter is this one's: a copy would be of hundreds of megabytes."""
    python = archive.parent / "packed-python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(python, "bin/python")


def command_of_the_readme(manager: str, replaced: Mapping[str, str]) -> str:
    """Return the README's lines for a cluster manager, with some words replaced."""
    (block,) = (each for each in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) if "main=" in each)
    preparation, *managers = block.split("\n\n")
    (command,) = (each for each in managers if each.startswith(f"# {manager}"))
    for word, other in replaced.items():
        assert word in command
        command = command.replace(word, other)
    return f"{preparation}\n{command}"


def check_history(kafka: LocalKafka, spark: SparkSession, folder: Path, group: str) -> None:
    """Check that the tables have the group's commits, as its coordinator says, and its rebalances."""
    tables = open_tables(spark, str(folder / "tables"))
    assert last_commits(tables, group) == committed(kafka, group)
    rebalances = tables.read(REBALANCES).where(F.col("group_id") == group).orderBy("generation")
    assert [row.cause for row in rebalances.collect()] == ["first", "leave"]


def topic_of(group: str) -> str:
    """Return the topic that a group consumes."""
    return f"orders-of-{group}"


def committed(kafka: LocalKafka, group: str) -> dict[int, int]:
    """Return what the group has committed in each partition, as its coordinator says."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": group})
    try:
        asked = [TopicPartition(topic_of(group), number) for number in range(PARTITIONS)]
        return {each.partition: max(0, each.offset) for each in consumer.committed(asked, timeout=PATIENCE)}
    finally:
        consumer.close()


def last_commits(tables: Tables, group: str) -> dict[int, int]:
    """Return the last offset of each partition that the tables have."""
    commits = tables.read(OFFSET_COMMITS).where(
        (F.col("group_id") == group) & (F.col("topic") == topic_of(group))
    )
    last = commits.groupBy("partition").agg(F.max_by("committed_offset", "log_offset").alias("offset"))
    return {row.partition: row.offset for row in last.collect()}
