"""A watched group: snapshots in, events and views out; and their outputs."""
