"""Parts of `groupwright explain`."""
