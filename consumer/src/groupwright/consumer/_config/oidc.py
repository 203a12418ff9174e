"""``sasl.oauthbearer.method=oidc``: tokens by OAuth's client-credentials grant (RFC 6749, section 4.4).

librdkafka's own OIDC client would fetch a token for librdkafka alone. `OidcClient` takes its place as
``oauth_cb``, so that librdkafka and the membership share a token. The request and the checks of its response
are librdkafka's (rdkafka_sasl_oauthbearer_oidc.c).
"""

from __future__ import annotations

import base64
import json
import re
import ssl
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from groupwright.consumer._config.tls import https_context
from groupwright.consumer.errors import ConfigurationError

_PREFIX = "sasl.oauthbearer."
_GRANT = "client_credentials"
_TIMEOUT = 20.0
"""Seconds for a request, as in librdkafka. librdkafka calls ``oauth_cb`` again 10 s after a failure."""
_MAX_RESPONSE_BYTES = 1_000_000
_MAX_REASON_LENGTH = 200
"""Characters of the endpoint's error that a message quotes."""

_NOT_IN_URL = re.compile(r"[\0-\x20\x7f]")
_INSTEAD = "write an oauth_cb that fetches the token, and leave sasl.oauthbearer.method out"


class TokenEndpointError(Exception):
    """The token endpoint could not be reached, or returned no valid token."""


@dataclass(frozen=True, slots=True)
class OidcClient:
    """Fetches tokens from one endpoint.

    An instance is an ``oauth_cb``; librdkafka calls it on its own thread.
    """

    url: str = field(repr=False)  # it may hold a password
    client_id: str = field(repr=False)
    client_secret: str = field(repr=False)
    scope: str = field(default="", repr=False)
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)
    subject_claim: str = field(default="sub", repr=False)
    tls: ssl.SSLContext | None = field(default=None, repr=False)

    def __call__(self, _config: str) -> tuple[str, float, str, dict[str, str]]:
        """Fetch a token.

        Returns:
            The token, its expiry in seconds since the epoch, its principal, and the SASL extensions.

        Raises:
            TokenEndpointError: The endpoint cannot be reached, returns an error, or something else than a
                token.
        """
        token = self._fetch().get("access_token")
        if not isinstance(token, str):
            raise TokenEndpointError(f"{self._endpoint} answered without an access_token")
        claims = _claims(token)
        expiry, principal = claims.get("exp"), claims.get(self.subject_claim)
        if not isinstance(expiry, (int, float)) or isinstance(expiry, bool) or expiry <= 0:
            raise TokenEndpointError(f"{self._endpoint} gave a token that is no JWT with a claim 'exp'")
        if not isinstance(principal, str) or not principal:
            raise TokenEndpointError(
                f"{self._endpoint} gave a token without the claim that sasl.oauthbearer.sub.claim.name names "
                "(the default is sub)"
            )
        return token, float(expiry), principal, dict(self.extensions)

    @property
    def _endpoint(self) -> str:
        """URL of the endpoint for messages: without user, password and query."""
        parts = urllib.parse.urlsplit(self.url)
        return urllib.parse.urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))

    def _fetch(self) -> Mapping[str, Any]:
        form = {"grant_type": _GRANT} | ({"scope": self.scope} if self.scope else {})
        credentials = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
        request = urllib.request.Request(  # noqa: S310 - `read_oidc` takes http and https alone
            self.url,
            urllib.parse.urlencode(form).encode(),
            {"Accept": "application/json", "Authorization": f"Basic {credentials}"},
        )
        handlers = [_NoRedirect(), *([urllib.request.HTTPSHandler(context=self.tls)] if self.tls else [])]
        # Raised outside of `except`: the context, an HTTPError, would show the URL with its query.
        try:
            with urllib.request.build_opener(*handlers).open(request, timeout=_TIMEOUT) as response:
                document = _json_object(response.read(_MAX_RESPONSE_BYTES))
        except urllib.error.HTTPError as error:
            with error:
                failure = f"answered {error.code}{_reason(error)}"
        except (OSError, HTTPException) as error:
            failure = f"cannot be reached: {getattr(error, 'reason', None) or error}"
        else:
            if document is not None:
                return document
            failure = "answered with something else than JSON"
        raise TokenEndpointError(f"{self._endpoint} {failure}")


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """Follows no redirect, which would send the client's secret to another host."""

    def redirect_request(self, *_args: Any, **_kwargs: Any) -> None:
        """Return None, so that the response is an HTTPError."""


def _json_object(data: bytes) -> dict[str, Any] | None:
    try:
        value = json.loads(data)
    except ValueError:
        return None
    return value if isinstance(value, dict) else None


def _reason(error: urllib.error.HTTPError) -> str:
    """Return the error in the response's JSON (RFC 6749, section 5.2), or an empty string."""
    try:
        fields = _json_object(error.read(_MAX_RESPONSE_BYTES)) or {}
    except (OSError, HTTPException):
        return ""
    words = [fields[key] for key in ("error", "error_description") if isinstance(fields.get(key), str)]
    return f": {': '.join(words)}"[:_MAX_REASON_LENGTH] if words else ""


def _claims(token: str) -> dict[str, Any]:
    """Return the claims of a JWT, without checking its signature; empty if it is not a JWT."""
    parts = token.split(".")
    if len(parts) < 2:  # noqa: PLR2004 - a header and claims
        return {}
    try:
        return _json_object(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4))) or {}
    except ValueError:
        return {}


def read_oidc(config: Mapping[str, Any]) -> OidcClient:
    """Read the (flattened) configuration's ``sasl.oauthbearer.*`` and ``https.ca.*``.

    Raises:
        ConfigurationError: A property is missing, invalid, or not supported.
    """
    grant = _text(config, "grant.type") or _GRANT
    if grant != _GRANT:
        raise ConfigurationError(
            f"sasl.oauthbearer.grant.type takes {_GRANT} alone: for another one, {_INSTEAD}"
        )
    values = {}
    for key in ("token.endpoint.url", "client.id", "client.secret"):
        values[key] = _text(config, key)
        if not values[key]:
            raise ConfigurationError(f"sasl.oauthbearer.method=oidc needs {_PREFIX}{key}")
    url = values["token.endpoint.url"]
    if "://" not in url:
        url = f"http://{url}"  # curl's default scheme; librdkafka uses curl
    try:
        parts = urllib.parse.urlsplit(url)
        valid = (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.port != 0
            and _NOT_IN_URL.search(url) is None
        )
    except ValueError:
        valid = False
    if not valid:
        raise ConfigurationError(
            "sasl.oauthbearer.token.endpoint.url takes an URL of the form https://host/path"
        )
    # Its user and password have no effect, as with librdkafka: the client's id and secret are sent.
    url = urllib.parse.urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
    return OidcClient(
        url,
        values["client.id"],
        values["client.secret"],
        _text(config, "scope"),
        _extensions(_text(config, "extensions")),
        _text(config, "sub.claim.name") or "sub",
        https_context(config) if parts.scheme == "https" else None,
    )


def _text(config: Mapping[str, Any], key: str) -> str:
    return str(config.get(_PREFIX + key, ""))


def _extensions(text: str) -> dict[str, str]:
    pairs = [pair.strip().partition("=") for pair in text.split(",") if pair.strip()]
    if not all(name and separator for name, separator, _ in pairs):
        raise ConfigurationError("sasl.oauthbearer.extensions takes name=value pairs, with commas between")
    return {name: value for name, _, value in pairs}
