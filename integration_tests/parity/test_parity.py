"""Our consumer does what confluent-kafka's does: each scenario on both, and each difference in the table."""

from collections.abc import Iterable, Iterator

import pytest

from parity.compare import Comparison
from parity.lanes import Lanes, request_of, shared_broker
from parity.scenarios import all_scenarios
from parity.table import ROWS

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]


class Comparisons:
    """Comparisons of scenarios, which are made side by side, ahead of the tests."""

    def __init__(self, lanes: Lanes, names: Iterable[str]) -> None:
        self._lanes = lanes
        self._requests = {name: request_of(all_scenarios()[name]) for name in names}
        self._begun = {name: lanes.submit(request) for name, request in self._requests.items()}

    def of(self, name: str) -> Comparison:
        """Return a comparison; a difference counts if it shows again with nothing running beside it."""
        return self._lanes.confirm(self._requests[name], self._begun[name].result())


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
    with shared_broker() as broker, Lanes(broker, 8, breaking=3) as lanes:
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


def test_rows_name_scenarios_that_exist() -> None:
    names = all_scenarios()
    unknown = [
        pattern
        for row in ROWS
        for pattern in row.scenarios
        if not any(pattern == name or "*" in pattern for name in names)
    ]
    assert unknown == []
