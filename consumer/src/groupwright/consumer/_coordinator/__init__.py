"""Network thread: it drives the protocol, sends commits, and leads the group."""
