"""`groupwright doctor`: checks of a consumer's configuration, broker, group and offsets topic.

- `command`: the options; runs the checks in order.
- `validation`: findings of the consumer's own validation.
- `facts`: the cluster's answers, as the rules need them.
- `report`: findings and checks, printed.
"""
