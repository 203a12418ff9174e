"""`groupwright lag`: how far groups are behind, in messages and in seconds."""
