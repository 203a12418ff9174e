"""Connections to brokers, over kafka-python, which no other package imports."""
