"""The pages that are made from the code: ``python -m groupwright.pipeline.reference`` prints TABLES.md.

With the argument `settings` it prints the README's table of settings.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, Field
from typing import Any

from pyspark.sql.types import ArrayType, DataType, MapType, StructType

from groupwright.pipeline._jobs.settings import SETTINGS
from groupwright.pipeline.schemas import TABLES, Table

_HEAD = """\
<!-- Made by `python -m groupwright.pipeline.reference`; change schemas.py, not this page. -->
# Tables

All times are in UTC. Every table is partitioned by `date`. Base tables hold what the log holds; derived ones are made
from them, date by date.
"""


def page() -> str:
    """Return TABLES.md."""
    return "\n".join([_HEAD, *(line for table in TABLES.values() for line in _table(table))])


def settings() -> str:
    """Return the table of settings."""
    return (
        "\n".join(["| setting | meaning | default |", "|---|---|---|", *map(_setting, SETTINGS.values())])
        + "\n"
    )


def _table(table: Table) -> Iterator[str]:
    kind = "derived" if table.derived else "base"
    yield f"## {table.name}\n\n{table.row} ({kind})\n\n| column | type | meaning |\n|---|---|---|"
    for field in table.schema:
        yield f"| `{field.name}` | {_type(field.dataType)} | {field.metadata['comment']} |"
    yield ""


def _type(kind: DataType) -> str:
    match kind:
        case ArrayType():
            return f"array of {_type(kind.elementType)}"
        case MapType():
            return f"map of {_type(kind.keyType)} to {_type(kind.valueType)}"
        case StructType():
            return f"struct ({', '.join(f'`{field.name}` {_type(field.dataType)}' for field in kind)})"
        case _:
            return kind.simpleString()


def _setting(setting: Field[Any]) -> str:
    return f"| `{setting.name}` | {setting.metadata['meaning']} | {_default(setting)} |"


def _default(setting: Field[Any]) -> str:
    if setting.default is MISSING:
        return "" if setting.default_factory is not MISSING else "must be set"
    return f"`{_text(setting.default)}`" if setting.default != "" else ""


def _text(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


_PAGES: Mapping[str, Any] = {"tables": page, "settings": settings}

if __name__ == "__main__":
    sys.stdout.write(_PAGES[sys.argv[1] if sys.argv[1:] else "tables"]())
