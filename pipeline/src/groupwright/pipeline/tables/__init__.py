"""Where the tables live: Parquet by default, Delta or Iceberg where their jars are there.

All three add a batch once, however often it is played again, and rewrite dates so that a reader sees them as they were
or as they are. `open_tables` opens them, `Tables.read` gives a DataFrame.
"""

from groupwright.pipeline.tables.errors import TablesError
from groupwright.pipeline.tables.opening import FORMATS, open_tables
from groupwright.pipeline.tables.protocol import Batch, Tables

__all__ = ["FORMATS", "Batch", "Tables", "TablesError", "open_tables"]
