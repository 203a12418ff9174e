"""The version that brokers are told, in ApiVersions (KIP-511)."""

VERSION = "0.1.0"
"""The distribution's. importlib.metadata reads it with the email package: 1.4 MB, kept as long as the process
lives."""
