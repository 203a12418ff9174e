"""Bytes of `__consumer_offsets` as columns: every kind of record, every version, and what is malformed kept aside."""

from groupwright.pipeline.decoding.dataframe import decode, decode_offset_commits
from groupwright.pipeline.decoding.records import MALFORMED, UNKNOWN, decode_batch, decode_commits_batch
from groupwright.pipeline.decoding.schema import COLUMNS, COMMITS, DECODED, RAW

__all__ = [
    "COLUMNS",
    "COMMITS",
    "DECODED",
    "MALFORMED",
    "RAW",
    "UNKNOWN",
    "decode",
    "decode_batch",
    "decode_commits_batch",
    "decode_offset_commits",
]
