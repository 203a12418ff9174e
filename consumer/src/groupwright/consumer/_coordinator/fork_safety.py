"""Fork safety: a forked child never destroys the librdkafka handles of its parent.

The child has librdkafka's memory, its locks in the state they were in, and none of its threads. To destroy a
handle there waits for threads that do not exist: the child hangs or crashes.
"""

import gc
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

_forking = threading.RLock()
"""Held by a thread that forks, and by one that must not be cut off by a fork."""
_handles: "weakref.WeakValueDictionary[int, object]" = weakref.WeakValueDictionary()
"""By identity: a user's subclass may not be hashable."""
_collecting = False
"""Whether the garbage collector was enabled before the fork."""


def _before_fork() -> None:
    import ctypes  # noqa: F401, PLC0415 - few processes fork; the child must not have to import it

    global _collecting  # noqa: PLW0603 - hooks of a fork have no other place to hand it on
    _forking.acquire()
    # A handle may be garbage already, in a cycle. Hooks of other modules run in the child before `_in_child`,
    # and the garbage collector would destroy the handle in one of them.
    _collecting = gc.isenabled()
    gc.disable()


def _in_parent() -> None:
    if _collecting:
        gc.enable()
    _forking.release()


def _in_child() -> None:
    import ctypes  # noqa: PLC0415 - see `_before_fork`

    for handle in list(_handles.values()):
        # A reference that the interpreter's end does not clear, as it would one in a module.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(handle))
    _in_parent()


os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)


@contextmanager
def not_while_forking() -> Iterator[None]:
    """Import here what a thread of ours needs: no other thread forks meanwhile.

    A child has the import's locks and none of the thread that held them: it would wait for ever to import the
    same.
    """
    with _forking:
        yield


def leave_to_parent(handle: object) -> None:
    """Have forked children never destroy an object with a librdkafka handle, not even at their end."""
    _handles[id(handle)] = handle
