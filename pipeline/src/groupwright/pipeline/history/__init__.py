"""Consumer groups that never were, seeded: raw records and rows of tables, to see how the pipeline does at scale."""

from groupwright.pipeline.history.dataframe import Kind, group_generations, group_members, history
from groupwright.pipeline.history.fleet import Event, Fleet, Life

__all__ = ["Event", "Fleet", "Kind", "Life", "group_generations", "group_members", "history"]
