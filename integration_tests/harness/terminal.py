"""A command on a terminal."""

import fcntl
import os
import pty
import struct
import subprocess
import sys
import termios
import threading
from typing import Any

from integration_tests.harness.patience import PATIENCE


class Terminal:
    """The command `groupwright` in a pseudo-terminal of 80 columns and 24 lines."""

    def __init__(self, *arguments: str) -> None:
        self._master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.before = termios.tcgetattr(slave)
        environment = {
            key: value for key, value in os.environ.items() if key not in ("CI", "COLUMNS", "LINES")
        }
        self.process = subprocess.Popen(
            [sys.executable, "-m", "groupwright.cli", *arguments],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**environment, "TERM": "xterm-256color"},
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509 - a controlling terminal
        )
        self._slave = slave
        self.output = ""
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        while True:
            try:
                read = os.read(self._master, 65536)
            except OSError:
                return
            self.output += read.decode(errors="replace")

    def press(self, key: bytes) -> None:
        os.write(self._master, key)

    def after(self) -> list[Any]:
        """Return the terminal's settings."""
        return termios.tcgetattr(self._slave)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._slave)
        self._thread.join(PATIENCE)
        os.close(self._master)
