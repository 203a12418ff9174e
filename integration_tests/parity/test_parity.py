"""Our consumer does what confluent-kafka's does: each scenario on both, and each difference in the table."""

from collections.abc import Iterator
from concurrent.futures import Future  # noqa: TC003 - as all imports here

import pytest

from parity.compare import Comparison  # noqa: TC001 - as above
from parity.lanes import Lanes, request_of, shared_broker
from parity.scenarios import all_scenarios
from parity.table import ROWS

pytestmark = [pytest.mark.kafka, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def comparisons(request: pytest.FixtureRequest) -> Iterator[dict[str, "Future[Comparison]"]]:
    """The comparison of every scenario that was selected; they are made side by side, ahead of the tests."""
    scenarios = all_scenarios()
    wanted: list[str] = [
        str(item.callspec.params["name"])
        for item in request.session.items
        if isinstance(item, pytest.Function) and item.function is test_both_do_the_same
    ]
    with shared_broker() as broker, Lanes(broker) as lanes:
        yield {name: lanes.submit(request_of(scenarios[name])) for name in wanted}


@pytest.mark.parametrize("name", all_scenarios())
def test_both_do_the_same(name: str, comparisons: dict[str, "Future[Comparison]"]) -> None:
    found = comparisons[name].result()
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
