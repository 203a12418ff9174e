"""Group protocol of a classic member, without I/O. Imports `groupwright.core` and `.assignors` alone."""
