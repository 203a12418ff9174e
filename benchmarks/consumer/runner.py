"""Runs the cells: rivals in turn, again and again, so that what slows the machine slows them alike."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.consumer import measures
from benchmarks.consumer.broker import fill, new_broker, steady_load
from benchmarks.consumer.contestants import Client
from benchmarks.consumer.measures import Place
from benchmarks.consumer.plan import (
    CHECKED,
    DEFAULT_FETCHERS,
    FETCHERS,
    FILLED_PARTITIONS,
    FREEZE,
    GROUPWRIGHT,
    IDLERS,
    JAVA,
    JOIN_PARTITIONS,
    LOAD_CHECK_MEMBERS,
    LOAD_INTERVALS,
    UNSTALLED,
    Cell,
    Contestant,
    Effort,
    MemberChange,
    rounds_of,
)
from benchmarks.consumer.processes import RunFailedError
from benchmarks.consumer.results import FetchRun, Outcome, Outcomes, Results, Run, Status
from groupwright.testing import LocalKafka

Progress = Callable[[str, int], None]
"""Called with what is next, and how many runs are done."""

_WAITER = Contestant(GROUPWRIGHT)


@dataclass
class Bench:
    """Resources of the cells.

    Attributes:
        clients: By name.
        effort: How much is done.
        cells: The names of those that are wanted.
        progress: Called before each step.
    """

    clients: dict[str, Client]
    effort: Effort
    cells: Sequence[str]
    progress: Progress
    _done: int = 0

    @property
    def runs(self) -> int:
        """Maximum number of runs."""
        effort = self.effort
        changes = {each.cell: effort.group_rounds * len(each.contestants) for each in effort.member_changes}
        runs = {
            Cell.THROUGHPUT: sum(rounds_of(each, effort) for each in FETCHERS),
            Cell.FROZEN: effort.frozen_rounds * len(DEFAULT_FETCHERS),
            Cell.DEFAULTS: effort.default_rounds * len(DEFAULT_FETCHERS),
            Cell.LOAD_CHECK: effort.group_rounds,
            Cell.EVENT: 1,
            Cell.IDLE: effort.idles * len(IDLERS),
            **changes,
        }
        return sum(number for cell, number in runs.items() if cell in self.cells)

    def run(self, results: Results) -> None:
        """Run the cells on a broker of their own, and put into the results what is found, as it is found.

        Raises:
            GroupwrightError: The broker does not start.
            RunFailedError: The load does not begin.
            TimeoutError: The broker does not take the messages.
        """
        self.progress("starting the broker", 0)
        with new_broker() as broker:
            place = Place(broker.bootstrap_servers)
            broker.create_topic(place.calm, FILLED_PARTITIONS)
            broker.create_topic(place.led)
            if {Cell.THROUGHPUT, Cell.FROZEN, Cell.DEFAULTS} & set(self.cells):
                self.progress("filling the topic", 0)
                fill(broker, place.filled, FILLED_PARTITIONS, self.effort.messages)
            effort = self.effort
            if Cell.THROUGHPUT in self.cells:
                rounds = {each: rounds_of(each, effort) for each in FETCHERS}
                self._fetch(place, Cell.THROUGHPUT, results.throughput, rounds, UNSTALLED)
            if Cell.FROZEN in self.cells:
                rounds = dict.fromkeys(DEFAULT_FETCHERS, effort.frozen_rounds)
                self._fetch(place, Cell.FROZEN, results.frozen, rounds, UNSTALLED | FREEZE)
            if Cell.DEFAULTS in self.cells:
                rounds = dict.fromkeys(DEFAULT_FETCHERS, effort.default_rounds)
                self._fetch(place, Cell.DEFAULTS, results.defaults, rounds, {})
            self._run_under_load(broker, place, results)
            if Cell.EVENT in self.cells:
                self._wait_for_events(place, results)
            if Cell.IDLE in self.cells:
                self._idle(place, results)

    def _run_under_load(self, broker: LocalKafka, place: Place, results: Results) -> None:
        changes = [each for each in self.effort.member_changes if each.cell in self.cells]
        load = self.clients[JAVA]
        lacks = f"a load, which is Java's: {load.absent}"
        for change in changes:
            if load.absent:
                results.member_changes[change.cell] = {
                    each.name: Outcome(Status.LACKING, lacks) for each in change.contestants
                }
                continue
            topic = f"loaded-{change.kind}-{change.size}"
            with steady_load(load.load, broker, topic, JOIN_PARTITIONS, LOAD_INTERVALS[change.size]):
                self._change_members(place, change, topic, results)
        if Cell.LOAD_CHECK in self.cells:
            if load.absent:
                results.load_checks[CHECKED.name] = Outcome(Status.LACKING, lacks)
                return
            topic, interval = "checked", LOAD_INTERVALS[LOAD_CHECK_MEMBERS]
            with steady_load(load.load, broker, topic, JOIN_PARTITIONS, interval):
                self._check_load(place, topic, results)

    def _fetch(
        self,
        place: Place,
        cell: Cell,
        outcomes: Outcomes[FetchRun],
        rounds: Mapping[Contestant, int],
        settings: Mapping[str, object],
    ) -> None:
        for turn in range(max(rounds.values())):
            for each, wanted in rounds.items():
                if turn < wanted:
                    client = self.clients[each.client]
                    measure = partial(measures.fetch, place, each, client, self.effort, settings)
                    self._run(cell, each, outcomes, measure)

    def _change_members(self, place: Place, change: MemberChange, topic: str, results: Results) -> None:
        outcomes = results.member_changes.setdefault(change.cell, {})
        for _ in range(self.effort.group_rounds):
            for each in change.contestants:
                client = self.clients[each.client]
                measure = partial(measures.change_members, place, each, client, change, topic)
                self._run(change.cell, each, outcomes, measure)

    def _check_load(self, place: Place, topic: str, results: Results) -> None:
        measure = partial(measures.check_load, place, CHECKED, self.clients[GROUPWRIGHT], topic)
        for _ in range(self.effort.group_rounds):
            self._run(Cell.LOAD_CHECK, CHECKED, results.load_checks, measure)

    def _wait_for_events(self, place: Place, results: Results) -> None:
        measure = partial(measures.wait_for_events, place, _WAITER, self.effort)
        self._run(Cell.EVENT, _WAITER, results.events, measure)

    def _idle(self, place: Place, results: Results) -> None:
        for _ in range(self.effort.idles):
            for each in IDLERS:
                self._run(Cell.IDLE, each, results.idle, partial(measures.idle, place, each, self.effort))

    def _run(
        self, cell: str, contestant: Contestant, outcomes: Outcomes[Run], measure: Callable[[], Run]
    ) -> None:
        """Add a run to the contestant's outcome, or note why it failed.

        Who lacks something, or does not come back, is not asked again.
        """
        self.progress(f"{cell} {contestant.name}", self._done)
        self._done += 1
        outcome = outcomes.setdefault(contestant.name, Outcome())
        absent = self.clients[contestant.client].absent
        if absent:
            outcome.status, outcome.note = Status.LACKING, absent
        if outcome.status in {Status.LACKING, Status.TIMEOUT}:
            return
        try:
            outcome.runs.append(measure())
        except RunFailedError as error:
            outcome.status, outcome.note = error.status, error.note
