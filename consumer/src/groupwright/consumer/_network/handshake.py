"""Handshakes of a connection, without input or output: ApiVersions, and SASL authentication.

Each is a generator: it yields a request with its version, and is sent the response.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping

from confluent_kafka import KafkaError

from groupwright.consumer._config.version import VERSION
from groupwright.consumer._network.connection_errors import RequestRefusedError
from groupwright.consumer._protocol.model import DisconnectedError
from groupwright.core.kafka_apis import API_VERSIONS, SASL_AUTHENTICATE, SASL_HANDSHAKE
from groupwright.core.wire_format import Api, Message, Request, UnsupportedVersionError

Versions = Mapping[int, tuple[int, int]]
"""By API key: the first and the last version that the broker has."""
VersionedRequest = tuple[Request, int]


def negotiate_versions() -> Generator[VersionedRequest, Message, Versions]:
    """Ask the broker for its versions, with this client's name and version (KIP-511).

    Raises:
        DisconnectedError: The broker does not say.
    """
    request = API_VERSIONS(client_software_name="groupwright", client_software_version=VERSION)
    response = yield request, API_VERSIONS.versions[1]
    if response.error_code == KafkaError.UNSUPPORTED_VERSION:
        known = {row.api_key: row.max_version for row in response.api_keys}
        response = yield request, min(API_VERSIONS.versions[1], known.get(API_VERSIONS.key, 0))
    if response.error_code:
        raise DisconnectedError(f"ApiVersions failed: {KafkaError(response.error_code).str()}")
    return {row.api_key: (row.min_version, row.max_version) for row in response.api_keys}


def authenticate(
    mechanism: str, protocol: str, versions: Versions, exchange: Generator[bytes, bytes, None]
) -> Generator[VersionedRequest, Message, float]:
    """Authenticate the client; also again on the same connection (KIP-368).

    Args:
        mechanism: ``sasl.mechanism``.
        protocol: ``security.protocol``, for messages.
        versions: The broker's.
        exchange: That of the mechanism.

    Returns:
        The seconds for which the broker accepts the connection; 0 without a limit.

    Raises:
        RequestRefusedError: The broker rejects the client, or does not have the mechanism.
    """
    response = yield SASL_HANDSHAKE(mechanism=mechanism), version_of(SASL_HANDSHAKE, versions)
    if response.error_code == KafkaError.ILLEGAL_SASL_STATE:
        raise _refused(
            response.error_code, f"its listener takes no SASL, so security.protocol {protocol} is wrong here"
        )
    if response.error_code not in {0, KafkaError.UNSUPPORTED_SASL_MECHANISM}:
        raise _refused(response.error_code, KafkaError(response.error_code).str())
    if mechanism not in response.mechanisms:
        code = KafkaError.UNSUPPORTED_SASL_MECHANISM
        raise _refused(code, f"it does not offer sasl.mechanism {mechanism}")
    message = next(exchange)
    version = version_of(SASL_AUTHENTICATE, versions)
    while True:
        response = yield SASL_AUTHENTICATE(auth_bytes=message), version
        if response.error_code:
            said = response.error_message or KafkaError(response.error_code).str()
            raise _refused(response.error_code, said)
        lifetime: float = max(0, response.session_lifetime_ms) / 1000
        try:
            message = exchange.send(response.auth_bytes)
        except StopIteration:
            return lifetime


def version_of(api: Api, versions: Versions) -> int:
    """Return the version in which a request is sent.

    Raises:
        RequestRefusedError: The broker and this client have none in common.
    """
    try:
        return api.common_version(*versions.get(api.key, (0, -1)))
    except UnsupportedVersionError as error:
        raise too_old(error) from error


def too_old(error: UnsupportedVersionError) -> RequestRefusedError:
    """Return the error of a request that has no version for this broker."""
    return RequestRefusedError(error.code, f"the broker is too old for this consumer: {error}")


def _refused(code: int, message: str) -> RequestRefusedError:
    return RequestRefusedError(code, f"the broker refused the connection: {message}")
