"""Tokens of SASL/OAUTHBEARER, shared by librdkafka and the membership's connections.

librdkafka calls ``oauth_cb`` on a background thread of its own, whether the application polls or not: while
the consumer is constructed, and again after four fifths of a token's lifetime. `Tokens` wraps the callback
and keeps the token for the membership's connections, so that one call serves both.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

OauthCallback = Callable[[str], tuple[Any, ...]]
"""confluent-kafka's ``oauth_cb``: takes ``sasl.oauthbearer.config``, returns (token, expiry in seconds since
the epoch[, principal[, extensions]])."""

_MIN_FIELDS, _MAX_FIELDS = 2, 4


class TokenUnavailableError(Exception):
    """There is no valid token: ``oauth_cb`` was not called yet, raised, or its last token has expired."""


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token."""

    value: str = field(repr=False)
    expiry: float
    """Seconds since the epoch."""
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


class Tokens:
    """The last token that ``oauth_cb`` returned. Safe to use from any thread."""

    def __init__(self, callback: OauthCallback, log: logging.Logger, *, source: str = "oauth_cb") -> None:
        """Start without a token.

        Args:
            callback: The application's ``oauth_cb``, or the OIDC client.
            log: Receives the failures of `callback`, at WARNING.
            source: Name of the callback in messages.
        """
        self._source = source
        self._callback = callback
        self._log = log
        # Without a lock, so each method writes and reads these in an order that fits the others.
        self._token: Token | None = None
        self._failure = "it has not been called yet"
        self._called = False

    def refresh(self, config: str) -> tuple[Any, ...]:
        """Call the callback and keep its token; librdkafka calls this as its ``oauth_cb``.

        Raises:
            Exception: The callback's exception, TypeError if it returned something else than a token, or
                ValueError if the token has expired.
        """
        try:
            answer = self._callback(config)
        except Exception as error:
            self._fail(f"it raised {type(error).__name__}: {error}")
            raise
        try:
            token = _read(answer)
        except (TypeError, ValueError) as error:
            self._fail(str(error))
            raise
        self._token = token
        self._failure = ""
        self._called = True
        return answer

    def _fail(self, failure: str) -> None:
        self._log.warning("%s gave no token: %s", self._source, failure)
        self._failure = failure
        self._called = True

    @property
    def failure(self) -> str:
        """The reason why there is no token, or an empty text."""
        failure = self._failure
        return f"{self._source} gave no token: {failure}" if failure else ""

    @property
    def was_called(self) -> bool:
        """True if the callback was called at least once, and has returned or raised."""
        return self._called

    def current(self) -> Token:
        """Return the last token.

        Raises:
            TokenUnavailableError: There is none, or it has expired.
        """
        failure = self._failure
        token = self._token
        if token is None:
            raise TokenUnavailableError(f"{self._source} has given no token: {failure}")
        if token.expiry <= time.time():
            age = time.time() - token.expiry
            why = (
                f"when it was called for another, {failure}"
                if failure
                else "expiry is in seconds since the epoch"
            )
            raise TokenUnavailableError(f"the last token of {self._source} expired {age:.0f} s ago; {why}")
        return token


def _read(answer: object) -> Token:
    """Return the token in the result of ``oauth_cb``.

    The error message does not show the result: it is a secret.

    Raises:
        TypeError: It is no such tuple.
        ValueError: The token has expired.
    """
    if not isinstance(answer, tuple) or not _MIN_FIELDS <= len(answer) <= _MAX_FIELDS:
        raise TypeError(
            "oauth_cb must return (token, expiry in seconds since the epoch[, principal[, extensions]])"
        )
    value, expiry, *rest = answer
    extensions = rest[1] if len(rest) > 1 else {}
    if (
        not isinstance(value, str)
        or not isinstance(expiry, (int, float))
        or not all(isinstance(principal, str) for principal in rest[:1])
        or not isinstance(extensions, dict)
    ):
        raise TypeError(
            "oauth_cb must return a token and a principal as str, an expiry as float, extensions as dict"
        )
    age = time.time() - expiry
    if age >= 0:
        raise ValueError(
            f"it returned a token that expired {age:.0f} s ago; expiry is in seconds since the epoch"
        )
    return Token(value, float(expiry), {str(key): str(word) for key, word in extensions.items()})
