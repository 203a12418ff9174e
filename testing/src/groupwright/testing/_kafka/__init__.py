"""Kafka on this machine: brokers as processes and in containers, their settings, logs and security."""
