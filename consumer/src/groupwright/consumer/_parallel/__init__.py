"""Work in parallel: `work` is pure, `engine` polls; the workers are in `groupwright.consumer.parallel`."""
