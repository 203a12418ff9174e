"""The product broken on purpose, one line at a time: for each break there is a test that fails."""
