"""bytewax: a dataflow that reads Kafka; it looks its consumer up as `bytewax.connectors.kafka.Consumer`."""

from typing import Any

import bytewax.connectors.kafka as bytewax_kafka
import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.testing import TestingSink, run_main

from integration_tests.third_parties.common import consumer_class, new_topic, numbers, produce


def read_to_the_end(which: str, bootstrap: str) -> Any:
    """Read two partitions from the beginning to the end."""
    bytewax_kafka.Consumer = consumer_class(which)
    topic = new_topic(bootstrap)
    produce(bootstrap, topic, numbers(20))
    got: list[Any] = []
    flow = Dataflow("check")
    source = bytewax_kafka.KafkaSource([bootstrap], [topic], tail=False)
    op.output("out", op.input("in", flow, source), TestingSink(got))
    run_main(flow)
    return sorted([message.partition, message.offset, message.value.decode()] for message in got)
