"""Client software version, sent to brokers in ApiVersions (KIP-511)."""

VERSION = "0.1.0"
"""Version of the distribution.

A constant, because importlib.metadata would keep 1.4 MB for its email parser.
"""
