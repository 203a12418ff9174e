"""Rows as Arrow. Pure."""

from datetime import date

import pytest

from groupwright.pipeline import schemas
from groupwright.pipeline._tables.arrow import to_arrow

STATE = {"group_id": "billing", "group_type": "consumer", "state": "{}", "date": date(2026, 11, 20)}


def test_rows_have_the_columns_of_their_table() -> None:
    assert to_arrow([STATE], schemas.GROUP_STATES).to_pylist() == [STATE]


@pytest.mark.parametrize("names", [{"state"}, {"stat"}, {"stat", "state"}])
def test_a_column_that_is_missing_or_unknown_is_an_error(names: set[str]) -> None:
    row = {name: STATE.get(name) for name in STATE.keys() ^ names}
    with pytest.raises(ValueError, match=f"group_states differs in the columns .*{min(names)}"):
        to_arrow([row], schemas.GROUP_STATES)
