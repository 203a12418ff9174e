"""A group that is watched: looks at it in, events and pictures out; and their outputs."""
