"""`groupwright demo`: a consumer group on a real Kafka, whose members come, go and are killed.

The core is pure: `offsets` and `ledger` account for every message, `roster` for the members and what they
own, `script` is the story, `summary` its result. At the edge are `cluster` (Kafka), `feed` (the producer),
`group` (the members' processes, each a `member`), `view` (the terminal) and `interrupts` (signals); `stage`
holds them together, and `run` and `command` start them.
"""
