"""A member in a process of its own: ``python -m groupwright.testing._groups.member_process SPECIFICATION``.

SIGTERM has it leave; SIGUSR1 has it poll no more, and SIGUSR2 poll again.
"""

import json
import logging
import signal
import sys
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from groupwright.testing._groups.events import HistoryWriter
from groupwright.testing._groups.member_loop import ConsumerFactory, MemberLoop


@dataclass(frozen=True, slots=True)
class Specification:
    """What a member's process is told.

    Attributes:
        consumer: The consumer's factory, ``module:name``.
        config: The consumer's configuration.
        topics: What to subscribe to.
        batch: The most messages of a call.
        history: The path of its history.
        path: Where the starting process finds modules.
    """

    consumer: str
    config: dict[str, Any]
    topics: list[str]
    batch: int
    history: str
    path: list[str]

    def write(self, path: Path) -> list[str]:
        """Write it where its owner alone may read it; return the command line of the member."""
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return [sys.executable, "-m", __name__, str(path)]


def factory_of(reference: str) -> ConsumerFactory:
    """Return what a reference ``module:name`` names."""
    module, _, names = reference.partition(":")
    found: Any = import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    factory: ConsumerFactory = found
    return factory


def main(specification: Specification) -> int:
    """Be a member until SIGTERM; return the exit status."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    sys.path += [folder for folder in specification.path if folder not in sys.path]
    history = HistoryWriter(Path(specification.history))
    try:
        loop = MemberLoop(
            factory_of(specification.consumer),
            specification.config,
            specification.topics,
            history.write,
            batch=specification.batch,
        )
        signal.signal(signal.SIGTERM, lambda *_: loop.leave())
        signal.signal(signal.SIGUSR1, lambda *_: loop.pause_polling())
        signal.signal(signal.SIGUSR2, lambda *_: loop.resume_polling())
        loop.run()
    except Exception:
        logging.getLogger(__name__).exception("the member ends")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(Specification(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
