"""Tables of every consumer group's rebalances, lag and churn, made by Spark from `__consumer_offsets`.

- `open_tables` opens the tables; `groupwright.pipeline.schemas` describes them.
- `decode` turns raw records of `__consumer_offsets` into columns.
- `groupwright.pipeline.jobs` writes the tables, `groupwright.pipeline.main` does so under `spark-submit`.
- `groupwright.pipeline.what_if` replays the groups' history with other assignors.
- `groupwright.pipeline.report` writes an HTML page.
"""

from groupwright.pipeline._decoding import decode, decode_batch, decode_offset_commits
from groupwright.pipeline._tables import FORMATS, Batch, Tables, open_tables
from groupwright.pipeline.errors import PipelineError, TablesError

__all__ = [
    "FORMATS",
    "Batch",
    "PipelineError",
    "Tables",
    "TablesError",
    "decode",
    "decode_batch",
    "decode_offset_commits",
    "open_tables",
]
