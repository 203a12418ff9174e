"""The rows of the demo's table, made from members' events."""

import pytest

from groupwright.cli._command_line.output import compact
from groupwright.cli.demo.errors import DemoError
from groupwright.cli.demo.view_model import MemberRow, Status, ViewModel
from groupwright.testing.groups import Consumed, Failed, Ledger, Produced, Rebalanced, Revoked, Span, Started


def owned(*numbers: int) -> tuple[tuple[str, int], ...]:
    return tuple(("t", number) for number in numbers)


def test_a_ledger_s_new_events_become_rows_counts_and_lines() -> None:
    ledger, model = Ledger(), ViewModel("title", "kafka", [])
    row = model.members["a"] = MemberRow("a")
    ledger.record_produced(Produced(1, (Span("t", 0, 0, 9),)))
    ledger.record("a", Started(1, {"metrics": "http://here"}))

    assert list(model.update(ledger)) == ["a is up; its metrics: http://here"]
    assert row.status is Status.JOINING
    ledger.record("a", Rebalanced(2, 3, 0.25, "completed", owned(3, 0, 1)))
    ledger.record("a", Consumed(3, 2.5, (Span("t", 0, 0, 5), Span("t", 1, 3, 4))))
    assert list(model.update(ledger)) == [
        "a rebalanced in 0.250 s: generation 3, revoked 0, kept 0, consumed 0 meanwhile, owns 0-1 3"
    ]
    assert list(model.update(ledger)) == []

    assert (row.status, row.owned, row.consumed) == (Status.CONSUMING, (0, 1, 3), 6)
    assert (model.produced, model.consumed, model.redelivered, model.waiting) == (9, 6, 0, 4)


def test_a_member_that_failed_ends_the_demo_with_the_reason() -> None:
    ledger, model = Ledger(), ViewModel("title", "kafka", [])
    model.members["a"] = MemberRow("a")
    ledger.record("a", Failed(1, "the assignor 'mine' failed: ValueError: no plan"))
    with pytest.raises(DemoError, match=r"^a failed: the assignor 'mine' failed: ValueError: no plan$"):
        list(model.update(ledger))


def test_a_rebalance_counts_what_was_revoked_for_it() -> None:
    row = MemberRow("a")
    row.apply(Rebalanced(1, 2, 0.5, "completed", owned(0, 1, 2, 3)))
    row.apply(Revoked(2, owned(0, 1, 2, 3), lost=False))
    assert (row.status, row.owned) == (Status.REBALANCING, ())
    row.apply(Rebalanced(3, 2, 0.5, "failed", ()))
    assert row.status is Status.REBALANCING
    row.apply(Rebalanced(3, 3, 0.5, "completed", owned(0, 1)))
    assert (row.status, row.last_revoked) == (Status.CONSUMING, 4)
    row.apply(Rebalanced(4, 4, 0.5, "completed", owned(0, 1)))
    assert (row.last_revoked, row.revoked, row.generations) == (0, 4, [2, 3, 4])


def test_a_cooperative_member_keeps_partitions_and_consumes_meanwhile() -> None:
    row = MemberRow("a")
    row.apply(Rebalanced(1, 2, 0.5, "completed", owned(0, 1, 2)))
    for at in (2.9, 3.1, 3.5, 4.1):
        row.apply(Consumed(at, at - 0.1, (Span("t", 0, 0, 10),)))
    row.apply(Revoked(3.2, owned(2), lost=False))
    row.apply(Rebalanced(4.0, 3, 1.0, "completed", owned(0, 1)))
    assert (row.last_kept, row.last_revoked, row.last_meanwhile) == (2, 1, 10)  # after the revocation at 3.2
    row.apply(Rebalanced(5.0, 4, 1.0, "completed", owned(0, 1, 3)))
    assert (row.last_kept, row.last_revoked, row.last_meanwhile) == (2, 0, 10)
    assert (row.kept, row.meanwhile) == (4, 20)


def test_an_eager_member_keeps_nothing() -> None:
    row = MemberRow("a")
    row.apply(Rebalanced(1, 2, 0.5, "completed", owned(0, 1)))
    row.apply(Consumed(3.1, 3.0, (Span("t", 0, 0, 10),)))
    row.apply(Revoked(3.2, owned(0, 1), lost=False))
    row.apply(Rebalanced(4.0, 3, 1.0, "completed", owned(0, 1)))
    assert (row.last_kept, row.last_revoked, row.last_meanwhile) == (0, 2, 0)


def test_a_member_that_leaves_keeps_its_status_while_it_revokes() -> None:
    row = MemberRow("a", Status.LEAVING, owned=(2, 3))
    row.apply(Revoked(1, owned(2, 3), lost=False))
    assert (row.status, row.owned) == (Status.LEAVING, ())


@pytest.mark.parametrize(
    ("partitions", "words"), [((), "-"), ((3,), "3"), ((0, 1, 2, 8), "0-2 8"), ((11, 0, 1), "0-1 11")]
)
def test_partitions_are_written_in_short(partitions: tuple[int, ...], words: str) -> None:
    assert compact(partitions) == words
