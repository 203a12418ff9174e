"""Layouts of Kafka's messages that kafka-python lacks, in the form of Kafka's own schemas."""
