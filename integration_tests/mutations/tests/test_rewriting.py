"""Patterns of code: what they match whatever its layout, and what is refused."""

import pytest

from mutations.rewriting import PatternError, rewrite

SOURCE = '''
class Buffer:
    def take(self, most):
        """Return messages."""
        # the oldest first
        if not (self._closed
                or self._paused):
            taken = self._waiting.pop(most, default=None)
            self._count(taken)
            return taken
        self._log("closed", once=True)

    def drop(self):
        self._count(None)
'''


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ("_._waiting", "[]", "taken = [].pop(most, default=None)"),
        ("if not (_1 or _): ...", "if _1: ...", "if self._closed:\n            taken = "),
        ("_1 = _.pop(...)\n_2(_1)", "_2(1)", "self._count(1)\n            return taken"),
        ("_1 = _.pop(...)\n_2(_1)", "", "if not (self._closed or self._paused):\n            return taken"),
        ("if _: ...", "...", "taken = self._waiting.pop(most, default=None)\n        self._count(taken)"),
        ("_(once=_)", "_(once=False)", "self._log('closed', once=False)"),
        ("_(once=_)", "_()", "self._log('closed')"),
        ("_._count(_)", "pass", "pass\n            return taken"),
    ],
)
def test_a_pattern_is_replaced_whatever_the_layout(old: str, new: str, changed: str) -> None:
    found = rewrite(SOURCE, "Buffer.take", old, new)

    assert changed in found
    assert found.count("\n") <= SOURCE.count("\n")


def test_a_block_without_statements_stays_a_block() -> None:
    assert rewrite(SOURCE, "Buffer.drop", "self._count(...)", "").endswith("def drop(self):\n        pass")


@pytest.mark.parametrize(
    ("scope", "old", "message"),
    [
        ("Buffer.take", "self._count(taken, _)", "occurs 0 times in Buffer.take"),
        ("Buffer", "self._count(...)", "occurs 2 times in Buffer"),
        ("", "_1.pop(_1, ...)", "occurs 0 times in the module"),
        ("Buffer.give", "_", "there are 0 definitions of Buffer.give"),
    ],
)
def test_a_pattern_that_does_not_occur_once_is_refused(scope: str, old: str, message: str) -> None:
    with pytest.raises(PatternError, match=message):
        rewrite(SOURCE, scope, old, "pass")
