"""Tests on real brokers, and the programs that test for long; each folder is a theme or a program."""
