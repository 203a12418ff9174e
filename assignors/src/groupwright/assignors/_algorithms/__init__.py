"""Algorithms of the assignors, and measures of their results."""
