"""`CollectionHook`: calls a function once the object that has it as an attribute is garbage-collected."""

import weakref
from collections.abc import Callable
from typing import Self


class _Anchor:
    """An object whose end calls the function."""


_anchors: dict[int, tuple[_Anchor, weakref.finalize]] = {}  # type: ignore[type-arg] # not generic at run time


class CollectionHook(int):
    """Calls a function once the object that has this as an attribute is garbage-collected, or at exit.

    For an object in a reference cycle, `weakref.finalize` would call the function before each `__del__`,
    which may still use the object. The collector does not track ints, so it deletes this one after each
    `__del__`.
    """

    __slots__ = ()

    def __new__(cls, function: Callable[[], None]) -> Self:
        """Call this function, which must not refer to the object."""
        anchor = _Anchor()
        _anchors[id(anchor)] = anchor, weakref.finalize(anchor, function)
        return super().__new__(cls, id(anchor))

    def detach(self) -> None:
        """Call nothing any more."""
        _anchors[self][1].detach()

    def __del__(self) -> None:
        """Call the function, by the end of its anchor."""
        _anchors.pop(self, None)
