"""The stream and batch jobs, and their connections to Kafka, Spark and the tables."""
