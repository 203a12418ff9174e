"""Parts that `groupwright simulate` and `groupwright explain` share: a group to study, and its files."""
