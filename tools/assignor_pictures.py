"""Writes the pictures of the assignors into docs/concepts.md, made by the assignors themselves.

Run by ``make docs``; a test checks that the page is up to date.
"""

import sys
from collections.abc import Callable
from pathlib import Path

from groupwright.assignors import (
    Assignment,
    Assignor,
    Group,
    Member,
    Topic,
    builtin_assignors,
    simulate,
)

PAGE = Path(__file__).parents[1] / "docs" / "concepts.md"

_BEGIN = "<!-- The pictures below are made by `make docs`. -->\n"
_END = "<!-- end -->\n"
_TOPICS = {"orders": Topic(6, weights=[6, 1, 1, 1, 1, 1]), "payments": Topic(6, weights=[1] * 6)}
_INDENT = 22


def pictures() -> str:
    """Return the pictures of all assignors, each of the same group."""
    return "\n\n".join(_picture(assignor) for assignor in builtin_assignors())


def drawn(page: str) -> str:
    """Return the page's text with the present pictures."""
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    return f"{before}{_BEGIN}\n```text\n{pictures()}\n```\n\n{_END}{after}"


def _picture(assignor: Assignor) -> str:
    start = Group([_member(name) for name in "ABCD"], _TOPICS)
    events = [
        lambda group: Group([*group.members, _member("E")], group.topics),
        lambda group: Group([each for each in group.members if each.id != "B"], group.topics),
    ]
    titles = ("A, B, C and D", "E joins", "B leaves")
    played = zip(titles, simulate(start, assignor, events), strict=True)
    numbers = _row(lambda _, partition: str(partition), list(_TOPICS))
    heading = f"{assignor.name:{_INDENT}}{numbers}{_numbers('moved', 'revoked')}"
    rows = [
        f"  {title:{_INDENT - 2}}{_owners(each.assignment)}{_numbers(each.moved.count, each.revoked.count)}"
        for title, each in played
    ]
    return "\n".join([heading, *rows])


def _member(name: str) -> Member:
    return Member(name, list(_TOPICS))


def _owners(assignment: Assignment) -> str:
    owner = {
        (topic, int(partition)): member
        for member, partitions in assignment.items()
        for topic, numbers in partitions.items()
        for partition in numbers
    }
    return _row(lambda topic, partition: owner[topic, partition], [" " * len(topic) for topic in _TOPICS])


def _row(cell: Callable[[str, int], str], titles: list[str]) -> str:
    topics = zip(titles, _TOPICS.items(), strict=True)
    return "  ".join(
        f"{title} {''.join(cell(name, partition) for partition in range(topic.partitions))}"
        for title, (name, topic) in topics
    )


def _numbers(moved: int | str, revoked: int | str) -> str:
    return f"{moved:>7} {revoked:>7}"


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE.name} is up to date\n")
