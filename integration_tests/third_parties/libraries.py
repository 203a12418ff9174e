"""The libraries that are checked: what pip installs, and the cases of their modules."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Library:
    """A library, and the functions of a module of this folder that use it with either consumer.

    Attributes:
        requirements: What pip installs beside Groupwright.
        module: The module that has the cases.
        cases: The names of its functions.
        differ: Cases in which the two consumers are known to differ; `docs/third-parties.md` says why.
    """

    requirements: tuple[str, ...]
    module: str
    cases: tuple[str, ...]
    differ: frozenset[str] = frozenset()


LIBRARIES = {
    "opentelemetry": Library(
        ("opentelemetry-instrumentation-confluent-kafka>=0.60b0", "opentelemetry-sdk"),
        "opentelemetry_spans",
        (
            "instrument_consumer",
            "instrument_consumer_batch",
            "instrument_before_import",
            "instrument_before_import_batch",
            "instrument_after_import",
            "instrument_after_import_looked_up",
        ),
        frozenset({"instrument_before_import_batch", "instrument_after_import_looked_up"}),
    ),
    "schema-registry": Library(
        ("confluent-kafka[avro,json,protobuf,schemaregistry]",),
        "schema_registry",
        ("avro", "json_schema", "protobuf"),
    ),
    "faststream": Library(
        ("faststream[confluent]",),
        "faststream_broker",
        ("automatic", "nothing_to_read", "batch", "manual_ack", "ack", "nack", "workers", "partitions"),
    ),
    "quixstreams": Library(("quixstreams",), "quix_application", ("at_least_once", "exactly_once", "state")),
    "bytewax": Library(("bytewax[kafka]",), "bytewax_flow", ("read_to_the_end",)),
    "ddtrace": Library(
        ("ddtrace",),
        "datadog_spans",
        ("wrapped_by_hand", "patched_before_import", "patched_after_import"),
        frozenset({"patched_before_import"}),
    ),
    "newrelic": Library(
        ("newrelic",),
        "newrelic_transactions",
        ("wrapped_by_hand", "initialized_before_import", "initialized_after_import"),
    ),
}
