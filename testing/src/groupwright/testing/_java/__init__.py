"""Java: a runtime, jars, and programs compiled for tests."""
