"""Transforms of decoded records to tables, as functions of DataFrames without I/O."""
