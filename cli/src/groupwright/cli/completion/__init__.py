"""`groupwright completion`: a shell's script that completes the command line."""
