"""Takes out of a random program's trace what is left to chance.

When an asynchronous commit has ended is chance, so `on_commit` has a timeline of its own, in its own order: no line of a
consumer's other calls hangs on it. How often an automatic commit at a short interval was made, and how often an error was
repeated, is chance too; and how many rounds of a cooperative rebalance change nothing for a member, and whether the end of a
partition that it keeps is told again after each. Scenarios hold the order where an application may rely on it.
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
    """Give on_commit its own timelines, and merge what the time has cut in pieces.

    Args:
        trace: The trace; it is changed.
        often: Whether automatic commits came at a short interval, so that those that succeeded are left out: what they
            have stored is compared.
        cooperative: Whether rounds that change nothing are left out.
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
    """Join blocks of messages that follow each other now, and leave out lines that are repeated."""
    joined: list[Line | Block] = []
    for line in lines:
        last = joined[-1] if joined else None
        if isinstance(last, Block) and isinstance(line, Block):
            for partition, offsets in line.offsets.items():
                last.offsets.setdefault(partition, []).extend(offsets)
        elif not (last is not None and line.text.startswith(_REPEATED) and line.text == last.text):
            joined.append(line)
    return joined
