"""Decoded records to tables: every transform is a function of DataFrames, without input or output of its own."""
