"""`groupwright pipeline demo`: groups that rebalance on a real Kafka, and what the tables say of them.

`members` are the groups, `story` is what happens to them, `run` puts Kafka, members and Spark together, and `summary`
is what is printed at the end.
"""
