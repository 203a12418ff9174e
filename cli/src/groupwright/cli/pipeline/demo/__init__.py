"""`groupwright pipeline demo`: groups that rebalance on a real Kafka, and their tables and report.

`groups` has the groups under load, `scenario` the changes of their members, `run` connects Kafka, groups and
Spark, and `summary` prints the result.
"""
