"""Brokers that cannot be reached, go away and come back."""

import contextlib
import socket
import threading

from confluent_kafka import KafkaException

from integration_tests.parity.client import Client
from integration_tests.parity.lab import Lab, callbacks
from integration_tests.parity.scenarios import scenario

_LONG = 8.0
"""Seconds of an outage, in which a backoff grows to several."""


def _consumer(lab: Lab, **settings: object) -> Client:
    consumer = lab.consumer(enable_auto_commit=False, session_timeout_ms=30_000, **settings)
    consumer.raw.poll(0)
    return consumer


def _until_committed(consumer: Client) -> None:
    """Poll until a synchronous commit works."""

    def commit() -> bool:
        with contextlib.suppress(KafkaException):
            consumer.raw.commit(message=consumer.messages[-1], asynchronous=False)
            return True
        return False

    consumer.until(commit, "a commit works")


@scenario(breaks_kafka=True)
def a_consumer_made_during_an_outage_begins_when_that_ends(lab: Lab) -> None:
    """However long brokers were away, a group begins as soon as they are back."""
    assert lab.kafka.running
    topic = lab.topic(messages=10)
    lab.link.cut()
    consumer = _consumer(lab)
    consumer.subscribe([topic], **callbacks())
    consumer.idle(_LONG)
    lab.link.restore()
    consumer.read(10)
    _until_committed(consumer)
    consumer.close()


@scenario(breaks_kafka=True)
def a_cut_is_over_when_the_network_is_back(lab: Lab) -> None:
    """Connections that were reset are made anew at once: nothing is lost, comes twice or is revoked."""
    assert lab.kafka.running
    topic = lab.topic(messages=10)
    consumer = _consumer(lab)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    lab.link.cut()
    consumer.idle(_LONG)
    lab.link.restore()
    lab.produce(topic, 10)
    _until_committed(consumer)
    consumer.read(10)
    consumer.close()


@scenario(breaks_kafka=True)
def a_link_that_loses_all_for_a_while_is_used_again(lab: Lab) -> None:
    """Half-open connections: what is sent is lost, without an error."""
    assert lab.kafka.running
    topic = lab.topic(messages=10)
    consumer = _consumer(lab)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    lab.link.drop()
    consumer.idle(_LONG)
    lab.link.restore()
    lab.produce(topic, 10)
    _until_committed(consumer)
    consumer.read(10)
    consumer.close()


def _restart(lab: Lab, *, killed: bool) -> None:
    kafka = lab.kafka
    topic = lab.topic(messages=10)
    consumer = _consumer(lab)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    if killed:
        kafka.kill()
    else:
        kafka.stop()
    consumer.idle(3.0)
    starting = threading.Thread(target=kafka.start)
    starting.start()
    while starting.is_alive():
        consumer.idle(0.1)
    _until_committed(consumer)
    lab.__dict__.pop("producer", None)  # librdkafka's may have lost its only broker for good
    lab.produce(topic, 10)
    consumer.read(10)
    consumer.close()


@scenario(breaks_kafka=True)
def a_broker_that_was_killed_is_used_again(lab: Lab) -> None:
    """The group outlives its broker: the member stays, its partitions too."""
    _restart(lab, killed=True)


@scenario(breaks_kafka=True)
def a_broker_that_was_stopped_is_used_again(lab: Lab) -> None:
    """The broker closes the connections, as after a kill."""
    _restart(lab, killed=False)


@scenario(breaks_kafka=True)
def a_silent_coordinator_holds_up_close_for_a_while(lab: Lab) -> None:
    """LeaveGroup's answer has no use, so close() waits 5 s for it."""
    assert lab.kafka.running
    topic = lab.topic(messages=10)
    consumer = _consumer(lab)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    lab.link.silence()
    consumer.close()
    lab.link.restore()


@scenario(seconds=25, breaks_kafka=True)
def a_synchronous_commit_that_no_broker_answers(lab: Lab) -> None:
    """The duration, and the error."""
    assert lab.kafka.running
    topic = lab.topic(messages=10)
    consumer = _consumer(lab, socket_timeout_ms=3000)
    consumer.subscribe([topic])
    consumer.read(10)
    lab.link.silence()
    consumer.attempt("commit", asynchronous=False)
    lab.link.restore()
    consumer.close()


@scenario()
def dead_bootstrap_servers_hold_nothing_up(lab: Lab) -> None:
    """One of the configured servers that answers is enough."""
    topic = lab.topic(messages=10)
    servers = f"127.0.0.1:1,127.0.0.1:2,{lab.bootstrap_servers}"
    consumer = _consumer(lab, bootstrap_servers=servers)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    consumer.close()


@scenario()
def silent_bootstrap_servers_hold_nothing_up(lab: Lab) -> None:
    """Servers that accept a connection and say nothing, as a frozen broker does."""
    topic = lab.topic(messages=10)
    with socket.create_server(("127.0.0.1", 0)) as one, socket.create_server(("127.0.0.1", 0)) as two:
        silent = [f"127.0.0.1:{server.getsockname()[1]}" for server in (one, two)]
        servers = ",".join([*silent, lab.bootstrap_servers])
        consumer = _consumer(lab, bootstrap_servers=servers)
        consumer.subscribe([topic], **callbacks())
        consumer.read(10)
        consumer.close()
