"""`groupwright locate`: the coordinator of a group."""
