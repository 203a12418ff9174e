"""Polling thread: it applies assignments, commits, prefetches, and guards access to the handle."""
