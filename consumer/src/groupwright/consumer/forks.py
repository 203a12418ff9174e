"""A forked child: it has librdkafka's memory, its locks as they happened to be, and none of its threads.

So it must not even destroy the handle: that waits for a lock which no thread will let go, now and then, at the child's end.
"""

import functools
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

_forking = threading.RLock()
"""Held by a thread that forks, and by one that must not be cut off by a fork."""


def _before_a_fork() -> None:
    import ctypes  # noqa: F401, PLC0415 - few processes fork; the child must not have to import it

    _forking.acquire()


os.register_at_fork(before=_before_a_fork, after_in_parent=_forking.release, after_in_child=_forking.release)


@contextmanager
def not_while_forking() -> Iterator[None]:
    """Import here what a thread of ours needs: no other thread forks meanwhile.

    A child has the import's locks and none of the thread that held them: it would wait for ever to import the same.
    """
    with _forking:
        yield


def leave_to_parent(handle: object) -> None:
    """Have children never destroy what has librdkafka's handle, neither when they drop it nor when they end."""
    # What is registered cannot be taken back, so it is small.
    os.register_at_fork(after_in_child=functools.partial(_keep, weakref.ref(handle)))


def _keep(reference: "weakref.ref[object]") -> None:
    import ctypes  # noqa: PLC0415 - see `_before_a_fork`

    handle = reference()
    if handle is not None:
        # A reference that the interpreter's end does not clear, as it would one in a module.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(handle))
