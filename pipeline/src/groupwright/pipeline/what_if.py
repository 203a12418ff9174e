"""What-if studies: the groups' recorded history, replayed with other assignors.

- `run_what_if` replays the generations in the tables, group by group, with any assignors.
- `compare` aggregates the result by group and assignor; `findings` summarizes it in sentences.
- `WHAT_IF_GENERATIONS` and `WHAT_IF` describe the tables that these two return.
"""

from groupwright.pipeline._what_if.frames import compare, run_what_if
from groupwright.pipeline._what_if.replay import ACTUAL
from groupwright.pipeline._what_if.summary import findings
from groupwright.pipeline._what_if.tables import WHAT_IF, WHAT_IF_GENERATIONS

__all__ = ["ACTUAL", "WHAT_IF", "WHAT_IF_GENERATIONS", "compare", "findings", "run_what_if"]
