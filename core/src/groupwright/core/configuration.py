"""A confluent-kafka configuration, read with librdkafka's defaults and by its syntax of values."""

from __future__ import annotations

import itertools
import math
import os
import re
from collections.abc import Mapping
from typing import Any

from groupwright.core.assignor_traits import is_cooperative
from groupwright.core.rebalance import Kind

DEFAULTS: Mapping[str, Any] = {
    "auto.commit.interval.ms": 5_000,
    "client.id": "rdkafka",
    "enable.auto.commit": True,
    "enable.auto.offset.store": True,
    "group.protocol": "classic",
    "heartbeat.interval.ms": 3_000,
    "max.poll.interval.ms": 300_000,
    "partition.assignment.strategy": "range,roundrobin",
    "session.timeout.ms": 45_000,
}
"""librdkafka's defaults of the settings on which a consumer's membership depends."""

STRATEGY = "partition.assignment.strategy"

_TRUE = frozenset({"true", "t", "1"})
_FALSE = frozenset({"false", "f", "0"})
_NUMBER = re.compile(r"\s*([+-]?)(?:0[xX]([0-9a-fA-F]+)|(0[0-7]*)|([1-9]\d*))")
_CONFIDENTIAL = re.compile(r"^(enable\.)?(ssl|sasl|https)[._]|^security\.|pas+w|secret|private|token|pem$")
"""Keys whose values are, or may by mistake be, secrets: a key's PEM text, say, where its path belongs."""
_SECRET = re.compile(r"[\0-\x1f]|-----BEGIN|pas+w|secret|:[^@\s]*@", re.IGNORECASE)
"""Parts of secrets that are put under other keys: PEM text, say, or an URL with a password."""
_BETWEEN_PIECES = re.compile(r"[\s,;:]+|\\n")
"""Separators at which librdkafka splits values before it shows a part of them."""
_SHORTENED = 8
"""Characters of a secret by which a shortened copy of it is found in a text."""


class Configuration:
    """A configuration with librdkafka's defaults for missing and malformed values."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Read what the application has set; values may be text, as from a file."""
        self.given = given

    def has(self, key: str) -> bool:
        """Return whether the key is set, and not empty."""
        value = self.given.get(key)
        return value is not None and value != ""

    def text(self, key: str) -> str:
        """Return a setting as text."""
        return str(self.given[key] if self.has(key) else DEFAULTS.get(key, ""))

    def milliseconds(self, key: str) -> int:
        """Return a duration in milliseconds. The setting must be one of `DEFAULTS`."""
        number = parse_integer(self.given[key]) if self.has(key) else None
        return int(DEFAULTS[key]) if number is None else number

    def seconds(self, key: str) -> float:
        """Return a duration in seconds; see `milliseconds`."""
        return self.milliseconds(key) / 1000

    def flag(self, key: str) -> bool:
        """Return a boolean. The setting must be one of `DEFAULTS`."""
        value = parse_boolean(self.text(key))
        return bool(DEFAULTS[key]) if value is None else value

    def describe(self, key: str) -> str:
        """Return a setting for a message: its key, its value, and whether that is the default."""
        text = self.text(key)
        text = text.lower() if text in {"True", "False"} else text
        return f"{key} is {text}" + ("" if self.has(key) else " (the default)")

    @property
    def strategies(self) -> list[str]:
        """Names of the assignors, by preference."""
        return strategy_names(self.given.get(STRATEGY) or DEFAULTS[STRATEGY])

    @property
    def classic(self) -> bool:
        """True if the members assign the partitions, False if the broker does (KIP-848)."""
        return self.text("group.protocol").lower() != "consumer"

    @property
    def kind(self) -> Kind:
        """The kind of the consumer's rebalances; members with assignors of both kinds are eager (KIP-429)."""
        if not self.classic:
            return Kind.CONSUMER
        cooperative = [
            "cooperative" in name if (known := is_cooperative(name)) is None else known
            for name in self.strategies
        ]
        return Kind.COOPERATIVE if all(cooperative) else Kind.EAGER

    @property
    def protocol(self) -> str:
        """The assignors' names: librdkafka does not report which of them the group voted for."""
        return ",".join(self.strategies) if self.classic else self.text("group.remote.assignor") or "consumer"


def parse_integer(value: object) -> int | None:
    """Return a number as librdkafka reads it (C's strtol), or None for no number.

    6000.5 is 6000, 0x10 is 16, and 010 is 8.
    """
    if isinstance(value, float):
        return int(value) if math.isfinite(value) else None
    found = _NUMBER.match(str(value))
    if found is None:
        return None
    sign, hexadecimal, octal, decimal = found.groups()
    digits, base = next((text, base) for text, base in ((hexadecimal, 16), (octal, 8), (decimal, 10)) if text)
    return int(sign + digits, base)


def parse_boolean(value: object) -> bool | None:
    """Return a boolean as librdkafka reads it; None if it is neither."""
    word = str(value).lower()
    return word in _TRUE if word in _TRUE | _FALSE else None


def strategy_names(strategy: object) -> list[str]:
    """Return the assignors' names in a ``partition.assignment.strategy``.

    Args:
        strategy: Names in a text, an assignor with a name, or a list of both.
    """
    if isinstance(strategy, str):
        return [name.strip() for name in strategy.split(",")]
    given = strategy if isinstance(strategy, (list, tuple)) else [strategy]
    return [each.strip() if isinstance(each, str) else str(getattr(each, "name", each)) for each in given]


def is_public(key: object, value: object) -> bool:
    """Return whether messages, logs and metrics may show a setting's value.

    Of ``ssl.*``, ``sasl.*`` and their like, only the path of a file that exists is public. Keys may be of a
    wrong type, about which librdkafka's rejection is a message.
    """
    if value is None or isinstance(value, bool):
        return True
    if _CONFIDENTIAL.search(key.decode(errors="replace") if isinstance(key, bytes) else str(key)):
        return isinstance(value, (str, os.PathLike)) and os.path.exists(value)  # noqa: PTH110 - Path.exists may raise
    return isinstance(value, (int, float)) or (isinstance(value, str) and not _SECRET.search(value))


def shown(key: str, value: object) -> str:
    """Return a setting's value for a message, or ``the given value`` if it is not public."""
    return repr(value) if is_public(key, value) else "the given value"


def without_secrets(text: str, config: Mapping[Any, Any]) -> str:
    """Return another library's message with ``...`` for the configuration's values that are not public."""
    for key, value in config.items():
        if callable(value) or is_public(key, value):
            continue
        secret = str(value).partition("\0")[0]  # C's strings end there
        pieces = [piece for piece in _BETWEEN_PIECES.split(secret) if len(piece) >= _SHORTENED]
        for each in (secret, *pieces):
            text = _without(text, each)
    return text


def _without(text: str, secret: str) -> str:
    """Return the text with ``...`` for a secret, and for beginnings of a long one."""
    if len(secret) < _SHORTENED:
        # Not inside of other words: a short value may be a part of them.
        return re.sub(rf"(?<!\w){re.escape(secret)}(?!\w)", "...", text) if secret else text
    while (start := text.find(secret[:_SHORTENED])) >= 0:
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(secret, text[start:], strict=False))
        text = f"{text[:start]}...{text[start + sum(1 for _ in same) :]}"
    return text


def public_settings(config: Mapping[Any, Any]) -> dict[str, object]:
    """Return the settings with public values, without functions, and with assignors by their names."""
    public: dict[str, object] = {
        key: value
        for key, value in config.items()
        if isinstance(key, str) and isinstance(value, (str, int, float)) and is_public(key, value)
    }
    strategy = config.get(STRATEGY)
    if strategy is not None and STRATEGY not in public:
        public[STRATEGY] = ",".join(strategy_names(strategy))
    return public
