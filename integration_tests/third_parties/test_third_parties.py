"""Libraries that accept or patch a consumer work with ours as with confluent-kafka's.

These libraries have compatible requirements; `python -m integration_tests.third_parties` checks all, each in
an environment of its own.
"""

import importlib.util
import sys

import pytest

from groupwright.testing import Kafka
from integration_tests.harness import tools
from integration_tests.third_parties.common import ORIGINAL, OURS
from integration_tests.third_parties.libraries import LIBRARIES
from integration_tests.third_parties.run_case import run

_NEEDS = {"opentelemetry": "opentelemetry.instrumentation.confluent_kafka", "schema-registry": "fastavro"}


def _installed(name: str) -> bool:
    try:
        return importlib.util.find_spec(_NEEDS[name]) is not None
    except ModuleNotFoundError:  # a package above it
        return False


@pytest.mark.kafka
@pytest.mark.parametrize(
    ("name", "case"), [(name, case) for name in _NEEDS for case in LIBRARIES[name].cases]
)
def test_a_library_sees_the_same_with_both_consumers(kafka: Kafka, name: str, case: str) -> None:
    library = LIBRARIES[name]
    if not _installed(name):
        tools.lacking(f"{name} is not installed (make test installs it, with the group dev)")
    original, ours = (
        run(sys.executable, library.module, case, which, kafka.bootstrap_servers)
        for which in (ORIGINAL, OURS)
    )
    if case in library.differ:
        assert original != ours, "no longer differs: see the table of libraries, and docs/third-parties.md"
    else:
        assert original == ours
