"""Random requests to Kafka's group coordinator and to the model of it: every answer must be the same."""
