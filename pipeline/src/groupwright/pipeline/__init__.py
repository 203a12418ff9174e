"""The life of every consumer group, on Spark: tables of rebalances, lag and churn, and what another assignor would have done."""
