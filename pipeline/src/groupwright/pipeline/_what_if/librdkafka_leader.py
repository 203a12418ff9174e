"""librdkafka as a group's leader, to call its assignors.

librdkafka does not export its assignors, but a leader calls them. So a member with librdkafka, a process of
its own, joins a coordinator in this process, which makes it the leader of any members: it answers JoinGroup
with the members to assign, and takes the assignment from SyncGroup, which it rejects with
REBALANCE_IN_PROGRESS, so that the member joins again.
"""

import queue
import socketserver
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Any

from groupwright.assignors import AssignorError

_SECONDS = 60.0
"""Time for an assignment, and for the first join."""
_CHECK_SECONDS = 0.2
_END_SECONDS = 5.0
_MEMBER = Path(__file__).with_name("librdkafka_member.py")
_TOPIC = "__groupwright_what_if"
"""The topic that the member subscribes to."""
_LEADER = "leader"


class _Api(IntEnum):
    """Numbers of the requests."""

    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    API_VERSIONS = 18


_VERSIONS = {
    _Api.FETCH: 4,
    _Api.LIST_OFFSETS: 1,
    _Api.METADATA: 1,
    _Api.OFFSET_COMMIT: 7,
    _Api.OFFSET_FETCH: 1,
    _Api.FIND_COORDINATOR: 0,
    _Api.JOIN_GROUP: 5,
    _Api.HEARTBEAT: 3,
    _Api.LEAVE_GROUP: 1,
    _Api.SYNC_GROUP: 3,
    _Api.API_VERSIONS: 0,
}
"""The only version of each request. librdkafka demands some that it never sends."""
_UNSUPPORTED_VERSION, _UNKNOWN_TOPIC, _REBALANCE_IN_PROGRESS = 35, 3, 27


@dataclass(frozen=True, slots=True)
class GroupMember:
    """A member to assign partitions to: its id, its `group.instance.id`, and its subscription as bytes."""

    id: str
    instance_id: str | None
    subscription: bytes


class LibrdkafkaLeader:
    """Calls an assignor of librdkafka, in a process that `close` ends.

    librdkafka aborts its process for some groups, so it does not run in this one. The next call starts
    another.
    """

    def __init__(self, strategy: str) -> None:
        """Prepare it; the process starts with the first call.

        Args:
            strategy: librdkafka's `partition.assignment.strategy`.
        """
        self._strategy = strategy
        self._member: _Member | None = None

    def assign(self, members: Sequence[GroupMember], topics: Mapping[str, int]) -> dict[str, bytes]:
        """Return the assignments, encoded, by member id.

        Args:
            members: The members.
            topics: Number of partitions by topic.

        Raises:
            AssignorError: librdkafka has no result, ends its process, or takes longer than 60 s.
        """
        if self._member is None:
            self._member = _Member(self._strategy)
        try:
            return self._member.assign(members, topics)
        except AssignorError:
            self.close()
            raise

    def close(self) -> None:
        """End the member's process."""
        if self._member is not None:
            self._member.close()
            self._member = None


class _Member:
    """A member's process, and its coordinator."""

    def __init__(self, strategy: str) -> None:
        self._coordinator = _Coordinator(strategy)
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        port = str(self._coordinator.server_address[1])
        self._process = subprocess.Popen(  # noqa: S603 - this package's own program
            [sys.executable, _MEMBER, port, _TOPIC, strategy],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=self._errors,
        )
        self._thread = threading.Thread(
            target=self._coordinator.serve_forever,
            args=(_CHECK_SECONDS,),
            name="librdkafka-leader",
            daemon=True,
        )
        self._thread.start()

    def assign(self, members: Sequence[GroupMember], topics: Mapping[str, int]) -> dict[str, bytes]:
        coordinator = self._coordinator
        coordinator.topics = {_TOPIC: 1, **topics}
        coordinator.groups.put(members)
        deadline = time.monotonic() + _SECONDS
        while time.monotonic() < deadline:
            try:
                found = coordinator.results.get(timeout=_CHECK_SECONDS)
            except queue.Empty:
                if (status := self._process.poll()) is not None:
                    raise AssignorError(self._ended(status)) from None
                continue
            if found is None:
                raise AssignorError("librdkafka's assignor has failed")
            return found
        raise AssignorError(f"librdkafka's assignor has taken longer than {_SECONDS:.0f} s")

    def _ended(self, status: int) -> str:
        self._errors.seek(0)
        said = self._errors.read().decode(errors="replace").strip()
        return f"librdkafka's assignor has ended its process with {status}{said and f': {said[-300:]}'}"

    def close(self) -> None:
        self._coordinator.groups.put(None)  # ends the thread of a JoinGroup that waits
        if self._process.stdin is not None:
            self._process.stdin.close()
        try:
            self._process.wait(_END_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._coordinator.shutdown()
        self._thread.join()
        self._coordinator.server_close()
        self._errors.close()


class _Coordinator(socketserver.ThreadingTCPServer):
    """A broker that knows as much of Kafka's protocol as a leader needs.

    Attributes:
        groups: The groups to assign, each sent with the next JoinGroup response; None ends its connection.
        results: The assignments; None if the leader joins again instead of sending them.
        topics: Number of partitions by topic.
        is_assigning: Whether the leader has a group, and has not sent its assignment.
    """

    daemon_threads = True

    def __init__(self, strategy: str) -> None:
        super().__init__(("127.0.0.1", 0), _Connection)
        self.strategy = strategy
        self.groups: queue.Queue[Sequence[GroupMember] | None] = queue.Queue()
        self.results: queue.Queue[dict[str, bytes] | None] = queue.Queue()
        self.topics: Mapping[str, int] = {}
        self.is_assigning = False
        self._generation = 0

    def respond(self, api: int, version: int, request: "_Reader") -> bytes | None:
        """Return the response to a request; None to close the connection."""
        match api:
            case _Api.API_VERSIONS:
                response = self._api_versions(version)
            case _Api.METADATA:
                response = self._metadata(request)
            case _Api.FIND_COORDINATOR:
                response = _pack("hi", 0, 1) + self._address()
            case _Api.JOIN_GROUP:
                return self._join_group()
            case _Api.SYNC_GROUP:
                response = self._sync_group(request)
            case _Api.HEARTBEAT:
                response = _pack("ih", 0, 0)
            case _:
                return None
        return response

    @staticmethod
    def _api_versions(version: int) -> bytes:
        error = _UNSUPPORTED_VERSION if version else 0
        return _pack("h", error) + _array(_pack("hhh", key, only, only) for key, only in _VERSIONS.items())

    def _address(self) -> bytes:
        return _string("127.0.0.1") + _pack("i", self.server_address[1])

    def _metadata(self, request: "_Reader") -> bytes:
        number = request.number("i")
        names = list(self.topics) if number < 0 else [request.string() or "" for _ in range(number)]
        broker = _pack("i", 1) + self._address() + _string(None)
        topics = (self._topic(name, self.topics.get(name, 0)) for name in names)
        return _array([broker]) + _pack("i", 1) + _array(topics)

    @staticmethod
    def _topic(name: str, partitions: int) -> bytes:
        replicas = _array([_pack("i", 1)])
        listed = (_pack("hii", 0, number, 1) + replicas + replicas for number in range(partitions))
        return _pack("h", 0 if partitions else _UNKNOWN_TOPIC) + _string(name) + b"\0" + _array(listed)

    def _join_group(self) -> bytes | None:
        if self.is_assigning:
            self.is_assigning = False
            self.results.put(None)
        members = self.groups.get()
        if members is None:
            return None
        self._generation += 1
        self.is_assigning = True
        listed = (
            _string(member.id) + _string(member.instance_id) + _bytes(member.subscription)
            for member in members
        )
        leader = _string(_LEADER) * 2
        return _pack("ihi", 0, 0, self._generation) + _string(self.strategy) + leader + _array(listed)

    def _sync_group(self, request: "_Reader") -> bytes:
        for kind in ("string", "i", "string", "string"):  # group, generation, member, instance
            request.string() if kind == "string" else request.number(kind)
        assignments = {request.string() or "": request.data() for _ in range(request.number("i"))}
        self.is_assigning = False
        self.results.put(assignments)
        return _pack("ih", 0, _REBALANCE_IN_PROGRESS) + _bytes(b"")


class _Connection(socketserver.StreamRequestHandler):
    server: _Coordinator

    def handle(self) -> None:
        """Respond to requests until either side closes the connection."""
        with suppress(ConnectionError):  # the member has ended
            while len(size := self.rfile.read(4)) == 4:  # noqa: PLR2004 - an int32
                request = _Reader(self.rfile.read(struct.unpack(">i", size)[0]))
                api, version, correlation = request.number("h"), request.number("h"), request.number("i")
                request.string()  # the client's id
                response = self.server.respond(api, version, request)
                if response is None:
                    return
                self.wfile.write(_pack("ii", len(response) + 4, correlation) + response)


class _Reader:
    """Reader of Kafka's primitive types."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def number(self, form: str) -> int:
        (found,) = struct.unpack_from(f">{form}", self._data, self._at)
        self._at += struct.calcsize(f">{form}")
        return int(found)

    def string(self) -> str | None:
        length = self.number("h")
        return None if length < 0 else self._take(length).decode()

    def data(self) -> bytes:
        return self._take(max(0, self.number("i")))

    def _take(self, length: int) -> bytes:
        self._at += length
        return self._data[self._at - length : self._at]


def _pack(form: str, *values: Any) -> bytes:
    return struct.pack(f">{form}", *values)


def _string(text: str | None) -> bytes:
    if text is None:
        return _pack("h", -1)
    data = text.encode()
    return _pack("h", len(data)) + data


def _bytes(data: bytes) -> bytes:
    return _pack("i", len(data)) + data


def _array(items: Iterable[bytes]) -> bytes:
    listed = list(items)
    return _pack("i", len(listed)) + b"".join(listed)
