"""Rivals are compared on the same work: the plain loop finds what the decoder finds."""

import numpy as np

from benchmarks.pipeline import plain
from benchmarks.pipeline.synthetic import Fleet
from benchmarks.pipeline.synthetic.commits import commit_batch
from groupwright.pipeline._decoding import decode_batch


def test_the_plain_loop_finds_what_the_decoder_finds() -> None:
    fleet = Fleet(commits=5000, groups=20)
    batch = commit_batch(fleet, np.arange(fleet.commits))
    records = zip(batch.column("key").to_pylist(), batch.column("value").to_pylist(), strict=True)
    found = plain.decode(records)
    rows = decode_batch(batch).to_pylist()
    expected = []
    for row in rows:
        says = row["offset_commit"]
        time = says["commit_time"] and round(says["commit_time"].timestamp() * 1000)
        fields = (says["committed_offset"], says["leader_epoch"], says["metadata"], time)
        expected.append(plain.Commit(row["group_id"], says["topic"], says["partition"], *fields))
    assert found == expected
