"""newrelic: the transaction that each polled message begins."""

import os
import sys
from typing import Any

os.environ |= {"NEW_RELIC_DEVELOPER_MODE": "true", "NEW_RELIC_APP_NAME": "third-parties"}
if "before" in sys.argv[2] or sys.argv[2:4] == ["wrapped_by_hand", "confluent-kafka"]:
    import newrelic.agent

    newrelic.agent.initialize()

import newrelic.agent
import newrelic.hooks.messagebroker_confluentkafka as hooks

from integration_tests.third_parties.common import (
    OURS,
    PATIENCE,
    consumer_class,
    new_group,
    new_topic,
    numbers,
    produce,
    settings,
    wait_for,
)


def _transactions(bootstrap: str, kind: Any) -> Any:
    newrelic.agent.register_application(timeout=PATIENCE)  # else it begins beside the first messages
    topic = new_topic(bootstrap, 1)
    produce(bootstrap, topic, numbers(5), 1)
    consumer = kind(settings(bootstrap, new_group()))
    consumer.subscribe([topic])
    seen: list[Any] = []

    def poll() -> bool:
        message = consumer.poll(0.3)
        transaction = newrelic.agent.current_transaction()
        if message is not None:
            name = None if transaction is None else f"{transaction.group}/{transaction.name}"
            seen.append([message.value().decode(), str(name).replace(topic, "TOPIC")])
        return len(seen) == 5

    wait_for(poll, "five messages")
    consumer.poll(0.3)
    idle = newrelic.agent.current_transaction()
    consumer.close()
    return {"messages": seen, "after an empty poll": str(idle)}


def initialized_before_import(which: str, bootstrap: str) -> Any:
    """Initialize first, as newrelic-admin does."""
    return _transactions(bootstrap, consumer_class(which))


def initialized_after_import(which: str, bootstrap: str) -> Any:
    """Initialize when the application has its consumer's class already."""
    kind = consumer_class(which)
    newrelic.agent.initialize()
    return _transactions(bootstrap, kind)


def wrapped_by_hand(which: str, bootstrap: str) -> Any:
    """Wrap ours as newrelic wraps confluent-kafka's, before it is initialized."""
    if which == OURS:
        consumer_class(which)
    newrelic.agent.initialize()
    kind = consumer_class(which)
    if which == OURS:
        newrelic.agent.wrap_function_wrapper(
            "groupwright.consumer", "Consumer.__init__", hooks.wrap_Consumer_init
        )
        newrelic.agent.wrap_function_wrapper(
            "groupwright.consumer", "Consumer.poll", hooks.wrap_Consumer_poll
        )
    return _transactions(bootstrap, kind)
