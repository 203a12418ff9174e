"""Subclasses of Consumer, and DeserializingConsumer."""

import copy
import pickle
from typing import Any

from confluent_kafka import Consumer, KafkaException, TopicPartition
from confluent_kafka.serialization import IntegerDeserializer, StringDeserializer

from integration_tests.parity.client import record
from integration_tests.parity.lab import Lab, callbacks
from integration_tests.parity.scenarios import scenario


@scenario(seconds=20)
def a_subclass_that_overrides_poll(lab: Lab) -> None:
    """A subclass's poll calls the original one, and nothing else calls its own."""

    class Counting(lab.consumer_class):  # type: ignore[name-defined,misc] # the class under test
        polls = 0

        def poll(self, timeout: float = -1) -> Any:
            self.polls += 1
            return super().poll(timeout)

    topic = lab.topic(messages=10)
    raw = Counting(lab.config())
    consumer = lab.adopt(raw)
    consumer.subscribe([topic], **callbacks())
    consumer.read(10)
    before = raw.polls
    consumer.consume(10, 0.2)
    consumer.close()
    lab.note(f"counted {before > 0}, consume and close polled {raw.polls - before} times")


@scenario(seconds=20)
def a_subclass_that_overrides_close(lab: Lab) -> None:
    """`with` in a subclass: which close it calls."""

    class Closing(lab.consumer_class):  # type: ignore[name-defined,misc] # the class under test
        def close(self) -> None:
            lab.note("the subclass's close")
            super().close()

    topic = lab.topic(messages=3)
    with lab.adopt(Closing(lab.config())) as consumer:
        consumer.subscribe([topic], **callbacks())
        consumer.read(3)
    lab.note_members(0)


@scenario(seconds=20)
def a_subclass_with_its_own_init(lab: Lab) -> None:
    """A subclass's __init__ takes other arguments, and attributes of its own can be set before and after."""

    class Service(lab.consumer_class):  # type: ignore[name-defined,misc] # the class under test
        def __init__(self, topic: str, **settings: Any) -> None:
            self.topic = topic
            super().__init__(lab.config(**settings))
            self.subscribe([topic], on_assign=self.assigned)

        def assigned(self, consumer: Any, owned: list[TopicPartition]) -> None:
            lab.note(f"assigned {len(owned)}, itself: {consumer is self}")

    topic = lab.topic(messages=3)
    consumer = lab.adopt(Service(topic, enable_auto_commit=False))
    consumer.read(3)
    consumer.commit(asynchronous=False)
    consumer.close()


@scenario(seconds=20)
def a_subclass_whose_init_fails(lab: Lab) -> None:
    """A subclass that forgets the original's __init__, or calls it twice, gets an error."""

    class Forgetful(lab.consumer_class):  # type: ignore[name-defined,misc] # the class under test
        def __init__(self) -> None:
            pass

    forgetful = Forgetful()
    lab.attempt("poll", lambda: forgetful.poll(0.1))
    lab.attempt("subscribe", lambda: forgetful.subscribe(["t"]))
    lab.attempt("close", lambda: forgetful.close())  # noqa: PLW0108 - looked up here

    topic = lab.topic(messages=4)
    consumer = lab.consumer()
    consumer.subscribe([topic])
    consumer.read(2)
    lab.attempt("the second __init__", lambda: consumer.raw.__init__(lab.config()))
    consumer.read(2)
    consumer.commit(asynchronous=False)
    consumer.close()
    lab.note_members(0)


@scenario(seconds=20)
def a_subclass_by_multiple_inheritance(lab: Lab) -> None:
    """A mixin before the consumer sees every call of poll and commit."""
    seen: list[str] = []

    class Mixin:
        def poll(self, *args: Any, **kwargs: Any) -> Any:
            seen.append("poll")
            return super().poll(*args, **kwargs)  # type: ignore[misc] # the other base's

        def commit(self, *args: Any, **kwargs: Any) -> Any:
            seen.append("commit")
            return super().commit(*args, **kwargs)  # type: ignore[misc] # the other base's

    class Mixed(Mixin, lab.consumer_class):  # type: ignore[name-defined,misc] # the class under test
        pass

    topic = lab.topic(messages=3)
    consumer = lab.adopt(Mixed(lab.config(enable_auto_commit=False)))
    consumer.subscribe([topic], **callbacks())
    consumer.read(3)
    consumer.commit(asynchronous=False)
    consumer.close()
    lab.note(f"seen {sorted(set(seen))}, commits {seen.count('commit')}")


@scenario(seconds=20)
def a_wrapper_that_delegates(lab: Lab) -> None:
    """A wrapper that delegates every attribute; the wrapped consumer is an instance of confluent-kafka's."""

    class Wrapper:
        def __init__(self, inner: Any) -> None:
            self.inner = inner

        def __getattr__(self, name: str) -> Any:
            return getattr(self.inner, name)

    topic = lab.topic(messages=3)
    raw = lab.consumer_class(lab.config())
    lab.note(f"a confluent-kafka consumer: {isinstance(raw, Consumer)}")
    consumer = lab.adopt(Wrapper(raw))
    consumer.subscribe([topic], **callbacks())
    consumer.read(3)
    consumer.close()


@scenario(seconds=20)
def a_consumer_as_an_object(lab: Lab) -> None:
    """A consumer can be a key, is equal to itself alone, and is true."""
    raw, other = lab.consumer_class(lab.config()), lab.consumer_class(lab.config())
    lab.note(f"{raw == other}, {len({raw, raw, other})}, {bool(raw)}")
    lab.attempt("pickle", lambda: pickle.dumps(raw))
    lab.attempt("copy", lambda: copy.copy(raw))
    for each in (raw, other):
        lab.adopt(each).close()


@scenario(seconds=20)
def deserializers_that_work(lab: Lab) -> None:
    """Keys and values come deserialized, offsets are committed as ever."""
    topic = lab.topic(messages=3)
    config = lab.config(key_deserializer=StringDeserializer(), value_deserializer=StringDeserializer())
    consumer = lab.adopt(lab.deserializing_class(config))
    consumer.subscribe([topic], **callbacks())
    messages = consumer.read(3)
    lab.note(f"{[(message.key(), message.value()) for message in messages]}")
    consumer.close()


@scenario(seconds=20)
def a_deserializing_consumer_with_type_arguments(lab: Lab) -> None:
    """The class takes the types of keys and values, for a base class too; the plain one takes none."""
    lab.attempt("Consumer[str, str]", lambda: type(lab.consumer_class[str, str]))  # type: ignore[index] # what is tried
    lab.attempt("DeserializingConsumer[str]", lambda: lab.deserializing_class[str])  # type: ignore[index] # as above

    class Typed(lab.deserializing_class[str, str]):  # type: ignore[name-defined,misc] # the class under test
        pass

    topic = lab.topic(messages=3)
    for class_ in (lab.deserializing_class[str, str], Typed):  # type: ignore[index] # as above
        config = lab.config(value_deserializer=StringDeserializer(), group_id=f"{lab.group}{class_ is Typed}")
        consumer = lab.adopt(class_(config))
        consumer.subscribe([topic], **callbacks())
        lab.note(f"{[message.value() for message in consumer.read(3)]}")
        consumer.close()


def _failing(lab: Lab, **settings: Any) -> None:
    topic = lab.topic(messages=3)
    consumer = lab.adopt(lab.deserializing_class(lab.config(**settings)))
    consumer.subscribe([topic], **callbacks())
    failures: list[str] = []
    while len(failures) < 3:
        try:
            consumer.poll(0.1)
        except KafkaException as error:
            message = getattr(error, "kafka_message", None)
            failures.append(f"{type(error).__name__} at {None if message is None else message.offset()}")
    lab.note(f"{failures}")
    consumer.close()


@scenario(seconds=20)
def a_value_deserializer_that_fails(lab: Lab) -> None:
    """Each bad value is an exception with its message; the next poll goes on behind it."""
    _failing(lab, value_deserializer=IntegerDeserializer())


@scenario(seconds=20)
def a_key_deserializer_that_fails(lab: Lab) -> None:
    """Each bad key is an exception with its message; the next poll goes on behind it."""
    _failing(lab, key_deserializer=IntegerDeserializer())


@scenario(seconds=20)
def a_deserializer_that_raises_an_error_of_its_own(lab: Lab) -> None:
    """Exceptions of an application's deserializer are wrapped."""

    def fails(_value: object, _context: object) -> object:
        raise ZeroDivisionError

    _failing(lab, value_deserializer=fails)


@scenario(seconds=20)
def a_deserializing_consumer_at_the_end_of_a_partition(lab: Lab) -> None:
    """An event that is no message is a ConsumeError."""
    topic = lab.topic(messages=3)
    config = lab.config(value_deserializer=StringDeserializer(), enable_partition_eof=True)
    consumer = lab.adopt(lab.deserializing_class(config))
    consumer.subscribe([topic], **callbacks())
    consumer.read(3)
    for _ in range(50):
        try:
            consumer.poll(0.1)
        except KafkaException as error:
            lab.note(f"{type(error).__name__} {error.args[0].name()}")
            break
    consumer.attempt("consume", 1, 0.1)
    consumer.close()


@scenario(seconds=20)
def a_deserializing_consumer_with_callbacks_and_commits(lab: Lab) -> None:
    """Its other methods are a consumer's: commit by message, seek, position."""
    topic = lab.topic(messages=3)
    config = lab.config(value_deserializer=StringDeserializer(), enable_auto_commit=False, on_commit=record)
    consumer = lab.adopt(lab.deserializing_class(config))
    consumer.subscribe([topic], **callbacks())
    messages = consumer.read(3)
    consumer.commit(message=messages[1], asynchronous=False)
    consumer.seek(TopicPartition(topic, 0, 2))
    consumer.read(1)
    consumer.position([TopicPartition(topic, 0)])
    consumer.close()
