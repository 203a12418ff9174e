"""The longest times for which a test waits: long, for a busy machine is no defect."""

import os

PATIENCE = float(os.environ.get("GROUPWRIGHT_TESTS_PATIENCE", "120"))
"""Seconds until a test takes it that what it waits for never comes."""
PROGRAM_PATIENCE = 4 * PATIENCE
"""Seconds for a program that starts brokers or Spark, or waits for several things one after the other."""
