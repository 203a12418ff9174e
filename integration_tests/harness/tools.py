"""Programs that some tests need and that Python does not bring: looked for, and missed in the same way by all."""

import os
import shutil
from typing import NoReturn

import pytest

REQUIRE_VARIABLE = "GROUPWRIGHT_TESTS_REQUIRE_ALL"
"""Set in continuous integration: a test that lacks what it needs fails, instead of being skipped."""


def find_program(*names: str, hint: str) -> str:
    """Return the path of the first of these programs that is installed.

    Without any the test is skipped, or fails where nothing may be missing; `hint` says where to get one.
    """
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        lacking(f"{' or '.join(names)} is not installed ({hint})")
    return found


def lacking(what: str) -> NoReturn:
    """Skip the test, or fail it where nothing may be missing, saying what it lacks."""
    if os.environ.get(REQUIRE_VARIABLE):
        pytest.fail(what)
    pytest.skip(what)
