"""Quix Streams with our consumer, patched in as `quixstreams.kafka.consumer.ConfluentConsumer`."""

import tempfile
from typing import Any

import quixstreams.kafka.consumer as quix_consumer
from quixstreams import Application, State

from integration_tests.third_parties.common import (
    committed,
    consumer_class,
    new_group,
    new_topic,
    numbers,
    produce,
)


def _run(which: str, bootstrap: str, guarantee: str, *, stateful: bool) -> Any:
    quix_consumer.ConfluentConsumer = consumer_class(which)
    topic, group, folder = new_topic(bootstrap), new_group(), tempfile.mkdtemp()
    seen: dict[str, Any] = {}
    for turn in ("first", "again"):
        produce(bootstrap, topic, numbers(20))
        got: list[Any] = []
        app = Application(
            broker_address=bootstrap,
            consumer_group=group,
            auto_offset_reset="earliest",
            processing_guarantee=guarantee,
            state_dir=folder,
            loglevel="WARNING",
            commit_interval=1.0,
        )
        output = app.topic(f"{topic}-out", value_serializer="json")
        frame = app.dataframe(app.topic(topic, value_deserializer="string"))
        if stateful:

            def counted(value: str, state: State) -> Any:
                count = state.get("count", 0) + 1
                state.set("count", count)
                return [value, count]

            frame = frame.apply(counted, stateful=True)
        frame.update(got.append)
        frame.to_topic(output)
        app.run(count=20, timeout=20.0)
        seen[turn] = {"values": sorted(map(str, got)), "committed": committed(bootstrap, group, topic)}
    return seen


def at_least_once(which: str, bootstrap: str) -> Any:
    """Process, commit, stop and resume."""
    return _run(which, bootstrap, "at-least-once", stateful=False)


def exactly_once(which: str, bootstrap: str) -> Any:
    """Commit in transactions."""
    return _run(which, bootstrap, "exactly-once", stateful=False)


def state(which: str, bootstrap: str) -> Any:
    """Keep state in a changelog topic, which is assigned manually besides the group's partitions."""
    return _run(which, bootstrap, "at-least-once", stateful=True)
