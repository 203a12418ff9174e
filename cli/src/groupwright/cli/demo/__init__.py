"""`groupwright demo`: a consumer group on a real Kafka, whose members come, go and are killed.

`scenario` is what happens, `runner` plays it with a `groupwright.testing.groups.LoadedGroup` whose members' consumers
`member` makes, `view_model` and `view` show it, and `summary` is its result. `cluster` is Kafka, `interrupts` are signals.
"""
