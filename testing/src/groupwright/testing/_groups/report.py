"""Checks of a group's guarantees: one owner a partition, no message lost, no unexplained duplicates. Pure."""

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from groupwright.core import TopicPartitionKey
from groupwright.testing._groups.events import Consumed, Event, Produced
from groupwright.testing._groups.judge import Judge, in_order
from groupwright.testing._groups.member_history import End, MemberHistory, Window
from groupwright.testing._groups.offsets import OffsetMap, Span
from groupwright.testing._groups.rules import Breach, Rule
from groupwright.testing.errors import GuaranteeViolatedError

ANY_END = frozenset(End)
"""Allows duplicates of uncommitted messages after every change of owner: at-least-once delivery."""
_GRACE_SECONDS = 2.0
"""Time in seconds for a member to learn after a fault that it has lost its partitions."""
_LISTED = 20
"""Violations in an error message."""
_SHOWN = 3
"""Examples in a text."""


@dataclass(frozen=True, slots=True)
class Redelivery:
    """Offsets that were consumed a second time.

    Attributes:
        span: The offsets.
        before: The member that had consumed them.
        again: The member that consumed them now.
    """

    span: Span
    before: str
    again: str

    def __str__(self) -> str:
        """Return the offsets and both members."""
        return f"{self.span}: by {self.before} and again by {self.again}"


@dataclass(frozen=True, slots=True)
class Report:
    """Result of a check of the guarantees of a consumer group.

    Attributes:
        produced: Messages that brokers acknowledged to the producer.
        consumed: Deliveries; a message that was consumed twice counts twice.
        conflicts: Partitions with two owners at a time, as text.
        strays: Messages that a member consumed without owning their partition, as text.
        lost: Messages that were produced and consumed by no member.
        unconsumed: Messages at the end of a partition that were not consumed within `waited` seconds; not in
            `lost`.
        foreign: Messages that were consumed and not produced by this group's producer; not a violation.
        explained: Messages consumed twice after an allowed change of owner.
        unexplained: Messages consumed twice otherwise.
        waited: Time in seconds after the last message was produced, if consumption did not end in it.
        disordered: Messages that an owner consumed after later ones of the partition, and that were not
            consumed before, as text.
    """

    produced: int
    consumed: int
    conflicts: tuple[str, ...]
    strays: tuple[str, ...]
    lost: tuple[Span, ...]
    foreign: tuple[Span, ...]
    explained: tuple[Redelivery, ...]
    unexplained: tuple[Redelivery, ...]
    unconsumed: tuple[Span, ...] = ()
    waited: float = 0.0
    disordered: tuple[str, ...] = ()

    @property
    def violations(self) -> list[str]:
        """Each violation of a guarantee, as text."""
        return [
            *(f"two owners: {each}" for each in self.conflicts),
            *(f"not owned: {each}" for each in self.strays),
            *(f"lost: {each}" for each in self.lost),
            *(
                f"not consumed within {self.waited:g} s: {size} messages at the end of {topic} [{number}]"
                for (topic, number), size in _sizes(self.unconsumed).items()
            ),
            *(f"consumed twice: {each}" for each in self.unexplained),
            *(f"out of order: {each}" for each in self.disordered),
        ]

    def raise_for_violations(self) -> None:
        """Raise if a guarantee was violated.

        Raises:
            GuaranteeViolatedError: A guarantee was violated; the message lists up to 20 violations.
        """
        if violations := self.violations:
            unlisted = len(violations) - _LISTED
            more = f"\n(and {unlisted} more)" if unlisted > 0 else ""
            raise GuaranteeViolatedError("\n".join(violations[:_LISTED]) + more)


def examples(things: Sequence[object]) -> str:
    """Return the first three things as text in parentheses; empty for none."""
    if not things:
        return ""
    shown = "; ".join(map(str, things[:_SHOWN]))
    return f" ({shown}{'; ...' if len(things) > _SHOWN else ''})"


def check(
    histories: Mapping[str, Sequence[Event]],
    produced: Iterable[Event],
    duplicates_after: Collection[End] = frozenset({End.KILLED, End.LOST}),
    *,
    waited: float | None = None,
) -> Report:
    """Check histories against the guarantees of a consumer group.

    Args:
        histories: The events of each member, by its name.
        produced: The events of the producer.
        duplicates_after: The ends of ownership after which uncommitted messages may be consumed again.
        waited: Time in seconds that the members had for the last messages, if it was too short for them. What
            they have not consumed at the end of a partition is then reported as unconsumed, not as lost.
    """
    judge = Judge()
    breaches: defaultdict[Rule, list[Breach]] = defaultdict(list)
    for name, event in in_order(histories):
        for breach in judge.apply(name, event):
            breaches[breach.rule].append(breach)
    produced_offsets = _offset_maps(_spans(produced))
    consumed = [span for events in histories.values() for span in _spans(events)]
    consumed_offsets = _offset_maps(consumed)
    explained, unexplained = _redeliveries(breaches[Rule.CONSUMED_TWICE], judge.members, duplicates_after)
    missing = difference(produced_offsets, consumed_offsets)
    tails = () if waited is None else tuple(span for span in missing if _is_tail(span, consumed_offsets))
    return Report(
        produced=sum(each.size for each in produced_offsets.values()),
        consumed=sum(span.size for span in consumed),
        conflicts=tuple(_conflicts(breaches[Rule.TWO_OWNERS], judge.members)),
        strays=tuple(
            f"{each.member} consumed {each.span}, at {each.time:.3f}"
            for each in breaches[Rule.NOT_OWNED]
            if each.span.size
        ),
        lost=tuple(span for span in missing if span not in tails),
        foreign=difference(consumed_offsets, produced_offsets),
        explained=tuple(explained),
        unexplained=tuple(unexplained),
        unconsumed=tails,
        waited=waited or 0.0,
        disordered=tuple(_disordered(breaches[Rule.WENT_BACK], breaches[Rule.CONSUMED_TWICE])),
    )


def _spans(events: Iterable[Event]) -> Iterator[Span]:
    for event in events:
        if isinstance(event, Consumed | Produced):
            yield from event.spans


def _sizes(spans: Iterable[Span]) -> Counter[TopicPartitionKey]:
    """Return the number of messages by partition."""
    sizes: Counter[TopicPartitionKey] = Counter()
    for span in spans:
        sizes[span.topic, span.partition] += span.size
    return sizes


def _is_tail(span: Span, consumed: Mapping[TopicPartitionKey, OffsetMap[None]]) -> bool:
    """Return whether no message after the span was consumed.

    The last messages may be several spans: transaction markers and other producers' messages separate them.
    """
    offsets = consumed.get((span.topic, span.partition))
    return offsets is None or offsets.end <= span.start


def _conflicts(breaches: Iterable[Breach], members: Mapping[str, MemberHistory]) -> Iterator[str]:
    """Yield each two windows of a partition that overlap without a fault that allows it."""
    for breach in breaches:
        earlier, later = breach.other, breach.window
        if earlier and later and earlier.end > later.begin and not _may_overlap(earlier, later, members):
            yield f"{later}, while {earlier}"


def _may_overlap(earlier: Window, later: Window, members: Mapping[str, MemberHistory]) -> bool:
    """Return whether the earlier member could not know that its partition had been reassigned.

    A member that was suspended in on_revoke had been called in time.
    """
    if earlier.ended_by is End.REVOKED and earlier.revoking > later.begin:
        return False
    return any(
        begin <= later.begin <= end + _GRACE_SECONDS and earlier.end <= end + _GRACE_SECONDS
        for begin, end in members[earlier.member].faults
    )


def _redeliveries(
    breaches: Iterable[Breach], members: Mapping[str, MemberHistory], duplicates_after: Collection[End]
) -> tuple[list[Redelivery], list[Redelivery]]:
    """Return the explained and the unexplained redeliveries.

    Offsets that were consumed before are split in two: those below `explained_from` are unexplained.
    """
    explained: list[Redelivery] = []
    unexplained: list[Redelivery] = []
    for breach in breaches:
        before, again = breach.other, breach.window
        if before is None or again is None:
            continue
        first, second = sorted((before, again), key=lambda each: each.begin)
        if first is not second and first.end > second.begin and _may_overlap(first, second, members):
            explained_from = breach.start
        elif before.end <= again.begin and before.ended_by in duplicates_after:
            # What the earlier member had committed must not be consumed again, even after a kill.
            explained_from = min(max(breach.start, before.committed), breach.stop)
        else:
            explained_from = breach.stop
        for found, start, stop in (
            (unexplained, breach.start, explained_from),
            (explained, explained_from, breach.stop),
        ):
            if start < stop:
                found.append(Redelivery(Span(*breach.partition, start, stop), before.member, again.member))
    return explained, unexplained


def _disordered(went_back: Iterable[Breach], consumed_twice: Iterable[Breach]) -> Iterator[str]:
    """Yield what an owner consumed after later messages, and nobody before."""
    twice: defaultdict[tuple[Window | None, float], OffsetMap[None]] = defaultdict(OffsetMap)
    for breach in consumed_twice:
        twice[breach.window, breach.time].put(breach.start, breach.stop, None)
    for breach in went_back:
        back: OffsetMap[None] = OffsetMap()
        back.put(breach.start, breach.stop, None)
        for start, stop in back.without(twice[breach.window, breach.time]):
            span = Span(*breach.partition, start, stop)
            yield f"{breach.member} consumed {span}, after offset {breach.expected - 1}"


def _offset_maps(spans: Iterable[Span]) -> dict[TopicPartitionKey, OffsetMap[None]]:
    found: defaultdict[TopicPartitionKey, OffsetMap[None]] = defaultdict(OffsetMap)
    for span in spans:
        found[span.topic, span.partition].put(span.start, span.stop, None)
    return dict(found)


def difference(
    held: Mapping[TopicPartitionKey, OffsetMap[None]], other: Mapping[TopicPartitionKey, OffsetMap[None]]
) -> tuple[Span, ...]:
    """Return the offsets in `held` that are not in `other`."""
    nothing: OffsetMap[None] = OffsetMap()
    return tuple(
        Span(*partition, start, stop)
        for partition in sorted(held)
        for start, stop in held[partition].without(other.get(partition, nothing))
    )
