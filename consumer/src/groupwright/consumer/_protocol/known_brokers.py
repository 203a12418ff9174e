"""Known brokers: which one to ask next, and how each has failed.

A member asks any broker for its coordinator, for metadata, and for the leaders of partitions. The brokers
that the cluster has named and `bootstrap.servers` are one list, from which no failure removes an address. So
bootstrapping again (KIP-899, KIP-1102) needs no step and no time of its own.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

DEFAULT_PORT = 9092
_LARGEST_PORT = 65_535
_FIRST_STAGGER = 0.25  # seconds, as in RFC 8305, section 5
_LONGEST_STAGGER = 1.0
_FORMER_BROKERS = 100
"""Addresses kept of brokers that the cluster no longer names. The oldest are dropped."""
_NAMED_FAILURES = 8
"""Brokers that an error message lists."""


class Address(NamedTuple):
    """A broker's address."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return ``host:port``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_addresses(servers: str) -> list[Address]:
    """Return the addresses of `bootstrap.servers`, without duplicates; a protocol before ``://`` is dropped.

    Raises:
        ValueError: A port is no number from 0 to 65535.
    """
    found: dict[Address, None] = {}
    for server in filter(None, (each.strip() for each in servers.split(","))):
        rest = server.rpartition("://")[2]
        if rest.startswith("["):
            host, _, port = rest[1:].partition("]")
            port = port.removeprefix(":")
        elif rest.count(":") > 1:
            host, port = rest, ""  # an IPv6 address without a port
        else:
            host, _, port = rest.partition(":")
        number = int(port) if port else DEFAULT_PORT
        if not 0 <= number <= _LARGEST_PORT:
            raise ValueError(f"{server!r} has the port {number}")
        found[Address(host, number)] = None
    return list(found)


@dataclass(frozen=True, slots=True)
class ConnectionBackoff:
    """Pauses between two attempts to connect to an address, in seconds (KIP-144)."""

    first: float = 0.1
    longest: float = 0.25


@dataclass(slots=True)
class _Record:
    """The history of one address.

    Attributes:
        attempts: Attempts that are under way.
        began_at: Monotonic time at which the oldest of them began, in seconds.
        refusals: Connections in a row that failed.
        failed_connections: Connections that failed, in all.
        silences: Requests in a row that timed out.
        connect_at: Monotonic time before which no connection is made, in seconds.
        failed_at: Monotonic time of the last failure since the last success, or None.
    """

    attempts: int = 0
    began_at: float = math.inf
    refusals: int = 0
    failed_connections: int = 0
    silences: int = 0
    connect_at: float = -math.inf
    failed_at: float | None = None


class KnownBrokers:
    """The addresses that may answer a request which any broker answers."""

    def __init__(
        self,
        bootstrap: Iterable[Address],
        backoff: ConnectionBackoff | None = None,
        *,
        rebootstraps: bool = True,
        chance: random.Random | None = None,
    ) -> None:
        """Start with `bootstrap.servers`.

        Args:
            bootstrap: The addresses of `bootstrap.servers`.
            backoff: Pauses between connections.
            rebootstraps: Whether the bootstrap servers are still asked when the cluster has named its brokers
                (`metadata.recovery.strategy` is not `none`).
            chance: Shuffles the addresses, so that the members of a group do not all ask the same broker.
        """
        self._backoff = backoff or ConnectionBackoff()
        self._rebootstraps = rebootstraps
        self._chance = chance or random.Random()  # noqa: S311 - no secret
        self._bootstrap: list[Address] = []
        self._named: dict[int, Address] = {}
        """Addresses in the newest metadata, by node id, in the order in which they are asked."""
        self._former: dict[Address, None] = {}
        """Addresses that the cluster named earlier, oldest first."""
        self._records: dict[Address, _Record] = {}
        self._failures: dict[Address, str] = {}
        self.cluster_id: str | None = None
        """Id of the cluster that named the brokers; None if it has none."""
        self.set_bootstrap(bootstrap)

    # --- Addresses

    def set_bootstrap(self, addresses: Iterable[Address]) -> None:
        """Replace the bootstrap servers by the canonical names of a new resolution."""
        self._bootstrap = list(dict.fromkeys(addresses))
        self._chance.shuffle(self._bootstrap)

    @property
    def bootstrap(self) -> list[Address]:
        """The bootstrap servers, in the order in which they are asked."""
        return self._bootstrap.copy()

    @property
    def has_metadata(self) -> bool:
        """True if the cluster has named its brokers."""
        return bool(self._named)

    def address_of(self, broker: int) -> Address | None:
        """Return the newest address of a broker, or None if the cluster has never named it."""
        return self._named.get(broker)

    def is_named(self, address: Address) -> bool:
        """Return whether the newest metadata has this address."""
        return address in self._named.values()

    def learn(self, brokers: Mapping[int, Address], cluster_id: str | None, source: Address) -> bool:
        """Take the addresses of a Metadata response from `source`; those that it leaves out are asked last.

        A broker that starts, or that the controller has fenced, names none: this changes nothing.

        Returns:
            False if another cluster answers at the address of a broker, which was given to that cluster: its
            brokers are not taken. If it answers at a bootstrap server, it replaces the former cluster.
        """
        if self.cluster_id is not None and cluster_id is not None and cluster_id != self.cluster_id:
            if source not in self._bootstrap:
                return False
            self._named, self._former = {}, {}
        self.cluster_id = cluster_id or self.cluster_id
        if brokers:
            before = self._named
            kept = [node for node, address in before.items() if brokers.get(node) == address]
            new = [node for node in brokers if node not in kept]
            self._chance.shuffle(new)
            # Those on new addresses first: the others may be about to move.
            self._named = {node: brokers[node] for node in (*new, *kept)}
            self._retire(address for address in before.values())
        return True

    def learn_one(self, broker: int, address: Address) -> None:
        """Take the address of one broker, which FindCoordinator's response has named."""
        before = self._named.get(broker)
        if before != address:
            self._named[broker] = address
            if before is not None:
                self._retire([before])

    def _retire(self, addresses: Iterable[Address]) -> None:
        named = set(self._named.values())
        for address in addresses:
            self._former.pop(address, None)
            self._former[address] = None
        self._former = {address: None for address in self._former if address not in named}
        while len(self._former) > _FORMER_BROKERS:
            oldest = next(iter(self._former))
            del self._former[oldest]
            self._records.pop(oldest, None)
            self._failures.pop(oldest, None)

    # --- Which to ask

    def order(self, now: float, connected: Collection[Address] = ()) -> list[Address]:
        """Return all addresses, in the order in which to ask them.

        Those that have not failed since they last answered come first, connected ones before others; then
        those whose failure is longest ago; at last those that keep an attempt waiting, or to which no
        connection may be made yet. Among equals, the newest metadata's brokers take turns with the bootstrap
        servers, and former brokers follow, newest first.
        """
        named = list(dict.fromkeys(self._named.values()))
        bootstrap = self._bootstrap if self._rebootstraps or not named else []
        turns: dict[Address, None] = {}
        for index in range(max(len(named), len(bootstrap))):
            turns.update(dict.fromkeys(named[index : index + 1] + bootstrap[index : index + 1]))
        turns.update(dict.fromkeys(reversed(self._former)))
        places = {address: place for place, address in enumerate(turns)}

        def key(address: Address) -> tuple[bool, float, float, bool, int]:
            record = self._records.get(address) or _Record()
            failed_at = -math.inf if record.failed_at is None else record.failed_at
            waits_until = record.connect_at if record.connect_at > now else -math.inf
            is_slow = record.attempts > 0 and now - record.began_at > _FIRST_STAGGER
            return is_slow, waits_until, failed_at, address not in connected, places[address]

        return sorted(turns, key=key)

    def delay(self, address: Address, now: float) -> float:
        """Return the seconds until a connection to an address may be made."""
        record = self._records.get(address)
        return 0.0 if record is None else max(0.0, record.connect_at - now)

    def timeout(self, address: Address, first: float, longest: float) -> float:
        """Return the timeout of a request to an address, in seconds.

        It starts at `first`, and doubles with each request in a row that timed out: a slow network is no
        reason never to get an answer.
        """
        record = self._records.get(address)
        silences = 0 if record is None else min(record.silences, 30)
        return min(longest, first * 2.0**silences)

    def failed_connections(self, address: Address) -> int:
        """Return how many connections to an address have failed.

        Each begins at another of a name's addresses: a broker may accept connections and not answer. One that
        was opened is where the next one begins.
        """
        record = self._records.get(address)
        return 0 if record is None else record.failed_connections

    # --- What came of it

    def begins(self, address: Address, now: float) -> None:
        """Record that an attempt begins; `ends` must follow."""
        record = self._record(address)
        if not record.attempts:
            record.began_at = now
        record.attempts += 1

    def ends(self, address: Address) -> None:
        """Record that an attempt has ended, however it went."""
        record = self._records.get(address)
        if record is not None:
            record.attempts = max(0, record.attempts - 1)

    def answered(self, address: Address) -> None:
        """Record an answer."""
        record = self._record(address)
        record.silences, record.failed_at = 0, None

    def failed(self, address: Address, reason: str, now: float, *, timed_out: bool = False) -> None:
        """Record why a broker could not be asked, or why its answer is of no use."""
        record = self._record(address)
        record.failed_at = now
        record.silences += timed_out
        self._failures[address] = reason

    def connected(self, address: Address) -> None:
        """Record that a connection was established."""
        record = self._record(address)
        record.refusals, record.connect_at = 0, -math.inf

    def not_connected(self, address: Address, now: float) -> float:
        """Record that a connection failed; return the seconds before the next one: exponential, +-20 %."""
        record = self._record(address)
        record.refusals = min(record.refusals + 1, 30)
        record.failed_connections += 1
        pause = min(self._backoff.longest, self._backoff.first * 2.0 ** (record.refusals - 1))
        pause *= 0.8 + 0.4 * self._chance.random()
        record.connect_at = now + pause
        return pause

    def retry_now(self) -> None:
        """Allow connections to all addresses at once, such as after new credentials."""
        for record in self._records.values():
            record.refusals, record.connect_at = 0, -math.inf

    # --- How each has failed

    def found(self) -> None:
        """Forget the reasons of failures: the coordinator was found."""
        self._failures.clear()

    @property
    def all_failed(self) -> bool:
        """True if every address has failed since the coordinator was last found."""
        return all(address in self._failures for address in self.order(0.0))

    def describe_failures(self) -> str:
        """Return each broker that was asked in vain since the coordinator was last found, with the reason."""
        return describe(self._failures)

    def _record(self, address: Address) -> _Record:
        return self._records.setdefault(address, _Record())


def stagger(asked: int) -> float:
    """Return the seconds after which one more broker is asked, if `asked` have not answered (RFC 8305)."""
    return min(_LONGEST_STAGGER, _FIRST_STAGGER * 2.0 ** min(max(asked - 1, 0), 10))


def describe(failures: Mapping[Address, str]) -> str:
    """Return the reasons of failures in one line, each with its address unless the reason has it."""
    parts = [
        reason if str(address) in reason else f"{address}: {reason}"
        for address, reason in list(failures.items())[:_NAMED_FAILURES]
    ]
    more = len(failures) - len(parts)
    return "; ".join(parts) + (f"; and {more} more brokers" if more > 0 else "")
