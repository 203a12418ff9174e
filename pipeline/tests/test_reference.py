"""The pages that are made from the code."""

from pathlib import Path

from groupwright.pipeline import reference
from groupwright.pipeline.schemas import TABLES

PART = Path(__file__).parents[1]


def test_the_pages_are_what_the_code_says() -> None:
    assert (PART / "TABLES.md").read_text(encoding="utf-8") == reference.page()
    readme = (PART / "README.md").read_text(encoding="utf-8")
    assert reference.settings() in readme
    assert reference.metrics() in readme


def test_every_column_of_every_table_says_what_it_is() -> None:
    silent = [
        f"{name}.{field.name}"
        for name, table in TABLES.items()
        for field in table.schema
        if not field.metadata["comment"]
    ]
    assert silent == []
