"""TCP ports on loopback for a broker."""

import os
import random
import socket
from collections.abc import Collection

from groupwright.testing.errors import LocalKafkaError

HOST = "127.0.0.1"

# Below the ephemeral ports. A client that keeps connecting to an ephemeral port of a stopped broker will at
# some time get that port for its own end; it then connects to itself, and the broker cannot bind it.
_CANDIDATES = range(20_000, 30_000)
_TRIES = 200


def is_free(port: int) -> bool:
    """Return whether a server could listen on the port of the loopback address now."""
    with socket.socket() as probe:
        if os.name == "posix":  # as Java's server sockets do; elsewhere the option means another thing
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((HOST, port))
            probe.listen()
        except OSError:
            return False
    return True


def free_port(*, besides: Collection[int] = ()) -> int:
    """Return a port that nothing listens on; another process may take it before it is used.

    Args:
        besides: Ports to exclude.

    Raises:
        LocalKafkaError: No free port was found.
    """
    for port in random.sample(_CANDIDATES, _TRIES):
        if port not in besides and is_free(port):
            return port
    raise LocalKafkaError(
        f"No free port on {HOST} among {_TRIES} of {_CANDIDATES.start} to {_CANDIDATES.stop - 1}"
    )


def require_free(port: int) -> int:
    """Return the port.

    Raises:
        LocalKafkaError: The port is taken, or this user may not listen on it.
    """
    if not is_free(port):
        raise LocalKafkaError(
            f"Port {port} on {HOST} cannot be listened on, most likely since another program does: end that "
            "program, or name no port to get a free one"
        )
    return port
