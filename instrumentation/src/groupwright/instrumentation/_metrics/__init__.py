"""Metrics: their catalogue, and samples of them."""
