"""Modules imported with the package, and modules imported on first use."""

import os
import subprocess
import sys
from importlib import metadata

import confluent_kafka
import pytest

from groupwright.consumer._config import version
from integration_tests.harness.patience import PATIENCE

HEAVY = {
    "numpy",
    "groupwright.core.kafka_apis",
    "groupwright.core.wire_format",
    "prometheus_client",
    "groupwright.consumer.aio",
    "groupwright.consumer._membership.classic_membership",
    "groupwright.assignors._wire.consumer_protocol",
    "groupwright.consumer._membership.librdkafka_membership",
    "groupwright.consumer._coordinator.assignment_stats",
    "groupwright.consumer._config.tls",
    "ctypes",
    "importlib.metadata",
    "tempfile",
    "urllib",
}
"""Modules that importing the package must not import: each costs time and memory."""


def run(program: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("package", ["groupwright.consumer", "groupwright.assignors"])
def test_an_import_brings_nothing_heavy(package: str) -> None:
    ended = run(f"import sys, {package}; print(*({HEAVY!r} & sys.modules.keys()))")

    assert (ended.stdout, ended.stderr) == ("\n", "")


def test_a_consumer_that_the_broker_assigns_needs_neither_numpy_nor_the_protocol() -> None:
    ended = run(
        "import sys\n"
        "from groupwright.consumer import Consumer\n"
        "Consumer({'bootstrap.servers': '127.0.0.1:1', 'group.id': 'g', 'group.protocol': 'consumer',\n"
        "          'log_level': 0}).close()\n"
        "print({'numpy', 'groupwright.core.kafka_apis'} & sys.modules.keys())"
    )

    assert (ended.stdout, ended.stderr) == ("set()\n", "")


def test_a_consumer_that_does_not_lead_needs_neither_numpy_nor_a_mail_parser_nor_an_admin_client() -> None:
    """importlib.metadata parses the distribution's version with the email package."""
    ended = run(
        "import sys\n"
        "from groupwright.consumer import Consumer\n"
        "Consumer({'bootstrap.servers': '127.0.0.1:1', 'group.id': 'g', 'log_level': 0}).close()\n"
        "print({'numpy', 'email', 'ctypes', 'encodings.idna', 'confluent_kafka.admin'} & sys.modules.keys())"
    )

    assert (ended.stdout, ended.stderr) == ("set()\n", "")


def test_an_application_that_takes_warnings_for_errors_makes_a_consumer() -> None:
    made = "from groupwright.consumer import Consumer; Consumer({'group.id': 'g'}).close()"
    program = [sys.executable, "-W", "error", "-c", made]

    assert subprocess.run(program, capture_output=True, text=True, check=False).stderr == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks are POSIX's")
def test_a_fork_waits_for_an_import_on_a_thread_of_ours() -> None:
    """Else the child would have the import's lock, and not the thread that is to let it go."""
    ended = run(
        "import os, sys, threading, warnings\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"  # of forks beside threads, from 3.12 on
        "from groupwright.consumer._coordinator.fork_safety import not_while_forking\n"
        "begun = threading.Event()\n"
        "def load():\n"
        "    with not_while_forking():\n"
        "        begun.set()\n"
        "        import numpy\n"
        "threading.Thread(target=load).start()\n"
        "begun.wait()\n"
        "child = os.fork()\n"
        "if child:\n"
        "    os.waitpid(child, 0)\n"
        "else:\n"
        "    print('numpy.linalg' in sys.modules, flush=True)\n"
        "    import numpy\n"
        "    print(numpy.arange(2).sum(), flush=True)\n"
        "    os._exit(0)\n"
    )

    assert (ended.stdout, ended.stderr) == ("True\n1\n", "")


def test_the_network_thread_imports_no_mechanism_of_sasl() -> None:
    """A child that was forked meanwhile waited for the import's lock for ever."""
    ended = run(
        "import sys\n"
        "from groupwright.consumer import Consumer\n"
        "config = {'bootstrap.servers': '127.0.0.1:1', 'group.id': 'g', 'log_level': 0}\n"
        "sasl = {'security.protocol': 'SASL_PLAINTEXT', 'sasl.mechanism': 'PLAIN',\n"
        "        'sasl.username': 'u', 'sasl.password': 'p'}\n"
        "for more in ({}, sasl):\n"
        "    Consumer(config | more).close()\n"
        "    print('groupwright.consumer._network.sasl' in sys.modules)"
    )

    assert (ended.stdout, ended.stderr) == ("False\nTrue\n", "")


def test_the_version_is_the_distributions() -> None:
    assert metadata.version("groupwright") == version.VERSION


def test_without_confluent_kafkas_asyncio_consumer_ours_says_what_to_install() -> None:
    ended = run(
        "import sys\n"
        "sys.modules['confluent_kafka.aio'] = None\n"
        "import confluent_kafka\n"
        "vars(confluent_kafka).pop('aio', None)\n"
        "from groupwright.consumer import Consumer, AIOConsumer\n"
    )

    assert ended.stderr.endswith(
        f"which confluent-kafka {confluent_kafka.__version__} does not have; "
        "install confluent-kafka 2.13 or later\n"
    )


def test_a_name_that_is_none_is_an_attribute_error() -> None:
    ended = run(
        "import groupwright.consumer, groupwright.assignors as a\n"
        "print(hasattr(a, 'Nothing'), a.by_name('range').name)\n"
        "groupwright.consumer.Nothing"
    )

    assert ended.stdout == "False range\n"
    assert ended.stderr.endswith("AttributeError: module 'groupwright.consumer' has no attribute 'Nothing'\n")


def test_a_tracer_may_have_replaced_confluent_kafka_s_classes() -> None:
    """ddtrace-run puts classes of its own in their place, which take no type arguments."""
    ended = run(
        "import confluent_kafka\n"
        "class Traced(confluent_kafka.DeserializingConsumer): pass\n"
        "confluent_kafka.DeserializingConsumer = Traced\n"
        "from groupwright.consumer import DeserializingConsumer\n"
        "print(issubclass(DeserializingConsumer[str, str].__origin__, Traced))"
    )

    assert (ended.stdout, ended.stderr) == ("True\n", "")
