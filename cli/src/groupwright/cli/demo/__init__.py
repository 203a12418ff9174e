"""`groupwright demo`: a consumer group on a real Kafka, whose members join, leave and are killed.

`scenario` lists the steps. `runner` executes them with a `groupwright.testing.groups.LoadedGroup`, whose
members use the consumers of `member`. `view_model` and `view` display them, and `summary` reports the result.
`cluster` starts Kafka, and `interrupts` handles signals.
"""
