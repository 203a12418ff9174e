"""Assignors by name, or by the import path of a custom one."""

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from groupwright.core.assignor_traits import ASSIGNORS, BROKERS
from groupwright.core.spelling import did_you_mean

if TYPE_CHECKING:
    from groupwright.assignors import Assignor

ASSIGNOR_NAMES = tuple(ASSIGNORS)
"""Names of members' assignors."""
STUDY_NAMES = (*ASSIGNOR_NAMES, *BROKERS)
"""Names that `load_assignor` knows: members' assignors, and the broker's (KIP-848)."""


def load_assignor(name: str) -> "Assignor":
    """Return a new instance of an assignor. Modules are also looked for in the working directory.

    Args:
        name: One of `STUDY_NAMES`, or the import path of your own, `package.module:Class`, whose
            class is called without arguments.

    Raises:
        AssignorError: The name is unknown, or the class cannot be imported or called, or is no assignor.
    """
    from groupwright.assignors import Assignor, AssignorError, by_name, check_assignor

    if name in STUDY_NAMES:
        return by_name(name)
    module_name, colon, attribute = name.partition(":")
    if not colon:
        hint = did_you_mean(name, STUDY_NAMES) or f"; there are: {', '.join(sorted(STUDY_NAMES))}."
        raise AssignorError(
            f"no assignor is named {name!r}{hint} Name one of your own by its import path, "
            "package.module:Class"
        )
    directory = str(Path.cwd())
    if directory not in sys.path:
        sys.path.append(directory)
    try:
        made = getattr(import_module(module_name), attribute)()
    except Exception as error:
        raise AssignorError(
            f"assignor {name!r} cannot be loaded: {type(error).__name__}: {error}. Give the import path of a "
            "class that is called without arguments, package.module:Class"
        ) from error
    if not isinstance(made, Assignor):
        raise AssignorError(
            f"{name!r} is a {type(made).__name__}, which is not a groupwright.assignors.Assignor"
        )
    check_assignor(made)
    return made
