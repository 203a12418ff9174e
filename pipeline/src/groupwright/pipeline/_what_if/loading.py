"""Loading of assignors, by the name of a built-in one or by import path."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module

from groupwright.assignors import Assignor, AssignorError, by_name, check_assignor
from groupwright.core.assignor_traits import ASSIGNORS, BROKERS, KAFKAS

MakeAssignor = Callable[[], Assignor]
"""Returns a new instance, one for each member of a group."""


@dataclass(frozen=True, slots=True)
class LoadedAssignor:
    """An assignor to replay a history with.

    Attributes:
        name: Its name in the results: a built-in assignor's name, or a custom one's import path.
        make: Returns a new instance.
        is_cached: Whether `AssignmentCache` has its assignments, as those of Kafka's assignors.
    """

    name: str
    make: MakeAssignor
    is_cached: bool


def load_assignor(name: str) -> LoadedAssignor:
    """Load an assignor.

    Args:
        name: The name of a built-in assignor, or the import path of a custom assignor,
            `package.module:Class`, whose class is called without arguments.

    Raises:
        AssignorError: The name is unknown, or the class cannot be imported or instantiated or is not an
            assignor.
    """
    module_name, colon, attribute = name.partition(":")
    if not colon or name in BROKERS:
        return LoadedAssignor(name, _ours(name), is_cached=name in KAFKAS)
    if not module_name or not attribute:
        raise AssignorError(f"assignor {name!r}: an import path has the form package.module:Class")
    try:
        module = import_module(module_name)
    except Exception as error:
        raise AssignorError(
            f"assignor {name!r}: cannot import module {module_name!r} ({type(error).__name__}: "
            f"{error}). Install it on "
            "the driver and on every executor, or ship it with --py-files"
        ) from error
    make = getattr(module, attribute, None)
    if not callable(make):
        raise AssignorError(f"assignor {name!r}: module {module_name!r} has no class {attribute!r}")
    _check(name, make)
    return LoadedAssignor(name, make, is_cached=False)


def _ours(name: str) -> MakeAssignor:
    known = (*BROKERS, *sorted(ASSIGNORS))
    if name not in known:
        raise AssignorError(
            f"no assignor is named {name!r}; built-in assignors: {', '.join(known)}. "
            "Name a custom assignor by its import path, package.module:Class"
        )
    return lambda: by_name(name)


def _check(name: str, make: Callable[[], object]) -> None:
    try:
        made = make()
    except Exception as error:
        raise AssignorError(
            f"assignor {name!r}: calling it without arguments raises {type(error).__name__}: {error}"
        ) from error
    if not isinstance(made, Assignor):
        raise AssignorError(
            f"assignor {name!r}: it returns a {type(made).__name__}, which is not a "
            "groupwright.assignors.Assignor"
        )
    try:
        check_assignor(made)
    except AssignorError as error:
        raise AssignorError(f"assignor {name!r}: {error}") from error
