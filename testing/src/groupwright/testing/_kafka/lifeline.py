"""Becomes the given program, and ends it when the process that started it is gone.

Run as a script: `lifeline.py DIRECTORY PROGRAM ARGUMENT…`. Standard input is a pipe whose other end the
starting process alone holds, so it ends with that process, whatever ended it (SIGKILL too). A forked
watcher waits for that end; then it kills the program and removes DIRECTORY (unless that is empty). A byte
through the pipe dismisses the watcher. The program keeps this process's id, so that its parent signals it
and waits for it directly.
"""

import os
import signal
import sys
import time


def _watch(program: int, directory: str) -> None:
    dismissed = os.read(0, 1)
    if dismissed:
        return
    while os.getppid() == program:  # for as long as this holds, the id cannot be another process's
        os.kill(program, signal.SIGKILL)
        time.sleep(0.01)
    if directory:
        import shutil  # noqa: PLC0415 - a watcher lives as long as its broker and stays small

        shutil.rmtree(directory, ignore_errors=True)


def _main(directory: str, command: list[str]) -> None:
    program = os.getpid()
    if os.fork() == 0:
        _watch(program, directory)
        os._exit(0)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.execv(command[0], command)  # noqa: S606 - runs an executable, no shell


if __name__ == "__main__":
    _main(sys.argv[1], sys.argv[2:])
