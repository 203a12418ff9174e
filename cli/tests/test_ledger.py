"""The ledger: what is lost, what came twice, and whether there was a reason."""

from groupwright.cli.demo.ledger import Ledger, Redelivery
from groupwright.cli.demo.offsets import Span


def ledger_of(*produced: Span) -> Ledger:
    ledger = Ledger()
    ledger.produced(produced)
    return ledger


def test_what_was_produced_and_consumed_once_balances() -> None:
    ledger = ledger_of(Span(0, 0, 100), Span(1, 0, 50))
    ledger.consumed("member-1", [Span(0, 0, 60), Span(1, 0, 50)])
    ledger.consumed("member-2", [Span(0, 60, 100)])
    account = ledger.account()
    assert account.balanced
    assert (account.produced, account.consumed, ledger.waiting) == (150, 150, 0)
    assert account.explained == ()


def test_what_nobody_consumed_is_lost() -> None:
    """A gap in the middle of a partition, the end of another, and all of a third."""
    ledger = ledger_of(Span(0, 0, 10), Span(1, 0, 10), Span(2, 5, 7))
    ledger.consumed("member-1", [Span(0, 0, 4), Span(0, 6, 10), Span(1, 0, 9)])
    account = ledger.account()
    assert account.lost == (Span(0, 4, 6), Span(1, 9, 10), Span(2, 5, 7))
    assert not account.balanced
    assert ledger.waiting == 5


def test_a_loss_is_not_made_up_for_by_a_duplicate() -> None:
    """Counting alone would not see it: ten produced, ten consumed."""
    ledger = ledger_of(Span(0, 0, 10))
    ledger.consumed("member-1", [Span(0, 0, 9)])
    ledger.consumed("member-2", [Span(0, 8, 9)])
    account = ledger.account()
    assert account.consumed == account.produced
    assert account.lost == (Span(0, 9, 10),)
    assert len(account.unexplained) == 1


def test_what_nobody_produced_is_foreign() -> None:
    ledger = ledger_of(Span(0, 0, 10))
    ledger.consumed("member-1", [Span(0, 0, 12)])
    account = ledger.account()
    assert account.foreign == (Span(0, 10, 12),)
    assert not account.balanced


def test_what_is_consumed_before_its_acknowledgement_is_not_foreign() -> None:
    """The consumer may have a message before the producer hears that Kafka has it."""
    ledger = Ledger()
    ledger.consumed("member-1", [Span(0, 0, 10)])
    assert ledger.waiting == 0
    ledger.produced([Span(0, 0, 10)])
    assert ledger.account().balanced


def test_what_a_killed_member_had_not_committed_may_come_twice() -> None:
    ledger = ledger_of(Span(0, 0, 100))
    ledger.consumed("member-2", [Span(0, 0, 60)])
    ledger.committed("member-2", {0: 40})
    ledger.killed("member-2", {0: 40})
    ledger.consumed("member-1", [Span(0, 40, 100)])
    account = ledger.account()
    assert account.explained == (Redelivery(Span(0, 40, 60), "member-2", "member-1"),)
    assert account.balanced
    assert account.consumed == 120


def test_below_the_last_commit_there_is_no_excuse() -> None:
    """The next owner began before the committed offset: a part of it is explained, the rest is not."""
    ledger = ledger_of(Span(0, 0, 60))
    ledger.consumed("member-2", [Span(0, 0, 60)])
    ledger.committed("member-2", {0: 40})
    ledger.killed("member-2", {0: 40})
    ledger.consumed("member-1", [Span(0, 30, 60)])
    account = ledger.account()
    assert account.unexplained == (Redelivery(Span(0, 30, 40), "member-2", "member-1"),)
    assert account.explained == (Redelivery(Span(0, 40, 60), "member-2", "member-1"),)
    assert not account.balanced


def test_the_coordinator_knows_of_commits_that_the_killed_member_could_not_report() -> None:
    ledger = ledger_of(Span(0, 0, 60))
    ledger.consumed("member-2", [Span(0, 0, 60)])
    ledger.committed("member-2", {0: 40})
    ledger.killed("member-2", {0: 50})
    ledger.consumed("member-1", [Span(0, 40, 60)])
    account = ledger.account()
    assert account.unexplained == (Redelivery(Span(0, 40, 50), "member-2", "member-1"),)


def test_a_coordinator_that_forgot_a_commit_is_found_out() -> None:
    ledger = ledger_of(Span(0, 0, 60))
    ledger.consumed("member-2", [Span(0, 0, 60)])
    ledger.committed("member-2", {0: 40})
    ledger.killed("member-2", {})
    ledger.consumed("member-1", [Span(0, 0, 60)])
    assert ledger.account().unexplained == (Redelivery(Span(0, 0, 40), "member-2", "member-1"),)


def test_a_partition_without_any_commit_is_read_again_from_its_beginning() -> None:
    ledger = ledger_of(Span(0, 0, 10))
    ledger.consumed("member-2", [Span(0, 0, 10)])
    ledger.killed("member-2", {})
    ledger.consumed("member-1", [Span(0, 0, 10)])
    assert ledger.account().balanced


def test_a_member_that_left_in_good_order_is_no_excuse() -> None:
    ledger = ledger_of(Span(0, 0, 10))
    ledger.consumed("member-3", [Span(0, 0, 10)])
    ledger.committed("member-3", {0: 8})
    ledger.killed("member-2", {0: 8})
    ledger.consumed("member-1", [Span(0, 8, 10)])
    assert ledger.account().unexplained == (Redelivery(Span(0, 8, 10), "member-3", "member-1"),)


def test_two_owners_at_once_are_not_excused_by_a_later_death() -> None:
    """Both consumed it while both lived; the kill comes after, and explains nothing."""
    ledger = ledger_of(Span(0, 0, 10))
    ledger.consumed("member-2", [Span(0, 0, 10)])
    ledger.consumed("member-1", [Span(0, 0, 10)])
    ledger.killed("member-2", {0: 0})
    assert ledger.account().unexplained == (Redelivery(Span(0, 0, 10), "member-2", "member-1"),)


def test_a_death_explains_one_redelivery_and_not_the_next() -> None:
    ledger = ledger_of(Span(0, 0, 10))
    ledger.consumed("member-2", [Span(0, 0, 10)])
    ledger.killed("member-2", {})
    ledger.consumed("member-1", [Span(0, 0, 10)])
    ledger.consumed("member-4", [Span(0, 9, 10)])
    account = ledger.account()
    assert [each.before for each in account.explained] == ["member-2"]
    assert account.unexplained == (Redelivery(Span(0, 9, 10), "member-1", "member-4"),)


def test_a_member_that_consumes_the_same_again_is_not_excused() -> None:
    ledger = ledger_of(Span(0, 0, 10))
    ledger.consumed("member-1", [Span(0, 0, 10), Span(0, 4, 6)])
    account = ledger.account()
    assert account.unexplained == (Redelivery(Span(0, 4, 6), "member-1", "member-1"),)
    assert str(account.unexplained[0]) == "partition 0, offsets 4-5: by member-1 and again by member-1"
