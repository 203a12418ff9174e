"""`groupwright migrate`: how a group goes over to the protocol of KIP-848, and back.

- `plan`: what hinders it, what changes, and the steps. Pure.
- `report`: text and the document. `command`: the options.
"""
