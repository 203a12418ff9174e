"""Fork safety: a forked child never destroys the librdkafka handles of its parent.

A forked child has librdkafka's memory and locks, but none of its threads. Destroying a handle waits for these
threads, so the child would hang or crash.
"""

from __future__ import annotations

import gc
import os
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager

_forking = threading.RLock()
"""Held by a thread that forks, and by one during whose work no other thread may fork."""
_handles: weakref.WeakValueDictionary[int, object] = weakref.WeakValueDictionary()
"""By identity: a user's subclass may not be hashable."""
_collecting = False
"""True if the garbage collector was enabled before the fork."""


def _before_fork() -> None:
    import ctypes  # noqa: F401 - few processes fork; the child must not have to import it

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
    import ctypes  # see `_before_fork`

    for handle in list(_handles.values()):
        # This reference is never released, not even when the interpreter finalizes its modules.
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(handle))
    _in_parent()


os.register_at_fork(before=_before_fork, after_in_parent=_in_parent, after_in_child=_in_child)


@contextmanager
def not_while_forking() -> Iterator[None]:
    """Keep other threads from forking during the block, which imports modules.

    Otherwise a child could inherit a locked import lock without the thread that holds it, and would block
    forever at the same import.
    """
    with _forking:
        yield


def leave_to_parent(handle: object) -> None:
    """Ensure that forked children never destroy this object, which has a librdkafka handle."""
    _handles[id(handle)] = handle
