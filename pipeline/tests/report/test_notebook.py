"""The notebook of the examples, on tables of the pipeline."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from groupwright.pipeline import Batch, open_tables, schemas
from integration_tests.harness.patience import PROGRAM_PATIENCE

NOTEBOOK = Path(__file__).parents[3] / "examples" / "rebalance_history.ipynb"


def test_the_notebook_shows_what_is_in_the_tables(
    spark: SparkSession, frames: Any, month: Any, tmp_path: Path
) -> None:
    tables = open_tables(spark, str(tmp_path / "tables"))
    rebalances = month["rebalances"]
    for name, frame in frames({"rebalances": rebalances, "churn": month["churn"]}).items():
        tables.add(schemas.TABLES[name], frame, Batch("test", 1))

    subprocess.run(
        [Path(sys.executable).with_name("jupyter-execute"), f"--output={tmp_path / 'done.ipynb'}", NOTEBOOK],
        env=os.environ | {"TABLES": str(tmp_path / "tables")},
        timeout=PROGRAM_PATIENCE,
        check=True,
    )

    cells = json.loads((tmp_path / "done.ipynb").read_text(encoding="utf-8"))["cells"]
    shown = ["".join(output["data"]["text/plain"]) for cell in cells for output in cell.get("outputs", ())]
    by_group, by_trigger, moves, _chart, hours, flapping = (_rows(each) for each in shown)
    for group in ("payments.settlement", "search-indexer", "audit"):
        of_group = [row for row in rebalances if row["group_id"] == group]
        moved, fewest = (sum(row[column] for row in of_group) for column in ("moved", "min_moves"))
        of_hours = [row for row in month["churn"] if row["group_id"] == group and "member_id" not in row]
        assert by_group[group][:2] == [f"{len(of_group)}"] * 2
        assert by_trigger[group][-1] == f"{len(of_group)}"
        assert moves[group] == [f"{moved}", f"{fewest}", f"{moved - fewest}"]
        assert hours[group] == [
            f"{max(row['rebalances'] for row in of_hours)}",
            f"{sum(row['storm'] for row in of_hours)}",
            "0",
        ]
    assert flapping == {"payments.settlement": ["payments.settlement-4", "8"]}


def _rows(table: str) -> dict[str, list[str]]:
    """Return the values of a table that pandas has printed, by the first word of their line."""
    return {name: values for name, *values in (line.split() for line in table.splitlines()[2:])}
