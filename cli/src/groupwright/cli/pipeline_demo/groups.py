"""The demo's groups, under load: their members are threads, whose rebalances go to a topic as events."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

from prometheus_client import CollectorRegistry

from groupwright.cli.pipeline_demo.story import ASSIGNORS, TOPICS, Scene
from groupwright.consumer import Consumer
from groupwright.instrumentation import instrument, to_kafka
from groupwright.testing.groups import LoadedGroup


@contextmanager
def groups_under_load(
    bootstrap_servers: str, messages_per_second: int
) -> Iterator[Mapping[str, LoadedGroup]]:
    """Produce to all topics, and yield the groups, whose members leave at the end.

    Args:
        bootstrap_servers: Where Kafka is.
        messages_per_second: How many messages a second, to each topic.
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


def play(scene: Scene, groups: Mapping[str, LoadedGroup]) -> None:
    """Let a scene's members join and leave; return when those that join have consumed something.

    Raises:
        GroupwrightError: One cannot.
    """
    group = groups[scene.group]
    before = {name: group.ledger.consumed_by(name) for name in scene.join}
    for name in scene.join:
        group.start_member(name)
    group.wait_until(
        lambda: all(group.ledger.consumed_by(name) > count for name, count in before.items()),
        f"messages for {', '.join(scene.join)}",
    )
    group.leave(*(member for member in group.members if member.name in scene.leave))
