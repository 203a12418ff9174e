"""Decoder of `__consumer_offsets`: records of all kinds and versions to columns, malformed ones apart."""

from groupwright.pipeline._decoding.dataframe import decode, decode_offset_commits
from groupwright.pipeline._decoding.records import MALFORMED, UNKNOWN, decode_batch, decode_commits_batch
from groupwright.pipeline._decoding.schema import COLUMNS, COMMITS, DECODED, RAW

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
