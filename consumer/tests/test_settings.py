"""The table of all keys: complete, true of librdkafka, and the one that the documentation shows."""

import math
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from confluent_kafka import KafkaException

from groupwright.consumer import ConfigurationError
from groupwright.consumer._config.config import read_config
from groupwright.consumer._config.settings import ALIASES, SETTINGS, ServedBy, flatten, table

TABLES_LIBRDKAFKA = 0x02100000
"""The librdkafka whose keys the table has: 2.16, in its own notation."""

DOCUMENT = Path(__file__).parents[2] / "docs" / "configuration.md"

PYTHON_KEYS = {
    "on_commit",
    "error_cb",
    "stats_cb",
    "throttle_cb",
    "oauth_cb",
    "logger",
    "default.topic.config",
}
ELSEWHERE = {"key.deserializer", "value.deserializer"}
OWN_KEYS = {"load.check.interval.ms", "load.check.max.moves"}
LIBRARY_KEYS = sorted(set(SETTINGS) - PYTHON_KEYS - ELSEWHERE - OWN_KEYS)


def unknown(key: str) -> bool:
    """Return whether librdkafka has no such key; a wrong value does not count."""
    try:
        confluent_kafka.Consumer({"group.id": "g", "log_level": 0, key: "?"}).close()
    except KafkaException as error:
        return "No such configuration property" in error.args[0].str()
    return False


@pytest.mark.skipif(
    confluent_kafka.libversion()[1] < TABLES_LIBRDKAFKA, reason="the table has keys of a later librdkafka"
)
@pytest.mark.parametrize("key", [*LIBRARY_KEYS, *ALIASES])
def test_every_key_is_librdkafkas(key: str) -> None:
    assert not unknown(key)


@pytest.mark.parametrize("key", [key for key in SETTINGS if SETTINGS[key].limits and key not in OWN_KEYS])
def test_limits_are_librdkafkas(key: str) -> None:
    limits = SETTINGS[key].limits
    assert limits is not None
    for wrong in (limits[0] - 1, limits[1] + 1):
        with pytest.raises((KafkaException, ValueError)) as caught:
            confluent_kafka.Consumer({"group.id": "g", "log_level": 0, key: wrong})
        assert "range" in str(caught.value)
        with pytest.raises(
            ConfigurationError,
            match=rf"^{key} takes {limits[0]} to {limits[1]}, not {wrong} \(_INVALID_ARG\)$",
        ):
            read_config({"bootstrap.servers": "127.0.0.1:9", "group.id": "g", key: wrong})


@pytest.mark.parametrize("wrong", [-1, 86_400_001, "often"])
def test_an_interval_of_load_checks_is_a_number_of_milliseconds(wrong: Any) -> None:
    config = {"bootstrap.servers": "127.0.0.1:9", "group.id": "g", "load.check.interval.ms": wrong}
    with pytest.raises(ConfigurationError, match=r"^load\.check\.interval\.ms takes "):
        read_config(config)


@pytest.mark.parametrize(("given", "seconds"), [({}, 300.0), ({"load.check.interval.ms": 0}, math.inf)])
def test_the_load_is_checked_every_five_minutes_unless_told_otherwise(
    given: dict[str, Any], seconds: float
) -> None:
    config = read_config({"bootstrap.servers": "127.0.0.1:9", "group.id": "g"} | given)
    assert config.timing.load_check == seconds


@pytest.mark.parametrize(
    ("given", "moves"),
    [({}, math.inf), ({"load.check.max.moves": 0}, 0), ({"load.check.max.moves": "12"}, 12)],
)
def test_a_load_check_may_move_any_number_of_partitions_unless_told_otherwise(
    given: dict[str, Any], moves: float
) -> None:
    config = read_config({"bootstrap.servers": "127.0.0.1:9", "group.id": "g"} | given)
    assert config.load_check_max_moves == moves
    assert "load.check.max.moves" not in config.native


@pytest.mark.parametrize("wrong", [-1, 2_147_483_648, "few"])
def test_a_limit_of_moves_is_a_whole_number(wrong: Any) -> None:
    config = {"bootstrap.servers": "127.0.0.1:9", "group.id": "g", "load.check.max.moves": wrong}
    with pytest.raises(ConfigurationError, match=r"^load\.check\.max\.moves takes "):
        read_config(config)


@pytest.mark.parametrize("key", [each.key for each in SETTINGS.values() if each.by is ServedBy.REFUSED])
def test_what_nobody_serves_is_refused_with_what_to_do(key: str) -> None:
    config = {"bootstrap.servers": "127.0.0.1:9", "group.id": "g"}
    with pytest.raises(ConfigurationError) as caught:
        read_config({**config, key: "marked"})
    assert str(caught.value) == f"{key} is not supported; {SETTINGS[key].note} (_INVALID_ARG)"
    assert "marked" not in str(caught.value)

    for value in SETTINGS[key].harmless:
        assert read_config({**config, key: value.upper()}).native[key] == value.upper()


def test_every_refusal_says_what_to_do() -> None:
    assert [each.key for each in SETTINGS.values() if each.by is ServedBy.REFUSED and not each.note] == []


@pytest.mark.parametrize("key", [each.key for each in SETTINGS.values() if each.by is ServedBy.LIBRDKAFKA])
def test_what_is_librdkafkas_reaches_it_as_it_is(key: str) -> None:
    value = object()

    assert read_config({"bootstrap.servers": "127.0.0.1:9", "group.id": "g", key: value}).native[key] is value


@pytest.mark.parametrize(
    ("config", "flat"),
    [
        ({"metadata.broker.list": "a"}, {"bootstrap.servers": "a"}),
        # librdkafka sets one after the other.
        ({"sasl.mechanism": "PLAIN", "sasl.mechanisms": "GSSAPI"}, {"sasl.mechanism": "GSSAPI"}),
        ({"sasl.mechanisms": "GSSAPI", "sasl.mechanism": "PLAIN"}, {"sasl.mechanism": "PLAIN"}),
        ({"debug": None}, {"debug": None}),
        # confluent-kafka puts topic settings over the others.
        ({"default.topic.config": {"debug": "all"}, "debug": "cgrp"}, {"debug": "all"}),
    ],
)
def test_a_configuration_is_flattened_as_by_confluent_kafka(
    config: dict[str, Any], flat: dict[str, Any]
) -> None:
    assert flatten(config) == flat


def test_the_documentation_shows_the_table() -> None:
    """To mend it: put the output of `table()` between the two marks."""
    text = DOCUMENT.read_text(encoding="utf-8")

    assert text.split("<!-- keys -->\n")[1].split("\n<!-- end of keys -->")[0] == table()
