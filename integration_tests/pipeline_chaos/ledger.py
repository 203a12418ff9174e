"""Ledger of produced records, and the check of the tables against it. The check is pure.

It counts the rows of each record, and no member owns a partition: no rule of `testing.groups` applies.
"""

import dataclasses
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Event:
    """An acknowledged event.

    Attributes:
        id: Its unique id.
        incarnation: Number of the topic's creations before its own.
        partition: Its partition.
        offset: Its offset.
    """

    id: str
    incarnation: int
    partition: int
    offset: int


@dataclass(frozen=True, slots=True)
class Unfinished:
    """A range of a batch that was unfinished when its record in `_state` was deleted: it may be added again.

    Attributes:
        incarnation: As of `Event`; None for `__consumer_offsets`.
        partition: The partition.
        start: The first offset.
        end: The offset after the last one.
    """

    incarnation: int | None
    partition: int
    start: int
    end: int


@dataclass(slots=True)
class Ledger:
    """Records that were sent to the cluster.

    Attributes:
        events: The acknowledged events.
        commits: The acknowledged commits: group, partition, offset.
        hidden: Ids of events and commits of aborted transactions, which no table may have.
        uncertain: Ids of records whose delivery or commit failed: they may exist or not.
        topic_ids: The events topic's id by incarnation.
        unfinished: Ranges of batches that were deleted with `_state`.
    """

    events: list[Event] = field(default_factory=list)
    commits: list[tuple[str, int, int]] = field(default_factory=list)
    hidden: set[object] = field(default_factory=set)
    uncertain: set[object] = field(default_factory=set)
    topic_ids: list[str] = field(default_factory=list)
    unfinished: list[Unfinished] = field(default_factory=list)

    def as_json(self) -> str:
        """Return the ledger as JSON. Its sets have ids of events, which are texts, and commits."""
        return json.dumps(dataclasses.asdict(self), default=lambda ids: sorted(ids, key=str))

    def max_rows(self, incarnation: int | None, partition: int, offset: int) -> int:
        """Return how many rows a record may have: one, and one more for each deleted batch that has it."""
        return 1 + sum(
            (each.incarnation, each.partition) == (incarnation, partition) and each.start <= offset < each.end
            for each in self.unfinished
        )


@dataclass(frozen=True, slots=True)
class Found:
    """Rows of the tables.

    Attributes:
        events: Ids of events.
        commits: Commits: group, partition, offset.
        commit_records: Where the commits' records are in the log: partition and offset.
        quarantined: Number of quarantined records.
    """

    events: Sequence[str]
    commits: Sequence[tuple[str, int, int]]
    commit_records: Sequence[tuple[int, int]]
    quarantined: int = 0


@dataclass(slots=True)
class Findings:
    """The result of a check.

    Attributes:
        violations: What must not be, as sentences.
        explained: Number of missing events that a sentence of the job explains, by that sentence.
        repeated: Number of records of deleted unfinished batches that were added again.
    """

    violations: list[str] = field(default_factory=list)
    explained: Counter[str] = field(default_factory=Counter)
    repeated: int = 0


_RECREATED = re.compile(
    r"was deleted and created again: its topic id is \S+ and was (?P<id>\S+), and the tables have read the "
    r"former topic up to offset \(partition\) (?P<offsets>[0-9 (),]*)"
)
_OFFSET = re.compile(r"(\d+) \((\d+)\)")


def stated_losses(output: str) -> dict[str, tuple[str, dict[int, int]]]:
    """Return the last sentence about each lost topic, by topic id, and the positions that it states."""
    found: dict[str, tuple[str, dict[int, int]]] = {}
    for match in _RECREATED.finditer(output):
        offsets = {int(partition): int(offset) for offset, partition in _OFFSET.findall(match["offsets"])}
        found[match["id"]] = (match[0].strip(), offsets)
    return found


def check(ledger: Ledger, found: Found, output: str) -> Findings:
    """Check the tables against the ledger.

    Args:
        ledger: The records that were sent.
        found: The rows of the tables.
        output: Output of all jobs, which has the sentences about lost records.
    """
    findings = Findings()
    there = Counter(found.events)
    losses = stated_losses(output)
    for event in ledger.events:
        if there[event.id]:
            continue
        sentence, read = losses.get(ledger.topic_ids[event.incarnation], ("", {}))
        if sentence and event.offset >= read.get(event.partition, 0):
            findings.explained[sentence] += 1
        else:
            findings.violations.append(f"{event} is in no table, and no sentence says so")
    _check_rows(ledger, there, Counter(found.commit_records), findings)
    sent = {event.id for event in ledger.events}
    findings.violations += _surplus("event", there, sent, ledger)
    commits, acknowledged = Counter(found.commits), set(ledger.commits)
    findings.violations += [
        f"commit {commit} is in no table" for commit in ledger.commits if not commits[commit]
    ]
    # A commit that librdkafka retried is two records.
    findings.violations += _surplus("commit", commits, acknowledged, ledger)
    if found.quarantined:
        findings.violations.append(f"{found.quarantined} records are in quarantine")
    return findings


def _check_rows(
    ledger: Ledger,
    events: Mapping[str, int],
    commit_records: Mapping[tuple[int, int], int],
    findings: Findings,
) -> None:
    """Find the records with too many rows, from the number of rows of each event and each commit's record."""
    places = {each.id: (each.incarnation, each.partition, each.offset) for each in ledger.events}
    for id_, number in events.items():
        # An uncertain event's offset is unknown.
        most = ledger.max_rows(*places[id_]) if id_ in places else 1 + len(ledger.unfinished)
        if number > most:
            findings.violations.append(f"event {id_} has {number} rows")
        findings.repeated += number > 1
    for place, number in commit_records.items():
        if number > ledger.max_rows(None, *place):
            findings.violations.append(f"the record {place} of __consumer_offsets has {number} rows")
        findings.repeated += number > 1


def _surplus(what: str, there: Collection[object], sent: Collection[object], ledger: Ledger) -> list[str]:
    lines: list[str] = []
    for each in there:
        if each in ledger.hidden:
            lines.append(f"{what} {each} is in the tables, and its transaction was aborted")
        elif each not in sent and each not in ledger.uncertain:
            lines.append(f"{what} {each} is in the tables, and was never sent")
    return lines
