"""`groupwright simulate`: what assignors would do with a group, and with events in it.

- `simulation`: the steps of each assignor, and their numbers.
- `report`: tables and the document. `command`: the options.
"""
