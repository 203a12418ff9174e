"""Parts of `groupwright simulate`."""
