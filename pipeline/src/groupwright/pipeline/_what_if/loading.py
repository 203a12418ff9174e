"""Assignors by what a user calls them: the name of one of ours, or an import path."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from groupwright.assignors import Assignor, AssignorError, builtin_assignors, by_name, check_assignor

MakeAssignor = Callable[[], Assignor]
"""Returns a new instance: each member of a group has its own."""


@dataclass(frozen=True, slots=True)
class LoadedAssignor:
    """An assignor that can be played.

    Attributes:
        name: What results call it: one of ours by its name, a user's by its import path.
        make: Returns a new instance.
        is_ours: Whether it comes with Groupwright.
    """

    name: str
    make: MakeAssignor
    is_ours: bool


def load_assignor(name: str) -> LoadedAssignor:
    """Return the assignor of this name.

    Args:
        name: `range`, `roundrobin`, `sticky`, `cooperative-sticky`, or the import path of one's own,
            `package.module:Class`, whose class is called without arguments.

    Raises:
        AssignorError: There is none, it cannot be imported or made, or it is not an assignor; the message says which.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon:
        return LoadedAssignor(name, _ours(name), is_ours=True)
    if not module_name or not attribute:
        raise AssignorError(f"assignor {name!r}: an import path is package.module:Class")
    try:
        module = import_module(module_name)
    except Exception as error:
        raise AssignorError(
            f"assignor {name!r}: module {module_name!r} cannot be imported ({type(error).__name__}: {error}). It must "
            "be installed, or sent along with --py-files, on the driver and on every executor"
        ) from error
    make = getattr(module, attribute, None)
    if not callable(make):
        raise AssignorError(f"assignor {name!r}: module {module_name!r} has no class {attribute!r}")
    _check(name, make)
    return LoadedAssignor(name, make, is_ours=False)


def _ours(name: str) -> MakeAssignor:
    known = {assignor.name: type(assignor) for assignor in builtin_assignors()}
    if name not in known:
        raise AssignorError(
            f"no assignor is named {name!r}; there are: {', '.join(sorted(known))}. "
            "One of your own is given by its import path, package.module:Class"
        )
    return lambda: by_name(name)


def _check(name: str, make: Callable[[], object]) -> None:
    try:
        made = make()
    except Exception as error:
        raise AssignorError(
            f"assignor {name!r}: it must be made without arguments, which raises {type(error).__name__}: {error}"
        ) from error
    if not isinstance(made, Assignor):
        raise AssignorError(
            f"assignor {name!r}: it makes a {type(made).__name__}, which is not a groupwright.assignors.Assignor"
        )
    try:
        check_assignor(made)
    except AssignorError as error:
        raise AssignorError(f"assignor {name!r}: {error}") from error
