"""Interceptors see every message and every commit, and never stop the consumer."""

import logging
from typing import Any

import pytest
from confluent_kafka import KafkaError, Message, TopicPartition

from groupwright.consumer import ConfigurationError, Consumer, ConsumerInterceptor
from groupwright.consumer._config.log import GroupLog
from groupwright.consumer._membership.interceptor_chain import InterceptorChain
from groupwright.consumer._membership.messages import new_message

NOWHERE: dict[str, Any] = {"bootstrap.servers": "127.0.0.1:1", "group.id": "g", "log_level": 0}
LOG = GroupLog(logging.getLogger("interceptors"), "c", "g")


def message(offset: int) -> Message:
    return new_message(topic="t", partition=0, offset=offset, value=b"v")


class Tagging(ConsumerInterceptor):
    def __init__(self, tag: bytes) -> None:
        self.tag = tag
        self.committed: list[TopicPartition] = []
        self.closed = 0

    def on_consume(self, messages: list[Message]) -> list[Message]:
        for one in messages:
            one.set_value((one.value() or b"") + self.tag)
        return messages

    def on_commit(self, offsets: list[TopicPartition]) -> None:
        self.committed += offsets

    def close(self) -> None:
        self.closed += 1


class Broken(ConsumerInterceptor):
    def on_consume(self, messages: list[Message]) -> list[Message]:
        raise ValueError(f"of {len(messages)}")

    def on_commit(self, offsets: list[TopicPartition]) -> None:
        raise ValueError(f"of {offsets}")

    def close(self) -> None:
        raise ValueError("closing")


class Doubling(ConsumerInterceptor):
    def on_consume(self, messages: list[Message]) -> list[Message]:
        return messages * 2


class Dropping(ConsumerInterceptor):
    def on_consume(self, messages: list[Message]) -> list[Message]:
        return [one for one in messages if (one.offset() or 0) % 2]


def test_they_are_called_in_their_order() -> None:
    chain = InterceptorChain([Tagging(b"1"), Tagging(b"2")], LOG)

    assert [one.value() for one in chain.on_consume([message(0), message(1)])] == [b"v12", b"v12"]


def test_one_may_leave_messages_out() -> None:
    chain = InterceptorChain([Dropping()], LOG)

    assert [one.offset() for one in chain.on_consume([message(offset) for offset in range(4)])] == [1, 3]


def test_errors_are_not_shown_and_not_lost() -> None:
    error = new_message(error=KafkaError(KafkaError._PARTITION_EOF))
    chain = InterceptorChain([Dropping(), Tagging(b"1")], LOG)

    assert chain.on_consume([error]) == [error]
    assert chain.on_consume([message(0), error]) == [error]


@pytest.mark.parametrize("one", [Broken(), Doubling()])
def test_one_that_fails_is_skipped_for_that_call_and_logged_once(
    one: ConsumerInterceptor, caplog: pytest.LogCaptureFixture
) -> None:
    chain = InterceptorChain([Tagging(b"1"), one, Tagging(b"2")], LOG)
    for _ in range(3):
        assert [kept.value() for kept in chain.on_consume([message(0)])] == [b"v12"]

    (record,) = [record for record in caplog.records if record.levelno == logging.ERROR]
    assert "on_consume of the interceptor" in record.getMessage()


def test_commits_and_the_close_reach_all_of_them() -> None:
    last = Tagging(b"")
    chain = InterceptorChain([Broken(), last], LOG)
    chain.on_commit([TopicPartition("t", 0, 3)])
    chain.close()

    assert last.committed == [TopicPartition("t", 0, 3)]
    assert last.closed == 1


@pytest.mark.parametrize("value", [7, [Tagging], [object()], None])
def test_anything_else_is_refused(value: object) -> None:
    with pytest.raises(ConfigurationError, match="interceptors takes a list of ConsumerInterceptor objects"):
        Consumer(NOWHERE | {"interceptors": value})


def test_they_are_closed_once_with_the_consumer() -> None:
    one = Tagging(b"")
    consumer = Consumer(NOWHERE | {"interceptors": [one]})
    consumer.close()
    consumer.close()

    assert one.closed == 1
