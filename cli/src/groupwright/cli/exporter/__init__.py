"""`groupwright exporter`: metrics of every group of a cluster, without instrumented clients.

- `admin_source`, `offsets_topic_source`: snapshots from requests to brokers, or from `__consumer_offsets`.
- `refresher`: takes snapshots; `state` makes samples of them, with the limits of `limits`.
- `catalogue`: the metrics; `reference` writes their page. `exposition`, `server`, `status`: HTTP.
- `run`: one exporter from start to end. `command`: the options.
"""
