"""Columns that tables of an older version have under another name."""

from collections.abc import Mapping

from pyspark.sql.types import StructField, StructType

from groupwright.pipeline.schemas import CHURN, CLIENT_EVENTS, REBALANCES, TABLES, Table

_FORMER_NAMES: Mapping[str, Mapping[str, str]] = {
    CHURN.name: {"min_moves": "fewest_moves"},
    CLIENT_EVENTS.name: {"leader.min_moves": "moves_needed"},
    REBALANCES.name: {"min_moves": "fewest_moves"},
}
"""By table and column, the column's former name. A column of a struct has a path: ``leader.min_moves``."""
RENAMED_TABLES = tuple(TABLES[name] for name in _FORMER_NAMES)
"""The tables with such columns."""


def renamed_columns(table: Table, stored: StructType) -> dict[str, str]:
    """Return today's name of each column of a stored schema that was renamed, by the column's stored path.

    Args:
        table: One of `RENAMED_TABLES`.
        stored: The schema.
    """
    renamed = {}
    for path, former in _FORMER_NAMES[table.name].items():
        parent, dot, name = path.rpartition(".")
        if _has(stored, f"{parent}{dot}{former}"):
            renamed[f"{parent}{dot}{former}"] = name
    return renamed


def former_schema(table: Table) -> StructType:
    """Return the schema of one of `RENAMED_TABLES` with the former names; order and types are today's."""
    return _with_former_names(table.schema, _FORMER_NAMES[table.name], "")


def _with_former_names(schema: StructType, names: Mapping[str, str], prefix: str) -> StructType:
    fields = []
    for field in schema.fields:
        path, kind = prefix + field.name, field.dataType
        if isinstance(kind, StructType):
            kind = _with_former_names(kind, names, f"{path}.")
        fields.append(StructField(names.get(path, field.name), kind))
    return StructType(fields)


def _has(schema: StructType, path: str) -> bool:
    name, _, rest = path.partition(".")
    if name not in schema.names:
        return False
    kind = schema[name].dataType
    return not rest or (isinstance(kind, StructType) and _has(kind, rest))
