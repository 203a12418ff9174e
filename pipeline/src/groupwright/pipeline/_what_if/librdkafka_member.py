"""A member with librdkafka, run as a program: `librdkafka_leader` makes it the leader.

It ends with its standard input.
"""

import os
import select
import sys

from confluent_kafka import Consumer

_DAY_MS = 86_400_000
_POLL_SECONDS = 0.5


def main(port: str, topic: str, strategy: str) -> None:
    """Join the group of the coordinator at this port until standard input ends."""
    member = Consumer(
        {
            "bootstrap.servers": f"127.0.0.1:{port}",
            "group.id": "what-if",
            "partition.assignment.strategy": strategy,
            "max.poll.interval.ms": _DAY_MS,
            "session.timeout.ms": 3_600_000,
            "topic.metadata.refresh.interval.ms": -1,
            "enable.auto.commit": False,
            "log_level": 0,
        }
    )
    member.subscribe([topic])
    while not select.select([sys.stdin], [], [], 0)[0]:
        member.poll(_POLL_SECONDS)  # without polls librdkafka joins once a second
    os._exit(0)  # a clean shutdown would wait for the coordinator


if __name__ == "__main__":
    main(*sys.argv[1:])
