"""librdkafka's statistics and callbacks."""
