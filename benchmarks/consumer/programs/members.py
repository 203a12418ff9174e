"""Group members of Groupwright or confluent-kafka, one thread each; the protocol is that of `Members.java`.

Orders: `join` and two numbers makes the members of that range subscribe; `stop` writes each member's messages
to a file and prints `done`. In these programs only, which have one member then: `leave` and its number makes
it write the file and close its consumer; `kill` makes it write the file and end by SIGKILL.

Output: `gained` or `gave` with a member's number, the time and partitions for each callback. With number and
time alone: `subscribed`; in these programs only `consumes` at the first message, `ends` before the close or
the kill, and `ended` after the close.
"""

import os
import signal
import sys
import threading
from array import array
from collections.abc import Mapping
from pathlib import Path

import confluent_kafka
from confluent_kafka import TopicPartition

from benchmarks.consumer.programs.harness import consumer_class, now, say, settings, telling_failures
from groupwright.assignors import GroupMeasurements, LoadAwareAssignor, Topic, WeightSource
from groupwright.consumer import ConfigurationError

_WAIT = 0.5
_STOP_SECONDS = 10.0


class Member:
    """A group member that consumes from `join` until it is stopped."""

    def __init__(self, number: int, consumer: confluent_kafka.Consumer, topic: str) -> None:
        """Create the member, without a subscription."""
        self.number = number
        self.received = array("q")
        """Four numbers a message: when it came, its partition, its offset, its timestamp in milliseconds."""
        self._consumer = consumer
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def join(self) -> None:
        """Subscribe and start consuming."""
        self._thread.start()

    def stop(self, folder: Path) -> None:
        """Stop consuming, without leaving the group, and write the received messages to a file."""
        self._stopping.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_SECONDS)
        (folder / f"{self.number}.received").write_bytes(self.received.tobytes())

    def close(self) -> None:
        """Leave the group."""
        self._consumer.close()

    def _run(self) -> None:
        with telling_failures():
            say("subscribed", self.number, now())
            self._consumer.subscribe(
                [self._topic], on_assign=self._gained, on_revoke=self._gave, on_lost=self._gave
            )
            while not self._stopping.is_set():
                self._receive(self._consumer.poll(_WAIT))

    def _receive(self, message: confluent_kafka.Message | None) -> None:
        if message is None:
            return
        if error := message.error():
            raise RuntimeError(error.str())
        partition, offset = message.partition(), message.offset()
        assert partition is not None  # noqa: S101 - only errors have none
        assert offset is not None  # noqa: S101 - as above
        if not self.received:
            say("consumes", self.number, now())
        self.received.extend((now(), partition, offset, message.timestamp()[1]))

    def _gained(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._say("gained", partitions)

    def _gave(self, _consumer: object, partitions: list[TopicPartition]) -> None:
        self._say("gave", partitions)

    def _say(self, word: str, partitions: list[TopicPartition]) -> None:
        if partitions:
            say(word, self.number, now(), ",".join(str(each.partition) for each in partitions))


class Heavy(WeightSource):
    """Weighs the partitions that a file names three times as heavy as others."""

    def __init__(self, file: Path) -> None:
        """Create the source; all weigh the same as long as there is no file."""
        self._file = file

    def weigh(self, topics: Mapping[str, Topic], measured: GroupMeasurements) -> dict[str, list[float]]:  # noqa: ARG002 - part of the interface
        """Return the weights."""
        heavy = set(map(int, self._file.read_text().split())) if self._file.exists() else set()
        return {
            name: [3.0 if number in heavy else 1.0 for number in range(topic.partitions)]
            for name, topic in topics.items()
        }


def make_members(given: dict[str, str]) -> dict[int, Member]:
    """Return the members of this process, by number.

    Raises:
        ConfigurationError: Groupwright does not support this assignor.
    """
    config: dict[str, str | LoadAwareAssignor] = {
        "bootstrap.servers": given["servers"],
        "group.id": given["group"],
        "auto.offset.reset": "latest",
        **{name: value for name, value in given.items() if "." in name},
    }
    if given.get("assignor") == LoadAwareAssignor.name:
        assignor = LoadAwareAssignor(weights=Heavy(Path(given["folder"]) / "heavy"))
        config["partition.assignment.strategy"] = assignor
    elif "assignor" in given:
        config["partition.assignment.strategy"] = given["assignor"]
    make = consumer_class(given["client"])
    numbers = range(int(given["first"]), int(given["last"]) + 1)
    return {number: Member(number, make(config), given["topic"]) for number in numbers}


def main() -> None:
    """Execute the orders."""
    given = settings()
    try:
        members = make_members(given)
    except ConfigurationError as error:
        say("lacks", error)
        return
    folder = Path(given["folder"])
    say("ready")
    for line in sys.stdin:
        match line.split():
            case ["join", first, last]:
                for number in range(int(first), int(last) + 1):
                    if number in members:
                        members[number].join()
            case ["leave" | "kill" as how, number] if int(number) in members:
                end(members[int(number)], folder, how)
                return
            case ["stop"]:
                for member in members.values():
                    member.stop(folder)
                say("done")
                return


def end(member: Member, folder: Path, how: str) -> None:
    """Have the only member of this process leave its group, or be killed."""
    member.stop(folder)
    say("ends", member.number, now())
    if how == "leave":
        member.close()
        say("ended", member.number, now())
    say("done")
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    with telling_failures():
        main()
