"""The page docs/start.md, followed: its Kafka, its assignor in a real group, and a look at the group."""

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from groupwright.assignors import Assignor, Group, Member
from groupwright.cli.app import app
from integration_tests.harness.patience import PATIENCE
from integration_tests.harness.waiting import wait_until

pytestmark = pytest.mark.kafka

PAGE = (Path(__file__).parents[1] / "start.md").read_text(encoding="utf-8")
BROKER, MEMBER = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


# A process that is started in the background of a script ignores SIGINT.
AS_ON_A_TERMINAL = """
import runpy, signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""


def commands(beginning: str) -> list[list[str]]:
    """Return the page's commands that begin so, each as its words."""
    lines = (line for block in re.findall(r"```sh\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines())
    return [line.split() for line in lines if line.startswith(beginning)]


@contextmanager
def started(program: str, *arguments: str, folder: Path) -> Iterator[Path]:
    """Run a program of the page, and end it as Ctrl-C does; yield the path of its output."""
    output = folder / f"{'-'.join((program, *arguments))}.txt"
    with output.open("wb") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", AS_ON_A_TERMINAL, folder / program, *arguments],
            stdout=file,
            stderr=subprocess.STDOUT,
        )
        try:
            yield output
        finally:
            process.send_signal(signal.SIGINT)
            try:
                process.wait(PATIENCE)
            finally:
                process.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
        return port


@pytest.mark.slow
def test_the_page_leads_to_a_group_with_an_own_assignor(tmp_path: Path) -> None:
    """Ports are free ones, since those of the page may be taken on the machine that tests."""
    port = free_port()
    (tmp_path / "broker.py").write_text(BROKER.replace("port=9092", f"port={port}"))
    (tmp_path / "billing.py").write_text(MEMBER.replace("localhost:9092", f"127.0.0.1:{port}"))
    members = {words[2]: free_port() for words in commands("python billing.py")}
    assert list(members) == ["billing-1", "billing-2", "billing-3"]

    with ExitStack() as cleanup:
        broker = cleanup.enter_context(started("broker.py", folder=tmp_path))
        wait_until(lambda: "Kafka is at" in broker.read_text(), "the broker is ready")
        outputs = [
            cleanup.enter_context(started("billing.py", name, str(metrics), folder=tmp_path))
            for name, metrics in members.items()
        ]
        wait_until(
            lambda: (
                sorted(output.read_text().splitlines()[-1:] for output in outputs)
                == [["billing-1 owns [0]"], ["billing-2 owns [2, 4]"], ["billing-3 owns [1, 3, 5]"]]
            ),
            "each member owns what the page says",
        )
        environment = os.environ | {"GROUPWRIGHT_BOOTSTRAP_SERVERS": f"127.0.0.1:{port}"}
        described = CliRunner(env=environment).invoke(app, commands("groupwright describe")[0][1:])
        lag = CliRunner(env=environment).invoke(app, commands("groupwright lag")[0][1:])

        def shows_its_partition() -> bool:
            address = f"http://127.0.0.1:{members['billing-1']}/metrics"
            with urllib.request.urlopen(address, timeout=PATIENCE) as page:
                metrics = page.read().decode()
            owned = r'groupwright_partitions_owned\{.*client_id="billing-1".*\} 1\.0'
            return re.search(owned, metrics) is not None

        wait_until(shows_its_partition, "the metrics show the partition")

    assert "hot-alone" in described.output, described.output
    assert lag.exit_code == 0, lag.output
    assert [output for output in (broker, *outputs) if "Traceback" in output.read_text()] == []


def test_the_assignor_of_the_page_works_on_any_topics() -> None:
    names: dict[str, Any] = {"Assignor": Assignor}
    exec(MEMBER[MEMBER.index("class HotAlone") : MEMBER.index("def report")], names)  # noqa: S102 - the page's own code

    subscribed = Group([Member(name, ["invoices", "orders"]) for name in "ab"], {"invoices": 3, "orders": 2})
    assert names["HotAlone"]().assign(subscribed) == {
        "a": {"invoices": [0], "orders": [0]},
        "b": {"invoices": [1, 2], "orders": [1]},
    }


def test_prometheus_scrapes_the_members_of_the_page() -> None:
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (job,) = yaml.safe_load(text)["scrape_configs"]

    ports = [words[3] for words in commands("python billing.py")]
    assert job["static_configs"] == [{"targets": [f"127.0.0.1:{port}" for port in ports]}]
