"""Judges what was measured by what Groupwright set out to reach."""

from collections.abc import Callable, Iterator, Mapping
from statistics import median

from benchmarks.consumer.plan import (
    AIOKAFKA,
    CONFLUENT,
    COOPERATIVE,
    FETCHERS,
    GROUPWRIGHT,
    JAVA,
    KAFKA_PYTHON,
    LEAST_RATIO,
    LEAST_TIMES,
    MOST_EVENT_SECONDS,
    MOST_IDLE_TIMES,
    MOST_KEPT_WAIT_SECONDS,
    MOST_OBJECTS_MORE,
    MOST_RESIDENT_MORE,
    Cell,
    Contestant,
    MemberChange,
)
from benchmarks.consumer.results import AnyOutcome, FetchRun, IdleRun, Outcome, Outcomes, Results, Status
from benchmarks.layout import Finding


def findings_of(results: Results) -> list[Finding]:
    """Return what was to be reached in the cells that ran, and whether it was."""
    return [
        *_failures(results),
        *_beside_confluent(results.throughput),
        *_beside_confluent(results.frozen, " with a frozen heap"),
        *_beside_pure_python(results.throughput),
        *_joins(results),
        *_load_checks(results),
        *_events(results),
        *_idle(results),
    ]


def best_rate(outcome: Outcome[FetchRun] | None) -> float | None:
    """Return the messages a second of the fastest run, if there is one."""
    return max((run.rate for run in outcome.runs), default=None) if outcome else None


def median_rate(outcome: Outcome[FetchRun] | None) -> float | None:
    """Return the messages a second of the run in the middle, if there is one."""
    return median(run.rate for run in outcome.runs) if outcome and outcome.runs else None


def paired_ratio(outcome: Outcome[FetchRun] | None, other: Outcome[FetchRun] | None) -> float | None:
    """Return how many times the one's rate is the other's: the median over the turns, if there are any."""
    if not outcome or not other or not outcome.runs or not other.runs:
        return None
    return median(ours.rate / theirs.rate for ours, theirs in zip(outcome.runs, other.runs, strict=False))


def rival_of(contestant: str) -> str:
    """Return the name of what a way of Groupwright's, or of confluent-kafka's, is compared with."""
    return contestant.replace(GROUPWRIGHT, CONFLUENT)


def _best_of(client: str, outcomes: Outcomes[FetchRun]) -> tuple[float, str] | None:
    """Return the messages a second of a client's fastest way, and that way's name."""
    names = [each.name for each in FETCHERS if each.client == client]
    rates = [(rate, name) for name in names if (rate := best_rate(outcomes.get(name))) is not None]
    return max(rates, default=None)


def _failures(results: Results) -> Iterator[Finding]:
    cells: dict[str, Mapping[str, AnyOutcome]] = {
        Cell.THROUGHPUT: results.throughput,
        Cell.FROZEN: results.frozen,
        Cell.DEFAULTS: results.defaults,
        **results.member_changes,
        Cell.LOAD_CHECK: results.load_checks,
        Cell.EVENT: results.events,
        Cell.IDLE: results.idle,
    }
    for cell, outcomes in cells.items():
        for name, outcome in outcomes.items():
            if name.startswith(GROUPWRIGHT) and outcome.status is not Status.OK:
                yield Finding(f"{cell}: {name} {outcome.status}: {outcome.note}", reached=False)


def _beside_confluent(outcomes: Outcomes[FetchRun], condition: str = "") -> Iterator[Finding]:
    for way, least in LEAST_RATIO.items():
        ours, theirs = Contestant(GROUPWRIGHT, way).name, Contestant(CONFLUENT, way).name
        found = paired_ratio(outcomes.get(ours), outcomes.get(theirs))
        if found is not None:
            text = f"{ours} fetches {found:.2f} times what confluent-kafka does{condition}, wanted {least:g}"
            yield Finding(text, found >= least)


def _beside_pure_python(outcomes: Outcomes[FetchRun]) -> Iterator[Finding]:
    ours = _best_of(GROUPWRIGHT, outcomes)
    for client in (KAFKA_PYTHON, AIOKAFKA):
        theirs = _best_of(client, outcomes)
        if ours is not None and theirs is not None:
            found = ours[0] / theirs[0]
            text = f"{ours[1]} fetches {found:.1f} times what {theirs[1]} does, wanted {LEAST_TIMES:g}"
            yield Finding(text, found >= LEAST_TIMES)


def _joins(results: Results) -> Iterator[Finding]:
    ours, *others = (Contestant(client, COOPERATIVE).name for client in (GROUPWRIGHT, CONFLUENT, JAVA))
    for cell, outcomes in results.member_changes.items():
        if MemberChange.of(cell).kind is not Cell.JOIN:
            continue
        taken = {
            name: median(run.consumed for run in each.runs) for name, each in outcomes.items() if each.runs
        }
        for other in others:
            if ours in taken and other in taken:
                text = (
                    f"{cell}: all consumed after {taken[ours]:.2f} s, wanted at most "
                    f"{taken[other]:.2f} of {other}"
                )
                yield Finding(text, taken[ours] <= taken[other])


def _load_checks(results: Results) -> Iterator[Finding]:
    runs = [run for outcome in results.load_checks.values() for run in outcome.runs]
    if runs:
        before, kept = (
            median(waits) for waits in zip(*((r.before.longest, r.kept.longest) for r in runs), strict=True)
        )
        text = (
            f"load check: a message of a partition that stays waits {1000 * kept:.0f} ms at most, and "
            f"{1000 * before:.0f} ms before, wanted at most {1000 * MOST_KEPT_WAIT_SECONDS:.0f} ms more"
        )
        yield Finding(text, kept <= before + MOST_KEPT_WAIT_SECONDS)


def _events(results: Results) -> Iterator[Finding]:
    waits = [wait for outcome in results.events.values() for run in outcome.runs for wait in run.waits]
    if waits:
        text = (
            f"of {len(waits)} events the last to be delivered waited {1000 * max(waits):.1f} ms, "
            f"wanted {1000 * MOST_EVENT_SECONDS:.0f}"
        )
        yield Finding(text, max(waits) <= MOST_EVENT_SECONDS)


def _idle(results: Results) -> Iterator[Finding]:
    ours, theirs = (results.idle.get(client) for client in (GROUPWRIGHT, CONFLUENT))
    if not ours or not theirs or not ours.runs or not theirs.runs:
        return

    def medians(get: Callable[[IdleRun], float]) -> tuple[float, float]:
        return median(map(get, ours.runs)), median(map(get, theirs.runs))

    share, other = medians(lambda run: run.share)
    yield Finding(
        f"an idle member takes {share / other:.1f} times the processor time of confluent-kafka's, "
        f"wanted at most {MOST_IDLE_TIMES:g}",
        share <= MOST_IDLE_TIMES * other,
    )
    objects, others = medians(lambda run: run.objects)
    yield Finding(
        f"it has {objects - others:,.0f} objects more, wanted at most {MOST_OBJECTS_MORE:,}",
        objects - others <= MOST_OBJECTS_MORE,
    )
    resident, other = medians(lambda run: run.resident)
    yield Finding(
        f"it takes {(resident - other) / 1e6:.1f} MB of memory more, "
        f"wanted at most {MOST_RESIDENT_MORE / 1e6:g}",
        resident - other <= MOST_RESIDENT_MORE,
    )
