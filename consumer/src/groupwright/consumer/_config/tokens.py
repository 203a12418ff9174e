"""The tokens of SASL/OAUTHBEARER: the application's callback serves librdkafka and the membership.

librdkafka calls ``oauth_cb`` from a background thread of its own: while the consumer is constructed, and then
when four fifths of a token's life have passed, whether the application polls or not. Each token is kept for
the membership's connection too, so that the application is asked once.
"""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

OauthCallback = Callable[[str], tuple[Any, ...]]
"""confluent-kafka's: takes ``sasl.oauthbearer.config``, returns (token, expiry[, principal[,
extensions]])."""

_MINIMUM, _MAXIMUM = 2, 4


class TokenUnavailableError(Exception):
    """The application has given no token that is still valid."""


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token."""

    value: str = field(repr=False)
    expiry: float
    """Seconds since the epoch."""
    extensions: Mapping[str, str] = field(default_factory=dict, repr=False)


class Tokens:
    """The last token that the application gave."""

    def __init__(self, callback: OauthCallback, log: logging.Logger, *, source: str = "oauth_cb") -> None:
        """Wrap the application's ``oauth_cb``, or what takes its place; messages call it `source`."""
        self._source = source
        self._callback = callback
        self._log = log
        self._lock = threading.Lock()
        self._token: Token | None = None
        self._failure = "it has not been called yet"
        self._called = False

    def refresh(self, config: str) -> tuple[Any, ...]:
        """Call the application, and keep what it gives; this is what librdkafka gets as ``oauth_cb``."""
        try:
            answer = self._callback(config)
            token = _read(answer)
        except Exception as error:
            failure = f"it raised {type(error).__name__}: {error}"
            self._log.warning("%s gave no token: %s", self._source, failure)
            with self._lock:
                self._failure, self._called = failure, True
            raise
        with self._lock:
            self._token, self._failure, self._called = token, "", True
        return answer

    @property
    def asked(self) -> bool:
        """Whether the application has been asked for a token, and has answered or failed."""
        with self._lock:
            return self._called

    def current(self) -> Token:
        """Return the last token.

        Raises:
            TokenUnavailableError: there is none, or it has expired.
        """
        with self._lock:
            token, failure = self._token, self._failure
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
    """Check what ``oauth_cb`` returned; the message shows none of it."""
    if not isinstance(answer, tuple) or not _MINIMUM <= len(answer) <= _MAXIMUM:
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
    return Token(value, float(expiry), {str(key): str(word) for key, word in extensions.items()})
