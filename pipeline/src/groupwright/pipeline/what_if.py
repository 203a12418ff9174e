"""What-if studies: the groups' recorded history, replayed with other assignors.

- `run_what_if` replays the generations in the tables, group by group, with any assignors; `topic_weights`
  returns the weights of partitions for it.
- `compare` aggregates the result by group and assignor; `findings` summarizes it in sentences.
- `ASSUMPTIONS` lists the assumptions of a study; `JAVA_ASSIGNORS` names the sticky assignors of Java.
- `WHAT_IF_GENERATIONS` and `WHAT_IF` describe the tables that `run_what_if` and `compare` return.
"""

from groupwright.pipeline._what_if.cost import ASSUMPTIONS
from groupwright.pipeline._what_if.frames import compare, run_what_if, topic_weights
from groupwright.pipeline._what_if.java_assignor import JAVA_ASSIGNORS
from groupwright.pipeline._what_if.replay import ACTUAL
from groupwright.pipeline._what_if.summary import findings
from groupwright.pipeline._what_if.tables import WHAT_IF, WHAT_IF_GENERATIONS

__all__ = [
    "ACTUAL",
    "ASSUMPTIONS",
    "JAVA_ASSIGNORS",
    "WHAT_IF",
    "WHAT_IF_GENERATIONS",
    "compare",
    "findings",
    "run_what_if",
    "topic_weights",
]
