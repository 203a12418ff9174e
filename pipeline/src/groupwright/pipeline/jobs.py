"""The jobs that write the tables: `run_stream` follows the cluster, `run_batch` ends at a time or offsets.

`read_history` reads the tables for reports and what-if studies.
"""

from groupwright.pipeline._jobs.batch import Progress, run_batch
from groupwright.pipeline._jobs.kafka import CONNECTOR
from groupwright.pipeline._jobs.reading import read_history
from groupwright.pipeline._jobs.session import FEW_ROWS, cluster_session, local_session, settings_for
from groupwright.pipeline._jobs.settings import SETTINGS, Settings, settings_from
from groupwright.pipeline._jobs.stream import run_stream
from groupwright.pipeline._tables.factory import FORMAT_JARS

__all__ = [
    "CONNECTOR",
    "FEW_ROWS",
    "FORMAT_JARS",
    "SETTINGS",
    "Progress",
    "Settings",
    "cluster_session",
    "local_session",
    "read_history",
    "run_batch",
    "run_stream",
    "settings_for",
    "settings_from",
]
