"""The table of groups: its filters, its order, and groups that may not be described."""

import pytest

from groupwright.cli._cluster.model import GroupType, ListedGroup
from groupwright.cli._command_line.exit import CommandError, ExitStatus
from groupwright.cli._command_line.output import OutputFormat, few, print_rows
from groupwright.cli.groups.command import COLUMNS, Order, check_known, none_chosen, select, sorted_rows
from integration_tests.harness.described_groups import group, lag_of, listed, member, partition

LISTED = [
    listed("billing"),
    listed("billing-eu", GroupType.CONSUMER, "Reconciling"),
    listed("orders", GroupType.CONSUMER),
    listed("old", state="Empty"),
    listed("jobs", GroupType.SHARE),
    listed("team[1]", GroupType.STREAMS, state="Dead"),
]


@pytest.mark.parametrize(
    ("pattern", "states", "types", "chosen"),
    [
        ("*", [], [], ["billing", "billing-eu", "orders", "old", "jobs", "team[1]"]),
        ("team[1]", [], [], ["team[1]"]),  # a name before a pattern
        ("billing", [], [], ["billing"]),
        ("billing*", [], [], ["billing", "billing-eu"]),
        ("Billing*", [], [], []),  # names of groups have case
        ("*", ["stable"], [], ["billing", "orders", "jobs"]),
        ("*", ["Empty", "RECONCILING"], [], ["billing-eu", "old"]),
        ("*", [], ["Consumer"], ["billing-eu", "orders"]),
        ("*", [], ["share", "classic"], ["billing", "old", "jobs"]),
        ("b*", ["stable"], ["classic"], ["billing"]),
        ("[bo]*", ["Stable"], [], ["billing", "orders"]),
    ],
)
def test_filters_choose_groups(pattern: str, states: list[str], types: list[str], chosen: list[str]) -> None:
    assert [each.id for each in select(LISTED, pattern, states, types)] == chosen


@pytest.mark.parametrize(
    ("what", "value", "message"),
    [
        ("state", "stabel", "there is no state 'stabel', did you mean 'Stable'?"),
        ("state", "x", "there is no state 'x': write one of Stable, Empty"),
        ("type", "Clasic", "there is no type 'Clasic', did you mean 'classic'?"),
        ("type", "x", "there is no type 'x': write one of classic, consumer"),
    ],
)
def test_a_state_or_type_that_kafka_does_not_have_is_refused(what: str, value: str, message: str) -> None:
    known = {"state": ["Stable", "Empty"], "type": ["classic", "consumer"]}[what]
    check_known(what, [known[0].upper()], known)

    with pytest.raises(CommandError) as raised:
        check_known(what, [value], known)

    assert (str(raised.value), raised.value.status) == (message, ExitStatus.USAGE)


def test_an_empty_table_is_explained() -> None:
    assert none_chosen("biling", ["billing", "orders"]) == (
        "none of 2 groups matches, did you mean 'billing'?"
    )
    assert none_chosen("*", []) == "the cluster has no groups, or these credentials may not describe them"


def test_a_row_counts_members_partitions_assigned_or_committed_and_lag() -> None:
    one = member(assigned={"orders": (0, 1)})
    lag = lag_of(
        group(one, member("worker-2", assigned={})),
        partition(number=0, owner=one),
        partition(number=1, owner=one, committed=None),
        partition("left", committed=90),
    )

    [row] = sorted_rows([listed("billing")], {"billing": lag}, Order.GROUP)

    assert row == {
        "group": "billing",
        "type": "classic",
        "state": "Stable",
        "assignor": "range",
        "members": 2,
        "partitions": 3,
        "lag": 80,
        "coordinator": 1,
    }
    assert list(row) == [column.key for column in COLUMNS]


def test_a_group_that_may_not_be_described_has_what_its_broker_lists() -> None:
    [row] = sorted_rows([ListedGroup("secret", GroupType.CONSUMER, "Stable", "consumer", 7)], {}, Order.GROUP)

    assert {column.key: row.get(column.key) for column in COLUMNS} == {
        "group": "secret",
        "type": "consumer",
        "state": "Stable",
        "assignor": None,
        "members": None,
        "partitions": None,
        "lag": None,
        "coordinator": 7,
    }


@pytest.mark.parametrize(
    ("order", "names"),
    [
        (Order.GROUP, ["a", "b", "c", "d", "secret"]),
        (Order.LAG, ["c", "a", "b", "d", "secret"]),  # d has none that is known
        (Order.MEMBERS, ["d", "b", "a", "c", "secret"]),
        (Order.STATE, ["a", "c", "b", "d", "secret"]),
    ],
)
def test_rows_are_sorted_and_unknown_numbers_come_last(order: Order, names: list[str]) -> None:
    two = [member("1"), member("2")]
    lags = {
        "d": lag_of(group(*two, id_="d"), partition(committed=None)),
        "b": lag_of(group(member(), id_="b"), partition(committed=100)),
        "a": lag_of(group(id_="a"), partition(committed=30)),
        "c": lag_of(group(id_="c"), partition(committed=0)),
    }
    chosen = [*map(listed, lags), listed("secret")]

    assert [row["group"] for row in sorted_rows(chosen, lags, order)] == names


def test_few_names_are_the_first_and_the_number_of_the_others() -> None:
    assert few("abcde") == "a, b, c, d, e"
    assert few("abcdefg") == "a, b, c, d, e and 2 more"


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (200, set()),
        (80, {"COORDINATOR"}),
        (70, {"COORDINATOR", "PARTITIONS"}),
        (60, {"COORDINATOR", "PARTITIONS", "TYPE"}),
    ],
)
def test_a_narrow_terminal_has_fewer_columns_and_whole_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int, left_out: set[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    row = {"group": "billing-production", "type": "classic", "state": "Stable", "assignor": "range"}
    numbers = {"members": 12, "partitions": 144, "lag": 1234567, "coordinator": 3}
    print_rows([row | numbers], COLUMNS, OutputFormat.TABLE)

    header, line = capsys.readouterr().out.splitlines()
    assert set(header.split()) == {column.header for column in COLUMNS} - left_out
    assert line.split()[0] == "billing-production"
