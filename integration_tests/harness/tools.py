"""External programs required by tests: lookup, and one policy for missing ones."""

import os
import shutil
from typing import NoReturn

import pytest

from groupwright.testing import find_java, resolve_jars

REQUIRE_VARIABLE = "GROUPWRIGHT_TESTS_REQUIRE_ALL"
"""Set in continuous integration: a test that lacks what it needs fails, instead of being skipped."""


def command_of_kafkas_tool(version: str, main_class: str) -> list[str]:
    """Return the command line of one of Kafka's tools of a version, up to its arguments."""
    jars = resolve_jars(f"org.apache.kafka:kafka-tools:{version}", "org.slf4j:slf4j-nop:1.7.36")
    java = (str(find_java().executable), "-Xshare:auto", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC")
    return [*java, "-cp", os.pathsep.join(map(str, jars)), main_class]


def find_program(*names: str, hint: str) -> str:
    """Return the path of the first installed one of these programs.

    If none is installed, the test is skipped, or fails if the environment requires all tools; `hint` says how
    to install one.
    """
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        lacking(f"{' or '.join(names)} is not installed ({hint})")
    return found


def lacking(what: str) -> NoReturn:
    """Skip the test, or fail it if the environment requires all tools, with the name of the missing one."""
    if os.environ.get(REQUIRE_VARIABLE):
        pytest.fail(what)
    pytest.skip(what)
