"""`groupwright pipeline`: tables of rebalance history, lag and churn on Spark, what-if studies and a report.

- `command`: the options of all subcommands.
- `reading`: tables, what-if studies and the report. `deploys`: simulated deploys.
- `demo`: groups that rebalance on a real Kafka, with their tables and report.
"""
