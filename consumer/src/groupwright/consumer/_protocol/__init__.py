"""Group protocol of a classic member, without I/O: standard library and `groupwright.assignors` alone."""
