"""`groupwright groups`: all groups of a cluster."""
