"""Validation of configurations for tools: what it finds, and what it leaves alone."""

from typing import Any

import pytest
from confluent_kafka import Consumer, KafkaException

from groupwright.consumer.configuration import ProblemKind, find_problems, known_properties

INVALID, UNKNOWN = ProblemKind.INVALID, ProblemKind.UNKNOWN
IGNORED, UNSUPPORTED = ProblemKind.IGNORED, ProblemKind.UNSUPPORTED


@pytest.mark.parametrize(
    ("config", "key", "kind", "words"),
    [
        ({"sesion.timeout.ms": 6000}, "sesion.timeout.ms", UNKNOWN, "has no property sesion.timeout.ms"),
        ({"session.timeout.ms": "ten"}, "session.timeout.ms", INVALID, "a number from 1 to 3600000"),
        ({"session.timeout.ms": 0}, "session.timeout.ms", INVALID, "value 0 is outside allowed range"),
        ({"max.poll.interval.ms": 1000}, "max.poll.interval.ms", INVALID, "must not be less than session"),
        ({"isolation.level": "foo"}, "isolation.level", INVALID, 'Invalid value "foo"'),
        ({"enable.auto.commit": "maybe"}, "enable.auto.commit", INVALID, "true or false"),
        ({"metadata.broker.list": "b", "auto.offset.reset": "x"}, "auto.offset.reset", INVALID, '"x"'),
        ({"default.topic.config": {"auto.offset.reset": "x"}}, "auto.offset.reset", INVALID, '"x"'),
        ({"partition.assignment.strategy": "range,foo"}, "partition.assignment.strategy", INVALID, "'foo'"),
        (
            {"security.protocol": "SSL", "ssl.ca.location": "/nope"},
            "ssl.ca.location",
            INVALID,
            "no such file",
        ),
        ({"sasl.mechanism": "PLAIN", "security.protocol": "SASL_SSL"}, "sasl.mechanism", INVALID, "username"),
        ({"load.check.interval.ms": "often"}, "load.check.interval.ms", INVALID, "whole number"),
        ({"fetch.max.bytes": 5}, None, INVALID, "`fetch.max.bytes` must be >="),
        ({"acks": "all"}, "acks", IGNORED, "a property of producers"),
        ({"ssl.curves.list": "x"}, "ssl.curves.list", UNSUPPORTED, "not supported"),
    ],
)
def test_a_problem_is_found_and_no_other(
    config: dict[str, Any], key: str | None, kind: ProblemKind, words: str
) -> None:
    (problem,) = find_problems(config)

    assert (problem.key, problem.kind) == (key, kind)
    assert words in problem.message


@pytest.mark.parametrize(
    "config",
    [
        {},
        {"group.id": "billing", "bootstrap.servers": "broker:9092", "session.timeout.ms": "6000"},
        {"group.protocol": "consumer", "group.remote.assignor": "uniform"},
        {"partition.assignment.strategy": "cooperative-sticky,range"},
        {"error_cb": "only a program has functions", "sasl.password": "secret"},
        {"sasl.mechanism": "OAUTHBEARER", "security.protocol": "SASL_PLAINTEXT"},
        {"plugin.library.paths": "/nowhere/to/be/loaded.so"},
        {"heartbeat.interval.ms": 60_000},
        {"client.id": None},
    ],
)
def test_what_a_consumer_accepts_is_no_problem(
    config: dict[str, Any], capfd: pytest.CaptureFixture[str]
) -> None:
    assert find_problems(config) == []
    assert capfd.readouterr() == ("", "")


def test_several_problems_are_found_at_once() -> None:
    problems = find_problems({"a.b": 1, "session.timeout.ms": -1, "max.poll.interval.ms": 10_000})

    assert [problem.key for problem in problems] == ["a.b", "session.timeout.ms", "max.poll.interval.ms"]


@pytest.mark.parametrize("kind", [UNKNOWN, INVALID])
def test_confluent_kafka_rejects_them_too(kind: ProblemKind) -> None:
    wrong: dict[ProblemKind, dict[str, Any]] = {
        UNKNOWN: {"sesion.timeout.ms": 6000},
        INVALID: {"session.timeout.ms": "ten"},
    }

    with pytest.raises(KafkaException):
        Consumer({"group.id": "billing", "log_level": 0, **wrong[kind]})


def test_names_have_aliases() -> None:
    assert {"session.timeout.ms", "load.check.interval.ms", "metadata.broker.list"} <= known_properties()
