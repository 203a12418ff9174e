"""The parts of a command line that all commands share: connection, output, errors, help."""
