"""Our consumer does what confluent-kafka's does: each scenario on both, and each difference in the table."""

import fnmatch
from collections.abc import Iterable, Iterator

import pytest

from integration_tests.parity.compare import Comparison
from integration_tests.parity.lanes import Lanes, request_of, shared_broker
from integration_tests.parity.scenarios import all_scenarios
from integration_tests.parity.table import ROWS, Row

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]

_ATTEMPTS = 10
"""Comparisons of a row's scenarios before the row is said to be stale: runs of the original differ."""


class Comparisons:
    """Comparisons of scenarios, which are made side by side, ahead of the tests."""

    def __init__(self, lanes: Lanes, names: Iterable[str]) -> None:
        self._lanes = lanes
        self._requests = {name: request_of(found) for name, found in all_scenarios().items()}
        self._begun = {name: lanes.submit(self._requests[name]) for name in names}
        self._confirmed: dict[tuple[str, int], Comparison] = {}

    def of(self, name: str, attempt: int = 0) -> Comparison:
        """Return a comparison; a difference counts if it shows again with nothing running beside it."""
        if (name, attempt) not in self._confirmed:
            begun = self._begun.pop(name, None) or self._lanes.submit(self._requests[name])
            self._confirmed[name, attempt] = self._lanes.confirm(self._requests[name], begun.result())
        return self._confirmed[name, attempt]


@pytest.fixture(scope="module")
def comparisons(request: pytest.FixtureRequest) -> Iterator[Comparisons]:
    """The comparison of every scenario that was selected."""
    wanted: list[str] = [
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_both_do_the_same
    ]
    # Scenarios mostly wait, most of all those that break their Kafka: with as many lanes, two cores are not
    # always busy.
    with shared_broker() as broker, Lanes(broker, 8, breaking=5) as lanes:
        yield Comparisons(lanes, wanted)


@pytest.mark.parametrize("name", all_scenarios())
def test_both_do_the_same(name: str, comparisons: Comparisons) -> None:
    found = comparisons.of(name)
    shown = "\n".join(map(str, found.unexplained))
    assert found.good, (
        f"{all_scenarios()[name].story}\n\noriginal (-) and ours (+), after {found.runs} runs:\n{shown}"
    )


def test_each_scenario_tells_its_story() -> None:
    assert [name for name, found in all_scenarios().items() if not found.story] == []


@pytest.mark.parametrize("row", [row for row in ROWS if not row.by_chance], ids=lambda row: row.name)
def test_a_row_is_shown_by_one_of_its_scenarios(row: Row, comparisons: Comparisons) -> None:
    names = [name for name in all_scenarios() if row.covers(name)]
    found = (comparisons.of(name, attempt) for attempt in range(_ATTEMPTS) for name in names)
    assert any(row.name in comparison.rows for comparison in found)


def test_rows_name_scenarios_that_exist_and_each_once() -> None:
    patterns = [(row.name, pattern) for row in ROWS for pattern in row.scenarios]
    assert [pattern for _, pattern in patterns if not fnmatch.filter(all_scenarios(), pattern)] == []
    assert len(set(patterns)) == len(patterns)
