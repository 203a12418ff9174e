"""What other assignors would have done with the groups' history.

- `run_what_if` plays the generations in the tables again, group by group, with any assignors.
- `compare` sums up by group and assignor, and `findings` says it in sentences.
- `WHAT_IF_GENERATIONS` and `WHAT_IF` are the tables that these fill.
"""

from groupwright.pipeline.what_if.frames import compare, run_what_if
from groupwright.pipeline.what_if.play import IN_FACT
from groupwright.pipeline.what_if.sentences import findings
from groupwright.pipeline.what_if.tables import WHAT_IF, WHAT_IF_GENERATIONS

__all__ = ["IN_FACT", "WHAT_IF", "WHAT_IF_GENERATIONS", "compare", "findings", "run_what_if"]
