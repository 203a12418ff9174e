"""`groupwright explain`: why each member has its partitions, and why a partition moved.

- `situation`: the facts of a group before and after an assignment.
- `by_order`, `by_balance`, `by_broker`: sentences by kind of assignor; `words` has their parts.
- `explanation`: the whole explanation. `command`: the options and the output.
"""
