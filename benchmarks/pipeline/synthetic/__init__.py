"""Synthetic consumer groups, seeded: raw records and table rows for tests of scale."""

from benchmarks.pipeline.synthetic.dataframe import HistoryKind, group_generations, group_members, history
from benchmarks.pipeline.synthetic.fleet import Event, Fleet, GroupTimeline

__all__ = ["Event", "Fleet", "GroupTimeline", "HistoryKind", "group_generations", "group_members", "history"]
