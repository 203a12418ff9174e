"""The programs in examples/ run as described in its README."""

import re
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from groupwright.testing import Kafka
from groupwright.testing.pytest_plugin import NewKafkaTopic
from harness.patience import PATIENCE
from harness.records import Tally
from harness.waiting import wait_until
from harness.workers import Workers

pytestmark = pytest.mark.kafka

EXAMPLES = Path(__file__).parents[2] / "examples"
README = (EXAMPLES / "README.md").read_text(encoding="utf-8")

Produce = Callable[[str, int, int], None]
Run = Callable[[str, dict[str, str]], Workers]


@pytest.fixture
def run(kafka: Kafka, group: str, tmp_path: Path) -> Iterator[Run]:
    """Prepare the README's command of a program for this Kafka, group and topics."""
    started: list[Workers] = []

    def prepare(program: str, instead: dict[str, str]) -> Workers:
        (line,) = re.findall(rf"^python examples/{program} (.*)$", README, re.MULTILINE)
        of_readme = {"localhost:9092": kafka.bootstrap_servers, "billing": group, "matching": group}
        words = [(of_readme | instead).get(word, word) for word in line.split()]
        workers = Workers(EXAMPLES / program, words, tmp_path)
        started.append(workers)
        return workers

    yield prepare
    for workers in started:
        workers.close()


def test_the_readme_and_this_test_know_every_example() -> None:
    """Each program has a section in the README and a test here."""
    programs = {path.name for path in EXAMPLES.glob("*.py")}

    assert set(re.findall(r"\]\((\w+\.py)\)", README)) == programs
    assert set(re.findall(r"^python examples/(\S+)", README, re.MULTILINE)) == programs
    assert set(re.findall(r'run\("(\w+\.py)"', Path(__file__).read_text(encoding="utf-8"))) == programs


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
        found = re.search(r"http://127\.0\.0\.1:\d+/metrics", consumer.log("billing-1"))
        return found[0] if found else ""

    def scraped(sample: str) -> bool:
        with urllib.request.urlopen(address(), timeout=PATIENCE) as page:  # noqa: S310 - http, as it stands above
            return re.search(sample, page.read().decode()) is not None

    wait_until(lambda: bool(address()), "the address of the metrics")
    owned = r"groupwright_partitions_owned\{.*\} 3\.0\n"
    wait_until(lambda: scraped(owned), "three partitions to be owned")

    assert scraped(r'groupwright_rebalances_total\{.*outcome="completed".*\} 1\.0\n')
    assert consumer.stop("billing-1") == 0
