"""Consumers of the real code in virtual time: no sockets, no threads, no waiting."""
