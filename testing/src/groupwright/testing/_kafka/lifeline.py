"""Executes the given program, and kills it when the process that started it has ended.

Run as a script: `lifeline.py DIRECTORY PROGRAM ARGUMENT…`. Standard input is a pipe. Only the starting
process holds its other end, so the pipe closes when that process ends, even by SIGKILL. A forked watcher
waits for the close; then it kills the program and removes DIRECTORY, unless that is the empty string. A byte
through the pipe ends the watcher. The program keeps this process's id, so its parent signals it and waits for
it directly.
"""

import os
import signal
import sys
import time


def _watch(program: int, directory: str) -> None:
    dismissed = os.read(0, 1)
    if dismissed:
        return
    while os.getppid() == program:  # while this holds, the id is not reused by another process
        os.kill(program, signal.SIGKILL)
        time.sleep(0.01)
    if directory:
        import shutil  # a watcher lives as long as its broker and stays small

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
