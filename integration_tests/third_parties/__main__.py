"""Check third parties' libraries with both consumers, each library in an environment of its own.

python -m integration_tests.third_parties             # all
python -m integration_tests.third_parties faststream  # some
"""

import argparse
import importlib.metadata
import json
import subprocess
import sys
import venv
from pathlib import Path

from groupwright.testing import LocalKafka
from integration_tests.third_parties.common import ORIGINAL, OURS
from integration_tests.third_parties.libraries import LIBRARIES
from integration_tests.third_parties.run_case import run

_ROOT = Path(__file__).parents[2]


def _environment(name: str, requirements: tuple[str, ...]) -> str:
    """Make a library's environment, and return its interpreter."""
    folder = Path(sys.prefix) / "third-parties" / name
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*install, "--editable", f"{_ROOT}[testing]", *requirements], check=True)
    return str(python)


def _versions(python: str) -> dict[str, str]:
    found = Path(python).parents[1].glob("lib/python*/site-packages")
    distributions = importlib.metadata.distributions(path=[str(folder) for folder in found])
    return {each.name.lower().replace("_", "-"): each.version for each in distributions}


def main() -> int:
    """Run the cases, and return how many are not as the table of libraries says."""
    parser = argparse.ArgumentParser(prog="python -m integration_tests.third_parties")
    parser.add_argument(
        "libraries", nargs="*", choices=[*LIBRARIES, []], metavar="library", help=", ".join(LIBRARIES)
    )
    parser.add_argument("--show", action="store_true", help="print what both consumers saw")
    arguments = parser.parse_args()
    wrong = 0
    with LocalKafka() as kafka:
        for name in arguments.libraries or LIBRARIES:
            library = LIBRARIES[name]
            python = _environment(name, library.requirements)
            versions = _versions(python)
            names = [each.split(">")[0].split("[")[0] for each in library.requirements]
            print(
                ", ".join(f"{each} {versions[each]}" for each in dict.fromkeys([*names, "confluent-kafka"]))
            )
            for case in library.cases:
                seen = [
                    run(python, library.module, case, which, kafka.bootstrap_servers)
                    for which in (ORIGINAL, OURS)
                ]
                same = seen[0] == seen[1]
                as_known = same != (case in library.differ)
                wrong += not as_known
                print(f"  {case}: {'same' if same else 'differs'}{'' if as_known else ', unlike the table'}")
                if arguments.show or not as_known:
                    print(
                        "\n".join(
                            f"    {which}: {json.dumps(each)}"
                            for which, each in zip((ORIGINAL, OURS), seen, strict=True)
                        )
                    )
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(), 1))
