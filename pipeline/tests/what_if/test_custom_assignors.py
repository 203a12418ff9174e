"""Custom assignors: loaded by import path, replayed with one instance per member, isolated from others."""

import sys
from pathlib import Path
from typing import Any

import pytest

from groupwright.assignors import Assignor, AssignorError, RebalanceProtocol
from groupwright.pipeline._what_if.loading import load_assignor

SOURCE = """
from groupwright.assignors import Assignor

class FirstTakesAll(Assignor):
    name = "first-takes-all"

    def assign(self, group):
        sizes = {topic: known.partitions for topic, known in group.topics.items()}
        return {subs[0].id: {topic: range(sizes[topic])} for topic, subs in group.subscribers().items()}

class WantsArguments(FirstTakesAll):
    def __init__(self, pins):
        self.pins = pins

class Nameless(FirstTakesAll):
    name = ""

NOT_A_CLASS = 3
"""


@pytest.fixture
def our_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A user's module on the path."""
    (tmp_path / "our_rules.py").write_text(SOURCE)
    (tmp_path / "broken_rules.py").write_text("import nowhere_to_be_found\n")
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("our_rules", None)


@pytest.mark.usefixtures("our_rules")
def test_it_is_found_by_its_import_path_and_played(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}})
    past.generation(2, {"b": {"orders": [0, 1, 2, 3]}})
    played = past.play("our_rules:FirstTakesAll", "range")
    assert column(played["our_rules:FirstTakesAll"], "imbalance") == [4, 0]
    assert column(played["our_rules:FirstTakesAll"], "error") == [None, None]


@pytest.mark.usefixtures("our_rules")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("rnage", "'rnage'; built-in assignors: broker:uniform, broker:range, co-partitioned-sticky, "),
        ("our_rules:", "an import path has the form package.module:Class"),
        ("no_such_rules:Any", "cannot import module 'no_such_rules'"),
        ("broken_rules:Any", "No module named 'nowhere_to_be_found'"),
        ("our_rules:Missing", "module 'our_rules' has no class 'Missing'"),
        ("our_rules:NOT_A_CLASS", "has no class 'NOT_A_CLASS'"),
        ("our_rules:WantsArguments", "calling it without arguments raises TypeError"),
        ("our_rules:Nameless", "name must be a string that is not empty"),
        ("builtins:dict", "returns a dict, which is not a groupwright.assignors.Assignor"),
    ],
)
def test_what_cannot_be_had_is_told(name: Any, says: Any) -> None:
    with pytest.raises(AssignorError) as refusal:
        load_assignor(name)
    assert says in str(refusal.value)


class Raises(Assignor):
    name = "raises"

    def assign(self, group: Any) -> Any:
        if len(group.members) == 2:
            raise RuntimeError("cannot do two")
        return {member.id: {"orders": range(4)} for member in group.members}


class GivesTwice(Assignor):
    name = "gives-twice"

    def assign(self, group: Any) -> Any:
        return {member.id: {"orders": [0]} for member in group.members}


class HandsOverAtOnce(Assignor):
    name = "hands-over-at-once"
    protocols = frozenset({RebalanceProtocol.COOPERATIVE})

    def assign(self, group: Any) -> Any:
        return {max(member.id for member in group.members): {"orders": range(4)}}


class Withholds(HandsOverAtOnce):
    name = "withholds"

    def assign(self, group: Any) -> Any:
        had = group.members[0].owned.get("orders", ())
        return {"a": {"orders": [2, 3] if 0 in had else [0, 1]}}


class Remembers(Assignor):
    """Assigns everything to the member that claims it, else to the last."""

    name = "remembers"

    def __init__(self) -> None:
        self.had = b""

    def user_data(self, topics: Any) -> Any:  # noqa: ARG002 - the contract's
        return self.had

    def on_assignment(self, assignment: Any, generation: Any) -> None:  # noqa: ARG002 - the contract's
        self.had = b"mine" if assignment else b""

    def assign(self, group: Any) -> Any:
        holders = [member.id for member in group.members if member.user_data == b"mine"]
        return {(holders or [max(member.id for member in group.members)])[0]: {"orders": range(4)}}


@pytest.fixture
def joined(past: Any) -> Any:
    past.generation(1, {"a": {"orders": [0, 1, 2, 3]}})
    past.generation(2, {"a": {"orders": [0, 1]}, "b": {"orders": [2, 3]}})
    past.generation(3, {"b": {"orders": [0, 1, 2, 3]}})
    return past


def test_one_that_raises_is_told_by_its_row_and_goes_on_with_what_members_had(
    joined: Any, column: Any
) -> None:
    played = joined.play(Raises, "sticky")
    assert column(played["raises"], "error") == [None, "RuntimeError: cannot do two", None]
    assert column(played["raises"], "moved") == [0, None, 0]
    assert column(played["sticky"], "moved") == [0, 2, 0]


def test_nonsense_is_refused_as_a_leader_refuses_it(joined: Any, column: Any) -> None:
    errors = column(joined.play(GivesTwice)["gives-twice"], "error")
    assert errors[0] is errors[2] is None
    assert (
        errors[1]
        == "AssignorError: assignor 'gives-twice': partition 0 of 'orders' is assigned both to 'a' and to 'b'"
    )


def test_a_cooperative_one_may_not_give_what_somebody_still_owns(joined: Any, column: Any) -> None:
    errors = column(joined.play(HandsOverAtOnce)["hands-over-at-once"], "error")
    assert errors[1] == (
        "AssignorError: assignor 'hands-over-at-once': it rebalances cooperatively, but assigns 'orders' [0] "
        "to 'b' while 'a' owns it: return withhold_claimed(group, plan) instead of the plan"
    )


def test_a_cooperative_one_that_never_settles_is_told(past: Any, column: Any) -> None:
    past.generation(1, {"a": {"orders": [0, 1, 2, 3]}}).generation(2, {"a": {"orders": [0, 1, 2, 3]}})
    errors = column(past.play(Withholds)["withholds"], "error")
    assert errors[0] is None
    assert errors[1].startswith(
        "AssignorError: assignor 'withholds' does not settle: in rebalance 8, 'a' still"
    )


def test_every_member_has_an_instance_that_hears_of_what_it_got(joined: Any, column: Any) -> None:
    played = joined.play(Remembers)
    assert column(played["remembers"], "moved") == [0, 0, 0], (
        "b joined, but a's instance said it had everything"
    )
    assert column(played["remembers"], "imbalance") == [0, 4, 0]
