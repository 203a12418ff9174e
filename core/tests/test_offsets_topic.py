"""Java's hash of a group's id, and the partition that it gives."""

import pytest

from groupwright.core.hash_order import java_hash
from groupwright.core.offsets_topic import partition_for


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", 0),
        ("hello", 99162322),
        ("Straße", -1808122922),
        ("\U0001f600", 1772899),  # two UTF-16 code units
        ("polygenelubricants", -(1 << 31)),
    ],
)
def test_the_hash_is_javas(text: str, value: int) -> None:
    assert java_hash(text) == value
    assert partition_for(text, 50) == (0 if value == -(1 << 31) else abs(value)) % 50
