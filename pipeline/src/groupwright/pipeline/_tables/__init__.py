"""Table storage: Delta tables in a folder, or Iceberg tables in a catalog.

Both write a batch once, however often it is replayed, and replace dates atomically for readers.
`open_tables` opens the tables, and `Tables.read` returns a DataFrame.
"""

from groupwright.pipeline._tables.factory import FORMATS, open_tables
from groupwright.pipeline._tables.kept import kept
from groupwright.pipeline._tables.protocol import Batch, Tables

__all__ = ["FORMATS", "Batch", "Tables", "kept", "open_tables"]
