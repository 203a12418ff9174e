"""TCP ports on loopback for brokers."""

import os
import random
import socket
import sys

from groupwright.testing.errors import LocalKafkaError

HOST = "127.0.0.1"

# Below the ephemeral ports. A client that keeps connecting to an ephemeral port of a stopped broker will at
# some time get that port for its own end; it then connects to itself, and the broker cannot bind it.
_CANDIDATES = range(20_000, 30_000)
_TRIES = 200
_RANDOM = random.SystemRandom()
"""Independent of the seed of `random`: test processes with equal seeds would draw equal ports."""


class PortTakenError(LocalKafkaError):
    """Another program took the port after it was found free and before the broker opened it."""


class ReservedPorts:
    """Ports of one Kafka; no other Kafka chooses them until they are released.

    A JVM needs seconds from its start to its listeners, and a stopped broker leaves its port for as long.
    Two test processes that chose the same port in such a time would each take the other's broker for theirs.

    On Linux a socket that is bound, and does not listen, holds the port: a server may listen on it beside
    that socket if both set SO_REUSEADDR, as Java's and the container engine's do. Elsewhere nothing holds it.
    """

    def __init__(self) -> None:
        """Reserve nothing yet."""
        # File descriptors, not sockets: a forked child releases nothing, and would warn of unclosed sockets.
        self._held: dict[int, int] = {}

    def choose(self) -> int:
        """Reserve a port on which no process listens, and which no process has reserved.

        Raises:
            LocalKafkaError: No free port was found.
        """
        for port in _RANDOM.sample(_CANDIDATES, _TRIES):
            if port not in self._held and self._hold(port, exclusively=True):
                return port
        raise LocalKafkaError(
            f"No free port on {HOST} among {_TRIES} of {_CANDIDATES.start} to {_CANDIDATES.stop - 1}"
        )

    def require(self, port: int) -> None:
        """Reserve a port.

        Raises:
            LocalKafkaError: The port is taken, or this user may not listen on it.
        """
        if not is_free(port):
            raise LocalKafkaError(
                f"Port {port} on {HOST} is not free, most likely because another program listens on it: end "
                "that program, or pass no port to get a free one"
            )
        if port not in self._held:
            self._hold(port, exclusively=False)

    def release(self) -> None:
        """Release all ports; may be called again."""
        held, self._held = self._held, {}
        if sys.platform == "linux":
            for descriptor in held.values():
                os.close(descriptor)

    def _hold(self, port: int, *, exclusively: bool) -> bool:
        """Reserve a port; return whether that was possible. `exclusively` fails if another process has it."""
        with socket.socket() as holder:
            try:
                if not exclusively:
                    _allow_reuse(holder)
                holder.bind((HOST, port))
            except OSError:
                return False
            _allow_reuse(holder)
            self._held[port] = holder.detach() if sys.platform == "linux" else 0
        return True


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port of the loopback address now."""
    with socket.socket() as probe:
        _allow_reuse(probe)
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a port that nothing listens on; another process may take it before it is used.

    Raises:
        LocalKafkaError: No free port was found.
    """
    reserved = ReservedPorts()
    try:
        return reserved.choose()
    finally:
        reserved.release()


def _allow_reuse(server: socket.socket) -> None:
    if os.name == "posix":  # as Java's server sockets do; elsewhere the option means another thing
        server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
