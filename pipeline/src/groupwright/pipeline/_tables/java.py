"""Java classes of Spark's JVM."""

from typing import Any


def java_class(jvm: Any, name: str) -> Any:
    """Return a class by its whole name; a missing one is a `JavaPackage`, as py4j has it.

    By attributes (`jvm.org.apache…`), py4j looks each package up as a class, in every jar: milliseconds.
    """
    return getattr(jvm, name)


def has_class(jvm: Any, name: str) -> bool:
    """Return whether a class is on the class path."""
    return type(java_class(jvm, name)).__name__ == "JavaClass"
