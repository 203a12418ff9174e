"""Removal of nondeterminism from the trace of a random program.

The end of an asynchronous commit is not deterministic, so `on_commit` has a separate timeline, independent of
the consumer's other calls. Neither are the number of automatic commits at a short interval, the number of
repeated errors, the number of rounds of a cooperative rebalance that change nothing for a member, and the
number of times that the end of a kept partition is returned again after them. Scenarios check the order where
applications may rely on it.
"""

from parity.trace import Block, Line, Trace

_STORED = "on_commit None "
_REPEATED = ("error ", "on_assign nothing")
_ROUND = {"on_assign nothing", "incremental_assign([]) = None", "pause([]) = None"}
"""Lines of a round of a cooperative rebalance that changes nothing."""
_RAISED = "poll raises ValueError"
"""What follows them where on_assign raises."""
_NO_CALLS = ("on_", "error ", "subscribe(", "incremental_assign(")


def tidy(trace: Trace, *, often: bool, cooperative: bool) -> None:
    """Move on_commit to separate timelines, and join blocks split by timing.

    Args:
        trace: The trace; it is changed.
        often: Whether automatic commits have a short interval. Successful ones are then removed; the stored
            offsets are still compared.
        cooperative: Whether to remove rounds that change nothing.
    """
    for name, lines in list(trace.timelines.items()):
        commits = [line for line in lines if _is_commit(line)]
        if commits:
            trace.timelines[f"{name} on_commit"] = [
                line for line in commits if not (often and _succeeded(line))
            ]
        kept = [line for line in lines if not _is_commit(line)]
        trace.timelines[name] = _joined(_told_once(_without_rounds(kept) if cooperative else kept))


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


def _succeeded(line: Line | Block) -> bool:
    return line.text.startswith(_STORED)


def _told_once(lines: list[Line | Block]) -> list[Line | Block]:
    """Leave the end of a partition out that was told already, and no message or call came in between."""
    kept: list[Line | Block] = []
    ends: dict[str, int | str] = {}
    for line in lines:
        if isinstance(line, Block):
            offsets = {partition: _news(partition, of, ends) for partition, of in line.offsets.items()}
            line = Block({partition: of for partition, of in offsets.items() if of})  # noqa: PLW2901 - the same, shorter
            if not line.offsets:
                continue
        elif not line.text.startswith(_NO_CALLS):
            ends.clear()
        kept.append(line)
    return kept


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
    return joined
