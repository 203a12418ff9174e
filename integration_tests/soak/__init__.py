"""Chaos test of partition ownership: consumer processes, faults drawn from a seed, a checker of histories."""
