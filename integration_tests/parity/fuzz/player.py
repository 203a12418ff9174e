"""Plays a random program on a `Lab`.

Two runs must not differ by chance, nor by the load of the machine. So a step that brings partitions or
messages ends when nothing more is to come: the coordinator reports the group as stable, each member has the
partitions that the coordinator assigned to it, and has read them to their ends. Where that cannot be known,
the player waits for a silence. Members are named so that assignors see them in one order. A partial read
stops only where one member reads one partition.
"""

import time
from collections.abc import Callable
from typing import Any

from confluent_kafka import (
    ConsumerGroupState,
    ConsumerGroupTopicPartitions,
    KafkaException,
    Message,
    TopicPartition,
)
from confluent_kafka.admin._group import MemberDescription

from integration_tests.parity.client import Client, record
from integration_tests.parity.fuzz.programs import MESSAGES, Program
from integration_tests.parity.fuzz.tidy import tidy
from integration_tests.parity.lab import PATIENCE, Lab

_SHORT, _LONG, _JOINING = 0.15, 1.5, 6.0
"""Seconds of silence that end a read: nothing is to come, that is not known, a member has yet to join."""
_PACE = 20
"""How often the time of one request is added to these: a busy machine takes longer over all."""
_REQUEST = 2.0
"""Seconds for a request to the coordinator, at most: shorter than max.poll.interval.ms."""
_MAX_POLL_INTERVAL = 6.0
_ALL = 1_000_000
_QUIET = {"position", "assignment", "store", "store_last", "pause", "resume", "seek", "produce"}
"""Steps that hang on no automatic commit."""
_CHANGES = {
    "pause",
    "resume",
    "subscribe",
    "unsubscribe",
    "assign",
    "unassign",
    "incremental_assign",
    "incremental_unassign",
    "close",
    "commit_and_close",
    "commit_offsets",
    "from_thread",
}
"""Steps before which an assignment that waits for a poll is taken: what comes of it else is for scenarios."""
_COMMITS = {"commit", "commit_offsets", "commit_last"}
_ASSIGNS = {"assign", "incremental_assign"}
_REBALANCES = {
    "subscribe",
    "unsubscribe",
    "second_joins",
    "second_leaves",
    "stall",
    "outage",
    "grow_topic",
    "delete_topic",
}


class ChanceError(Exception):
    """Raised when chance has decided what a run does: the worker plays the program again."""


class Player:
    """Plays one program."""

    def __init__(self, lab: Lab, program: Program) -> None:
        """Make the topics and the consumer."""
        self._lab = lab
        self._program = program
        if program.breaks_kafka:
            lab.kafka  # noqa: B018 - from here on all is on a broker that may be cut off
        self._topics = [lab.topic(count, messages=MESSAGES) for count in program.partitions]
        self._ends = {
            (topic, number): MESSAGES
            for topic, count in zip(self._topics, program.partitions, strict=True)
            for number in range(count)
        }
        self._request_time = 0.0
        self._subscribed: dict[str, list[str]] = {}
        """By client id: the topics of each consumer that has subscribed."""
        self._ids: dict[str, str] = {}
        self._paused = self._hopeless = self._unpolled = self._unread = False
        """True if something was paused; a member was awaited in vain; an assignment may wait for a poll;
        nothing was read of one that was awaited."""
        self._raises = False
        """True if callbacks raise: a poll that waits would lose a message on one side, as in the table."""
        self._left = False
        """True if the consumer has left the group, and has not subscribed again."""
        self._assigned_since = False
        """True if the consumer has assigned partitions by hand since it left."""
        self._deleted: set[str] = set()
        self._taken_out: set[tuple[int, int]] = set()
        """Partitions that a cooperative member has unassigned itself."""
        self._polled = time.monotonic()
        """The time of the last poll, or of a pause that the program has."""
        self._client = self._member("c1", on_commit=record)
        self._second: Client | None = None

    def play(self) -> None:
        """Play the steps, and close.

        Raises:
            ChanceError: The trace is not to be compared.
        """
        for name, *arguments in self._program.steps:
            if self._client.closed and name not in {"position", "commit", "read"}:
                continue  # what closed consumers answer is for scenarios
            if self._unpolled and name in _CHANGES:
                self._settle(count=1)
            if self._paused and name in _REBALANCES:
                self._client.attempt("resume", self._all())  # a pause over a rebalance is the table's
                self._paused = False
                self._settle()
            if self._taken_out and name in _REBALANCES:
                self._put_back()
            if name not in _QUIET:
                self._let_auto_commit()
            self._take(name, *arguments)
        if self._unpolled:
            self._settle(count=1)
        self._let_auto_commit()
        if self._second is not None:
            self._second.attempt("close")
        if not self._client.closed:
            self._client.attempt("close")
        tidy(self._lab.trace, often=self._interval > 0, cooperative=self._cooperative)

    def _take(self, name: str, *arguments: Any) -> None:
        """Take a step, unless a row of the table says that both do it differently."""
        if not self._commits_after_leaving(name):
            self._assigned_since = self._left and (self._assigned_since or name in _ASSIGNS)
            getattr(self, f"_{name}")(*arguments)

    def _commits_after_leaving(self, name: str) -> bool:
        """Return whether a step commits partitions by hand, or has them committed, after it has left."""
        if name in _COMMITS:
            return self._left and (self._assigned_since or bool(self._owned(self._client)))
        return self._left and name in _ASSIGNS and self._program.settings["enable_auto_commit"]

    def _member(self, name: str, **settings: Any) -> Client:
        own = dict(self._program.settings)
        if name != "c1":
            own.pop("group_instance_id", None)
        client = self._lab.consumer(
            client_id=name,
            max_poll_interval_ms=int(_MAX_POLL_INTERVAL * 1000),
            socket_timeout_ms=10_000,  # and a commit that is retried in vain is over before the program is
            topic_metadata_refresh_interval_ms=1000,
            **own,
            **settings,
        )
        self._ids[client.name] = name
        return client

    # --- Waiting ------------------------------------------------------------------------------------

    def _settle(self, *, count: int = _ALL, poll: Callable[[], object] | None = None) -> None:
        """Poll until nothing more is to come, or `count` messages if one member reads one partition."""
        client = self._client
        self._unpolled = self._unread = False
        before, errors = len(client.messages), len(client.errors)
        began = quiet_since = looked = time.monotonic()
        seen: object = None
        while (polled := time.monotonic()) - began < PATIENCE:
            self._poll_all(poll or (lambda: client.poll(0.02)))
            if len(client.messages) - before >= count and self._reads_one_partition():
                return
            now, found = time.monotonic(), self._seen()
            if found != seen or now - polled > _LONG:  # the others waited for a slow callback
                seen, quiet_since = found, now
            quiet, patience = now - quiet_since, _PACE * self._request_time
            if quiet > self._short + patience and now - looked > _SHORT:
                looked = now
                stable, joined = self._group_is_stable()
                if stable and self._all_is_read():
                    return
                if joined or self._hopeless or len(client.errors) > errors:
                    over = quiet > self._long + patience
                else:
                    over = self._hopeless = quiet > _JOINING + patience
                if over:
                    return

    @property
    def _short(self) -> float:
        """The end of a partition comes a moment after its last message."""
        return 3 * _SHORT if self._program.settings["enable_partition_eof"] else _SHORT

    @property
    def _long(self) -> float:
        """Without a reset, errors of partitions come after the coordinator's answer."""
        return 2 * _LONG if self._program.settings["auto_offset_reset"] == "error" else _LONG

    def _poll_all(self, poll: Callable[[], object]) -> None:
        if self._subscribed and time.monotonic() - self._polled > 0.8 * _MAX_POLL_INTERVAL:
            raise ChanceError("the player has waited too long for commits on a busy machine")
        try:
            if self._raises:
                self._client.poll(0.0)
                time.sleep(0.005)
            else:
                poll()
        except (KafkaException, RuntimeError, ValueError):
            time.sleep(0.05)
        self._poll_second()
        self._polled = time.monotonic()

    def _poll_second(self) -> None:
        if self._second is not None:
            try:
                self._second.poll(0.0)
            except (KafkaException, RuntimeError, ValueError):
                time.sleep(0.05)

    def _seen(self) -> object:
        return [
            (len(client.messages), len(client.errors), len(client.revoked), self._owned(client))
            for client in self._clients
        ]

    @property
    def _clients(self) -> list[Client]:
        return [client for client in (self._client, self._second) if client is not None and not client.closed]

    @staticmethod
    def _owned(client: Client) -> frozenset[tuple[str, int]]:
        try:
            return frozenset((p.topic, p.partition) for p in client.raw.assignment())
        except (KafkaException, RuntimeError):
            return frozenset()

    def _reads_one_partition(self) -> bool:
        return self._second is None and len(self._owned(self._client)) == 1

    def _described(self) -> tuple[ConsumerGroupState, dict[str, list[MemberDescription]]]:
        """Ask the coordinator for the group's state, and for its members by client id."""
        began = time.monotonic()
        group = self._lab.group
        asked = self._lab.admin.describe_consumer_groups([group], request_timeout=_REQUEST)
        described = asked[group].result(2 * _REQUEST)
        self._request_time = min(0.05, max(time.monotonic() - began, self._request_time / 2))
        members: dict[str, list[MemberDescription]] = {}
        for member in described.members:
            members.setdefault(member.client_id, []).append(member)
        return described.state, members

    def _group_is_stable(self) -> tuple[bool, bool]:
        """Return whether all subscribers have their assigned partitions, and whether they are the members."""
        try:
            state, members = self._described()
        except (KafkaException, TimeoutError):
            return False, True
        joined = self._subscribed.keys() <= members.keys()
        over = state not in {
            ConsumerGroupState.PREPARING_REBALANCING,
            ConsumerGroupState.COMPLETING_REBALANCING,
        }
        same = all(
            len(members.get(self._ids[client.name], ())) == 1
            and _assigned(members[self._ids[client.name]][0]) == self._owned(client)
            for client in self._clients
            if self._ids[client.name] in self._subscribed
        )
        gone = members.keys() <= self._subscribed.keys() or "group_instance_id" in self._program.settings
        return joined and over and same and gone, joined

    def _all_is_read(self) -> bool:
        """Return whether each consumer is known to have read all that is assigned to it."""
        if self._paused and self._owned(self._client):
            return False  # which side a pause ends on is not known here
        return all(self._has_read(client) for client in self._clients)

    def _has_read(self, client: Client) -> bool:
        owned = self._owned(client)
        if self._program.settings["enable_partition_eof"] and client.unended & owned:
            return False
        try:
            positions = client.raw.position([TopicPartition(*key) for key in owned]) if owned else []
        except (KafkaException, RuntimeError):
            return False
        return all(p.offset >= self._ends.get((p.topic, p.partition), 0) for p in positions)

    def _await_membership(self) -> None:
        """Wait, without a poll, until the coordinator has what the subscription brings by itself."""
        deadline, stable_since = time.monotonic() + _JOINING, None
        while time.monotonic() < deadline:
            try:
                state, members = self._described()
            except (KafkaException, TimeoutError):
                continue
            now = time.monotonic()
            stable = state is ConsumerGroupState.STABLE and self._subscribed.keys() <= members.keys()
            stable_since = (stable_since or now) if stable else None
            self._poll_second()
            if stable_since is not None and now - stable_since > _SHORT + _PACE * self._request_time:
                return
            time.sleep(0.05)

    def _let_auto_commit(self) -> None:
        """Wait until the automatic commits that are due have been made; nothing is polled meanwhile."""
        if not self._interval or self._client.closed:
            return
        before: object = None
        deadline = time.monotonic() + _MAX_POLL_INTERVAL / 2
        while time.monotonic() < deadline:
            stored = self._stored()
            if stored == before:
                return
            before = stored
            time.sleep(3 * self._interval + _PACE * self._request_time)

    @property
    def _interval(self) -> float:
        """Seconds between automatic commits, if any come while the program runs."""
        interval = self._program.settings.get("auto_commit_interval_ms", 0) / 1000
        return interval if interval < 1 else 0.0

    def _stored(self) -> object:
        group = self._lab.group
        try:
            asked = self._lab.admin.list_consumer_group_offsets(
                [ConsumerGroupTopicPartitions(group)], request_timeout=_REQUEST
            )
            found = asked[group].result(2 * _REQUEST).topic_partitions
        except (KafkaException, TimeoutError):
            return []
        return sorted((p.topic, p.partition, p.offset) for p in found)

    # --- Reading ------------------------------------------------------------------------------------

    def _read(self, count: int) -> None:
        if self._client.closed:
            self._client.attempt("poll", 0.05)
        else:
            self._settle(count=count, poll=lambda: self._client.poll(0.05))

    def _consume(self, size: int) -> None:
        self._settle(poll=lambda: self._client.consume(size, 0.05))

    def _idle(self, seconds: float) -> None:
        self._settle()
        self._client.idle(seconds)
        self._polled = time.monotonic()

    def _stall(self) -> None:
        self._settle()
        self._be_busy()
        self._settle()

    # --- Calls --------------------------------------------------------------------------------------

    def _subscribe(self, topics: tuple[int, ...], kind: str, pause: str) -> None:
        names = [self._topics[number] for number in topics]
        if self._deleted.issuperset(names):
            return  # a subscription of which no topic exists is the table's
        if self._owned(self._client):
            self._settle()  # by hand, or kept: which of these messages come before the assignment is chance
            self._release_by_hand(kind)
            if kind == "raises" and not self._cooperative:
                kind = "record"  # the original's poll may lose what on_revoke raises, if on_assign follows it
        self._raises = kind == "raises"
        keeps = self._cooperative and bool(self._owned(self._client))
        before = self._subscribed.get("c1", [])
        if keeps and not set(before).issuperset(names):
            # To leave topics for one that librdkafka does not know yet is the table's.
            names += [topic for topic in before if topic not in names and topic not in self._deleted]
        self._client.attempt("subscribe", names, **self._callbacks(kind))
        self._polled = time.monotonic()
        self._subscribed["c1"] = names
        self._left = False
        self._hopeless = False
        if keeps:
            self._settle()
        elif pause == "settle":
            self._settle(count=1)
        else:
            self._await_membership()
            self._unpolled = True
        if pause == "assigned" and self._program.settings["auto_offset_reset"] == "latest":
            self._settle(count=1)  # where the end is looked up is chance while others produce
        elif pause == "assigned":
            self._await_assignment()

    def _release_by_hand(self, kind: str) -> None:
        """Unassign partitions that were assigned by hand, if the table has the differences that follow.

        The table has cooperative members that keep such partitions, and those whose group assigns them too.
        An eager member may be assigned the same again: its positions then say that all is read, until it
        takes the assignment. A seek in on_assign fails in the original while partitions assigned by hand
        are replaced.
        """
        subscribed = self._subscribed.get("c1")
        if subscribed is None and (self._cooperative or kind in {"none", "slow", "seeks"}):
            self._client.attempt("unassign")
        if self._cooperative:
            # From its first assignment on, a cooperative member unassigns incrementally.
            owned = sorted(self._owned(self._client))
            by_hand = [TopicPartition(*key) for key in owned if key[0] not in (subscribed or ())]
            if by_hand:
                self._client.attempt("incremental_unassign", by_hand)

    def _await_assignment(self) -> None:
        """Poll until something is assigned, and no longer: nothing is consumed yet.

        On a busy machine so much time may pass within the poll that assigns that it returns a message.
        """
        client, deadline = self._client, time.monotonic() + _JOINING
        before = len(client.messages) + len(client.errors)
        while not self._owned(self._client) and time.monotonic() < deadline:
            self._poll_all(lambda: self._client.poll(0.0))
            time.sleep(0.01)
        if len(client.messages) + len(client.errors) > before:
            raise ChanceError("a message or an error came with the assignment")
        self._unread = True

    def _callbacks(self, kind: str) -> dict[str, Callable[..., object]]:
        if kind == "none":
            return {}
        return {
            "on_assign": getattr(self, f"_on_assign_{kind}", record),
            "on_revoke": getattr(self, f"_on_revoke_{kind}", record),
            "on_lost": record,
        }

    def _on_assign_assigns(self, client: Client, partitions: list[TopicPartition]) -> None:
        client.attempt("incremental_assign" if self._cooperative else "assign", partitions)

    def _on_assign_assigns_at(self, client: Client, partitions: list[TopicPartition]) -> None:
        for partition in partitions:
            partition.offset = 3
        self._on_assign_assigns(client, partitions)

    def _on_assign_seeks(self, client: Client, partitions: list[TopicPartition]) -> None:
        self._on_assign_assigns_at(client, partitions)
        for partition in _in_order(partitions):
            client.attempt("seek", TopicPartition(partition.topic, partition.partition, 7))

    def _on_assign_pauses(self, client: Client, partitions: list[TopicPartition]) -> None:
        self._on_assign_assigns(client, partitions)
        self._paused |= bool(partitions)
        client.attempt("pause", _in_order(partitions)[:1])

    def _on_assign_raises(self, *_: object) -> None:
        raise ValueError("on_assign fails")

    def _on_assign_slow(self, *_: object) -> None:
        self._be_busy()

    def _be_busy(self) -> None:
        """Take longer than max.poll.interval.ms, while the second member polls as in a process of its own.

        Without these polls it would exceed its interval too, if its assignment came before the first
        member's, which is chance. Whether two members that both left join again in one generation is
        chance, too.
        """
        second = self._second is not None
        # With a heartbeat and a rebalance, after which the second member has what the first one left.
        deadline = time.monotonic() + _MAX_POLL_INTERVAL + (2.5 if second else 1.5)
        while time.monotonic() < deadline:
            self._poll_second()
            time.sleep(0.02)
        self._polled = time.monotonic()

    def _on_revoke_commits(self, client: Client, _: object) -> None:
        client.attempt("commit", asynchronous=False)

    def _on_revoke_commits_async(self, client: Client, _: object) -> None:
        client.attempt("commit")

    def _on_revoke_raises(self, *_: object) -> None:
        raise ValueError("on_revoke fails")

    @property
    def _cooperative(self) -> bool:
        return "cooperative" in str(self._program.settings["partition_assignment_strategy"])

    def _unsubscribe(self) -> None:
        if "group_instance_id" in self._program.settings:
            return  # whether a static member leaves is the table's
        self._client.attempt("unsubscribe")
        self._left |= self._subscribed.pop("c1", None) is not None
        self._settle()

    def _assign(self, partitions: tuple[tuple[int, int, int], ...]) -> None:
        self._client.attempt("assign", self._existing(partitions))
        self._settle(count=1)

    def _unassign(self) -> None:
        self._client.attempt("unassign")

    def _incremental_assign(self, partitions: tuple[tuple[int, int, int], ...]) -> None:
        self._client.attempt("incremental_assign", self._existing(partitions))
        self._settle(count=1)

    def _incremental_unassign(self, partitions: tuple[tuple[int, int], ...]) -> None:
        self._client.attempt("incremental_unassign", self._partitions(partitions))
        if self._cooperative and "c1" in self._subscribed:
            self._taken_out.update(partitions)

    def _put_back(self) -> None:
        """Assign them again: a revocation of what is not assigned is the table's."""
        missing = {(topic, number, -1001) for topic, number in self._taken_out}
        self._taken_out.clear()
        owned = self._owned(self._client)
        left = [p for p in self._existing(tuple(sorted(missing))) if (p.topic, p.partition) not in owned]
        if left:
            self._client.attempt("incremental_assign", left)

    def _seek(self, partition: tuple[int, int], offset: int) -> None:
        if self._unread:
            self._settle(count=1)  # librdkafka's late look-up of the start, or of an end, may undo the seek
        self._client.attempt("seek", self._partition(*partition, offset))
        self._unread |= offset < 0
        # Without a reset, an offset behind the end is an error, before or after the messages of a change.
        self._unpolled |= offset > MESSAGES and self._program.settings["auto_offset_reset"] == "error"

    def _pause(self, partitions: tuple[tuple[int, int], ...]) -> None:
        self._paused = True
        self._client.attempt("pause", self._partitions(partitions))

    def _resume(self, partitions: tuple[tuple[int, int], ...]) -> None:
        self._client.attempt("resume", self._partitions(partitions))

    def _commit(self, way: str) -> None:
        self._client.attempt("commit", asynchronous=way == "async")
        self._hear_of_commits(way)

    def _commit_offsets(self, partition: tuple[int, int], offset: int, way: str) -> None:
        self._client.attempt(
            "commit", offsets=[self._partition(*partition, offset)], asynchronous=way == "async"
        )
        self._hear_of_commits(way)

    def _commit_last(self, way: str) -> None:
        if self._client.messages:
            self._client.attempt("commit", message=self._last(), asynchronous=way == "async")
            self._hear_of_commits(way)

    def _last(self) -> Message:
        """Return the last message of the last partition: which partition's messages came last is chance."""
        last = {(message.topic(), message.partition()): message for message in self._client.messages}
        return last[max(last)]

    def _hear_of_commits(self, way: str) -> None:
        """Wait without polling until an asynchronous commit has stored its offsets, if it has any."""
        before: object = None
        deadline = time.monotonic() + _MAX_POLL_INTERVAL / 2
        while way == "async" and not self._program.breaks_kafka and time.monotonic() < deadline:
            stored = self._stored()
            if stored == before:
                return
            before = stored
            time.sleep(_SHORT + _PACE * self._request_time)

    def _store_last(self) -> None:
        if self._client.messages:
            self._client.attempt("store_offsets", message=self._last())

    def _store(self, partition: tuple[int, int], offset: int) -> None:
        self._client.attempt("store_offsets", offsets=[self._partition(*partition, offset)])

    def _position(self) -> None:
        self._client.attempt("position", self._all())

    def _committed(self) -> None:
        self._client.attempt("committed", self._all(), timeout=10)

    def _assignment(self) -> None:
        found = self._client.raw.assignment()
        self._lab.note(f"owns {len(found)} partitions")

    def _close(self) -> None:
        self._client.attempt("close")
        self._client.closed = True  # also where on_revoke has raised
        self._subscribed.pop("c1", None)

    def _commit_and_close(self) -> None:
        if not self._commits_after_leaving("commit"):
            self._client.attempt("commit")
        self._close()

    def _from_thread(self, step: tuple[Any, ...]) -> None:
        name, *arguments = step
        thread = self._lab.spawn("worker", lambda: self._take(name, *arguments))
        thread.join(PATIENCE)

    # --- The world ----------------------------------------------------------------------------------

    def _produce(self, partition: tuple[int, int], count: int) -> None:
        topic, number = partition
        self._lab.attempt("produce", lambda: self._lab.produce(self._topics[topic], count, number))
        self._ends[self._topics[topic], number] += count

    def _second_joins(self) -> None:
        if self._second is None:
            self._settle()
            self._second = self._member("c2", on_commit=record)
            # The table has which of several partitions a sticky assignor moves: here only one may move.
            topics = self._topics[-1:] if self._cooperative else self._topics
            self._second.subscribe(topics)
            self._subscribed["c2"] = topics
            self._hopeless = False
            self._settle()

    def _second_leaves(self) -> None:
        if self._second is not None:
            self._settle()
            second, self._second = self._second, None
            second.attempt("close")
            self._subscribed.pop("c2")
            self._settle()

    def _delete_topic(self, number: int) -> None:
        self._settle()
        topic = self._topics[number]
        left = {*self._topics} - self._deleted - {topic}
        if self._cooperative or not all(
            left.intersection(names) for names in (left, *self._subscribed.values())
        ):
            return  # the table has what cooperative members notice, and subscriptions without a topic
        self._deleted.add(topic)
        self._lab.attempt("delete", lambda: self._lab.delete(topic))
        self._settle_when(lambda: not self._is_assigned(topic))

    def _grow_topic(self, number: int) -> None:
        if self._second is not None:
            return  # the original's members join again once or twice, by chance, when they see the growth
        self._settle()
        topic, count = self._topics[number], self._program.partitions[number] + 1
        self._lab.attempt("grow", lambda: self._lab.grow(topic, count))
        self._ends[topic, count - 1] = 0
        # The original may else join once more, a second later, when it sees the growth.
        self._client.raw.list_topics(topic, timeout=_REQUEST)
        self._settle_when(lambda: (topic, count - 1) in self._owned(self._client))

    def _is_assigned(self, topic: str) -> bool:
        """Return whether a member owns partitions of a topic, or is to own them."""
        try:
            _, members = self._described()
        except (KafkaException, TimeoutError):
            return True
        owned = [self._owned(client) for client in self._clients]
        owned += [_assigned(member) for each in members.values() for member in each]
        return any(topic == name for keys in owned for name, _ in keys)

    def _settle_when(self, condition: Callable[[], bool]) -> None:
        """Settle once the members of the group know of a change of topics."""
        deadline = time.monotonic() + (_JOINING if self._subscribed else 0.0)
        while not condition() and time.monotonic() < deadline:
            self._poll_all(lambda: self._client.poll(0.02))
        self._settle()

    def _outage(self, seconds: float) -> None:
        self._settle()
        self._lab.link.cut()
        self._client.idle(seconds)
        self._lab.link.restore()
        self._lab.__dict__.pop(
            "admin", None
        )  # one that has lost its connection would try again only after a while
        self._lab.wait(lambda: self._lab.admin.list_topics(timeout=10), "the broker is back")
        self._polled = time.monotonic()
        self._settle()

    # --- Parts --------------------------------------------------------------------------------------

    def _partition(self, topic: int, partition: int, offset: int = -1001) -> TopicPartition:
        return TopicPartition(self._topics[topic], partition, offset)

    def _partitions(self, given: tuple[tuple[int, ...], ...]) -> list[TopicPartition]:
        return [self._partition(*each) for each in given]

    def _existing(self, given: tuple[tuple[int, int, int], ...]) -> list[TopicPartition]:
        """Leave deleted topics out: how long a broker goes on to serve one is chance."""
        return [p for p in self._partitions(given) if p.topic not in self._deleted]

    def _all(self) -> list[TopicPartition]:
        return [
            self._partition(topic, partition)
            for topic, count in enumerate(self._program.partitions)
            for partition in range(count)
        ]


def _in_order(partitions: list[TopicPartition]) -> list[TopicPartition]:
    """Sort partitions: librdkafka's order is that in which it came to know the topics."""
    return sorted(partitions, key=lambda p: (p.topic, p.partition))


def _assigned(member: MemberDescription) -> frozenset[tuple[str, int]]:
    return frozenset((p.topic, p.partition) for p in member.assignment.topic_partitions)
