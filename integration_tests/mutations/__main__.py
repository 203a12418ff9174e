"""The command: ``python -m mutations [NAME...]``, where a name is part of a mutation's."""

import sys
import tempfile
import time
from pathlib import Path

from mutations.mutation import Mutation
from mutations.runner import Copy
from mutations.table import MUTATIONS


def main(*names: str) -> int:
    chosen = [each for each in MUTATIONS if not names or any(name in each.name for name in names)]
    if not chosen:
        say(f"no mutation's name has any of {', '.join(names)}")
        return 2
    with tempfile.TemporaryDirectory(prefix="groupwright-mutations-") as directory:
        copy = Copy(Path(directory))
        whole = copy.run(dict.fromkeys(each.caught_by for each in chosen))
        if whole.failed:
            say(f"the tests do not pass on what is not broken:\n{whole.output}")
            return 2
        missed = [each for each in chosen if not noticed(copy, each)]
    say(f"{len(chosen) - len(missed)} of {len(chosen)} mutations were noticed")
    return int(bool(missed))


def noticed(copy: Copy, mutation: Mutation) -> bool:
    began = time.monotonic()
    found = copy.run_broken(mutation).failed
    outcome = "noticed" if found else "MISSED "
    say(f"{outcome}  {time.monotonic() - began:5.1f} s  {mutation.name} ({mutation.caught_by})")
    return found


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
