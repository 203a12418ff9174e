"""Schemas of requests that tests send, and no client of Python has."""
