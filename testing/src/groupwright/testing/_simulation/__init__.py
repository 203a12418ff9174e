"""Simulation of consumer groups: a model of Kafka's group coordinator, without I/O, clock or threads."""
