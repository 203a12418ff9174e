"""Rebalances, followed through callbacks of a consumer."""
