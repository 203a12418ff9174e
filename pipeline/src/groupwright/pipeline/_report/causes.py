"""The chain of causes of a rebalance, in words."""

from collections.abc import Iterator, Sequence

from groupwright.pipeline._report.drawing import exact_seconds, legible, seconds, short
from groupwright.pipeline._report.group_facts import LagAfter, Loss, Rebalance

_MAX_NAMES = 3
"""Members that a sentence names; of more, it has the number."""
_NAME_LENGTH = 32
_IN_WORDS = {
    "subscription": "a member changed its subscription",
    "metadata": "a subscribed topic got more partitions",
    "handover": "a handover, whose rebalance is not in this range",
    "epoch": "the broker computed a new assignment",
    "unknown": "the cause is unknown: earlier generations are not in the tables",
}
"""Sentence by cause, where no member is named."""


def chain(rebalance: Rebalance) -> list[str]:
    """Return the links of the chain: the cause, the moves, the duration, and the consequences."""
    moves = [_moves(rebalance)] if rebalance.has_moves else []
    return [_in_words(rebalance), *moves, _time(rebalance), *_consequences(rebalance)]


def _in_words(rebalance: Rebalance) -> str:
    """Return the cause as a sentence."""
    match rebalance.cause:
        case "first":
            return f"{_names(rebalance, rebalance.joined, 'members')} started the group"
        case "leave" | "expiry":
            return _left(rebalance)
        case "join":
            return f"{_names(rebalance, rebalance.joined, 'members')} joined"
    return _IN_WORDS.get(rebalance.cause, _IN_WORDS["unknown"])


def _left(rebalance: Rebalance) -> str:
    """Return why members left, as their own events report it."""
    losses = {loss.client: loss for loss in reversed(rebalance.losses)}  # each client's first one
    removed = [id_ for id_ in rebalance.left if rebalance.clients.get(id_) in losses]
    others = [id_ for id_ in rebalance.left if id_ not in removed]
    parts = [_removed(rebalance, id_, losses[rebalance.clients[id_]]) for id_ in removed]
    if others:
        names = _names(rebalance, others, "members")
        parts.append(
            f"{names} left"
            if rebalance.has_events
            else f"{names} left or timed out (without client events it is unknown which)"
        )
    if rebalance.joined:
        parts.append(f"{_names(rebalance, rebalance.joined, 'members')} joined")
    return "; ".join(parts) or "a member left"


def _removed(rebalance: Rebalance, member: str, loss: Loss) -> str:
    """Return why a member was removed.

    A member that exceeds max.poll.interval.ms leaves when that time has passed since its last poll, and
    reports the loss when it polls again.
    """
    name = _name(rebalance, member)
    session, max_poll = rebalance.timeouts.get(member, (None, None))
    if "max.poll.interval" in (loss.reason or ""):
        began = rebalance.started or rebalance.completed
        late = max(0.0, (loss.reported - began).total_seconds())
        return (
            f"{name} did not poll within max.poll.interval.ms and was removed"
            if max_poll is None
            else f"{name} did not poll for {exact_seconds(max_poll + late)} (max.poll.interval.ms is "
            f"{exact_seconds(max_poll)}) and was removed"
        )
    timeout = "" if session is None else f" (session.timeout.ms is {exact_seconds(session)})"
    why = f": {short(loss.reason, 80)}" if loss.reason else ""
    return f"{name} was removed from the group{timeout}{why}"


def _moves(rebalance: Rebalance) -> str:
    moved, fewest = rebalance.moved, rebalance.fewest
    if moved is None:
        return "moves unknown"
    if not moved:
        return "no partition moved between members that stayed"
    needless = "" if fewest is None or moved <= fewest else f", {moved - fewest:,} of them needlessly"
    return f"{moved:,} partition{'' if moved == 1 else 's'} moved{needless}"


def _time(rebalance: Rebalance) -> str:
    rounds = f" in {1 + rebalance.handovers} rounds" if rebalance.handovers else ""
    if rebalance.duration is None:
        return f"duration unknown{rounds and f', {rounds.strip()}'}"
    return f"{seconds(rebalance.duration)} until every member had its partitions{rounds}"


def _consequences(rebalance: Rebalance) -> Iterator[str]:
    if rebalance.lag:
        yield _lag(rebalance.lag)
    if rebalance.reprocessed:
        yield f"{_messages(rebalance.reprocessed)} processed again"
    if rebalance.error:
        yield f"error: {short(rebalance.error, 120)}"


def _lag(lag: LagAfter) -> str:
    if lag.peak == lag.before and lag.is_back:
        return "the lag did not rise"
    took = exact_seconds(lag.seconds)
    if lag.is_back and not lag.before:
        return f"the lag rose to {_messages(lag.peak)}, and within {took} all was consumed"
    end = f"was back within {took}" if lag.is_back else f"was not back after {took}"
    return f"the lag rose from {lag.before:,} to {_messages(lag.peak)}, and {end}"


def _messages(number: int) -> str:
    return f"{number:,} message{'' if number == 1 else 's'}"


def _names(rebalance: Rebalance, members: Sequence[str], what: str) -> str:
    if not members:
        return f"unknown {what}"
    if len(members) > _MAX_NAMES:
        return f"{len(members):,} {what} ({_name(rebalance, members[0])}, …)"
    names = [_name(rebalance, member) for member in members]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _name(rebalance: Rebalance, member: str) -> str:
    return short(legible(rebalance.clients.get(member) or member), _NAME_LENGTH)
