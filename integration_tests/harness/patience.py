"""The longest time for which a test waits for a condition."""

import os

PATIENCE = float(os.environ.get("GROUPWRIGHT_TESTS_PATIENCE", "120"))
"""Seconds until a test takes it that what it waits for never comes: long, for a busy machine is no defect."""
