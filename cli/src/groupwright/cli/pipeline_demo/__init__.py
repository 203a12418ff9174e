"""`groupwright pipeline demo`: groups that rebalance on a real Kafka, and what the tables say of them.

`groups` are the groups under load, `story` is what happens to them, `run` puts Kafka, groups and Spark together, and
`summary` is what is printed at the end.
"""
