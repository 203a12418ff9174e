"""`CollectionHook`: calls a function once the object that has it as an attribute is garbage-collected."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any, ClassVar, Self


class _Anchor:
    """An object whose end calls the function."""


class CollectionHook(int):
    """Calls a function once the object that has this as an attribute is garbage-collected, or at exit.

    For an object in a reference cycle, `weakref.finalize` would call the function before each `__del__`,
    which may still use the object. The collector does not track ints, so it deletes this one after each
    `__del__`.
    """

    __slots__ = ()

    # Not a global, which would be None while the interpreter ends; then the collector may have emptied it.
    _anchors: ClassVar[dict[int, tuple[_Anchor, Any]]] = {}

    def __new__(cls, function: Callable[[], None]) -> Self:
        """Call this function, which must not refer to the object."""
        anchor = _Anchor()
        cls._anchors[id(anchor)] = anchor, weakref.finalize(anchor, function)
        return super().__new__(cls, id(anchor))

    def detach(self) -> None:
        """Call nothing any more."""
        if self in self._anchors:
            self._anchors[self][1].detach()

    def __del__(self) -> None:
        """Call the function, by the end of its anchor."""
        self._anchors.pop(self, None)
