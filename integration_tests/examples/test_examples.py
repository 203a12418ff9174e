"""The programs in examples/ run as described in its README."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from integration_tests.harness.patience import PATIENCE, PROGRAM_PATIENCE
from integration_tests.harness.records import Tally
from integration_tests.harness.waiting import wait_until
from integration_tests.harness.workers import Workers

pytestmark = pytest.mark.kafka

EXAMPLES = Path(__file__).parents[2] / "examples"
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")

Produce = Callable[[str, int, int], None]
Run = Callable[[str, dict[str, str]], Workers]
Demo = Callable[..., str]


@pytest.fixture
def run(kafka: Kafka, group: str, tmp_path: Path) -> Iterator[Run]:
    """Prepare the README's command of a program for this Kafka, group and topics."""
    started: list[Workers] = []

    def prepare(program: str, instead: dict[str, str]) -> Workers:
        (line,) = re.findall(rf"^python examples/{program} (.*)$", README, re.MULTILINE)
        of_readme = {"localhost:9092": kafka.bootstrap_servers}
        of_readme |= dict.fromkeys(("billing", "matching", "orders-metrics", "orders-web"), group)
        words = [(of_readme | instead).get(word, word) for word in line.split()]
        workers = Workers(EXAMPLES / program, words, tmp_path)
        started.append(workers)
        return workers

    yield prepare
    for workers in started:
        workers.close()


@pytest.fixture
def demo(kafka: Kafka) -> Demo:
    """Run a program that ends by itself, on this Kafka, and return its output."""

    def run(program: str, *options: str) -> str:
        command = [sys.executable, str(EXAMPLES / program), kafka.bootstrap_servers, *options]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=PROGRAM_PATIENCE, check=False)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return run


def address_in(log: str) -> str:
    """Return the address at which a service says that it listens; empty if it does not yet."""
    found = re.search(r"http://127\.0\.0\.1:\d+", log)
    return found[0] if found else ""


def get(url: str) -> str:
    """Return a page; empty if its status is that of an error."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as page:  # noqa: S310 - http, of a service started here
            text: str = page.read().decode()
            return text
    except urllib.error.HTTPError:
        return ""


def members_of(kafka: Kafka, group: str) -> int:
    found = kafka.admin().describe_consumer_groups([group])[group].result(PATIENCE)
    return len(found.members)


def test_the_readme_and_the_tests_know_every_example() -> None:
    """Each file has a row in the README, each program a command there, and a test here or in its part."""
    files = {path.name for path in EXAMPLES.iterdir() if path.suffix in {".py", ".ipynb"}}
    of_others = {"gunicorn_service.py"}  # gunicorn_config.py names it
    tested_elsewhere = {"test_orders.py", "rebalance_history.ipynb"}  # by itself, and in pipeline/tests
    here = Path(__file__).read_text(encoding="utf-8")
    tested = set(re.findall(r'(?:EXAMPLES / |run\(|demo\()"(\w+\.py)"', here))

    assert set(re.findall(r"\]\((\w+\.\w+)\)", README)) == files
    assert (
        set(re.findall(r"^(?!\|).*\bexamples/(\w+\.(?:py|ipynb))", README, re.MULTILINE)) == files - of_others
    )
    assert files - of_others - tested == tested_elsewhere


def test_exactly_once_reads_transforms_and_writes(
    run: Run, kafka: Kafka, new_kafka_topic: NewKafkaTopic, produce: Produce
) -> None:
    """The tests in exactly_once/ kill this program."""
    orders, invoices = new_kafka_topic(partitions=2), new_kafka_topic()
    produce(orders, 2, 20)
    worker = run("exactly_once.py", {"orders": orders, "invoices": invoices})

    worker.start("billing-1")
    with Tally(kafka.bootstrap_servers, invoices, partitions=1) as tally:
        wait_until(lambda: bool(tally.read()) and tally.counts.total() == 40, "everything to be written")

    assert worker.stop("billing-1") == 0


def test_a_parallel_service_charges_each_order_once(
    run: Run, kafka: Kafka, new_kafka_topic: NewKafkaTopic
) -> None:
    """The tests in parallel/ kill this program."""
    orders, failed = new_kafka_topic(partitions=2), new_kafka_topic()
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for number in range(40):
        producer.produce(orders, json.dumps({"id": number}), f"customer {number % 5}")
    assert producer.flush(PATIENCE) == 0
    worker = run("parallel_service.py", {"orders": orders, "orders-failed": failed})

    worker.start("a")
    wait_until(lambda: worker.log("a").count("charged") == 40, "everything to be charged")

    assert worker.stop("a") == 0
    charged = [int(number) for number in re.findall(r"^charged (\d+)$", worker.log("a"), re.MULTILINE)]
    for customer in range(5):
        assert [number for number in charged if number % 5 == customer] == list(range(customer, 40, 5))


def test_own_assignor_brings_partitions_of_the_same_keys_together(
    run: Run, new_kafka_topic: NewKafkaTopic
) -> None:
    orders, payments = new_kafka_topic(partitions=6), new_kafka_topic(partitions=12)
    members = run("own_assignor.py", {"orders": orders, "payments": payments})

    def shares() -> list[set[tuple[str, int]]]:
        last_lines = [
            (re.findall("^assigned.*$", members.log(name), re.MULTILINE) or [""])[-1] for name in ("a", "b")
        ]
        return [
            {(topic, int(partition)) for topic, partition in re.findall(r"(\S+)\[(\d+)\]", line)}
            for line in last_lines
        ]

    members.start("a")
    members.start("b")
    wait_until(lambda: [len(share) for share in shares()] == [9, 9], "half of the partitions each")

    for share in shares():
        families = {partition for topic, partition in share if topic == orders}
        assert {partition % 6 for topic, partition in share if topic == payments} == families
    assert [members.stop("a"), members.stop("b")] == [0, 0]


def test_metrics_shows_the_rebalance_to_prometheus(run: Run, new_kafka_topic: NewKafkaTopic) -> None:
    consumer = run("metrics.py", {"orders": new_kafka_topic(partitions=3), "9095": "0"})
    consumer.start("billing-1")

    def address() -> str:
        return address_in(consumer.log("billing-1"))

    def scraped(sample: str) -> bool:
        return re.search(sample, get(f"{address()}/metrics")) is not None

    wait_until(lambda: bool(address()), "the address of the metrics")
    owned = r"groupwright_partitions_owned\{.*\} 3\.0\n"
    wait_until(lambda: scraped(owned), "three partitions to be owned")

    assert scraped(r'groupwright_rebalances_total\{.*outcome="completed".*\} 1\.0\n')
    assert consumer.stop("billing-1") == 0


def test_load_aware_leaves_the_hot_partition_alone(demo: Demo) -> None:
    rows = re.findall(
        r"^(\S+) +billing-\d +(\d+)%  partitions ([\d ]+)$", demo("load_aware.py"), re.MULTILINE
    )
    by_count, by_load = (
        {partitions: int(share) for protocol, share, partitions in rows if protocol == name}
        for name in ("cooperative-sticky", "load-aware")
    )

    assert sorted(by_count.values()) == [24, 24, 53]
    assert sorted(len(partitions.split()) for partitions in by_count) == [4, 4, 4]
    assert by_load.pop("0") == 35
    assert sorted(by_load.values()) == [29, 35]


def test_a_join_keeps_the_partitions_of_the_same_keys_together(demo: Demo) -> None:
    found = re.findall(r"orders (\[.*\]), payments (\[.*\]): (\d+) settled", demo("co_partitioned_join.py"))
    rows = [(json.loads(orders), json.loads(payments), int(settled)) for orders, payments, settled in found]
    alone, *both = rows

    assert alone == ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5], 100)
    assert all(orders == payments and len(orders) == 3 for orders, payments, _ in both)
    assert sum(settled for _, _, settled in both) == 100


def test_autoscaling_follows_the_lag_and_counts_rebalances(demo: Demo) -> None:
    printed = demo("autoscaling.py", "--messages", "900", "--cool-down", "1")

    assert re.findall(r"(\d) -> (\d) workers", printed) == [("1", "3"), ("3", "2"), ("2", "1")]
    cost = re.search(r"^(\d+) rebalances, \d+ partitions moved", printed, re.MULTILINE)
    assert cost is not None
    assert int(cost[1]) >= 3, "of the workers that joined, and of each that left"


def test_a_rollout_of_static_members_causes_no_rebalance() -> None:
    command = [sys.executable, str(EXAMPLES / "rollout.py"), "--pods", "8", "--partitions", "24"]
    printed = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True).stdout
    rows = re.findall(r"^(\S+, \w+) +(\d+) +(\d+) +(\d+) +([\d.]+) s", printed, re.MULTILINE)
    costs = {name: (int(rebalances), int(moves), int(needed)) for name, rebalances, moves, needed, _ in rows}
    pauses = {name: float(longest) for name, *_, longest in rows}

    assert costs["range, static"] == costs["cooperative-sticky, static"] == (0, 0, 0)
    assert costs["range, dynamic"][1] > costs["range, dynamic"][2]
    assert costs["cooperative-sticky, dynamic"][1] == costs["cooperative-sticky, dynamic"][2] > 0
    assert pauses["range, static"] > pauses["range, dynamic"]


def test_a_fastapi_service_consumes_and_leaves_its_group_on_sigterm(
    run: Run, kafka: Kafka, group: str, new_kafka_topic: NewKafkaTopic
) -> None:
    orders = new_kafka_topic(partitions=2)
    producer = Producer({"bootstrap.servers": kafka.bootstrap_servers})
    for customer in ("ada", "bob", "ada"):
        producer.produce(orders, b"an order", customer)
    assert producer.flush(PATIENCE) == 0
    service = run("fastapi_service.py", {"orders": orders, "8000": "0"})
    service.start("web")

    wait_until(lambda: bool(address_in(service.log("web"))), "the address of the service")
    address = address_in(service.log("web"))
    wait_until(lambda: get(f"{address}/ready") == '"membership: stable"', "the membership")
    wait_until(lambda: get(f"{address}/orders/ada") == "2", "ada's orders")
    owned = r"groupwright_partitions_owned\{.*\} 2\.0\n"
    wait_until(lambda: re.search(owned, get(f"{address}/metrics")) is not None, "two partitions to be owned")
    assert get(f"{address}/live") == '"ok"'
    assert members_of(kafka, group) == 1

    assert service.stop("web") == 0
    assert members_of(kafka, group) == 0, "it would stay for its session's 45 s"


def test_a_gunicorn_worker_ends_if_its_consumer_fails(tmp_path: Path) -> None:
    """gunicorn starts another worker then, instead of one that serves without a consumer."""
    program = (
        "from gunicorn_service import Consumer, app\n"
        "consumer = Consumer({'bootstrap.servers': '127.0.0.1:9', 'group.id': 'billing'})\n"
        "consumer.close()\n"
        "app._consume(consumer)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program],
        cwd=EXAMPLES,
        env={**os.environ, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert ended.returncode == -signal.SIGTERM, ended.stderr


def test_gunicorn_workers_share_a_group_and_one_page_of_metrics(
    kafka: Kafka, group: str, new_kafka_topic: NewKafkaTopic, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (line,) = re.findall(r"^KAFKA=localhost:9092 gunicorn (.*)$", README, re.MULTILINE)
    words = [str(EXAMPLES.parent / word) if word.endswith(".py") else word for word in line.split()]
    assert words[-1] == str(EXAMPLES / "gunicorn_config.py")
    topic = new_kafka_topic(partitions=6)
    for name, value in {"KAFKA": kafka.bootstrap_servers, "GROUP": group, "TOPIC": topic}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("BIND", "127.0.0.1:0")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))  # gunicorn has a socket there

    with Workers(Path(sys.executable).with_name("gunicorn"), words, tmp_path) as service:
        service.start("web")
        wait_until(lambda: bool(address_in(service.log("web"))), "the address of the service")
        address = address_in(service.log("web"))
        wait_until(lambda: members_of(kafka, group) == 2, "both workers to join")
        wait_until(lambda: "membership: stable" in get(address), "a worker to be ready")
        # The sum of both workers, which share the series; gauges are up to 5 s old.
        owned = r"groupwright_partitions_owned\{.*\} 6\.0\n"
        wait_until(
            lambda: re.search(owned, get(f"{address}/metrics")) is not None, "all partitions to be owned"
        )

        assert service.stop("web") == 0

    assert list(tmp_path.glob("prometheus-*")) == []
    assert members_of(kafka, group) == 0, "they would stay for their sessions' 45 s"
