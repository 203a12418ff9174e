"""Defects put into the product on purpose; for each one there is a test that fails."""
