"""Locks that an exception of a signal handler cannot leave held.

CPython runs signal handlers after calls, at the start of functions and at jumps back, on the main thread.
Since 3.14, ``with lock:`` calls ``__enter__`` like any function, before the ``with`` block protects it: a
handler that raises right after that call leaves the lock held, and other threads block forever.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

if TYPE_CHECKING:
    from threading import RLock

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")
_Method = Callable[Concatenate[Any, _Arguments], _Result]


def call_locked(
    lock: RLock,
    function: Callable[_Arguments, _Result],
    *args: _Arguments.args,
    **kwargs: _Arguments.kwargs,
) -> _Result:
    """Return the function's result; hold `lock` meanwhile, which is free or as before afterwards."""
    try:
        # No call stands between `try` and `acquire`, nor between the function and `release`.
        lock.acquire()
        result = function(*args, **kwargs)
    except BaseException:
        try:  # noqa: SIM105 - `contextlib.suppress` is a call, after which a handler may raise
            lock.release()
        except RuntimeError:
            pass  # the exception ended the wait for the lock, which another thread holds
        raise
    lock.release()
    return result


def locked(method: _Method[_Arguments, _Result]) -> _Method[_Arguments, _Result]:
    """Return a method that holds the re-entrant lock ``self._lock`` while it runs."""

    @functools.wraps(method)
    def call(self: Any, /, *args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        return call_locked(self._lock, method, self, *args, **kwargs)

    return call
