"""Tracking: wrapped clients, and the rebalances and commits that their calls and callbacks show."""
