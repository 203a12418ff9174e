"""Chaos test of the pipeline: the streaming job as processes, while drivers, workers and topics go away."""
