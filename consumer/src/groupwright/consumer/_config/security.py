"""Security of the membership's connections: ``security.protocol``, ``sasl.*`` and ``ssl.*``.

The properties are those that librdkafka reads, so that both authenticate in the same way. Properties that the
membership's connections do not support raise `ConfigurationError` when the consumer is created.
"""

from __future__ import annotations

import importlib.util
import logging
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from groupwright.consumer._config.tokens import Tokens
from groupwright.consumer.errors import ConfigurationError
from groupwright.core.spelling import did_you_mean

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_BY_PASSWORD = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_KERBEROS = "gssapi"
MECHANISMS = (*_BY_PASSWORD, "OAUTHBEARER", "GSSAPI")
_OF_SECURITY = ("ssl.", "sasl.", "https.")


@dataclass(frozen=True, slots=True)
class Security:
    """Security of a connection. Its `repr` shows no secret."""

    protocol: str = "PLAINTEXT"
    tls: ssl.SSLContext | None = field(default=None, repr=False)
    mechanism: str | None = None
    username: str | None = field(default=None, repr=False)
    password: str | None = field(default=None, repr=False)
    kerberos_service: str = field(default="kafka", repr=False)
    kinit: bool = False
    """True if librdkafka runs kinit: when its handle is created, and again at intervals (GSSAPI only)."""
    tokens: Tokens | None = field(default=None, repr=False)

    def escaped(self, username: str) -> str:
        """Return a username as the mechanism encodes it (SCRAM: RFC 5802, section 5.1)."""
        if self.mechanism is not None and self.mechanism.startswith("SCRAM"):
            return username.replace("=", "=3D").replace(",", "=2C")
        return username


def read_security(config: Mapping[str, Any], *, verify: bool, log: logging.Logger) -> Security:
    """Read the security properties of a flattened configuration.

    Args:
        config: The configuration; other properties are ignored.
        verify: ``enable.ssl.certificate.verification``.
        log: Receives failures of ``oauth_cb``, at WARNING.

    Raises:
        ConfigurationError: A property is missing, invalid, or not supported.
    """
    protocol = str(config.get("security.protocol", "plaintext")).upper()
    if protocol not in _PROTOCOLS:
        hint = did_you_mean(protocol, _PROTOCOLS)
        raise ConfigurationError(f"security.protocol takes {', '.join(_PROTOCOLS)}{hint}")
    if protocol != "PLAINTEXT":
        _refuse_nul(config)
    tls = None
    if protocol.endswith("SSL"):
        from groupwright.consumer._config.tls import ssl_context  # for TLS alone

        tls = ssl_context(config, verify=verify)
    if not protocol.startswith("SASL"):
        return Security(protocol, tls)
    mechanism = _mechanism(config)
    return Security(
        protocol,
        tls,
        mechanism,
        username=_text(config, "sasl.username"),
        password=_text(config, "sasl.password"),
        kerberos_service=_text(config, "sasl.kerberos.service.name") or "kafka",
        kinit=_text(config, "sasl.kerberos.min.time.before.relogin") != "0",
        tokens=_tokens(config, log) if mechanism == "OAUTHBEARER" else None,
    )


def _refuse_nul(config: Mapping[str, Any]) -> None:
    """Check that no security property has a NUL character, at which librdkafka would end it."""
    for key, value in config.items():
        if key.startswith(_OF_SECURITY) and "\0" in str(value):
            raise ConfigurationError(f"{key} has a NUL character: remove it")


def _mechanism(config: Mapping[str, Any]) -> str:
    mechanism = str(config.get("sasl.mechanism", "GSSAPI")).upper()  # librdkafka's default
    if mechanism not in MECHANISMS:
        hint = did_you_mean(mechanism, MECHANISMS)
        raise ConfigurationError(f"sasl.mechanism takes {', '.join(MECHANISMS)}{hint}")
    if mechanism in _BY_PASSWORD and not (config.get("sasl.username") and config.get("sasl.password")):
        raise ConfigurationError(f"sasl.mechanism {mechanism} needs sasl.username and sasl.password")
    if mechanism == "GSSAPI" and importlib.util.find_spec(_KERBEROS) is None:
        given = (
            "sasl.mechanism GSSAPI"
            if "sasl.mechanism" in config
            else "sasl.mechanism is not set, so GSSAPI, and it"
        )
        raise ConfigurationError(
            f"{given} needs the package `{_KERBEROS}` for the connection to the coordinator: install it, or "
            "choose another mechanism"
        )
    return mechanism


def _tokens(config: Mapping[str, Any], log: logging.Logger) -> Tokens:
    callback = config.get("oauth_cb")
    if callback is None:
        if uses_oidc(config):
            # Imports http.client.
            from groupwright.consumer._config.oidc import read_oidc

            return Tokens(read_oidc(config), log, source="sasl.oauthbearer.method=oidc")
        raise ConfigurationError(
            "sasl.mechanism OAUTHBEARER needs oauth_cb, a function that takes sasl.oauthbearer.config and "
            "returns (token, expiry in seconds since the epoch), or sasl.oauthbearer.method=oidc"
        )
    if not callable(callback):
        raise ConfigurationError(f"oauth_cb takes a function, not a {type(callback).__name__}")
    return Tokens(callback, log)


def uses_oidc(config: Mapping[str, Any]) -> bool:
    """Return whether ``sasl.oauthbearer.method`` is ``oidc``.

    The caller prefers an ``oauth_cb``, as librdkafka does.

    Raises:
        ConfigurationError: The method is unknown.
    """
    method = str(config.get("sasl.oauthbearer.method", "default")).lower()
    if method not in {"default", "oidc"}:
        raise ConfigurationError("sasl.oauthbearer.method takes default or oidc: set one of them")
    return method == "oidc"


def _text(config: Mapping[str, Any], key: str) -> str | None:
    value = config.get(key)
    return None if value is None else str(value)
