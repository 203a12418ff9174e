"""A cluster's groups, topics and offsets, asked of its brokers. Nothing here prints."""
