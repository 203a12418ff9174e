"""Errors of connections. Those of TLS name the setting that is probably wrong."""

from __future__ import annotations

import ssl

from confluent_kafka import KafkaError

from groupwright.consumer._protocol.model import DisconnectedError

_UNTRUSTED = frozenset({2, 18, 19, 20, 21, 27})  # X509_V_ERR_… of OpenSSL's x509_vfy.h, as the next two
_EXPIRED = frozenset({9, 10})
_NAME_MISMATCH = frozenset({62, 64})


class RequestRefusedError(DisconnectedError):
    """A request or a connection that fails again unchanged.

    TLS, credentials or authorization are wrong, or the broker is too old.
    """

    def __init__(self, code: int, message: str) -> None:
        """Create it with the broker's error `code`, or the one that librdkafka has for this failure."""
        super().__init__(message)
        self.code = code


class RequestTimedOutError(DisconnectedError):
    """A broker did not respond in time."""


class ConnectionClosedError(DisconnectedError):
    """The broker closed the connection."""


def openssl_reason(error: ssl.SSLError) -> str:
    """Return OpenSSL's name of the error; empty if Python's own code has raised it."""
    return getattr(error, "reason", None) or ""


def text_of(error: ssl.SSLError) -> str:
    """Return the error in words."""
    return (openssl_reason(error) or str(error)).replace("_", " ").lower()


def certificate_error(address: str, error: ssl.SSLCertVerificationError) -> RequestRefusedError:
    """Return the error for a broker's certificate that was not verified, with advice."""
    match error.verify_code:
        case code if code in _NAME_MISMATCH:
            advice = (
                "its addresses in bootstrap.servers and advertised.listeners must be names in the "
                "certificate, unless ssl.endpoint.identification.algorithm is none"
            )
        case code if code in _EXPIRED:
            advice = "renew it on the broker, and compare the clocks of both machines"
        case code if code in _UNTRUSTED:
            advice = "set ssl.ca.location (or ssl.ca.pem) to the authority that signed it"
        case _:
            advice = "see ssl.ca.location and ssl.crl.location"
    reason = error.verify_message.rstrip(".")
    message = f"the certificate of the broker {address} is not accepted: {reason}; {advice}"
    return RequestRefusedError(KafkaError._SSL, message)  # noqa: SLF001 - librdkafka's public code


def alert_error(message: str, error: ssl.SSLError) -> RequestRefusedError:
    """Return the error for a TLS connection that the broker closed with an alert, with advice."""
    reason = openssl_reason(error)
    if "CERTIFICATE_REQUIRED" in reason or "BAD_CERTIFICATE" in reason:  # the latter before TLS 1.3
        message += (
            "; it wants a certificate of this client that it can use: set ssl.certificate.location and "
            "ssl.key.location"
        )
    elif "CERTIFICATE_EXPIRED" in reason:
        message += "; the certificate in ssl.certificate.location has expired: renew it"
    # A Java broker sends CERTIFICATE_UNKNOWN for an expired certificate and for an unknown authority.
    elif "CERTIFICATE_" in reason or "UNKNOWN_CA" in reason:
        message += (
            "; it does not accept this client's certificate: has the one in ssl.certificate.location "
            "expired, or is it of an authority that the broker does not trust?"
        )
    return RequestRefusedError(KafkaError._SSL, message)  # noqa: SLF001 - librdkafka's public code
