"""The demo's groups under load. Members are threads, and send their rebalances to a topic as events."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from groupwright.cli.pipeline.demo.scenario import ASSIGNORS, TOPICS, Step
from groupwright.consumer import Consumer
from groupwright.instrumentation import instrument, to_kafka
from groupwright.testing.groups import LoadedGroup


@contextmanager
def groups_under_load(
    bootstrap_servers: str, messages_per_second: int
) -> Iterator[Mapping[str, LoadedGroup]]:
    """Produce to all topics, and yield the groups by id. All members leave at the end of the context.

    Args:
        bootstrap_servers: The brokers, `host:port,...`.
        messages_per_second: Rate per topic.
    """
    events = to_kafka({"bootstrap.servers": bootstrap_servers, "log_level": 0})

    def make_consumer(config: dict[str, Any]) -> Consumer:
        consumer = Consumer(config)
        instrument(consumer, CollectorRegistry(), events=[events], advise=False)
        return consumer

    with ExitStack() as cleanup:
        cleanup.callback(events.close)
        yield {
            group: cleanup.enter_context(
                LoadedGroup(
                    bootstrap_servers,
                    dict([TOPICS[group]]),
                    make_consumer,
                    group_id=group,
                    config={
                        "partition.assignment.strategy": assignor,
                        "auto.commit.interval.ms": 500,
                        "heartbeat.interval.ms": 500,
                        "session.timeout.ms": 6000,
                        "log_level": 0,  # the terminal is the demo's
                    },
                    batch=100,
                    messages_per_second=messages_per_second,
                )
            )
            for group, assignor in ASSIGNORS.items()
        }


def perform(step: Step, groups: Mapping[str, LoadedGroup]) -> None:
    """Start and stop the step's members; return when those that joined have consumed messages.

    Raises:
        GroupwrightError: A member failed, or did not consume or leave in time.
    """
    group = groups[step.group]
    before = {name: group.ledger.consumed_by(name) for name in step.join}
    for name in step.join:
        group.start_member(name)
    group.wait_until(
        lambda: all(group.ledger.consumed_by(name) > count for name, count in before.items()),
        f"messages for {', '.join(step.join)}",
    )
    group.leave(*(member for member in group.members if member.name in step.leave))
