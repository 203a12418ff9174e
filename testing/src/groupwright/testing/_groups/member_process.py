"""Member in its own process: ``python -m groupwright.testing._groups.member_process SPECIFICATION``.

SIGTERM makes it leave the group; SIGUSR1 pauses polling, and SIGUSR2 resumes it.
"""

import json
import logging
import signal
import sys
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from groupwright.testing._groups.events import Died, HistoryWriter, now
from groupwright.testing._groups.member_loop import ConsumerFactory, MemberLoop


@dataclass(frozen=True, slots=True)
class Specification:
    """Parameters of a member's process, passed as a JSON file.

    Attributes:
        consumer: The consumer's factory, ``module:name``.
        config: The consumer's configuration.
        topics: The topics to subscribe to.
        batch: Maximum number of messages per call.
        history: Path of the history.
        path: `sys.path` of the starting process.
    """

    consumer: str
    config: dict[str, Any]
    topics: list[str]
    batch: int
    history: str
    path: list[str]

    def write(self, path: Path) -> list[str]:
        """Write a file that only the user can read, since it may contain secrets; return the command line."""
        path.touch(mode=0o600)
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")
        return [sys.executable, "-m", __name__, str(path)]


def factory_of(reference: str) -> ConsumerFactory:
    """Return the object named by a reference ``module:name``."""
    module, _, names = reference.partition(":")
    found: Any = import_module(module)
    for name in names.split("."):
        found = getattr(found, name)
    factory: ConsumerFactory = found
    return factory


def main(specification: Specification) -> int:
    """Run the member until SIGTERM; return the exit status."""
    _log_to_stderr()
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
        loop.start()
        loop.run()
    except Exception as error:
        logging.getLogger(__name__).exception("the member failed")
        history.write(Died(now(), repr(error)))
        return 1
    return 0


def _log_to_stderr() -> None:
    """Log with the wall-clock time, and in parentheses the time of events."""

    def stamp(record: logging.LogRecord) -> bool:
        record.monotonic = now()
        return True

    handler = logging.StreamHandler()
    handler.addFilter(stamp)
    handler.setFormatter(
        logging.Formatter("%(asctime)s (%(monotonic).3f) %(levelname)s %(name)s: %(message)s")
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler])


if __name__ == "__main__":
    sys.exit(main(Specification(**json.loads(Path(sys.argv[1]).read_text(encoding="utf-8")))))
