"""Parts of a batch job. Pure."""

from groupwright.pipeline._jobs.batch import _part


def test_parts_of_equal_offsets_have_one_identity_only_from_the_same_positions() -> None:
    start, end = {"events": {0: 0}}, {"events": {0: 10}}
    assert _part(3, start, end, 5) == _part(3, start, end, 5)
    assert _part(3, start, end, 5).end == _part(4, start, end, 5).end
    assert _part(3, start, end, 5).batch != _part(4, start, end, 5).batch
