"""The exporter: metrics of every group of a cluster, without instrumented clients."""
