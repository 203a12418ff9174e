"""Ownership under chaos: real consumers as processes, trouble drawn from a seed, and a checker over all they did."""
