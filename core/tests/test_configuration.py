"""A confluent-kafka configuration, read with librdkafka's defaults."""

import pytest

from groupwright.core import Kind
from groupwright.core.configuration import (
    Configuration,
    parse_boolean,
    parse_integer,
    public_settings,
    strategy_names,
    without_secrets,
)


class Named:
    name = "mine"


def test_what_is_missing_or_malformed_is_librdkafkas_default() -> None:
    config = Configuration(
        {"session.timeout.ms": "soon", "heartbeat.interval.ms": "", "enable.auto.commit": "maybe"}
    )

    assert config.milliseconds("session.timeout.ms") == 45_000
    assert config.seconds("heartbeat.interval.ms") == 3.0
    assert config.flag("enable.auto.commit")
    assert config.text("client.id") == "rdkafka"
    assert config.describe("heartbeat.interval.ms") == "heartbeat.interval.ms is 3000 (the default)"


@pytest.mark.parametrize(
    ("given", "kind", "protocol"),
    [
        ({}, Kind.EAGER, "range,roundrobin"),
        ({"partition.assignment.strategy": "cooperative-sticky"}, Kind.COOPERATIVE, "cooperative-sticky"),
        ({"partition.assignment.strategy": "load-aware"}, Kind.COOPERATIVE, "load-aware"),
        ({"partition.assignment.strategy": "cooperative-mine"}, Kind.COOPERATIVE, "cooperative-mine"),
        (
            {"partition.assignment.strategy": "cooperative-sticky,range"},
            Kind.EAGER,
            "cooperative-sticky,range",
        ),
        ({"partition.assignment.strategy": [Named(), "range"]}, Kind.EAGER, "mine,range"),
        ({"group.protocol": "consumer"}, Kind.CONSUMER, "consumer"),
        ({"group.protocol": "CONSUMER", "group.remote.assignor": "uniform"}, Kind.CONSUMER, "uniform"),
    ],
)
def test_the_kind_of_rebalances_and_the_assignors_name(
    given: dict[str, object], kind: Kind, protocol: str
) -> None:
    assert (Configuration(given).kind, Configuration(given).protocol) == (kind, protocol)


@pytest.mark.parametrize(
    ("value", "number"),
    [
        ("6000.5", 6000),
        (6000.5, 6000),
        ("0x10", 16),
        ("010", 8),
        (" -7", -7),
        ("x", None),
        (float("inf"), None),
    ],
)
def test_numbers_are_read_as_by_strtol(value: object, number: int | None) -> None:
    assert parse_integer(value) == number


@pytest.mark.parametrize(
    ("value", "flag"), [(True, True), ("T", True), ("0", False), (False, False), ("yes", None)]
)
def test_booleans_are_librdkafkas(value: object, flag: bool | None) -> None:  # noqa: FBT001 - a value
    assert parse_boolean(value) is flag


def test_settings_that_are_shown_hold_no_secret_and_name_assignors() -> None:
    config = {
        "group.id": "g",
        "sasl.password": "hush",
        "ssl.key.pem": "hush",
        "on_commit": print,
        "partition.assignment.strategy": [Named()],
    }

    assert public_settings(config) == {"group.id": "g", "partition.assignment.strategy": "mine"}
    assert strategy_names("range, roundrobin") == ["range", "roundrobin"]


@pytest.mark.parametrize("key", [1, None, b"client.id", b"ssl.key.password"])
def test_keys_that_are_no_strings_are_left_to_librdkafkas_rejection(key: object) -> None:
    message = f"No such configuration property: {key!r}: hunter22"

    hidden = without_secrets(message, {key: "hunter22"})

    assert hidden.startswith(f"No such configuration property: {key!r}: ")
    assert ("hunter22" in hidden) is (key != b"ssl.key.password")
