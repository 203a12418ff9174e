"""The command `groupwright offsets`: committed offsets, shown, reset, exported and deleted.

- `command` is the command line, and the order of the steps.
- `target` parses what to reset to, and `selection` which partitions; `files` reads and writes offsets.
- `plan` computes the new offsets: facts in, rows out.
- `execution` writes a plan, and reads back what the broker holds.
- `view` is the output.
"""
