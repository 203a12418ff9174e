"""The part can be used where nothing else of the project is wanted, such as in a Spark job."""

import subprocess
import sys

from integration_tests.harness.patience import PATIENCE

PROGRAM = """
import sys
before = set(sys.modules)
from groupwright.assignors import *  # all that is imported at its first use
loaded = {name.partition(".")[0] for name in sys.modules.keys() - before} - sys.stdlib_module_names
print(*sorted(name for name in loaded if "cython" not in name))  # some versions of numpy load its runtime
print(*sorted(name for name in sys.modules if name.startswith("groupwright.") and name.count(".") == 1))
"""


def test_the_only_dependency_is_numpy() -> None:
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE,
    )
    assert result.stdout.splitlines() == ["groupwright numpy", "groupwright.assignors groupwright.core"]
