"""Connections to brokers: the event loop, TLS, SASL, and the requests of the membership."""
