"""`groupwright demo`: a consumer group on a real Kafka, whose members join, leave and are killed.

- `scenario`: the steps of the demo. `runner` performs them with a `groupwright.testing.groups.LoadedGroup`.
- `member`: the consumer of a member's process.
- `view`: the output; on a terminal the steps, and the view of `groupwright watch`.
- `view_model`: what the members themselves tell. `summary`: the result.
- `cluster`: the topic and the group in Kafka. `interrupts`: signals.
"""
