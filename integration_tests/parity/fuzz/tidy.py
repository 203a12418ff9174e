"""Removal of nondeterminism from the trace of a random program.

The end of an asynchronous commit is not deterministic, so `on_commit` has a separate timeline, independent of
the consumer's other calls. A commit of an unknown partition is retried, by librdkafka for 0.3 s and by ours
for 0.2 s, and commits that are made meanwhile end first; so it comes last here. The number of automatic
commits at a short interval is not deterministic either, nor are the number of repeated errors, and the number
of rounds of a cooperative rebalance that change nothing for a member. So is the order of an error of one
partition and the messages of others. Scenarios check the order where applications may rely on it.

librdkafka pauses all partitions for a cooperative callback. It returns the ends of those that stay assigned
again within `fetch.wait.max.ms`; whether that is before the program's next step is not deterministic. Ours
does not return them again, which is a row of the table. So a repeated end counts only if a call or a
revocation made the partition start again.
"""

import re
from itertools import groupby, pairwise

from integration_tests.parity.trace import Block, Line, Trace

_STORED = "on_commit None "
_RETRIED = "on_commit UNKNOWN_TOPIC_OR_PART "
_REPEATED = ("error ", "on_assign nothing")
_ROUND = {"on_assign nothing", "incremental_assign([]) = None", "pause([]) = None"}
"""Lines of a round of a cooperative rebalance that changes nothing."""
_RAISED = "poll raises ValueError"
"""What follows them where on_assign raises."""
_RESTARTS_ALL = re.compile(r"(assign|unassign|unsubscribe)\(.*\) = None")
"""Calls after which each partition's end is returned again."""
_RESTARTS = re.compile(r"(seek|resume|incremental_(un)?assign)\(.*\) = None|on_(revoke|lost) ")
"""Lines after which the end of each partition that they name is returned again; `resume` has no effect on a
partition that was not paused."""
_PAUSES = re.compile(r"pause\(.*\) = None")
_NAMED = re.compile(r"(\w+)\[(\d+)(?:\.\.(\d+))?\]")


def tidy(trace: Trace, *, often: bool, cooperative: bool) -> None:
    """Move on_commit to separate timelines, and join blocks split by timing.

    Args:
        trace: The trace; it is changed.
        often: Whether automatic commits have a short interval. Successful ones are then removed, and repeated
            failures; the stored offsets are still compared.
        cooperative: Whether to remove rounds that change nothing.
    """
    for name, lines in list(trace.timelines.items()):
        commits = [line for line in lines if _is_commit(line)]
        if commits:
            trace.timelines[f"{name} on_commit"] = _tidy_commits(commits, often=often)
        kept = [line for line in lines if not _is_commit(line)]
        if cooperative:
            kept = _without_rounds(kept)
        trace.timelines[name] = _joined(_errors_last(_without_repeats(kept)))


def _without_rounds(lines: list[Line | Block]) -> list[Line | Block]:
    """Leave rounds out that change nothing, and what on_assign has raised in them."""
    kept: list[Line | Block] = []
    in_round = False
    for line in lines:
        raised, in_round = in_round and line.text == _RAISED, line.text in _ROUND
        if not (in_round or raised):
            kept.append(line)
    return kept


def _is_commit(line: Line | Block) -> bool:
    return isinstance(line, Line) and line.text.startswith("on_commit ")


def _tidy_commits(lines: list[Line | Block], *, often: bool) -> list[Line | Block]:
    ordered = sorted(lines, key=lambda line: line.text.startswith(_RETRIED))
    if not often:
        return ordered
    failed = [line for line in ordered if not line.text.startswith(_STORED)]
    return [next(same) for _, same in groupby(failed, key=lambda line: line.text)]


def _without_repeats(lines: list[Line | Block]) -> list[Line | Block]:
    """Leave ends out that were returned before, unless the partition has started again or had messages."""
    kept: list[Line | Block] = []
    ends: dict[str, int | str] = {}
    paused: set[str] = set()
    for line in lines:
        if isinstance(line, Block):
            offsets = {partition: _news(partition, of, ends) for partition, of in line.offsets.items()}
            line = Block({partition: of for partition, of in offsets.items() if of})  # noqa: PLW2901 - the same, shorter
            if not line.offsets:
                continue
        elif _RESTARTS_ALL.match(line.text):
            ends.clear()
        elif _RESTARTS.match(line.text):
            restarted = set(_partitions(line.text))
            if line.text.startswith("resume("):
                restarted &= paused
                paused -= restarted
            for partition in restarted:
                ends.pop(partition, None)
        elif _PAUSES.match(line.text):
            paused.update(_partitions(line.text))
        kept.append(line)
    return kept


def _partitions(text: str) -> list[str]:
    """Return the partitions that a line names, as ``t1[0]`` or ``t1[0..2]``."""
    return [
        f"{topic}[{number}]"
        for topic, first, last in _NAMED.findall(text)
        for number in range(int(first), int(last or first) + 1)
    ]


def _news(partition: str, offsets: list[int | str], ends: dict[str, int | str]) -> list[int | str]:
    kept = []
    for offset in offsets:
        if isinstance(offset, int):
            ends.pop(partition, None)
        elif ends.get(partition) == offset:
            continue
        else:
            ends[partition] = offset
        kept.append(offset)
    return kept


def _errors_last(lines: list[Line | Block]) -> list[Line | Block]:
    """Move errors behind the messages of other partitions that came with them."""
    moved: list[Line | Block] = []
    for together, group in groupby(lines, key=lambda line: isinstance(line, Block) or _is_error(line)):
        found = list(group)
        moved += sorted(found, key=_is_error) if together else found
    return moved


def _is_error(line: Line | Block) -> bool:
    return isinstance(line, Line) and line.text.startswith("error ")


def _joined(lines: list[Line | Block]) -> list[Line | Block]:
    """Join adjacent blocks of messages, and remove repeated lines."""
    joined: list[Line | Block] = []
    for line in lines:
        last = joined[-1] if joined else None
        if isinstance(last, Block) and isinstance(line, Block):
            for partition, offsets in line.offsets.items():
                last.offsets.setdefault(partition, []).extend(offsets)
        elif not (last is not None and line.text.startswith(_REPEATED) and line.text == last.text):
            joined.append(line)
    return [_without_passing_ends(line) if isinstance(line, Block) else line for line in joined]


def _without_passing_ends(block: Block) -> Block:
    """Leave out ends that messages follow: those may have been produced before the end was reached."""
    offsets = {
        partition: [
            one for one, other in pairwise([*of, ""]) if isinstance(one, int) or isinstance(other, str)
        ]
        for partition, of in block.offsets.items()
    }
    return Block(offsets)
