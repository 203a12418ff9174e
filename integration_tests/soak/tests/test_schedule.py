"""The schedule of faults depends on the seed alone."""

import itertools

from integration_tests.soak.schedule import Kind, behaviors, faults, forbidden
from integration_tests.soak.timing import Timing

GROUPS = ("range", "sticky")


def test_the_same_seed_makes_the_same_faults() -> None:
    assert faults(7, 120, GROUPS, Timing()) == faults(7, 120, GROUPS, Timing())
    assert faults(7, 120, GROUPS, Timing()) != faults(8, 120, GROUPS, Timing())


def test_a_group_has_the_same_faults_beside_any_others() -> None:
    both = faults(7, 120, GROUPS, Timing())

    alone = faults(7, 120, ("range",), Timing())

    assert alone == [fault for fault in both if fault.group in {"", "range"}]


def test_two_minutes_hold_all_there_is_and_none_of_it_comes_late() -> None:
    drawn = faults(14, 120, GROUPS, Timing())

    assert {fault.kind for fault in drawn} == set(Kind)
    assert [fault.at for fault in drawn] == sorted(fault.at for fault in drawn)
    assert drawn[-1].at < 120


def test_stalls_outlast_the_session_or_stay_well_within_it() -> None:
    timing = Timing()
    stalls = [each.seconds for each in faults(3, 6000, GROUPS, timing) if each.kind is Kind.STALL]

    assert any(seconds > timing.session for seconds in stalls)
    assert any(seconds < timing.session for seconds in stalls)
    assert not [seconds for seconds in stalls if timing.forgotten_after < seconds < timing.session]


def test_members_are_of_every_character() -> None:
    found = set(itertools.islice(behaviors(1, "range"), 60))

    assert {each.commits for each in found} == {"auto", "sync", "async", "store", "message"}
    assert {each.seeks for each in found} == {"none", "on", "back"}
    assert {each.calls for each in found} == {"poll", "consume"}
    assert not [each for each in found if each.commits == "auto" and each.seeks == "back"]
    assert {each.static for each in found} == {each.eof for each in found} == {True, False}


def test_guests_are_forbidden_to_read_or_anything() -> None:
    assert {forbidden(seed) for seed in range(20)} == {"read", "all"}
