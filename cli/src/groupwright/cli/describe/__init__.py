"""`groupwright describe`: one group, its members and its lag."""
