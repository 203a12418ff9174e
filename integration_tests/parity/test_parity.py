"""Our consumer does what confluent-kafka's does: each scenario on both, and each difference in the table."""

import fnmatch
from collections.abc import Iterable, Iterator

import pytest

from parity.compare import Comparison
from parity.lanes import Lanes, request_of, shared_broker
from parity.scenarios import all_scenarios
from parity.table import ROWS, Row

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]


class Comparisons:
    """Comparisons of scenarios, which are made side by side, ahead of the tests."""

    def __init__(self, lanes: Lanes, names: Iterable[str]) -> None:
        self._lanes = lanes
        self._requests = {name: request_of(found) for name, found in all_scenarios().items()}
        self._begun = {name: lanes.submit(self._requests[name]) for name in names}
        self._confirmed: dict[str, Comparison] = {}

    def of(self, name: str) -> Comparison:
        """Return a comparison; a difference counts if it shows again with nothing running beside it."""
        if name not in self._confirmed:
            begun = self._begun.get(name) or self._lanes.submit(self._requests[name])
            self._confirmed[name] = self._lanes.confirm(self._requests[name], begun.result())
        return self._confirmed[name]


@pytest.fixture(scope="module")
def comparisons(request: pytest.FixtureRequest) -> Iterator[Comparisons]:
    """The comparison of every scenario that was selected."""
    wanted: list[str] = [
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_both_do_the_same
    ]
    # Scenarios mostly wait, most of all those that break their Kafka. Other tests run beside these lanes.
    with shared_broker() as broker, Lanes(broker, 4, breaking=2) as lanes:
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


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_shown_by_one_of_its_scenarios(row: Row, comparisons: Comparisons) -> None:
    shown = {used for name in all_scenarios() if row.covers(name) for used in comparisons.of(name).rows}
    assert row.name in shown


def test_rows_name_scenarios_that_exist_and_each_once() -> None:
    patterns = [(row.name, pattern) for row in ROWS for pattern in row.scenarios]
    assert [pattern for _, pattern in patterns if not fnmatch.filter(all_scenarios(), pattern)] == []
    assert len(set(patterns)) == len(patterns)
