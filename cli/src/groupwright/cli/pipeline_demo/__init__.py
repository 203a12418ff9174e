"""`groupwright pipeline demo`: groups that rebalance on a real Kafka, and the pipeline's tables about them.

`groups` runs the groups under load, `story` lists the steps, `run` connects Kafka, groups and Spark, and
`summary` prints the result.
"""
