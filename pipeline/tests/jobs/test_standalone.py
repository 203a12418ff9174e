"""What the README says of clusters, on Spark's own cluster manager: a master and a worker.

The worker's PATH is not the submitter's, as on a machine of its own: its `python3` has neither pandas nor
groupwright, and an executor that the command had not told which Python to take would end there.
"""

import os
import re
import sys
from collections.abc import Callable, Mapping
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
from groupwright.pipeline.schemas import OFFSET_COMMITS, REBALANCES
from groupwright.testing import LocalKafka, find_java, resolve_jars

README = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
LOOPBACK = "127.0.0.1"
SCRIPTS = Path(sys.executable).parent
PARTITIONS = 4
END = "2026-11-21T00:00:00Z"
QUICK = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
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
    lines = "".join(f"{key} {value}\n" for key, value in settings.items())
    (conf / "spark-defaults.conf").write_text(lines)
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


def maven_cache() -> Path:
    """Return where the connector's jars and their POMs are."""
    connector, *_ = resolve_jars(CONNECTOR)
    return connector.parents[5]  # .../org/apache/spark/<artifact>/<version>/<jar>


@pytest.fixture
def start_daemon(
    start_program: Callable[..., Any], environment: dict[str, str], tmp_path: Path
) -> Callable[..., Any]:
    """Start one of Spark's daemons, from which the submitter's Python cannot be seen."""
    path = (each for each in environment["PATH"].split(os.pathsep) if Path(each) != SCRIPTS)
    home = Path(pyspark.__file__).parent
    of_daemon = {**environment, "SPARK_HOME": str(home), "PATH": os.pathsep.join(path)}
    of_daemon["SPARK_WORKER_DIR"] = str(tmp_path / "work")

    def start(name: str, *arguments: str) -> Any:
        command = (str(home / "bin" / "spark-class"), f"org.apache.spark.deploy.{name}")
        return start_program(*command, "--host", LOOPBACK, "--webui-port", "0", *arguments, env=of_daemon)

    return start


@pytest.mark.kafka
def test_the_batch_runs_on_a_standalone_cluster_by_the_command_of_the_readme(
    kafka: LocalKafka,
    groups: Any,
    start_daemon: Callable[..., Any],
    start_program: Callable[..., Any],
    environment: dict[str, str],
    spark: SparkSession,
    tmp_path: Path,
) -> None:
    master = start_daemon("master.Master", "--port", "0")
    master.wait_for("New state: ALIVE")
    (address,) = re.findall(rf"Starting Spark master at spark://({LOOPBACK}:\d+)", master.output)
    worker = start_daemon("worker.Worker", "--cores", "1", "--memory", "1g", f"spark://{address}")
    worker.wait_for("Successfully registered with master")

    kafka.create_topic("orders", PARTITIONS)
    kafka.create_topic("groupwright.rebalances")
    groups.produce("orders", 40, PARTITIONS)
    groups.join("billing-1", "billing", "orders")
    groups.wait_until(lambda: sum(committed(kafka).values()) == 40)
    groups.leave_all()

    (tmp_path / "pipeline.toml").write_text(
        f'bootstrap_servers = "{kafka.bootstrap_servers}"\n'
        f'tables = "{tmp_path / "tables"}"\n'
        "end_offsets_seconds = 0\n"
    )
    path = os.pathsep.join((str(SCRIPTS), environment["PATH"]))
    batch = start_program("bash", "-euc", standalone_command(address), env={**environment, "PATH": path})
    assert batch.exit_status() == 0, f"{batch.output}\n{worker.output}"
    assert "for groupwright batch" in worker.output, "an executor of the cluster was to do it"

    tables = open_tables(spark, str(tmp_path / "tables"))
    assert last_commits(tables) == committed(kafka)
    assert [row.trigger for row in tables.read(REBALANCES).where("group_id = 'billing'").collect()] == [
        "first",
        "leave",
    ]


def standalone_command(address: str) -> str:
    """Return the README's lines, up to now and with the master's address."""
    (block,) = (each for each in re.findall(r"```sh\n(.*?)```", README, re.DOTALL) if "main=" in each)
    preparation, *managers = block.split("\n\n")
    (standalone,) = (each for each in managers if each.startswith("# standalone"))
    assert "$MASTER:7077" in standalone
    assert END in standalone
    command = standalone.replace("$MASTER:7077", address).replace(END, datetime.now(UTC).isoformat())
    return f"{preparation}\n{command}"


def committed(kafka: LocalKafka) -> dict[int, int]:
    """Return what the group has committed in each partition, as its coordinator says."""
    consumer = Consumer({"bootstrap.servers": kafka.bootstrap_servers, "group.id": "billing"})
    try:
        asked = [TopicPartition("orders", number) for number in range(PARTITIONS)]
        return {each.partition: max(0, each.offset) for each in consumer.committed(asked, timeout=60)}
    finally:
        consumer.close()


def last_commits(tables: Tables) -> dict[int, int]:
    commits = tables.read(OFFSET_COMMITS).where("group_id = 'billing' and topic = 'orders'")
    last = commits.groupBy("partition").agg(F.max_by("committed_offset", "log_offset").alias("offset"))
    return {row.partition: row.offset for row in last.collect()}
